"""Strands: a tool streams events, the last of which is its result: progress goes where the agent's events go.

A request for approval is an interrupt: the run ends with `stop_reason="interrupt"`, and goes on when the agent is
called with the responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from pegboard import ApprovalRequest, Chunk, DataBlock, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, failed, finished, given_arguments
from pegboard_bridges._outwards import OfferedTools, image_type, parts, progress_of, words_of

with needs("strands"):
    from strands.interrupt import InterruptException
    from strands.tools import ToolProvider
    from strands.types._events import ToolInterruptEvent, ToolStreamEvent  # ToolStreamEvent is exported nowhere else
    from strands.types.events import ToolResultEvent
    from strands.types.tools import AgentTool, ToolContext, ToolSpec, ToolUse

__all__ = ["BoardTool", "from_strands", "to_strands"]


class BoardTool(AgentTool):
    """A tool of the toolkit."""

    def __init__(self, offered: OfferedTools, tool: OurTool) -> None:
        super().__init__()
        self._offered = offered
        self._tool = tool

    @property
    def tool_name(self) -> str:
        """Its name."""
        return self._tool.name

    @property
    def tool_spec(self) -> ToolSpec:
        """What the model is shown."""
        tool = self._tool
        return {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}

    @property
    def tool_type(self) -> str:
        """What kind of tool it is."""
        return "pegboard"

    async def stream(self, tool_use: ToolUse, invocation_state: dict[str, Any], **_: Any) -> AsyncGenerator[Any, None]:
        """Yield progress as it comes, then the result, or the interrupt."""

        async def ask(request: ApprovalRequest) -> bool | None:
            if "agent" not in invocation_state:  # called by hand
                return None
            context = ToolContext(tool_use, invocation_state["agent"], invocation_state)
            reason = {"reason": request.reason, "tool": request.tool.name, "arguments": dict(request.arguments)}
            answer = context.interrupt(f"pegboard-{request.tool.name}", reason=reason)
            return answer is True or str(answer).lower() in ("y", "yes", "approve", "true")

        heard: asyncio.Queue[Chunk | None] = asyncio.Queue()
        made = self._offered.call(
            self.tool_name, tool_use["input"], tool_use["toolUseId"], ask=ask, on_chunk=heard.put_nowait
        )
        task = asyncio.create_task(made)
        task.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            while (chunk := await heard.get()) is not None:
                yield ToolStreamEvent(tool_use, progress_of(chunk))
            yield ToolResultEvent(_event(tool_use, task.result()))
        except InterruptException as interrupted:
            yield ToolInterruptEvent(tool_use, [interrupted.interrupt])
        finally:
            task.cancel()  # where the agent stopped listening


def to_strands(source: Toolkit | Session) -> list[BoardTool]:
    """The tools that a toolkit, session or view offers now, for `Agent(tools=...)`."""
    offered = OfferedTools(source)
    return [BoardTool(offered, tool) for tool in offered.tools]


def _event(use: ToolUse, result: ToolResult) -> Any:
    status = "error" if result.is_error else "success"
    return {"toolUseId": use["toolUseId"], "status": status, "content": parts(result, _text, _image)}


def _text(text: str) -> dict[str, Any]:
    return {"text": text}


def _image(block: ImageBlock) -> dict[str, Any]:
    if block.data is None:
        return _text(words_of(block))
    kind = image_type(block).partition("/")[2]
    return {"image": {"format": "jpeg" if kind == "jpg" else kind, "source": {"bytes": block.to_bytes()}}}


def from_strands(tools: Any) -> ExternalTools:
    """The tools of an `AgentTool`, a `ToolProvider`, or a list of such. Raises `NotNativeError` for anything else."""
    return external("strands", tools, {AgentTool: _external, ToolProvider: lambda holder: finished(holder.load_tools)})


def _external(tool: AgentTool) -> ExternalTool:
    async def call(call: ToolCall) -> Any:
        use: Any = {"toolUseId": call.id, "name": tool.tool_name, "input": given_arguments(call)}
        last: Any = None
        async for event in tool.stream(use, {}):
            if isinstance(event, ToolStreamEvent):
                _tell(call, event)
            last = event
        result = last.tool_result if isinstance(last, ToolResultEvent) else last
        blocks = [_block(part) for part in result["content"]]
        if result["status"] == "error":
            return failed(call, "\n".join(block.text for block in blocks))
        return blocks

    spec = tool.tool_spec
    schema = spec["inputSchema"].get("json", spec["inputSchema"])
    return ExternalTool(tool.tool_name, spec["description"], schema, call, ("strands",))


def _tell(call: ToolCall, event: Any) -> None:
    data = event["tool_stream_event"]["data"]
    call.emitter.emit(str(data.get("text", data)) if isinstance(data, dict) else str(data))


def _block(part: Any) -> Any:
    if "text" in part:
        return TextBlock(part["text"])
    if "image" in part and "bytes" in part["image"]["source"]:
        return ImageBlock.from_bytes(part["image"]["source"]["bytes"], f"image/{part['image']['format']}")
    return DataBlock(part["json"]) if "json" in part else TextBlock(f"[{next(iter(part))}]")
