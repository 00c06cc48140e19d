"""Messages of users and models."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from attrs import field, frozen

from pegboard import Block, ImageBlock, TextBlock, ToolResult
from pegboard_agent._json_data import json_data
from pegboard_agent._usage import Usage

__all__ = ["CUT_OFF", "SENT_BACK", "Message", "library_dialect", "openai_dialect", "to_send"]

CUT_OFF: Final = "cut_off"
"""A member of a message with calls: the message was cut off, so its calls do not run."""
SENT_BACK: Final = "sent_back"
"""A member of a message that asks for another answer: no turn begins with it."""
UNREADABLE: Final = "INVALID_JSON"
"""The one member of the object that holds arguments which are not a JSON object; Anthropic advises this name."""


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
    """One message: text, or content blocks.

    A message with `parked` is not yet an answer, and one with `stopped` is none either.

    Args:
        role: Whose message it is: `"user"` or `"assistant"`.
        content: Text or content blocks.
        name: Its sender. None for none.
        data: The typed value of an answer, if the agent has an `output`.
        usage: Tokens of all requests of the run.
        parked: Ids of calls that wait for their answers.
        stopped: The limit that the run has reached. None for an answer.
        is_cut_off: Whether it ends at the server's length limit, before the model was done.
    """

    role: str
    content: str | tuple[Block, ...] = field(default="", converter=_content)
    name: str | None = None
    data: Any = field(default=None, kw_only=True)
    usage: Usage = field(default=Usage(), kw_only=True)
    parked: tuple[str, ...] = field(default=(), kw_only=True)
    stopped: str | None = field(default=None, kw_only=True)
    is_cut_off: bool = field(default=False, kw_only=True)

    @property
    def text(self) -> str:
        """All text, joined by line breaks."""
        return self.content if isinstance(self.content, str) else "\n".join(b.text for b in self.content if b.text)

    def to_dict(self) -> dict[str, Any]:
        """The message as JSON data: its attributes, blocks by their `to_dict()`, `data` as the model wrote it."""
        content = self.content if isinstance(self.content, str) else [block.to_dict() for block in self.content]
        data = self.data if self.data is None or isinstance(self.data, str) else _read(self.text)
        outcome = {"data": data, "usage": self.usage.to_dict(), "parked": self.parked, "stopped": self.stopped}
        members = {"role": self.role, "content": content, "name": self.name, **outcome, "is_cut_off": self.is_cut_off}
        return {name: json_data(member) for name, member in members.items()}

    def to_openai(self) -> dict[str, Any]:
        """The message for chat completions. Raises ValueError for a block that they do not take."""
        content = self.content if isinstance(self.content, str) else [_part(block) for block in self.content]
        named = {"name": self.name} if self.name and re.fullmatch("[a-zA-Z0-9_-]{1,64}", self.name) else {}
        return {"role": self.role, "content": content, **named}


def openai_dialect() -> Any:
    """The library's own dialect for chat completions, also for a toolkit without plugins."""
    return library_dialect("openai")


def library_dialect(name: str) -> Any:
    """A dialect of the library's own, as plain functions."""
    from pegboard_dialects import provide_dialects

    return next(each for each in provide_dialects() if each.name == name)


def _read(text: str) -> Any:
    """The JSON in a text; the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _part(block: Block) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        _, *shown = openai_dialect().results([ToolResult(content=(block,))])  # the dialect finds the image's type
        if shown:
            part: dict[str, Any] = shown[0]["content"][-1]
            return part
    if not block.text:
        raise ValueError(f"a message to a model holds text and images, not {block!r}")
    return {"type": "text", "text": block.text}


def to_send(message: dict[str, Any]) -> dict[str, Any]:
    """A message in a form that servers take back: the arguments of its calls are JSON objects.

    Models write broken ones, and servers that parse them (vLLM, llama.cpp) refuse each later request because of it.
    """
    sent = {name: value for name, value in message.items() if name not in (CUT_OFF, SENT_BACK)}
    if not message.get("tool_calls"):
        return sent
    calls = [
        {**call, "function": {**call["function"], "arguments": _as_object(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return {**sent, "tool_calls": calls}


def _as_object(arguments: str) -> str:
    if not arguments.strip():
        return "{}"
    try:
        arguments.encode()
        value = _STRICT.decode(arguments)
        if "\\u" in arguments:  # half a surrogate pair may also be written as an escape
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    return arguments if isinstance(value, dict) else json.dumps({UNREADABLE: arguments}, ensure_ascii=False)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # only Python's parser reads it
        raise ValueError(text)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_STRICT: Final = json.JSONDecoder(parse_float=_number, parse_int=_number, parse_constant=_no_constant)
