"""Events: what an agent does on its way to an answer."""

from __future__ import annotations

from typing import TypeAlias

from attrs import field, frozen

from pegboard import Chunk, ToolCall, ToolResult
from pegboard_agent._messages import Message

__all__ = ["CallEnded", "CallStarted", "ChunkEvent", "Event", "Final", "Parked", "Stopped", "TextDelta"]


@frozen
class TextDelta:
    """A piece of text that the model just wrote."""

    text: str


@frozen
class CallStarted:
    """A call that the model asked for is about to run."""

    call: ToolCall


@frozen
class ChunkEvent:
    """A running call reports."""

    chunk: Chunk


@frozen
class CallEnded:
    """A call has its result, which the model will read."""

    result: ToolResult


@frozen
class Parked:
    """These calls wait for their answers, and the agent with them; `call()` without a message goes on."""

    call_ids: tuple[str, ...]


@frozen
class Final:
    """The answer."""

    message: Message


@frozen
class Stopped:
    """The agent gave up, and why; a last answer without tools may follow."""

    reason: str
    error: BaseException | None = field(default=None, repr=False)


Event: TypeAlias = TextDelta | CallStarted | ChunkEvent | CallEnded | Parked | Final | Stopped
"""What `Agent.stream` yields."""
