"""What goes to a client, in the words of the protocol: tools, content, results."""

from __future__ import annotations

from typing import Any

from pegboard import (
    AudioBlock,
    Block,
    DataBlock,
    FileBlock,
    ImageBlock,
    LinkBlock,
    Status,
    Tool,
    ToolResult,
    VideoBlock,
)
from pegboard_mcp._incoming import WRAPPED

__all__ = ["answer_of", "described", "takes_any_schema"]


def takes_any_schema(version: str) -> bool:
    """Whether this version of the protocol knows results that are no objects."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return version in MODERN_PROTOCOL_VERSIONS


def described(tool: Tool, version: str) -> Any:
    """A tool as a client of that version may read it. Raises `PegboardError` for one that cannot be read at all."""
    from mcp_types import Tool as Described

    returns = tool.returns
    if returns is not None and _needs_wrapping(returns, version):
        returns = _wrapped(returns)
    return Described(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=returns,
        annotations=_annotations(tool),
    )


def answer_of(result: ToolResult, tool: Tool, version: str) -> Any:
    """A result as an answer: what the model may see, and the data where the tool promises a schema for it."""
    from mcp_types import CallToolResult

    content = [_content(block) for block in (*result.content, *result.attachments)]
    # A suspended call has no value: what its client gets is the reason, and that it came to nothing.
    succeeded = result.status is Status.SUCCESS
    returns = tool.returns if succeeded else None
    if returns is None:
        return CallToolResult(content=content, is_error=not succeeded)
    data = {"result": result.data} if _needs_wrapping(returns, version) else result.data
    return CallToolResult(content=content, structured_content=data, is_error=False)


def _needs_wrapping(returns: dict[str, Any], version: str) -> bool:
    """One output schema of another kind makes older clients refuse the whole list."""
    return returns.get("type") != "object" and not takes_any_schema(version)


def _wrapped(returns: dict[str, Any]) -> dict[str, Any]:
    inner = {keyword: value for keyword, value in returns.items() if keyword not in ("$defs", "$schema")}
    wrapped = {"type": "object", "properties": {"result": inner}, "required": ["result"], WRAPPED: True}
    return wrapped | {keyword: returns[keyword] for keyword in returns if keyword in ("$schema", "$defs")}


def _annotations(tool: Tool) -> Any:
    from mcp_types import ToolAnnotations

    hints = tool.hints
    said = {
        "readOnlyHint": hints.read_only,
        "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent,
        "openWorldHint": hints.open_world,
    }
    said = {name: value for name, value in said.items() if value is not None}
    return ToolAnnotations.model_validate(said) if said else None


def _content(block: Block) -> Any:
    from mcp_types import AudioContent, ImageContent, TextContent

    match block:
        case ImageBlock(data=str() as data, media_type=media_type):
            return ImageContent(data=data, mime_type=media_type or "image/png")
        case AudioBlock(data=str() as data, media_type=media_type):
            return AudioContent(data=data, mime_type=media_type or "audio/wav")
        case FileBlock() | VideoBlock() | ImageBlock() | AudioBlock():
            return _resource(block)
        case LinkBlock(url=url, title=title, description=description, media_type=media_type):
            return _link(url, title or url, description, media_type)
        case DataBlock(data=data):
            import json

            return TextContent(text=json.dumps(data, ensure_ascii=False))
    return TextContent(text=block.text)


def _resource(block: Any) -> Any:
    """Other files: embedded with their bytes, or as a link."""
    from mcp_types import BlobResourceContents, EmbeddedResource

    name = getattr(block, "name", None)
    if block.url is not None:
        return _link(block.url, name or block.url, None, block.media_type)
    uri = name if name and "://" in name else f"file:///{name or block.kind}"
    return EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=block.data, mime_type=block.media_type))


def _link(url: str, title: str, description: str | None, media_type: str | None) -> Any:
    from mcp_types import ResourceLink

    return ResourceLink(uri=url, name=title, title=title, description=description, mime_type=media_type)
