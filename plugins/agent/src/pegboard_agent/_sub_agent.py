"""Agents as tools of other agents: how deep, under which name, and what their callers see."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from pegboard import DataBlock, Emitter, ToolCall, ToolError
from pegboard_agent._conversation import Conversation
from pegboard_agent._events import CallEnded, CallStarted, ChunkEvent, Event, TextDelta

__all__ = ["caller_of", "report", "tool_name"]

DEEPEST: Final = 5
"""How many agents may wait for one another above the last one."""


def caller_of(call: ToolCall, asked: Conversation) -> Conversation | None:
    """The conversation that a call is made in; None outside of agents.

    Raises `ToolError` for a call that would wait for itself, and for one too deep.
    """
    found = call.context.find(Conversation)
    if not isinstance(found, Conversation):
        return None
    callers = [found, *found.callers]
    if asked in callers:
        raise ToolError("that session is waiting for this very call; leave session_id out")
    if len(callers) > DEEPEST:
        raise ToolError(f"agents call agents to a depth of {DEEPEST} at most; answer without this one")
    return found


def report(event: Event, emitter: Emitter, agent: str) -> None:
    """Emit what a sub-agent does as a chunk of the call that waits for it."""
    match event:
        case TextDelta():
            emitter.emit(event.text)
        case ChunkEvent():
            emitter.emit(event.chunk.content)
        case CallStarted(call):
            said = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
            emitter.emit(DataBlock({"agent": agent, "event": "call_started", **said}))
        case CallEnded(result):
            ended = {"call_id": result.call_id, "name": result.name, "status": result.status.value}
            emitter.emit(DataBlock({"agent": agent, "event": "call_ended", **ended}))


def tool_name(agent: str) -> str:
    """A tool's name made of an agent's, that no other agent's name comes to."""
    legal = re.sub(r"[^A-Za-z0-9_]+", "_", agent).strip("_")[:40]
    if legal and legal == agent:
        return f"call_{agent}"
    mark = hashlib.sha256(agent.encode("utf-8", "replace")).hexdigest()[:8]
    return f"call_{legal}_{mark}" if legal else f"call_{mark}"
