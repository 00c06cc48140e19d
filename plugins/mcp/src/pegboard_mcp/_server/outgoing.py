"""What is sent to a client, in the form of the protocol: tools, content, results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

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
from pegboard_mcp._client.remote_tool import remote_of
from pegboard_mcp._server.promise import Promise
from pegboard_mcp._wire.protocol import BLOCK, SCOPES

__all__ = ["answer_of", "content_of", "described", "error_of"]


def described(tool: Tool, promise: Promise, version: str, scopes: Sequence[str] = ()) -> Any:
    """A tool in the form of that version of the protocol, with the scopes that a call of it needs.

    Raises `PegboardError` for a tool that cannot be read.
    """
    from mcp_types import Tool as Described

    remote = remote_of(tool)
    extra = {} if remote is None else dict(remote.extra)
    # What a far server says of scopes is about its own callers: here that is this board.
    meta = {key: value for key, value in tool.meta.items() if key != SCOPES}
    if scopes:
        meta[SCOPES] = list(scopes)
    if meta:
        extra["_meta"] = meta
    return Described(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=promise.shown(version),
        annotations=_annotations(tool, extra.pop("annotations", {})),
        **extra,
    )


def answer_of(result: ToolResult, promise: Promise, version: str) -> Any:
    """A result as an answer: the content for the model, and the data if the tool has an output schema.

    Data that does not fit the schema makes an error that keeps the content: clients would raise and show nothing.
    """
    from mcp_types import CallToolResult, TextContent

    remote = result.metadata.get("mcp", {})
    extras: Sequence[dict[str, Any]] = remote.get("content") or ({},) * len(result.content)
    content = [content_of(block, extra) for block, extra in zip(result.content, extras, strict=True)]
    content += [content_of(block, {}) for block in result.attachments]
    meta = remote.get("_meta")
    # A suspended call has no value: what its client gets is the reason, and that it came to nothing.
    succeeded = result.status is Status.SUCCESS
    if not succeeded or promise.schema is None:
        return CallToolResult(content=content, is_error=not succeeded, _meta=meta)
    if problems := promise.broken_by(result.data):
        message = f"Error: the result of {result.name} does not fit its own output schema: {problems}"
        return CallToolResult(content=[TextContent(text=message), *content], is_error=True, _meta=meta)
    data = promise.structured(result.data, version)
    return CallToolResult(content=content, structured_content=data, is_error=False, _meta=meta)


def error_of(message: str) -> Any:
    """An answer that says why a call failed."""
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def _annotations(tool: Tool, more: dict[str, Any]) -> Any:
    from mcp_types import ToolAnnotations

    hints = tool.hints
    extra = {
        **more,
        "readOnlyHint": hints.read_only,
        "destructiveHint": hints.destructive,
        "idempotentHint": hints.idempotent,
        "openWorldHint": hints.open_world,
    }
    extra = {name: value for name, value in extra.items() if value is not None}
    return ToolAnnotations.model_validate(extra) if extra else None


def content_of(block: Block, extra: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """A block as content; `extra` is what a remote server adds to it, which goes on as it came."""
    from mcp_types import AudioContent, ImageContent, TextContent

    more: dict[str, Any] = {key: extra[key] for key in ("annotations", "_meta") if key in extra}
    match block:
        case ImageBlock(data=str() as data, media_type=media_type) if "resource" not in extra:
            return ImageContent(data=data, mime_type=media_type or "image/png", **more)
        case AudioBlock(data=str() as data, media_type=media_type):
            return AudioContent(data=data, mime_type=media_type or "audio/wav", **more)
        case FileBlock() | VideoBlock() | ImageBlock() | AudioBlock():
            return _media(block, extra, more)
        case LinkBlock():
            return _link(block, extra, more)
        case DataBlock(data=data):
            import json

            more["_meta"] = {BLOCK: {"kind": "data"}, **more.get("_meta", {})}
            return TextContent(text=json.dumps(data, ensure_ascii=False), **more)
    if "resource" in extra:
        return _embedded({**extra["resource"], "text": block.text}, more)
    return TextContent(text=block.text, **more)


def _link(block: LinkBlock, extra: Mapping[str, Any], more: dict[str, Any]) -> Any:
    from mcp_types import ResourceLink

    more |= {key: extra[key] for key in ("icons", "size") if key in extra}
    return ResourceLink(
        uri=block.url,
        name=extra.get("name") or block.title or block.url,
        title=block.title,
        description=block.description,
        mime_type=block.media_type,
        **more,
    )


def _media(block: Any, extra: Mapping[str, Any], more: dict[str, Any]) -> Any:
    """Other files: embedded, text as text, or as a link. What they are here another board reads in `_meta`."""
    name, data = getattr(block, "name", None), block.data
    known = {"kind": block.kind, "name": name, "media_type": block.media_type}
    meta = {BLOCK: {key: value for key, value in known.items() if value is not None}}
    if block.url is not None:
        more["_meta"] = meta | more.get("_meta", {})
        return _link(LinkBlock(block.url, name, None, block.media_type), extra, more)
    if "resource" in extra:
        return _embedded({**extra["resource"], "blob": data}, more)
    uri = name if name and "://" in name else f"file:///{quote(name or block.kind)}"
    text = _text(block)
    inside = {"blob": data} if text is None else {"text": text}
    return _embedded({"uri": uri, "mimeType": block.media_type, "_meta": meta, **inside}, more)


def _text(block: Any) -> str | None:
    """The text of a text file; None for any other."""
    if not (block.media_type or "").startswith("text/"):
        return None
    try:
        return str(block.to_bytes().decode("utf-8"))
    except ValueError:
        return None


def _embedded(resource: dict[str, Any], more: dict[str, Any]) -> Any:
    from mcp_types import EmbeddedResource

    return EmbeddedResource(resource=resource, **more)  # type: ignore[arg-type]  # pydantic reads which one it is
