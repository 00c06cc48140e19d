"""llm: tools are records with a function, which a chain calls with keyword arguments.

A function that has the parameter `llm_tool_call` is given the whole call. What needs approval pauses the chain by
`ApprovalNeeded`; it is resumed, as any paused chain is, with messages that end in the call. There is no progress.
"""

from __future__ import annotations

import inspect
from typing import Any

from pegboard import Approval, ApprovalRequest, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, given_arguments
from pegboard_bridges._outwards import OfferedTools, image_type, text_or_parts

with needs("llm"):
    from llm import Attachment, PauseChain, Tool, Toolbox, ToolOutput
    from llm import ToolCall as LlmToolCall

__all__ = ["ApprovalNeeded", "from_llm", "to_llm"]

SIGNATURE = inspect.Signature([inspect.Parameter("llm_tool_call", inspect.Parameter.KEYWORD_ONLY)])
"""The signature that llm reads before each call: to compute it each time would cost more than the call."""


class ApprovalNeeded(PauseChain):
    """Pauses a chain until `answer(...)` approves or denies the call. Then resume the chain with the same tools."""

    def __init__(self, request: ApprovalRequest, answers: dict[str, bool | Approval]) -> None:
        super().__init__(request.reason)
        self.request = request
        self._answers = answers

    def answer(self, decision: bool | Approval) -> None:
        """What counts when the call is made again."""
        self._answers[self.request.call_id] = decision


def to_llm(source: Toolkit | Session, *, later: bool = False, wait: bool = True) -> list[Tool]:
    """The tools that a toolkit, session or view offers now, for `model.chain(..., tools=...)`.

    With `later` they are for an `AsyncModel`. With `wait=False` no chain is paused: what needs approval is denied.
    """
    offered = OfferedTools(source)
    answers: dict[str, bool | Approval] = {}
    return [_tool(offered, tool, answers, later, wait) for tool in offered.tools]


def _tool(offered: OfferedTools, tool: OurTool, answers: dict[str, bool | Approval], later: bool, wait: bool) -> Tool:
    def ask(request: ApprovalRequest) -> bool | Approval | None:
        if request.call_id in answers:
            return answers.pop(request.call_id)
        if wait:
            raise ApprovalNeeded(request, answers)
        return None

    def call(llm_tool_call: LlmToolCall, **_: Any) -> Any:
        made = llm_tool_call
        return _output(offered.call_sync(tool.name, made.arguments, made.tool_call_id, ask=ask))

    async def call_later(llm_tool_call: LlmToolCall, **_: Any) -> Any:
        made = llm_tool_call
        return _output(await offered.call(tool.name, made.arguments, made.tool_call_id, ask=ask))

    function: Any = call_later if later else call
    function.__signature__ = SIGNATURE
    return Tool(tool.name, tool.description, tool.parameters, function, plugin="pegboard-bridges")


def _output(result: ToolResult) -> Any:
    found = text_or_parts(result, str, _attachment)
    if isinstance(found, str):
        return found
    words = [each for each in found if isinstance(each, str)]
    return ToolOutput("\n".join(words), [each for each in found if not isinstance(each, str)])


def _attachment(block: ImageBlock) -> Any:
    return Attachment(image_type(block), url=block.url, content=None if block.url else block.to_bytes())


def from_llm(tools: Any) -> ExternalTools:
    """The tools of a `Tool`, a `Toolbox`, or a list of such. Raises `NotNativeError` for anything else."""
    return external("llm", tools, {Tool: _external, Toolbox: _inside})


def _inside(toolbox: Toolbox) -> list[Tool]:
    toolbox.prepare()
    return list(toolbox.tools())


def _external(tool: Tool) -> ExternalTool:
    function: Any = tool.implementation
    takes_call = "llm_tool_call" in inspect.signature(function).parameters

    def started(call: ToolCall) -> Any:
        arguments = given_arguments(call)
        more = {"llm_tool_call": LlmToolCall(tool.name, arguments, call.id)} if takes_call else {}
        return function(**arguments, **more)

    async def later(call: ToolCall) -> Any:
        return _value(await started(call))

    def now(call: ToolCall) -> Any:
        return _value(started(call))

    run = later if inspect.iscoroutinefunction(function) else now
    return ExternalTool(tool.name, tool.description or "", tool.input_schema, run, ("llm",))


def _value(value: Any) -> Any:
    if not isinstance(value, ToolOutput):
        return value
    images = [_image(each) for each in value.attachments]
    if images and value.output == "":
        return images
    return [TextBlock(value.output) if isinstance(value.output, str) else value.output, *images]


def _image(attachment: Attachment) -> Any:
    kind = attachment.resolve_type() or ""
    if not kind.startswith("image/"):
        return TextBlock(f"[attachment, {kind}]")
    if attachment.url:
        return ImageBlock(url=attachment.url, media_type=kind)
    return ImageBlock.from_bytes(attachment.content_bytes(), kind)
