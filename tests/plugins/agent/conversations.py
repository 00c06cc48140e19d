"""Conversations of all kinds, each text, call, result and image with a name of its own, so that none can be lost."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from attrs import field, frozen
from hypothesis import strategies as st

from pegboard import Block, ImageBlock, TextBlock, ToolResult
from pegboard_agent import Message
from pegboard_agent._messages import library_dialect

__all__ = ["Talk", "talks"]


@frozen
class Talk:
    """Messages of chat completions. `words` are those of its texts, calls and results, in order, but the system's."""

    messages: list[dict[str, Any]] = field(factory=list)
    words: list[str] = field(factory=list)
    system: list[str] = field(factory=list)
    images: list[str] = field(factory=list)
    _numbers: Iterator[int] = field(factory=lambda: count(100), repr=False)

    def word(self) -> str:
        self.words.append(f"word{next(self._numbers)}")
        return self.words[-1]

    def image(self, *, by_url: bool) -> ImageBlock:
        name = f"image{next(self._numbers)}"
        if by_url:
            self.images.append(name)
            return ImageBlock(url=f"https://example.com/{name}.png")
        data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + name.encode()).decode()
        self.images.append(data)
        return ImageBlock(data=data, media_type="image/png")


@st.composite
def blocks(draw: st.DrawFn, talk: Talk, *, least: int = 0) -> list[Block]:
    kinds = draw(st.lists(st.sampled_from(["text", "data", "url"]), min_size=least, max_size=3))
    return [TextBlock(talk.word()) if kind == "text" else talk.image(by_url=kind == "url") for kind in kinds]


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """A conversation as an agent keeps it: each call has its result, images of results follow as the user's."""
    talk = Talk()
    if draw(st.booleans()):
        talk.system.append("be brief")
        talk.messages.append({"role": "system", "content": "be brief"})
    for _ in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 2))):
            content = draw(blocks(talk, least=1)) if draw(st.booleans()) else talk.word()
            talk.messages.append(Message("user", content).to_openai())
        for _ in range(draw(st.integers(0, 2))):
            _called(draw, talk)
        if draw(st.booleans()):
            talk.messages.append({"role": "assistant", "content": talk.word()})
    return talk


def _called(draw: st.DrawFn, talk: Talk) -> None:
    text = talk.word() if draw(st.booleans()) else None
    ids = draw(st.lists(st.sampled_from(["call_1", "call_2", "functions.f:0", "é"]), min_size=1, max_size=3))
    calls: list[dict[str, Any]] = []
    for call_id in ids:
        function = {"name": f"tool_{talk.word()}", "arguments": json.dumps({"x": talk.word()})}
        calls.append({"id": call_id, "type": "function", "function": function})
    talk.messages.append({"role": "assistant", "content": text, "tool_calls": calls})
    images: list[Any] = []
    for number, call_id in enumerate(ids):
        content = draw(blocks(talk)) if ids.count(call_id) == 1 else [TextBlock(talk.word())]
        name = calls[number]["function"]["name"]
        answer, *after = library_dialect("openai").results([ToolResult(call_id, name, content=tuple(content))])
        talk.messages.append(answer)
        images += [part for message in after for part in message["content"]]
    if images:
        talk.messages.append({"role": "user", "content": images})
