"""The Model Context Protocol: descriptions of tools, requests to call them, their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pegboard import (
    AudioBlock,
    Block,
    Dialect,
    FileBlock,
    ImageBlock,
    LinkBlock,
    Status,
    Tool,
    ToolCall,
    ToolResult,
    VideoBlock,
)
from pegboard_dialects._blocks import NOTHING, Media, as_text, media_type_of
from pegboard_dialects._external import external
from pegboard_dialects._reading import as_plain, several, unknown_response
from pegboard_dialects._tools import Provider, call_of

__all__ = ["DIALECT"]

EXPECTED: Final = "a tools/call request or its params"
PROVIDER: Final = Provider()
WRAPPED: Final = "x-fastmcp-wrap-result"
"""Marks an output schema whose value is the member `result` of an object: clients take only objects."""
_HINTS: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}


def tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The definitions that an answer to `tools/list` holds."""
    found = []
    for each in PROVIDER.definitions(tools, strict=False):
        hints = each.tool.hints
        annotations = {hint: value for name, hint in _HINTS.items() if (value := getattr(hints, name)) is not None}
        returns = each.tool.returns
        found.append(
            {
                "name": each.tool.name,
                **each.described,
                "inputSchema": each.parameters,
                **({} if returns is None else {"outputSchema": _of_an_object(returns)}),
                **({"annotations": annotations} if annotations else {}),
            }
        )
    return found


def _of_an_object(returns: dict[str, Any]) -> dict[str, Any]:
    if returns.get("type") == "object":
        return returns
    inner = {keyword: value for keyword, value in returns.items() if keyword not in ("$defs", "$schema")}
    wrapped = {"type": "object", "properties": {"result": inner}, "required": ["result"], WRAPPED: True}
    return wrapped | {keyword: returns[keyword] for keyword in ("$schema", "$defs") if keyword in returns}


def calls(response: Any, *, tools: Sequence[Tool] = ()) -> list[ToolCall]:
    """The call in a request; several for a list of requests."""
    requests = several(response)
    return [_call(each, tools) for each in ([as_plain(response)] if requests is None else requests)]


def _call(request: Any, tools: Sequence[Tool]) -> ToolCall:
    params = request.get("params") if isinstance(request, Mapping) and "params" in request else request
    method = request.get("method", "tools/call") if isinstance(request, Mapping) else None
    if not isinstance(params, Mapping) or "name" not in params or method != "tools/call":
        raise unknown_response("mcp", EXPECTED, request)
    request_id = request.get("id") if request is not params else None
    meta = {"_meta": params.get("_meta", params.get("meta"))}
    if request_id is not None and not isinstance(request_id, str):
        meta["id"] = request_id
    call_id = None if request_id is None else str(request_id)
    return call_of(call_id, params["name"], params.get("arguments"), meta, tools)


def results(results: Iterable[ToolResult], *, tools: Sequence[Tool] = ()) -> list[dict[str, Any]]:
    """A `CallToolResult` for each result."""
    promised = {tool.name: tool for tool in tools}
    return [_result(result, promised.get(result.name)) for result in results]


def _result(result: ToolResult, tool: Tool | None) -> dict[str, Any]:
    content = [_content(block) for block in (*result.content, *result.attachments)]
    # A suspended call has no value: the client gets the reason, as an error.
    succeeded = result.status is Status.SUCCESS
    answer: dict[str, Any] = {
        "content": content or [{"type": "text", "text": NOTHING}],
        "isError": not succeeded,
    }
    returns = tool.returns if tool is not None and succeeded else None
    if returns is not None:
        answer["structuredContent"] = result.data if returns.get("type") == "object" else {"result": result.data}
    return answer


def _content(block: Block) -> dict[str, Any]:
    if isinstance(block, (ImageBlock, AudioBlock)) and block.data is not None:
        return {"type": block.kind, "data": block.data, "mimeType": media_type_of(block)}
    if isinstance(block, LinkBlock):
        return _link(block.url, block.title, block.description, block.media_type)
    if isinstance(block, (ImageBlock, AudioBlock, VideoBlock, FileBlock)):
        return _resource(block)
    return {"type": "text", "text": as_text(block)}


def _resource(block: Media) -> dict[str, Any]:
    """Other files: embedded with their bytes, or as a link."""
    name = block.name if isinstance(block, FileBlock) else None
    if block.url is not None:
        return _link(block.url, name, None, block.media_type)
    uri = name if name and "://" in name else f"file:///{name or block.kind}"
    return {"type": "resource", "resource": {"uri": uri, "blob": block.data, "mimeType": media_type_of(block)}}


def _link(url: str, title: str | None, description: str | None, media_type: str | None) -> dict[str, Any]:
    members = {"title": title, "description": description, "mimeType": media_type}
    return {"type": "resource_link", "uri": url, "name": title or url} | {k: v for k, v in members.items() if v}


DIALECT: Final = Dialect("mcp", tools, calls, results, lint=PROVIDER.lint, external=external)
