"""Reading responses of other formats as chunks of a chat completion, with the collectors of the dialects."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

from pegboard import Block, ToolCall, ToolResult
from pegboard_agent._messages import library_dialect
from pegboard_agent._models.model import new_id
from pegboard_agent._models.provider import Piece, as_message
from pegboard_agent._models.server import Chunk, Failure, Reading

__all__ = ["AssembledReading", "as_call", "inside", "list_inside", "result_of", "text_inside", "usage_of"]


class AssembledReading(Reading):
    """Yields text and reasoning as they come, and all other parts, put together, at the end."""

    dialect: ClassVar[str]

    def __init__(self) -> None:
        dialect = library_dialect(self.dialect)
        self._collector = dialect.collector(partial(dialect.calls, tools=()))
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.reason = ""
        """The provider's reason why the response ended; empty until it has ended."""

    @property
    @abstractmethod
    def usage(self) -> dict[str, Any]:
        """The tokens in the form of chat completions."""

    @abstractmethod
    def written(self, event: Chunk) -> tuple[str, str]:
        """The text and the reasoning in an event. The reason for the end and the tokens are recorded."""

    @abstractmethod
    def pieces(self, messages: list[Any], calls: list[ToolCall]) -> Iterable[Piece]:
        """The message in pieces, from the collector's messages and calls."""

    @abstractmethod
    def finish(self, *, calls: bool) -> tuple[str, str]:
        """The reason for the end in the form of chat completions, and a notice for the user."""

    def read(self, event: Chunk) -> Iterable[Chunk]:
        """The text and the reasoning in an event."""
        self._collector.feed(event)
        text, reasoning = self.written(event)
        self._text.append(text)
        self._reasoning.append(reasoning)
        delta = {**({"content": text} if text else {}), **({"reasoning_content": reasoning} if reasoning else {})}
        return [{"choices": [{"delta": delta, "finish_reason": None}]}] if delta else []

    def end(self) -> Iterable[Chunk]:
        """Calls, data for the provider alone, the reason for the end, and tokens."""
        if not self.reason:
            raise Failure("the response broke off")
        pieces = list(self.pieces(self._collector.messages(), self._collector.calls()))
        message = as_message(self.dialect, pieces)
        finish, notice = self.finish(calls=bool(message["tool_calls"]))
        written = "".join(self._text)
        whole = message.pop("content")
        text = whole[len(written) :] if whole.startswith(written) else ""
        if notice:
            text += f"\n\n{notice}" if written or text else notice
        message["tool_calls"] = [{"index": number, **call} for number, call in enumerate(message["tool_calls"])]
        choice = {"delta": {"content": text, **message}, "finish_reason": finish}
        yield {"choices": [choice], "usage": self.usage or None}


def as_call(call: ToolCall, arguments: Any = None) -> dict[str, Any]:
    """A call in the form of chat completions; `arguments` that are text stay unchanged."""
    sent = arguments if isinstance(arguments, str) else call.arguments
    written = sent if isinstance(sent, str) else json.dumps(sent, ensure_ascii=False)
    return {"id": call.id or new_id(), "type": "function", "function": {"name": call.name, "arguments": written}}


def result_of(dialect: str, block: Block) -> Any:
    """The dialect's form of a result with only this block: it knows which images the provider takes."""
    (message,) = library_dialect(dialect).results([ToolResult("id", "name", content=(block,))])
    return message


def inside(data: Any, *path: str | int) -> Any:
    """The value at a path; None if there is none, or if the data has another shape."""
    for step in path:
        if isinstance(step, int):
            data = data[step] if isinstance(data, list) and -len(data) <= step < len(data) else None
        else:
            data = data.get(step) if isinstance(data, Mapping) else None
    return data


def list_inside(data: Any, *path: str | int) -> list[Any]:
    """The list at a path; an empty one if there is none."""
    found = inside(data, *path)
    return found if isinstance(found, list) else []


def text_inside(data: Any, *path: str | int) -> str:
    """The text at a path; an empty one if there is none."""
    found = inside(data, *path)
    return found if isinstance(found, str) else ""


def usage_of(*, prompt: Any, completion: Any, cached: Any, written: Any, reasoning: Any) -> dict[str, Any]:
    """Tokens in the form of chat completions, without values that are None or not a number."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage: dict[str, Any] = _numbers(counts)
    if len(usage) == len(counts):
        usage["total_tokens"] = prompt + completion
    details = {
        "prompt_tokens_details": _numbers({"cached_tokens": cached, "cache_write_tokens": written}),
        "completion_tokens_details": _numbers({"reasoning_tokens": reasoning}),
    }
    return usage | {name: each for name, each in details.items() if each}


def _numbers(counts: Mapping[str, Any]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if type(count) is int}
