"""LlamaIndex: tools whose metadata gives the schema, and which give a `ToolOutput` of blocks.

An agent's workflow hands its context to a tool that asks for it: through that a tool waits for a human
(`InputRequiredEvent`, answered by a `HumanResponseEvent`), and reports progress (`BoardProgress`).
"""

from __future__ import annotations

import json
from typing import Any

from pegboard import ApprovalRequest, Chunk, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, failed, given_arguments
from pegboard_bridges._outwards import OfferedTools, image_type, parts, progress_of

with needs("llamaindex"):
    from llama_index.core.base.llms.types import ImageBlock as LlamaImage
    from llama_index.core.base.llms.types import TextBlock as LlamaText
    from llama_index.core.tools import BaseTool, FunctionTool, ToolMetadata, ToolOutput, adapt_to_async_tool
    from llama_index.core.tools.tool_spec.base import BaseToolSpec
    from llama_index.core.workflow import Event, HumanResponseEvent, InputRequiredEvent

__all__ = ["BoardProgress", "BoardTool", "from_llamaindex", "to_llamaindex"]

CONTEXT = "__workflow_context__"


class BoardProgress(Event):
    """Progress of a running tool: `text`, and `done` of `total` if the tool reports them."""


class _Metadata(ToolMetadata):
    """The tool's whole schema. LlamaIndex would make one from a pydantic model, which such a tool does not have."""

    def __init__(self, tool: OurTool) -> None:
        super().__init__(tool.description, tool.name, None)
        self._parameters = tool.parameters

    def get_parameters_dict(self) -> dict[str, Any]:
        return dict(self._parameters)


class BoardTool(FunctionTool):
    """A tool of the toolkit."""

    # What agents look at to know that a tool wants their context.
    requires_context = True
    ctx_param_name = CONTEXT

    def __init__(self, offered: OfferedTools, tool: OurTool) -> None:
        self._metadata = _Metadata(tool)
        self._offered = offered
        self.partial_params: dict[str, Any] = {}

    def __call__(self, /, *args: Any, **arguments: Any) -> ToolOutput:
        """`call`, for agents without an event loop."""
        return self.call(*args, **arguments)

    def call(self, /, *args: Any, **arguments: Any) -> ToolOutput:
        """Call it; there is no way to ask for approval."""
        arguments.pop(CONTEXT, None)
        return self._output(arguments, self._offered.call_sync(self.metadata.get_name(), arguments))

    async def acall(self, /, *args: Any, **arguments: Any) -> ToolOutput:
        """Call it in a workflow. Raises the exception that makes the workflow wait."""
        context = arguments.pop(CONTEXT, None)

        async def ask(request: ApprovalRequest) -> bool | None:
            if context is None:
                return None
            # A tool does not learn the id of its call: a second call like this one gets the same answer.
            waits = f"{request.tool.name} {json.dumps(dict(request.arguments), sort_keys=True)}"
            question = InputRequiredEvent(
                prefix=f"{request.reason}: ",
                tool=request.tool.name,
                arguments=dict(request.arguments),
                waiter_id=waits,
            )
            answer = await context.wait_for_event(HumanResponseEvent, question, waits, {"waiter_id": waits})
            return answer.response is True or str(answer.response).lower() in ("y", "yes")

        def tell(chunk: Chunk) -> None:
            context.write_event_to_stream(BoardProgress(**progress_of(chunk)))

        name = self.metadata.get_name()
        result = await self._offered.call(name, arguments, ask=ask, on_chunk=tell if context else None)
        return self._output(arguments, result)

    def _output(self, arguments: dict[str, Any], result: ToolResult) -> ToolOutput:
        return ToolOutput(
            result.name,
            blocks=parts(result, _text, _image),
            raw_input=arguments,
            raw_output=result.data,
            is_error=result.is_error,
        )


def to_llamaindex(source: Toolkit | Session) -> list[BoardTool]:
    """The tools that a toolkit, session or view offers now, for `FunctionAgent(tools=...)` and other agents."""
    offered = OfferedTools(source)
    return [BoardTool(offered, tool) for tool in offered.tools]


def _text(text: str) -> Any:
    return LlamaText(text=text)


def _image(block: ImageBlock) -> Any:
    where = {"url": block.url} if block.url else {"image": block.to_bytes()}
    return LlamaImage(image_mimetype=image_type(block), **where)


def from_llamaindex(tools: Any) -> ExternalTools:
    """The tools of a `BaseTool`, a `BaseToolSpec`, or a list of such. Raises `NotNativeError` for anything else."""
    return external("llamaindex", tools, {BaseTool: _external, BaseToolSpec: BaseToolSpec.to_tool_list})


def _external(tool: BaseTool) -> ExternalTool:
    later, metadata = adapt_to_async_tool(tool), tool.metadata

    async def call(call: ToolCall) -> Any:
        output = await later.acall(**given_arguments(call))
        blocks = [_block(block) for block in output.blocks]
        return failed(call, output.content) if output.is_error else blocks or [TextBlock("")]

    schema = metadata.get_parameters_dict()
    return ExternalTool(metadata.get_name(), metadata.description, schema, call, ("llamaindex",))


def _block(block: Any) -> Any:
    if isinstance(block, LlamaText):
        return TextBlock(block.text)
    if isinstance(block, LlamaImage):
        if block.url:
            return ImageBlock(url=str(block.url))
        return ImageBlock.from_bytes(block.resolve_image().read(), block.image_mimetype)
    return TextBlock(str(block))
