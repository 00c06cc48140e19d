"""Conversations: their messages, the calls that are owed an answer, and how they get it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, TypeAlias, cast, final

from pegboard import Chunk, Fault, Session, Status, Suspend, ToolCall, ToolResult
from pegboard_agent._events import CallEnded, CallStarted, ChunkEvent, Event
from pegboard_agent._limits import Meter
from pegboard_agent._messages import CUT_OFF, SENT_BACK, to_send
from pegboard_agent._request import dialect_of
from pegboard_agent._stores.protocol import ConversationConflictError, ConversationStore, named, off_loop
from pegboard_agent._stores.records import kind_of
from pegboard_agent._stores.trimming import with_summary

__all__ = ["Conversation", "Emit"]

Emit: TypeAlias = Callable[[Event], None]

_log: Final = logging.getLogger("pegboard.agent")

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
    """One conversation of an agent: each call has one tool message, in the order of the calls.

    Answers may come in any order: they are kept at once, and sent to the model when all calls of a message have one.
    Until then the message is `open`. `caller` is the conversation that waits for this one, if a call began it. `begun`
    are the conversations that calls of this one began: the agent's name and the id of each. `shown` are the tools that
    it has listed, in their order.

    Added records are in `messages` at once. `perform`, `to_send` and the end of a turn write them to the store, and add
    the records that other programs have written by then. While a turn runs, those can only be answers.
    """

    def __init__(self, store: ConversationStore, session_id: str | None, session: Session) -> None:
        self.id = session_id
        self.caller: Conversation | None = None
        self.meter: Meter | None = None  # of the present run, or of the last one
        self.session = session.session(context=self, id=_session_name(session.id, session_id))
        self.dialect = dialect_of(self.session, "openai")
        self._own = session
        self._store = store
        self._times_made: Counter[tuple[str, str]] = Counter()
        self._came: list[ToolResult] = []  # answers that this program got since the last turn
        self._runs = False
        self._storing = threading.RLock()  # held while the store is used, never on an event loop
        self._changing = threading.RLock()  # held for an instant
        self._unwritten: list[dict[str, Any]] = []
        self._prepared: dict[int, ToolCall] = {}
        self._begin()

    def _begin(self) -> None:
        """Set the state in which no record of the store has been read."""
        self.known = 0  # records of the store
        self.messages: list[dict[str, Any]] = []  # in the form in which the model gets them
        self.begun: set[tuple[str, str]] = set()
        self.shown: tuple[str, ...] = ()
        self.system_prompt: str | None = None  # if a function gave it
        self.open: dict[str, Any] | None = None
        self._restored: dict[str, Any] | None = None  # an open message of another run, which may not have ended
        self._answers: dict[int, list[dict[str, Any]]] = {}
        self._parked: dict[int, str] = {}
        self._turns: list[int] = []  # the index in `messages` at which each begins

    @asynccontextmanager
    async def turn(self, caller: Conversation | None = None, approver: Any = None) -> AsyncIterator[Conversation]:
        """Hold the turn: one run at a time, in the order in which they came, over event loops, threads and processes.

        First it reads the records that other programs have added. Exceptions of the store reach the caller.

        An agent without an approver asks the approver of its caller, and keeps it: no other approver decides about a
        call that waits for approval, even if the program itself goes on with the run.
        """
        async with self._store.lock(self.id):
            try:
                await self._apart(self._start)
                self.caller = caller
                self._times_made.clear()
                if self._own.approver is None and approver is not None:
                    self.session.approver = approver
                yield self
            finally:
                self._runs = False
                await self.write()

    @property
    def callers(self) -> list[Conversation]:
        """The conversations that wait for this one, the nearest first."""
        return [] if self.caller is None else [self.caller, *self.caller.callers]

    def __str__(self) -> str:
        return named(self.id)

    @property
    def goes_on(self) -> bool:
        """Whether there is something for the model to answer: a message, or results of its calls."""
        return bool(self.messages) and (self.open is not None or self.messages[-1]["role"] != "assistant")

    # The store -------------------------------------------------------------------------------------------------

    async def _apart(self, function: Callable[[], None]) -> None:
        """Run a function that uses the store, on another thread if the store may block."""
        if getattr(self._store, "blocking", True):
            await off_loop(function)
        else:
            function()

    def _start(self) -> None:
        with self._storing:
            try:
                self._take_new()
            except ConversationConflictError as error:
                _log.warning("%s; what this program has not written there is dropped", error)
            if self.shown and self.shown != self.session.shown:
                self.session.shown = self.shown  # another program may have listed more
            self._runs = True

    def refresh(self) -> None:
        """Add the records that other programs have written. A turn that runs here does this itself."""
        with self._storing:
            if not self._runs:
                self._take_new()
                if self._parked:
                    self.owed()  # from now on `toolkit.resume` takes their answers

    def _take_new(self) -> None:
        """Read new records. Raises `ConversationConflictError` if the unwritten ones of this program do not fit in."""
        new = self._store.load(self.id, self.known)
        with self._changing:
            own = self._unwritten
            if new[: len(own)] == own or not new:  # they were written, although the store reported a failure
                self._unwritten = own if not new else []
                self.known += len(new)
                for record in new[len(own) :]:
                    self._take(record, restored=True)
                return
        self._rebuild(new)

    def _rebuild(self, new: list[dict[str, Any]]) -> None:
        """Put unwritten records after those of other programs, which may have answered the same calls."""
        records = self._store.load(self.id)
        with self._changing:
            was, restored, prepared = self.open, self._restored, self._prepared
            own, self._unwritten, self._prepared = self._unwritten, [], {}
            self._begin()
            for record in records:
                self._take(record, restored=True)
            self.known = len(records)
            gone_on = any(kind_of(record) in ("message", "trimmed") for record in new)
            if not gone_on:
                self._unwritten = [record for record in own if self._take(record)]
            if was is None or self.open != was:
                self._withdraw(prepared)
            else:
                self.open, self._restored, self._prepared = was, restored, prepared
                self._withdraw({number: call for number, call in prepared.items() if number in self._answers})
            if gone_on:
                raise ConversationConflictError(self.id, len(records) - len(new), len(records))

    async def write(self) -> None:
        """Write the added records to the store.

        Raises `ConversationConflictError` if another program has gone on with the conversation. Exceptions of the store
        reach the caller; then the records are written later.
        """
        if self._unwritten:
            await self._apart(self._write)

    def _write(self) -> None:
        with self._storing:
            while records := list(self._unwritten):
                if self._appended(records):
                    with self._changing:
                        del self._unwritten[: len(records)]

    def _appended(self, records: list[dict[str, Any]]) -> bool:
        """Whether the store took records. If not, its new ones are read. Exceptions of the store reach the caller."""
        try:
            self._store.append(self.id, records, self.known)
        except ConversationConflictError:
            known = self.known
            self._take_new()
            if self.known == known:  # the store has fewer records than before
                raise
            return False
        self.known += len(records)
        return True

    def keep_answer(self, call: ToolCall, result: ToolResult) -> bool:
        """Write the answer of a parked call; False if it has one already. Exceptions of the store reach the caller."""
        if result.status is Status.SUSPENDED:  # the same call was suspended again
            return True
        with self._storing:
            self._write()
            self._take_new()
            record: dict[str, Any] = {}
            while (number := self._number_of(call)) is not None:
                record = record or {"answers": number, "messages": self._messages_of(number, result)}
                if self._appended([record]):
                    with self._changing:
                        gone_on = bool(self._unwritten)  # a turn has begun here since
                        if not gone_on:
                            self._take(record)
                            self._came.append(result)
                    if gone_on:
                        self._rebuild([record])
                    return True
            return False

    def _number_of(self, call: ToolCall) -> int | None:
        with self._changing:
            own = (number for number, prepared in self._prepared.items() if prepared is call)
            return next((number for number in own if number not in self._answers), None)

    # Messages --------------------------------------------------------------------------------------------------

    def add(self, record: dict[str, Any]) -> None:
        """Add a message, or a record about a call of the open one. A message with calls becomes the open one."""
        with self._changing:
            if self._take(record):
                self._unwritten.append(record)

    def keep_shown(self) -> None:
        """Record the order in which the tools were listed, if there are new ones."""
        if (shown := self.session.shown) != self.shown:
            self.add({"shown": list(shown)})

    async def to_send(self) -> list[dict[str, Any]]:
        """Write all records, and return the messages for the model; of a long conversation the last turns."""
        await self.write()
        trimming = getattr(self._store, "trimming", None)
        cut = None if trimming is None else await trimming.cut(self.messages, self._turns)
        if cut is not None:
            self.add(cut)
            await self.write()
        return self.messages

    def _take(self, record: dict[str, Any], *, restored: bool = False) -> bool:
        """Apply a record, `restored` if it comes from the store; False for a second answer to a call."""
        match kind_of(record):
            case "message":
                self._take_message(record, restored=restored)
            case "begun":
                self.begun.add((record["agent"], record["begun"]))
            case "shown":
                self.shown = tuple(record["shown"])
            case "system_prompt":
                self.system_prompt = record["system_prompt"]
            case "trimmed":
                self._trim(record["trimmed"], record.get("summary"))
            case "parked":
                self._parked[record["parked"]] = record.get("reason", "")
            case _:
                return self._take_answer(record["answers"], record["messages"])
        return True

    def _take_message(self, record: dict[str, Any], *, restored: bool) -> None:
        self._close()
        if record["role"] == "user" and SENT_BACK not in record:
            self._turns.append(len(self.messages))
        self.messages.append(to_send(record))
        self.open = record if record.get("tool_calls") else None
        self._restored = self.open if restored else None
        self._withdraw(self._prepared)
        self._answers, self._parked, self._prepared, self._came = {}, {}, {}, []

    def _take_answer(self, number: int, messages: list[dict[str, Any]]) -> bool:
        if self.open is None or number in self._answers or number >= len(self.open["tool_calls"]):
            return False
        self._answers[number] = messages
        if number in self._prepared:
            self._withdraw({number: self._prepared[number]})
        if len(self._answers) == len(self.open["tool_calls"]):
            self._close()
        return True

    def _withdraw(self, calls: Mapping[int, ToolCall]) -> None:
        for call in calls.values():
            self.session.withdraw(call)

    def _trim(self, first: int, summary: str | None) -> None:
        if first < len(self.messages):
            self.messages = self.messages[first:]
            self._turns = [turn - first for turn in self._turns if turn >= first]
            if summary is not None:
                self.messages[0] = with_summary(self.messages[0], summary)

    def _close(self) -> None:
        """Add the answers to `messages`. A call whose answer is missing from the file gets an error as its answer."""
        if self.open is None:
            return
        images: list[Any] = []
        for number, call in enumerate(self.open["tool_calls"]):
            lost = {"role": "tool", "tool_call_id": call["id"], "content": LOST}
            answer, *after = self._answers.get(number) or [lost]
            self.messages.append(answer)
            for message in after:
                images += message["content"]
        if images:  # in one message of the user, after all tool messages
            self.messages.append({"role": "user", "content": images})
        self.open = None

    # Calls -----------------------------------------------------------------------------------------------------

    @property
    def has_parked(self) -> bool:
        """Whether a call of the open message was parked and has no answer in this program."""
        return self.open is not None and bool(self._parked.keys() - self._answers.keys())

    @property
    def is_ready(self) -> bool:
        """Whether all parked calls are suspended in this program. Their tools may be registered late."""
        return not self.has_parked or self._parked.keys() <= self._prepared.keys() | self._answers.keys()

    def owed(self) -> dict[int, ToolCall]:
        """The calls that are owed an answer, prepared. A call that an earlier program suspended is suspended again."""
        read = enumerate(() if self.open is None else self.dialect.calls(self.open))
        return {number: self._prepare(number, call) for number, call in read if number not in self._answers}

    def _prepare(self, number: int, call: ToolCall) -> ToolCall:
        if number in self._prepared:
            return self._prepared[number]
        prepared = self.session.prepare(call)
        if number in self._parked:
            self.session.suspend(prepared, self._parked[number])
        if prepared.result is None or prepared.status is Status.SUSPENDED:  # otherwise its tool may be registered later
            self._prepared[number] = prepared
        return prepared

    async def _ready(self, emit: Emit) -> dict[int, ToolCall]:
        """The calls that are owed an answer and may run, once all answers that came meanwhile are written."""
        came, self._came = self._came, []
        if self.open is not None and CUT_OFF in self.open:
            came += self.refuse(CUT)
        owed = self.owed()
        if self.open is self._restored:
            self.refuse(MAY_HAVE_RUN, [number for number, call in owed.items() if self._may_not_run_twice(call)])
        await self.write()
        for result in came:
            emit(CallEnded(result))
        return {number: call for number, call in owed.items() if number not in self._answers}

    async def _begun(self, calls: dict[int, ToolCall], emit: Emit, meter: Meter) -> dict[int, ToolCall]:
        """The calls that the limits let begin; the others are denied."""
        beginning = [number for number in calls if number not in self._parked]
        admitted = meter.admit(len(beginning))
        if beyond := beginning[admitted:]:
            denied = self.refuse(TOO_MANY, beyond, Status.DENIED)
            await self.write()
            for result in denied:
                emit(CallEnded(result))
        for number in beginning[:admitted]:
            emit(CallStarted(calls[number]))
        return {number: call for number, call in calls.items() if number not in beyond}

    async def perform(self, context: Any, emit: Emit, meter: Meter) -> tuple[str, ...]:
        """Run the calls that are owed an answer, as far as they may begin. Returns the ids of those that still wait."""
        owed = await self._ready(emit)
        waiting = {number for number, call in owed.items() if call.status is Status.SUSPENDED}
        running = {number: call for number, call in owed.items() if number not in waiting}
        running = await self._begun(running, emit, meter)
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
                        await self.write()
                    else:
                        self._answer(number, event)
                        await self.write()
                        emit(CallEnded(event))
        finally:  # if cancelled: a call that has ended keeps its result
            ended = {
                number: running[number].result or _refused(running[number], CANCELLED, Status.CANCELLED)
                for number in sorted(running.keys() - waiting - self._answers.keys())
            }
            for number, result in ended.items():
                self._answer(number, result)
                emit(CallEnded(result))
        return tuple(owed[number].id for number in sorted(waiting - self._answers.keys()))

    def _parks(self, number: int, result: ToolResult) -> bool:
        """Whether a call waits: for its answer, or for an approver that cannot decide now."""
        if result.status is Status.SUSPENDED:
            self.add({"parked": number, "reason": result.text})
            return True
        if result.error is not None and isinstance(result.error.exception, Suspend):
            del self._prepared[number]  # the approver is asked again
            return True
        return False

    def _may_not_run_twice(self, call: ToolCall) -> bool:
        """Whether a call must not run a second time; an earlier program may have begun it."""
        if call.result is not None or call.status is Status.AWAITING_APPROVAL:
            return False
        hints = self.session[call.name].hints
        return hints.idempotent is False or hints.destructive is True

    def refuse(self, why: str, numbers: Iterable[int] | None = None, status: Status = Status.ERROR) -> list[ToolResult]:
        """Answer calls with the reason why they do not run; without `numbers` all that are owed an answer."""
        chosen = None if numbers is None else list(numbers)
        owed = {} if chosen == [] else self.owed()  # to read the calls takes time
        refused = {number: _refused(owed[number], why, status) for number in (owed if chosen is None else chosen)}
        for number, result in refused.items():
            self._answer(number, result)
        return list(refused.values())

    def _answer(self, number: int, result: ToolResult) -> None:
        """Answer a call of the open message, unless another program has answered it."""
        if self.open is not None and number not in self._answers:
            self.add({"answers": number, "messages": self._messages_of(number, result)})

    def _messages_of(self, number: int, result: ToolResult) -> list[dict[str, Any]]:
        """The messages for the model about a call of the open message."""
        messages: list[dict[str, Any]] = self.dialect.messages([result])
        called = cast("dict[str, Any]", self.open)["tool_calls"][number]["function"]
        same = called["name"], called["arguments"]
        self._times_made[same] += 1
        if self._times_made[same] == 2:
            messages[0]["content"] += f"\n{REPEATED}"
        return messages


def _session_name(outer: str | None, conversation: str | None) -> str | None:
    """The name of the session of a conversation: its id, below the name of the session that it is made from."""
    return "/".join(name for name in (outer, conversation) if name is not None) or None


def _refused(call: ToolCall, why: str, status: Status = Status.ERROR) -> ToolResult:
    return ToolResult(call.id, call.name, status, f"Error: {why}", error=Fault(status.value, why))
