"""Conversations: what was said, which calls are owed an answer, and how they get it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeAlias, cast, final

from pegboard import Chunk, Fault, Session, Status, Suspend, ToolCall, ToolResult
from pegboard_agent._events import CallEnded, CallStarted, ChunkEvent, Event
from pegboard_agent._limits import Meter
from pegboard_agent._memory import Memory
from pegboard_agent._messages import CUT_OFF, to_send
from pegboard_agent._request import dialect_of

__all__ = ["Conversation", "Emit"]

Emit: TypeAlias = Callable[[Event], None]

CANCELLED: Final = "the call was cancelled"
CUT: Final = "the message was cut off before its end, so none of its calls ran; make fewer or shorter ones"
LOST: Final = "Error: the answer of this call was lost"
MAY_HAVE_RUN: Final = "the program ended while this call may have been running; it was not run again"
TOO_MANY: Final = "this call did not run: no more tool calls are allowed now"
REPEATED: Final = (
    "(You have made this very call before. If that brought nothing new, go on with what you know, or answer.)"
)


@final
class Conversation:
    """One conversation of an agent: to each call one tool message, in the order of the calls.

    Answers may come in any order: they are kept at once, and told to the model when all of a message's calls have
    theirs. Until then the message is `open`. `caller` is the conversation that waits for this one, if a call began it.
    `begun` are the conversations that calls of this one began: the agent's name and the id of each.
    """

    def __init__(self, memory: Memory, session_id: str | None, session: Session) -> None:
        self.id = session_id
        self.messages: list[dict[str, Any]] = []  # as the model is sent them
        self.begun: set[tuple[str, str]] = set()
        self.open: dict[str, Any] | None = None
        self.caller: Conversation | None = None
        self.meter: Meter | None = None  # of the run that it is in, or of its last one
        self.system_prompt: str | None = None  # if a function gave it
        self.session = session.session(context=self)
        self.dialect = dialect_of(self.session, "openai")
        self._own = session
        self._keep = partial(memory.append, session_id=session_id)
        self._answers: dict[int, list[dict[str, Any]]] = {}
        self._parked: dict[int, str] = {}
        self._prepared: dict[int, ToolCall] = {}
        self._seen: Counter[tuple[str, str]] = Counter()
        self._turns: list[object] = []
        for record in memory.records(session_id):
            self._take(dict(record))
        self._restored = self.open
        if self._parked:
            self.owed()  # `toolkit.resume` takes their answers from now on

    @asynccontextmanager
    async def turn(self, caller: Conversation | None = None, approver: Any = None) -> AsyncIterator[Conversation]:
        """One run at a time, in the order in which they came, on whatever event loops and threads they are.

        An agent without an approver asks that of its caller, which stays: a call that waits for its approval is never
        decided by another one because the run that goes on is the program's.
        """
        turn = object()
        self._turns.append(turn)
        try:
            while self._turns[0] is not turn:  # noqa: ASYNC110 - no event reaches other loops, and few wait
                await asyncio.sleep(0.01)
            self.caller = caller
            self._seen.clear()
            if self._own.approver is None and approver is not None:
                self.session.approver = approver
            yield self
        finally:
            self._turns.remove(turn)

    @property
    def callers(self) -> list[Conversation]:
        """Who waits for this one, the nearest first."""
        return [] if self.caller is None else [self.caller, *self.caller.callers]

    def __str__(self) -> str:
        return "the conversation without a session_id" if self.id is None else f"the conversation {self.id!r}"

    @property
    def goes_on(self) -> bool:
        """Whether the model has something to answer: a message, or results of its calls."""
        return bool(self.messages) and (self.open is not None or self.messages[-1]["role"] != "assistant")

    # Messages --------------------------------------------------------------------------------------------------

    def add(self, record: dict[str, Any]) -> None:
        """Add a message, or a record of a call of the open one. A message with calls is open then."""
        self._keep(record)
        self._take(record)

    def _take(self, record: dict[str, Any]) -> None:
        if "role" in record:
            self._close()
            self.messages.append(to_send(record))
            self.open = record if record.get("tool_calls") else None
            self._answers, self._parked, self._prepared = {}, {}, {}
        elif "begun" in record:
            self.begun.add((record["agent"], record["begun"]))
        elif "system_prompt" in record:
            self.system_prompt = record["system_prompt"]
        elif "parked" in record:
            self._parked[record["parked"]] = record.get("reason", "")
        elif self.open is not None and record["answers"] < len(self.open["tool_calls"]):
            self._answers[record["answers"]] = record["messages"]
            if len(self._answers) == len(self.open["tool_calls"]):
                self._close()

    def _close(self) -> None:
        """Write the answers out; whatever a file has lost gets one too."""
        if self.open is None:
            return
        images: list[Any] = []
        for number, call in enumerate(self.open["tool_calls"]):
            lost = {"role": "tool", "tool_call_id": call["id"], "content": LOST}
            answer, *after = self._answers.get(number) or [lost]
            self.messages.append(answer)
            for message in after:
                images += message["content"]
        if images:  # in one message of the user's, after all of the tool messages
            self.messages.append({"role": "user", "content": images})
        self.open = None

    # Calls -----------------------------------------------------------------------------------------------------

    def owed(self) -> dict[int, ToolCall]:
        """The calls that are owed an answer, prepared. One that was suspended in an earlier program is so again."""
        read = enumerate(() if self.open is None else self.dialect.calls(self.open))
        return {number: self._prepare(number, call) for number, call in read if number not in self._answers}

    def _prepare(self, number: int, call: ToolCall) -> ToolCall:
        if number in self._prepared:
            return self._prepared[number]
        prepared = self.session.prepare(call)
        if number in self._parked:
            self.session.suspend(prepared, self._parked[number])
        if prepared.result is None or prepared.status is Status.SUSPENDED:  # else it may be registered later
            self._prepared[number] = prepared
        return prepared

    async def perform(self, context: Any, emit: Emit, meter: Meter) -> tuple[str, ...]:
        """Run the calls that are owed an answer, as far as they may begin; the ids of those that wait for it still."""
        if self.open is not None and CUT_OFF in self.open:
            for result in self.refuse(CUT):
                emit(CallEnded(result))
        owed = self.owed()
        if self.open is self._restored:
            self.refuse(MAY_HAVE_RUN, [number for number, call in owed.items() if self._may_not_run_twice(call)])
        waiting = {number for number, call in owed.items() if call.status is Status.SUSPENDED}
        running = {number: owed[number] for number in owed if number not in waiting and number not in self._answers}
        beginning = [number for number in running if number not in self._parked]
        admitted = meter.admit(len(beginning))
        for result in self.refuse(TOO_MANY, beginning[admitted:], Status.DENIED):
            emit(CallEnded(result))
        for number in beginning[:admitted]:
            emit(CallStarted(running[number]))
        running = {number: call for number, call in running.items() if number not in self._answers}
        stream = cast("AsyncGenerator[Any]", self.session.stream(list(running.values()), context=context))
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, Chunk):
                        emit(ChunkEvent(event))
                        continue
                    number = next(number for number, call in running.items() if call.result is event)
                    if self._parks(number, event):
                        waiting.add(number)
                    else:
                        self._answer(number, event)
                        emit(CallEnded(event))
        finally:  # cancelled: what has ended keeps its result
            for number in sorted(running.keys() - waiting - self._answers.keys()):
                result = running[number].result or _refused(running[number], CANCELLED, Status.CANCELLED)
                self._answer(number, result)
                emit(CallEnded(result))
        return tuple(owed[number].id for number in sorted(waiting))

    def _parks(self, number: int, result: ToolResult) -> bool:
        """Whether a call waits: for its answer, or for an approver who cannot give one now."""
        if result.status is Status.SUSPENDED:
            self.add({"parked": number, "reason": result.text})
            return True
        if result.error is not None and isinstance(result.error.exception, Suspend):
            del self._prepared[number]  # it is asked about again
            return True
        return False

    def _may_not_run_twice(self, call: ToolCall) -> bool:
        """Whether an earlier program may have begun a call, and a second time would be one too many."""
        if call.result is not None or call.status is Status.AWAITING_APPROVAL:
            return False
        hints = self.session[call.name].hints
        return hints.idempotent is False or hints.destructive is True

    def refuse(self, why: str, numbers: Iterable[int] | None = None, status: Status = Status.ERROR) -> list[ToolResult]:
        """Answer calls, without `numbers` all that are owed an answer, with why they do not run."""
        owed = self.owed()
        refused = {number: _refused(owed[number], why, status) for number in (owed if numbers is None else numbers)}
        for number, result in refused.items():
            self._answer(number, result)
        return list(refused.values())

    def _answer(self, number: int, result: ToolResult) -> None:
        """Answer a call of the open message."""
        messages = self.dialect.messages([result])
        called = cast("dict[str, Any]", self.open)["tool_calls"][number]["function"]
        same = called["name"], called["arguments"]
        self._seen[same] += 1
        if self._seen[same] == 2:
            messages[0]["content"] += f"\n{REPEATED}"
        self.add({"answers": number, "messages": messages})


def _refused(call: ToolCall, why: str, status: Status = Status.ERROR) -> ToolResult:
    return ToolResult(call.id, call.name, status, f"Error: {why}", error=Fault(status.value, why))
