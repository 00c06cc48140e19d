"""Messages: what people and models say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

from pegboard import Block, ImageBlock, TextBlock, ToolResult

__all__ = ["Message", "openai_dialect"]


def _content(given: str | Block | Iterable[str | Block]) -> str | tuple[Block, ...]:
    if isinstance(given, str):
        return given
    parts = (given,) if isinstance(given, Block) or not isinstance(given, Iterable) else tuple(given)
    for part in parts:
        if not isinstance(part, (str, Block)):
            raise TypeError(f"a message holds text and content blocks, not {type(part).__name__}")
    return tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)


@frozen
class Message:
    """What somebody says: text, or content blocks. `name` is who says it.

    An agent's answer holds `data`, the typed value where one was asked for, and `usage`, the tokens of all requests
    that it took. `parked` are the ids of calls that wait for their answers: then it is no answer yet. One that
    `is_cut_off` ends where the server's length limit was reached, and not where the model was done.
    """

    role: str
    content: str | tuple[Block, ...] = field(default="", converter=_content)
    name: str | None = None
    data: Any = field(default=None, kw_only=True)
    usage: Mapping[str, int] = field(factory=dict, kw_only=True)
    parked: tuple[str, ...] = field(default=(), kw_only=True)
    is_cut_off: bool = field(default=False, kw_only=True)

    @property
    def text(self) -> str:
        """All text, joined by line breaks."""
        return self.content if isinstance(self.content, str) else "\n".join(b.text for b in self.content if b.text)

    def to_openai(self) -> dict[str, Any]:
        """The message as chat completions take it. Raises ValueError for a block that has no place there."""
        content = self.content if isinstance(self.content, str) else [_part(block) for block in self.content]
        named = {"name": self.name} if self.name and re.fullmatch("[a-zA-Z0-9_-]{1,64}", self.name) else {}
        return {"role": self.role, "content": content, **named}


def openai_dialect() -> Any:
    """The library's own dialect for chat completions, also where a toolkit loads no plugins."""
    from pegboard_dialects import provide_dialects

    return next(each for each in provide_dialects() if each.name == "openai")


def _part(block: Block) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        _, *shown = openai_dialect().results([ToolResult(content=(block,))])  # as in results: it knows which type it is
        if shown:
            part: dict[str, Any] = shown[0]["content"][-1]
            return part
    if not block.text:
        raise ValueError(f"a message to a model holds text and images, not {block!r}")
    return {"type": "text", "text": block.text}
