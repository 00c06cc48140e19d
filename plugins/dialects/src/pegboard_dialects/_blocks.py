"""Content blocks as providers take them, and the text that replaces a block that a provider does not take."""

from __future__ import annotations

import base64
import json
import mimetypes
import re
from collections.abc import Container
from typing import Final, TypeAlias, TypeGuard

from pegboard import AudioBlock, Block, DataBlock, FileBlock, ImageBlock, LinkBlock, TextBlock, ToolResult, VideoBlock

__all__ = [
    "NOTHING",
    "PICTURES",
    "Media",
    "as_text",
    "content_of",
    "data_url",
    "file_text",
    "is_picture",
    "media_type_of",
    "text_of",
]

Media: TypeAlias = ImageBlock | AudioBlock | VideoBlock | FileBlock
"""Blocks that hold bytes, or their URL."""

PICTURES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""Types of images that all providers with image input take."""

NOTHING: Final = "(no output)"
LONGEST_TEXT: Final = 100_000
"""Characters of base64 up to which a text file is sent as text."""
_TEXT: Final = re.compile(r"text/.+|application/(json|xml|yaml|toml)")
UNKNOWN: Final = "application/octet-stream"
_MAGIC: Final = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("JVBERi", "application/pdf"),
    ("SUQz", "audio/mpeg"),
)
_USUAL: Final = {ImageBlock: "image/png", AudioBlock: "audio/wav", VideoBlock: "video/mp4"}


def content_of(result: ToolResult) -> list[Block]:
    """The blocks for the model, without empty texts."""
    return [block for block in result.content if not isinstance(block, TextBlock) or block.text]


def media_type_of(block: Media) -> str:
    """The media type that a block names, else that of its URL or its first bytes, else the usual one of its kind.

    For an image the bytes count, not the block: providers refuse the whole conversation because of a wrong type.
    """
    shown = _by_its_bytes(block)
    if isinstance(block, ImageBlock) and shown in PICTURES:
        return shown
    if block.media_type:
        return block.media_type.partition(";")[0].strip().lower()
    guessed = mimetypes.guess_type(block.url.partition("?")[0])[0] if block.url is not None else shown
    return guessed or _USUAL.get(type(block), UNKNOWN)


def _by_its_bytes(block: Media) -> str | None:
    data = block.data or ""
    if data.startswith("UklGR"):
        return "image/webp" if isinstance(block, ImageBlock) else "audio/wav"
    return next((media_type for begin, media_type in _MAGIC if data.startswith(begin)), None)


def is_picture(block: Block, types: Container[str] = PICTURES) -> TypeGuard[ImageBlock]:
    """Whether a block is an image of one of these types, or an image with a URL, of any type."""
    if not isinstance(block, ImageBlock):
        return False
    return media_type_of(block) in types or (block.data is None and not block.media_type)


def data_url(block: Media) -> str:
    """The URL of a block, or a `data:` URL with its bytes."""
    return block.url or f"data:{media_type_of(block)};base64,{block.data}"


def as_text(block: Block, unless: str = "") -> str:
    """A block as text: its text or data, else its kind, its place, and why it is not shown (`unless`)."""
    if isinstance(block, DataBlock):
        return json.dumps(block.data, ensure_ascii=False)
    if isinstance(block, LinkBlock):
        return f"{block.text}: {block.description}" if block.description else block.text
    if not isinstance(block, Media):
        return block.text
    text = file_text(block)
    return _stated(block, unless) if text is None else f"{_stated(block, '')}\n{text}"


def file_text(block: Media) -> str | None:
    """The content of a text file; None for any other file, and for one that is too long to send."""
    if not isinstance(block, FileBlock) or block.data is None or not _TEXT.fullmatch(media_type_of(block)):
        return None
    try:
        return base64.b64decode(block.data).decode() if len(block.data) <= LONGEST_TEXT else None
    except ValueError:
        return None


def _stated(block: Media, reason: str) -> str:
    """A sentence about a block that is left out."""
    named = f" {block.name}" if isinstance(block, FileBlock) and block.name else ""
    if block.url is not None:
        return f"[{block.kind}{named}: {block.url}]"
    size = len(block.data or "") * 3 // 4 - (block.data or "")[-2:].count("=")
    return f"[{block.kind}{named}, {media_type_of(block)}, {size:,} bytes{reason and ': '}{reason}]"


def text_of(result: ToolResult, unless: str) -> str:
    """A result for a provider that takes only text; never empty."""
    return "\n".join(as_text(block, unless) for block in content_of(result)) or NOTHING
