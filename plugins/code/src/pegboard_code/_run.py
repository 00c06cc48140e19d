"""Runs: one call of `run_code`, from its program to its result, written once for event loops and plain code."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol, TypeVar, final

from attrs import evolve, frozen

from pegboard import Block, Fault, Session, Status, Suspend, TextBlock, ToolCall, ToolResult
from pegboard_code._calls import Caller, Clock, asks, fails, in_thread
from pegboard_code._catalog import Catalog
from pegboard_code._check import Checks
from pegboard_code._program import Answer, CallRequest, Ended, Limits, Program, StoppedError, Turn
from pegboard_code._snapshots import Owed, Parked
from pegboard_code._values import Handles, fits, size_of

__all__ = ["Run", "Terms", "on_loop_or_here"]

T = TypeVar("T")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")
_NOTHING: Final = "The program ended without a value and printed nothing."


class Terms(Protocol):
    """What code mode says of every run; `checks` is None where programs run unchecked."""

    limits: Limits
    checks: Checks | None

    def catalog(self, session: Session) -> Catalog:
        """The tools that programs of a session may call now."""

    def kept(self, run: Run, parked: Parked) -> Callable[[Any], Any]:
        """Keep a program that waits; what goes on with it, given the answer."""


@final
@frozen
class Io:
    """How a run waits: on an event loop it is awaited, in plain code everything blocks and nothing suspends."""

    on_loop: bool

    async def turn(self, work: Callable[[], T], stop: Callable[[], None]) -> T:
        """Wait for a turn of a program, on a loop in a thread."""
        return await in_thread(work, stop) if self.on_loop else work()

    async def call(self, caller: Caller, calls: list[ToolCall]) -> list[ToolResult]:
        """Make calls."""
        return await caller.call(calls) if self.on_loop else caller.call_sync(calls)

    async def resume(self, session: Session, call: ToolCall, value: Any) -> ToolResult:
        """Answer a suspended call."""
        return await session.aresume(call, value) if self.on_loop else session.resume(call, value)


def on_loop_or_here(start: Callable[[Io], Coroutine[Any, Any, ToolResult]]) -> Any:
    """Begin a run: a coroutine on an event loop, its result in plain code."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        try:
            start(Io(on_loop=False)).send(None)
        except StopIteration as stop:
            return stop.value
        raise RuntimeError("a run has suspended in plain code") from None
    return start(Io(on_loop=True))


