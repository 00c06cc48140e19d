"""Trimming: the part of a long conversation that requests still hold."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from pegboard import PegboardError

__all__ = ["Summarize", "Trimming", "estimated_tokens", "with_summary"]

CHARACTERS: Final = 4
"""About the characters of English JSON in a token. For Chinese or Japanese it is one or two: set a lower limit."""
IMAGE: Final = 4_000
"""Characters as which an image counts, whatever its size: a thousand tokens are usual."""
SUMMARY: Final = "Summary of the conversation so far:"

Summarize: TypeAlias = Callable[[list[dict[str, Any]]], str | Awaitable[str]]


def estimated_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """About the number of tokens of messages: a quarter of the characters of their JSON; an image counts as 1,000.

    >>> estimated_tokens([{"role": "user", "content": "What is the weather in Beijing?"}])
    15

    Args:
        messages: Messages in the form of chat completions.
    """
    return sum(map(_characters, messages)) // CHARACTERS


def _characters(message: Mapping[str, Any]) -> int:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    urls = [str(part["image_url"].get("url")) for part in parts if isinstance(part.get("image_url"), Mapping)]
    return len(text) + sum(IMAGE - len(url) for url in urls if url.startswith("data:"))


@frozen
class Trimming:
    """Once messages have more than `max_tokens`, requests omit the oldest turns until half of that remains."""

    max_tokens: int = field()
    summarize: Summarize | None = None

    @max_tokens.validator
    def _check(self, attribute: Any, given: Any) -> None:
        if type(given) is not int or given < 1:
            raise ValueError(f"max_tokens must be a whole number >= 1, not {given!r}")

    @classmethod
    def of(cls, max_tokens: int | None, summarize: Summarize | None) -> Trimming | None:
        """The trimming for a store's arguments; None without a limit. Raises ValueError for an unused `summarize`."""
        if max_tokens is None:
            if summarize is not None:
                raise ValueError("summarize is asked for what max_tokens leaves out; give both")
            return None
        return cls(max_tokens, summarize)

    async def cut(self, messages: Sequence[dict[str, Any]], turns: Sequence[int]) -> dict[str, Any] | None:
        """The record of a cut; None if the messages fit. `turns` are the indexes at which turns begin.

        Raises `PegboardError` if `summarize` fails.
        """
        sizes = list(map(_characters, messages))
        if sum(sizes) <= self.max_tokens * CHARACTERS:
            return None
        fitting = (turn for turn in turns if sum(sizes[turn:]) <= self.max_tokens * CHARACTERS // 2)
        first = next(fitting, turns[-1] if turns else 0)
        if first == 0:
            return None
        if self.summarize is None:
            return {"trimmed": first}
        return {"trimmed": first, "summary": await self._summary([dict(each) for each in messages[:first]])}

    async def _summary(self, messages: list[dict[str, Any]]) -> str:
        try:
            summary: Any = self.summarize(messages) if self.summarize is not None else ""
            if isawaitable(summary):
                summary = await summary
        except Exception as error:
            raise PegboardError(f"summarize failed: {type(error).__name__}: {error}") from error
        if not isinstance(summary, str):
            raise PegboardError(f"summarize returns a text, not {type(summary).__name__}")
        return summary


def with_summary(message: dict[str, Any], summary: str) -> dict[str, Any]:
    """The first message of a request, with the summary of the omitted ones.

    It is a part of that message, because some servers insist that the user and the model alternate.
    """
    text = f"{SUMMARY}\n{summary}\n\n"
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": text}, *content]}
    return {**message, "content": text + (content or "")}
