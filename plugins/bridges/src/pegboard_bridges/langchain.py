"""LangChain: tools are `BaseTool`s, which a `ToolNode` of LangGraph calls with the model's whole tool call.

The schema goes over as a dict, which LangChain hands to the model and does not check. A result is a `ToolMessage`,
whose `artifact` holds the result as data. Approval is LangGraph's `interrupt`, progress its custom stream
(`stream_mode="custom"`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pegboard import Approval, ApprovalRequest, Chunk, ImageBlock, Session, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, failed, given_arguments
from pegboard_bridges._outwards import OfferedTools, image_type, progress_of, text_or_parts

with needs("langchain"):
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool, BaseToolkit
    from langchain_core.tools import Tool as SingleTool
    from langgraph.config import get_stream_writer
    from langgraph.types import interrupt

__all__ = ["BoardTool", "from_langchain", "to_langchain"]


class BoardTool(BaseTool):
    """A tool of the toolkit."""

    offered: Any = None

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # In one piece: a tool may have parameters of any name, `config` and `run_manager` too.
        return (tool_input, tool_call_id), {}

    def _run(self, arguments: Any, call_id: str | None) -> Any:
        result = self.offered.call_sync(self.name, arguments, call_id, ask=_ask, on_chunk=_writer())
        return _message(result, call_id)

    async def _arun(self, arguments: Any, call_id: str | None) -> Any:
        result = await self.offered.call(self.name, arguments, call_id, ask=_ask, on_chunk=_writer())
        return _message(result, call_id)


def to_langchain(source: Toolkit | Session) -> list[BoardTool]:
    """The tools that a toolkit, session or view offers now, for `create_agent`, `ToolNode` or `model.bind_tools`."""
    offered = OfferedTools(source)
    return [
        BoardTool(name=tool.name, description=tool.description, args_schema=tool.parameters, offered=offered)
        for tool in offered.tools
    ]


def _message(result: ToolResult, call_id: str | None) -> Any:
    content: Any = text_or_parts(result, _text, _image)
    if call_id is None:  # called by hand, without a model
        return content
    status = "error" if result.is_error else "success"
    return ToolMessage(content=content, tool_call_id=call_id, name=result.name, status=status, artifact=result.data)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(block: ImageBlock) -> dict[str, Any]:
    where = {"url": block.url} if block.url else {"base64": block.data}
    return {"type": "image", "mime_type": image_type(block), **where}


def _ask(request: ApprovalRequest) -> bool | Approval | None:
    """Interrupt the graph; resumed with True, False or a decision as `HumanInTheLoopMiddleware` has it."""
    question = {"tool": request.tool.name, "arguments": request.arguments, "reason": request.reason}
    try:
        answer = interrupt(question)
    except (KeyError, RuntimeError):  # outside a graph, or in one that cannot wait
        return None
    if not isinstance(answer, dict):
        return answer is True
    if answer.get("type") == "edit":
        return Approval.edit(answer["edited_action"]["args"])
    return True if answer.get("type") == "approve" else Approval.deny(str(answer.get("message", "")))


def _writer() -> Callable[[Chunk], Any] | None:
    try:
        write = get_stream_writer()
    except (KeyError, RuntimeError):  # outside a graph
        return None
    return lambda chunk: write(progress_of(chunk))


def from_langchain(tools: Any) -> ExternalTools:
    """The tools of a `BaseTool`, a `BaseToolkit`, or a list of such. Raises `NotNativeError` for anything else."""
    return external("langchain", tools, {BaseTool: _external, BaseToolkit: BaseToolkit.get_tools})


def _external(tool: BaseTool) -> ExternalTool:
    schema = tool.tool_call_schema  # without what LangChain injects
    if isinstance(tool, SingleTool) and tool.args_schema is None:
        schema = {"properties": tool.args, "required": list(tool.args)}  # one text
    elif not isinstance(schema, dict):
        schema = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema.schema()

    async def call(call: ToolCall) -> Any:
        request = {"type": "tool_call", "id": call.id, "name": tool.name, "args": given_arguments(call)}
        message = await tool.ainvoke(request)
        return _result(call, message)

    return ExternalTool(tool.name, tool.description, schema, call, ("langchain",))


def _result(call: ToolCall, message: Any) -> Any:
    content = getattr(message, "content", message)
    if getattr(message, "status", "success") == "error":
        return failed(call, str(content))
    return content if isinstance(content, str) else [_block(part) for part in content]


def _block(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "image":
        data, url = part.get("base64"), part.get("url")
        return ImageBlock(data=data, url=url, media_type=part.get("mime_type"))
    if kind == "image_url":
        return ImageBlock(url=part["image_url"]["url"])
    return TextBlock(part["text"] if kind == "text" else str(part))
