"""Events: the steps of an agent on its way to an answer."""

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
    """The common part of all events."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON data: its `type`, such as `"call_started"`, and its attributes."""
        cls: Any = type(self)
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Event")).lower()
        shown = (each.name for each in fields(cls) if each.repr)
        return {"type": kind, **{name: json_data(getattr(self, name)) for name in shown}}


@frozen
class TextDelta(_Happened):
    """A piece of text that the model just wrote.

    Args:
        text: The piece.
    """

    text: str


@frozen
class ReasoningDelta(_Happened):
    """A piece of the model's reasoning before its answer, if the server sends it.

    Args:
        text: The piece.
    """

    text: str


@frozen
class CallStarted(_Happened):
    """A call of the model is about to run.

    Args:
        call: The call.
    """

    call: ToolCall


@frozen
class ApprovalNeeded(_Happened):
    """A call waits until the approver has decided on it. Its next events show the decision.

    Args:
        request: What the approver gets.
    """

    request: ApprovalRequest


@frozen
class ChunkEvent(_Happened):
    """A chunk of a running call.

    Args:
        chunk: The chunk.
    """

    chunk: Chunk


@frozen
class CallEnded(_Happened):
    """A call has its result, which the model will read.

    Args:
        result: The result.
    """

    result: ToolResult


@frozen
class Parked(_Happened):
    """These calls wait for their answers, and the agent stops until then; `call()` without a message goes on.

    Args:
        call_ids: Ids of the calls.
    """

    call_ids: tuple[str, ...]


@frozen
class Final(_Happened):
    """The answer.

    Args:
        message: The message.
    """

    message: Message


@frozen
class Stopped(_Happened):
    """The agent stopped; after `max_iterations` a last answer without calls follows.

    Args:
        reason: Why.
        error: The exception. None where there was none.
    """

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
"""An item of `Agent.stream`."""
