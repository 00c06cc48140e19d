"""Content blocks: what a tool result is made of."""

from __future__ import annotations

from typing import Any

from attrs import asdict, frozen

from pegboard._base.records import Compared

__all__ = [
    "Block",
    "DataBlock",
    "TextBlock",
]


@frozen(eq=False, repr=False)
class Block(Compared):
    """The base of all content blocks. Blocks are immutable and compare by value."""

    @property
    def kind(self) -> str:
        """The block's name in `to_dict()`: `text`, `image`, `audio`, `video`, `file`, `link` or `data`."""
        return type(self).__name__.removesuffix("Block").lower()

    @property
    def text(self) -> str:
        """The text that this block contributes to `ToolResult.text`; empty for binary blocks."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """The block as JSON-able data, with its `type` first and empty fields left out."""
        members = asdict(self, recurse=False)
        return {"type": self.kind, **{name: value for name, value in members.items() if value is not None}}


@frozen(eq=False, repr=False)
class TextBlock(Block):
    """Plain text."""

    text: str


@frozen(eq=False, repr=False)
class DataBlock(Block):
    """JSON-able data beside or instead of text; `data` holds only JSON types."""

    data: Any

    def to_dict(self) -> dict[str, Any]:
        """`{"type": "data", "data": ...}`; a null is data too and stays."""
        return {"type": "data", "data": self.data}