@final
class Run:
    """One call of `run_code`: its program and what surrounds it. `owed` are its suspended calls, by their ids."""

    def __init__(self, mode: Terms, call: ToolCall, session: Session, covered: tuple[str, ...], given: Any) -> None:
        self.mode = mode
        self.call = call
        self.covered = covered
        self.caller_session = session
        self.session = _allowing(session, covered)
        self.owed: dict[str, ToolCall] = {}
        self._given = given
        self._clock = Clock(mode.limits.seconds)
        self._number = 0
        self._program: Program | None = None
        self._catalog: Catalog

    # From code to result -----------------------------------------------------------------------------------------

    async def begin(self, code: str, io: Io) -> ToolResult:
        """Check the code and run it. Raises `Suspend` where a call of it does."""
        return await self._settled(self._begun(code, io))

    async def go_on(self, parked: Parked, value: Any, io: Io, done: Callable[[], None]) -> ToolResult:
        """Go on with a program that waited, with the answer of the first call that it owes; `done` at the end."""
        try:
            return await self._settled(self._gone_on(parked, value, io))
        finally:
            done()

    async def _settled(self, work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
        self._catalog = self.mode.catalog(self.caller_session)
        try:
            return await work
        except StoppedError as error:
            return self._stopped(error)
        finally:
            program, self._program = self._program, None
            if program is not None:
                program.close()

    async def _begun(self, code: str, io: Io) -> ToolResult:
        catalog, limits, checks = self._catalog, self.mode.limits, self.mode.checks
        if len(code) > limits.code:
            message = f"the program was not run: it has {len(code):,} characters, of {limits.code:,} at most"
            raise StoppedError(Status.INVALID, "max_code", message)
        if checks is not None and not checks.knows(code, catalog):
            check = partial(checks.refusal, code, catalog, limits.seconds / 2, limits.memory)
            if refusal := await self._timed(io, check, lambda: None):
                raise StoppedError(Status.INVALID, "program", refusal)
        program = Program(code, catalog, limits, self._left, Handles(), dt.datetime.now(dt.UTC).isoformat())
        return await self._drive(io, program, program.start)

    async def _gone_on(self, parked: Parked, value: Any, io: Io) -> ToolResult:
        owed, limits, handles = parked.owed[0], self.mode.limits, Handles(parked.blocks, parked.shown)
        self._clock.left, self._number = min(parked.left, limits.seconds), parked.calls
        result = await self._answered(owed, value, io)
        if _waits(result):
            self._put_away(evolve(parked, owed=(evolve(owed, reason=_reason(result)), *parked.owed[1:])))
        parked = evolve(parked.answered(self._answer(result, handles)), **handles.data)
        if parked.owed:
            self._put_away(parked)
        known = parked.moment, parked.calls, parked.printed
        program = Program(parked.code, self._catalog, limits, self._left, handles, *known)
        return await self._drive(io, program, partial(program.take_up, parked.dump, parked.answers))

    @property
    def _left(self) -> float:
        return max(self._clock.left, 0.01)

    async def _drive(self, io: Io, program: Program, begin: Callable[[], Turn]) -> ToolResult:
        self._program = program
        self._given[0].on_cancel(program.kill)
        turn = await self._timed(io, begin, program.kill)
        while not isinstance(turn, Ended):
            calls = [self._made(request) for request in turn]
            results = await io.call(self._caller(self.session), calls)
            answers = self._answers(program, turn, calls, results)
            turn = await self._timed(io, partial(program.go_on, answers), program.kill)
        return ToolResult(
            self.call.id, self.call.name, Status.SUCCESS, _content(program, turn.value), turn.value, value=turn.value
        )

    def _caller(self, session: Session) -> Caller:
        token, emitter, given = self._given
        return Caller(session, self._clock, emitter, token, given)

    async def _timed(self, io: Io, work: Callable[[], T], stop: Callable[[], None]) -> T:
        began = time.perf_counter()
        value = await io.turn(work, stop)
        self._clock.spend(time.perf_counter() - began)
        return value

    # Calls -------------------------------------------------------------------------------------------------------

    def _made(self, request: CallRequest) -> ToolCall:
        self._number += 1
        tool = self._catalog.stubs[request.name].tool
        return ToolCall(f"{self.call.id}_{self._number}", tool, request.arguments, {"parent": self.call.id})

    def _answers(
        self, program: Program, requests: list[CallRequest], calls: list[ToolCall], results: list[ToolResult]
    ) -> dict[int, Answer]:
        """What the program gets. Raises `Suspend` where nothing failed and an answer is owed."""
        # What was ended for another's failure fails as that one did: `gather` raises what comes first.
        failures = [result for result in results if fails(result)]
        cause = next((each for each in failures if each.status is not Status.CANCELLED), None)
        answers: dict[int, Answer] = {}
        owed: list[Owed] = []
        for each, call, result in zip(requests, calls, results, strict=True):
            waits = _waits(result)
            if result.status is Status.SUSPENDED:
                self.session.withdraw(call)
                self.owed[call.id] = call
            if waits and not failures:
                owed.append(Owed(each.number, call.id, call.name, each.arguments, _reason(result), asks(result)))
                continue
            ended = waits or result.status is Status.CANCELLED
            answers[each.number] = self._answer(cause if ended and cause else result, program.handles)
        if owed:
            self._put_away(self._parked(program, owed, answers))
        return answers

    def _answer(self, result: ToolResult, handles: Handles) -> Answer:
        if result.is_error:
            return _raised(result.text)
        value, most = handles.value(result), self.mode.limits.memory // 4
        if size_of(value, most) > most:
            return _raised(f"the result of {result.name} is too large for a program: more than {most:,} bytes")
        stub = self._catalog.by_tool.get(result.name)
        if stub is not None and not fits(value, stub.returns):
            return _raised(f"the result of {result.name} is not what its signature says: {stub.head}")
        return {"return_value": value}

    # Waiting for answers -----------------------------------------------------------------------------------------

    def _parked(self, program: Program, owed: list[Owed], answers: dict[int, Answer]) -> Parked:
        return Parked(
            call_id=self.call.id,
            session=self.caller_session.id,
            code=program.code,
            dump=program.dump(),
            owed=tuple(owed),
            answers={**program.known, **answers},
            moment=program.moment,
            left=self._clock.left,
            calls=program.calls,
            covered=self.covered,
            printed=program.printed,
            **program.handles.data,
        )

    def _put_away(self, parked: Parked) -> None:
        """Keep a program that waits. Raises `Suspend` with the reason of the first answer that is owed."""
        raise Suspend(parked.reason, resume=self.mode.kept(self, parked))

    async def _answered(self, owed: Owed, value: Any, io: Io) -> ToolResult:
        """The result of a call with its answer, made as by the tool itself."""
        call = self.owed.get(owed.call_id) or ToolCall(
            owed.call_id, owed.name, dict(owed.arguments), {"parent": self.call.id}
        )
        if owed.asks:
            session = self.session if value is None else self.session.session(approver=lambda request: value)
            (result,) = await io.call(self._caller(session), [call])
            return result
        result = self.session.suspend(call, owed.reason)
        if result.status is not Status.SUSPENDED:  # it cannot be called any more
            return result
        result = await io.resume(self.session, call, value)
        if result.status is Status.SUSPENDED:
            self.session.withdraw(call)
        return result

    # Results -----------------------------------------------------------------------------------------------------

    def _stopped(self, error: StoppedError) -> ToolResult:
        printed = "" if self._program is None else self._program.printed
        status, message = error.status, error.message
        if self._given[0].cancelled:
            status, message = Status.CANCELLED, "the call was cancelled"
        blocks: list[Block] = [TextBlock(printed.rstrip("\n"))] if printed else []
        fault = Fault(error.kind, message, {}, error.__cause__)
        return ToolResult(self.call.id, self.call.name, status, [*blocks, TextBlock(f"Error: {message}")], None, fault)


def _allowing(session: Session, covered: tuple[str, ...]) -> Session:
    """A session in which the tools need no approval that were approved with the whole program."""
    if not covered:
        return session
    own = session.session()
    for name in covered:
        if name in own:
            own.set_permission(name, "always")
    return own


def _content(program: Program, value: Any) -> list[Block]:
    texts = [program.printed.rstrip("\n")] if program.printed.rstrip("\n") else []
    if value is not None:
        texts.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if not texts and not program.handles.shown:
        texts.append(_NOTHING + _last_line(program.code))
    return [*map(TextBlock, texts), *program.handles.shown]


def _last_line(code: str) -> str:
    """What to write as the last line of a program that ends with an assignment."""
    lines = [line for line in code.split("\n") if line[:1] not in ("", " ", "\t", "#", ")", "]", "}")]
    assigned = _ASSIGNED.match(lines[-1]) if lines else None
    return f" Its last line is an assignment; write after it: {assigned[1]}" if assigned else ""


def _waits(result: ToolResult) -> bool:
    """Whether a call waits for an answer, or for its approver."""
    return result.status is Status.SUSPENDED or asks(result)


def _reason(result: ToolResult) -> str:
    return str(result.error.exception) if result.error is not None and asks(result) else result.text


def _raised(message: str) -> Answer:
    return {"exc_type": "RuntimeError", "message": message}
