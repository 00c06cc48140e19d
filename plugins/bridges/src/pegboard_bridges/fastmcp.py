"""FastMCP: a provider, which the server asks for its tools at each request.

Results are blocks of MCP, progress is reported to the client, and approval is a question to the client's human: by the
newer protocol the client sends its request again with the answer, by the older one it asks while the call waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pegboard import (
    Approval,
    ApprovalRequest,
    AudioBlock,
    Chunk,
    ImageBlock,
    LinkBlock,
    Session,
    TextBlock,
    ToolCall,
    Toolkit,
)
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, failed, finished, given_arguments
from pegboard_bridges._outwards import OfferedTools, image_type, parts, words_of

with needs("fastmcp"):
    from fastmcp import Client, Context, FastMCP
    from fastmcp.exceptions import ToolError
    from fastmcp.server.dependencies import get_context
    from fastmcp.server.providers import Provider
    from fastmcp.tools import Tool, ToolResult
    from fastmcp.tools.base import InputRequiredToolResult
    from mcp_types import (
        ElicitRequest,
        ElicitRequestFormParams,
        ImageContent,
        InputRequiredResult,
        TextContent,
        ToolAnnotations,
    )

__all__ = ["BoardProvider", "from_fastmcp", "to_fastmcp"]

QUESTION = "approval"


class BoardProvider(Provider):
    """The tools that a toolkit offers when a client asks."""

    def __init__(self, offered: OfferedTools) -> None:
        super().__init__()
        self._offered = offered

    async def _list_tools(self) -> Sequence[Tool]:
        return self._offered.natives(partial(_tool, self._offered))


class _BoardTool(Tool):
    """A tool of the toolkit; clients see `parameters`, and Pegboard checks the arguments by them."""

    offered: Any

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call it."""
        context = _context()

        async def ask(request: ApprovalRequest) -> bool | Approval | None:
            return None if context is None else await _answer(context, request)

        async def tell(chunk: Chunk) -> None:
            done, total = chunk.progress or (0, None)
            await context.report_progress(done, total, chunk.text)

        try:
            result = await self.offered.call(self.name, arguments, ask=ask, on_chunk=tell if context else None)
        except _AskFirst as needed:
            return InputRequiredToolResult(needed.result)
        data = result.data if isinstance(result.data, dict) else None
        return ToolResult(parts(result, _text, _image), data, is_error=result.is_error)


class _AskFirst(Exception):  # noqa: N818 - no error: the client comes again with the answer
    def __init__(self, result: InputRequiredResult) -> None:
        self.result = result


def to_fastmcp(source: Toolkit | Session) -> BoardProvider:
    """A toolkit, session or view as a provider, for `FastMCP(providers=[...])` or `server.add_provider(...)`."""
    return BoardProvider(OfferedTools(source))


def _tool(offered: OfferedTools, tool: OurTool) -> Tool:
    hints = tool.hints
    annotations = ToolAnnotations(
        read_only_hint=hints.read_only,
        destructive_hint=hints.destructive,
        idempotent_hint=hints.idempotent,
        open_world_hint=hints.open_world,
    )
    return _BoardTool(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        annotations=annotations,
        offered=offered,
    )


def _context() -> Any:
    try:
        return get_context()
    except RuntimeError:  # called by hand, without a server
        return None


async def _answer(context: Context, request: ApprovalRequest) -> bool | None:
    """The answer of the client's user; None if the client cannot ask."""
    answer = (context.input_responses or {}).get(QUESTION)
    if answer is not None:
        return bool(answer.action == "accept")
    if not _shows_forms(context):
        return None
    question = f"{request.reason}. Arguments: {dict(request.arguments)}. May it run?"
    try:
        return bool((await context.elicit(question, bool)).action == "accept")
    except ToolError:  # the newer protocol cannot ask while a call runs
        nothing: Any = {"type": "object", "properties": {}}
        elicited = ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=nothing))
        raise _AskFirst(InputRequiredResult(input_requests={QUESTION: elicited})) from None
    except Exception:  # noqa: BLE001 - clients that cannot ask fail in different ways
        return None


def _shows_forms(context: Context) -> bool:
    """Whether the client shows its user a form. A request to one that does not would end the call with an error."""
    declared = getattr(context.session.client_capabilities, "elicitation", None)
    return declared is not None and (declared.form is not None or declared.url is None)  # a bare one means forms


def _text(text: str) -> Any:
    return TextContent(type="text", text=text)


def _image(block: ImageBlock) -> Any:
    if block.data is None:
        return _text(words_of(block))
    return ImageContent(type="image", data=block.data, mime_type=image_type(block))


def from_fastmcp(tools: Any) -> ExternalTools:
    """The tools of a `Tool`, a `FastMCP` server, a provider, a `Client`, or a list of such.

    They are listed once. Raises `NotNativeError` for anything else.
    """
    readers: dict[type, Callable[[Any], Any]] = {
        Tool: lambda tool: _one(tool.to_mcp_tool(), lambda call: tool.run(given_arguments(call))),
        Client: _of_client,
        FastMCP: _of_server,  # a provider itself, whose tools may ask for its context
        Provider: lambda provider: finished(provider.list_tools),
    }
    return external("fastmcp", tools, readers)


def _of_client(client: Client[Any]) -> list[ExternalTool]:
    async def listed() -> Any:
        async with client:
            return await client.list_tools()

    async def send(name: str, call: ToolCall) -> Any:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            call.emitter.progress(progress, total, message or "")

        async with client.new() as own:  # a connection belongs to the loop that opened it
            return await own.call_tool_mcp(name, given_arguments(call), progress_handler=heard)

    return [_one(tool, partial(send, tool.name)) for tool in finished(listed)]


def _of_server(server: FastMCP[Any]) -> list[ExternalTool]:
    async def send(name: str, call: ToolCall) -> Any:
        return await server.call_tool(name, given_arguments(call))

    return [_one(tool.to_mcp_tool(), partial(send, tool.name)) for tool in finished(server.list_tools)]


def _one(described: Any, run: Callable[[ToolCall], Any]) -> ExternalTool:
    async def call(call: ToolCall) -> Any:
        result = await run(call)
        content = [_block(block) for block in result.content]
        return failed(call, "\n".join(block.text for block in content)) if result.is_error else content

    hints = described.annotations
    return ExternalTool(
        described.name,
        described.description or "",
        described.input_schema,
        call,
        ("fastmcp",),
        read_only=getattr(hints, "read_only_hint", None),
        destructive=getattr(hints, "destructive_hint", None),
        idempotent=getattr(hints, "idempotent_hint", None),
        open_world=getattr(hints, "open_world_hint", None),
    )


def _block(block: Any) -> Any:
    match block.type:
        case "text":
            return TextBlock(block.text)
        case "image":
            return ImageBlock(data=block.data, media_type=block.mime_type)
        case "audio":
            return AudioBlock(data=block.data, media_type=block.mime_type)
        case "resource_link":
            return LinkBlock(str(block.uri), block.name, block.description, block.mime_type)
    return TextBlock(getattr(block.resource, "text", None) or f"[file: {block.resource.uri}]")
