"""Events: what an agent does on its way to an answer."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from attrs import field, fields, frozen

from pegboard import ApprovalRequest, Chunk, ToolCall, ToolResult
from pegboard_agent._json_data import json_data
from pegboard_agent._messages import Message

__all__ = [
    "ApprovalNeeded",
    "CallEnded",
    "CallStarted",
    "ChunkEvent",
    "Event",
    "Final",
    "Parked",
    "ReasoningDelta",
    "Stopped",
    "TextDelta",
]


class _Happened:
    """What all events have."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON carries it: its `type`, such as `"call_started"`, and its attributes."""
        cls: Any = type(self)
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Event")).lower()
        shown = (each.name for each in fields(cls) if each.repr)
        return {"type": kind, **{name: json_data(getattr(self, name)) for name in shown}}


@frozen
class TextDelta(_Happened):
    """A piece of text that the model just wrote."""

    text: str


@frozen
class ReasoningDelta(_Happened):
    """A piece of what the model thought before it answered, where its server tells that."""

    text: str


@frozen
class CallStarted(_Happened):
    """A call that the model asked for is about to run."""

    call: ToolCall


@frozen
class ApprovalNeeded(_Happened):
    """A call waits until the approver has decided on it; how it went on is told by the next events of the call."""

    request: ApprovalRequest


@frozen
class ChunkEvent(_Happened):
    """A running call reports."""

    chunk: Chunk


@frozen
class CallEnded(_Happened):
    """A call has its result, which the model will read."""

    result: ToolResult


@frozen
class Parked(_Happened):
    """These calls wait for their answers, and the agent with them; `call()` without a message goes on."""

    call_ids: tuple[str, ...]


@frozen
class Final(_Happened):
    """The answer."""

    message: Message


@frozen
class Stopped(_Happened):
    """The agent gave up, and why; after `max_iterations` a last answer without calls follows."""

    reason: str
    error: BaseException | None = field(default=None, repr=False)


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | CallStarted
    | ApprovalNeeded
    | ChunkEvent
    | CallEnded
    | Parked
    | Final
    | Stopped
)  # fmt: skip
"""What `Agent.stream` yields."""
