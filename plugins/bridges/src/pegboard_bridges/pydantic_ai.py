"""Pydantic AI: a toolset, which the agent asks for its tools before each step of a run.

Arguments go to the toolkit as the model wrote them, so the toolset has a validator that accepts everything. A failure
is `ToolFailed`, which costs no retry. Approval and suspended calls are the agent's deferred tools:
`DeferredToolRequests` has to be among its output types. Progress goes into the run's event stream, as `BoardProgress`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from pegboard import (
    Approval,
    ApprovalRequest,
    Chunk,
    ImageBlock,
    Session,
    Status,
    Suspend,
    ToolCall,
    Toolkit,
    ToolResult,
)
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import (
    ExternalTool,
    ExternalTools,
    approved,
    external,
    failed,
    finished,
    given_arguments,
)
from pegboard_bridges._outwards import OfferedTools, image_type, text_of, text_or_parts

with needs("pydantic_ai"):
    from pydantic_ai import (
        ApprovalRequired,
        BinaryContent,
        CallDeferred,
        CustomEvent,
        FunctionToolset,
        ImageUrl,
        RunContext,
        RunUsage,
        Tool,
        ToolDefinition,
        ToolFailed,
    )
    from pydantic_ai.messages import ToolReturn
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

__all__ = ["BoardProgress", "BoardToolset", "from_pydantic_ai", "to_pydantic_ai"]


@dataclass(kw_only=True)
class BoardProgress(CustomEvent):
    """Progress of a running tool; `done` of `total` if the tool reports them."""

    text: str = ""
    done: float | None = None
    total: float | None = None


class _AsSent:
    """Accepts everything that the model sent, text that is not JSON too: Pegboard reports what is wrong with it."""

    def validate_json(self, text: Any, **_: Any) -> Any:
        return text

    def validate_python(self, value: Any, **_: Any) -> Any:
        return value


class BoardToolset(AbstractToolset[Any]):
    """The tools that a toolkit offers when the agent asks."""

    def __init__(self, offered: OfferedTools, name: str | None, wait: bool) -> None:
        self._offered = offered
        self._name = name
        self._wait = wait

    @property
    def id(self) -> str | None:
        """The id by which durable execution finds the toolset."""
        return self._name

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools that are offered now."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=tool.parameters,
                    return_schema=tool.returns,
                ),
                max_retries=0,
                args_validator=_AsSent(),
            )
            for tool in self._offered.tools
        }

    async def call_tool(self, name: str, tool_args: Any, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        """Call a tool. Raises `ToolFailed`, and the exceptions that make the agent wait."""

        async def ask(request: ApprovalRequest) -> bool | Approval | None:
            if not self._wait or ctx.tool_call_approved:
                return True if ctx.tool_call_approved else None
            raise ApprovalRequired({"reason": request.reason})

        async def tell(chunk: Chunk) -> None:
            done, total = chunk.progress or (None, None)
            await ctx.emit(BoardProgress(text=chunk.text, done=done, total=total))

        result = await self._offered.call(name, tool_args, ctx.tool_call_id, ask=ask, on_chunk=tell)
        if result.status is Status.SUSPENDED and self._wait:
            raise CallDeferred({"reason": result.text})
        if result.is_error:
            raise ToolFailed(text_of(result))
        return text_or_parts(result, str, _image)


def to_pydantic_ai(source: Toolkit | Session, *, id: str | None = None, wait: bool = True) -> BoardToolset:  # noqa: A002 - its name there
    """A toolkit, session or view as a toolset, for `Agent(toolsets=[...])`.

    With `wait=False` a run never ends in `DeferredToolRequests`: calls that need approval are denied, and the model
    reads what a suspended call waits for.
    """
    return BoardToolset(OfferedTools(source), id, wait)


def _image(block: ImageBlock) -> Any:
    return ImageUrl(block.url) if block.url else BinaryContent(block.to_bytes(), media_type=image_type(block))


def from_pydantic_ai(tools: Any) -> ExternalTools:
    """The tools of a `Tool`, a toolset, or a list of such. Raises `NotNativeError` for anything else.

    A toolset is read once, as by an agent without dependencies.
    """
    readers = {Tool: lambda tool: [FunctionToolset([tool])], AbstractToolset: _inside}
    return external("pydantic_ai", tools, readers)


def _inside(toolset: AbstractToolset[Any]) -> list[ExternalTool]:
    found = finished(lambda: toolset.get_tools(_context()))
    return [_one(toolset, each) for each in found.values()]


def _context(call_id: str = "", name: str = "", allowed: bool = False) -> RunContext[Any]:
    return RunContext(
        deps=None,
        model=TestModel(),
        usage=RunUsage(),
        tool_call_id=call_id,
        tool_name=name,
        tool_call_approved=allowed,
    )


def _one(toolset: AbstractToolset[Any], tool: ToolsetTool[Any]) -> ExternalTool:
    described = tool.tool_def

    async def run(call: ToolCall, arguments: dict[str, Any], allowed: bool = False) -> Any:
        checked = tool.args_validator.validate_python(arguments)
        return _value(
            await toolset.call_tool(described.name, checked, _context(call.id, described.name, allowed), tool)
        )

    async def with_approval(call: ToolCall) -> Any:
        arguments = await approved(call, f"{described.name} needs approval")
        return arguments if isinstance(arguments, ToolResult) else await run(call, arguments, allowed=True)

    async def call(call: ToolCall) -> Any:
        if described.kind == "external":
            raise Suspend(f"{described.name} runs elsewhere")
        try:
            if described.kind == "unapproved":
                return await with_approval(call)
            try:
                return await run(call, given_arguments(call))
            except ApprovalRequired:
                return await with_approval(call)
        except CallDeferred as deferred:
            raise Suspend(str((deferred.metadata or {}).get("reason", f"{described.name} waits"))) from None
        except ToolFailed as failure:
            return failed(call, failure.message)

    return ExternalTool(
        described.name, described.description or "", described.parameters_json_schema, call, ("pydantic_ai",)
    )


def _value(value: Any) -> Any:
    if isinstance(value, ToolReturn):
        return _value(value.return_value)
    if isinstance(value, BinaryContent) and value.is_image:
        return ImageBlock(data=base64.b64encode(value.data).decode(), media_type=value.media_type)
    if isinstance(value, ImageUrl):
        return ImageBlock(url=value.url)
    return [_value(each) for each in value] if isinstance(value, list) else value
