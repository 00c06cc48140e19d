"""Agents as tools of other agents: their depth, their names, and their chunks for the callers."""

from __future__ import annotations

import hashlib
import re
from typing import Final, final
from uuid import uuid4
from weakref import WeakKeyDictionary

from pegboard import DataBlock, Emitter, Session, ToolCall, ToolError
from pegboard_agent._conversation import Conversation
from pegboard_agent._events import ApprovalNeeded, CallEnded, CallStarted, ChunkEvent, Event, ReasoningDelta, TextDelta

__all__ = ["Begun", "caller_of", "report", "tool_name"]

DEEPEST: Final = 5
"""How many agents above the last one may wait for one another."""


@final
class Begun:
    """The conversations of an agent that its callers began. Each caller can go on only with its own.

    So no conversation can wait for itself. A caller is a conversation of another agent, which records them, or else a
    session, which has them for as long as it exists.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._by_session: WeakKeyDictionary[Session, set[str]] = WeakKeyDictionary()

    def id_for(self, caller: Conversation | None, session: Session, wanted: str | None) -> str:
        """The id of the conversation that a call goes on with, or of a new one.

        Raises `ToolError` for an id that the caller did not get. The error does not reveal whether the id exists.
        """
        given = self._by_session.setdefault(session, set()) if caller is None else set()
        if wanted:
            if wanted in given or (caller is not None and (self._agent, wanted) in caller.begun):
                return wanted
            raise ToolError("you began no session of that session_id; leave session_id out to begin one")
        new = str(uuid4())
        if caller is None:
            given.add(new)
        else:
            caller.add({"begun": new, "agent": self._agent})
        return new


def caller_of(call: ToolCall) -> Conversation | None:
    """The conversation that a call is made in; None outside of agents. Raises `ToolError` for a call too deep."""
    found = call.context.find(Conversation)
    if not isinstance(found, Conversation):
        return None
    if len([found, *found.callers]) > DEEPEST:
        raise ToolError(f"agents call agents to a depth of {DEEPEST} at most; answer without this one")
    return found


def report(event: Event, emitter: Emitter, agent: str) -> None:
    """Emit an event of a sub-agent as a chunk of the call that waits for it."""
    match event:
        case TextDelta(text):
            emitter.emit(text)
        case ReasoningDelta(text):
            emitter.emit(DataBlock({"agent": agent, "event": "reasoning_delta", "text": text}))
        case ChunkEvent():
            emitter.emit(event.chunk.content)
        case CallStarted(call):
            fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
            emitter.emit(DataBlock({"agent": agent, "event": "call_started", **fields}))
        case ApprovalNeeded(request):
            details = {"call_id": request.call_id, "name": request.tool.name, "arguments": dict(request.arguments)}
            form = {} if request.form is None else {"form": request.form}
            details |= {"reason": request.reason, **form}
            emitter.emit(DataBlock({"agent": agent, "event": "approval_needed", **details}))
        case CallEnded(result):
            ended = {"call_id": result.call_id, "name": result.name, "status": result.status.value}
            emitter.emit(DataBlock({"agent": agent, "event": "call_ended", **ended}))


def tool_name(agent: str) -> str:
    """A name for a tool, made from an agent's name. No two names of agents make the same one."""
    legal = re.sub(r"[^A-Za-z0-9_]+", "_", agent).strip("_")[:40]
    if legal and legal == agent:
        return f"call_{agent}"
    mark = hashlib.sha256(agent.encode("utf-8", "replace")).hexdigest()[:8]
    return f"call_{legal}_{mark}" if legal else f"call_{mark}"
