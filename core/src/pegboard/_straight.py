"""The straight path: a call that has nothing to wait for but its function.

No rule of execution is written here a second time: a call that needs approval, a lock, middleware, a retry, a repair
or an explanation is answered with None before anything has run, and takes the steps of `_execution`.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any, Final, final

from pegboard._call import CancelToken, ToolCall, new_call_id
from pegboard._content import Block
from pegboard._decode import check_value, fast_decode, has_every_key
from pegboard._effects import Steps, is_cancellation, is_interrupt
from pegboard._engine import Engine, call_scope
from pegboard._invocation import Invocation
from pegboard._outcome import finished
from pegboard._ready import Ready
from pegboard._result import Note, ResultDraft, Status, ToolResult

__all__ = ["Straight"]

_NO_METADATA: Final[Mapping[str, Any]] = {}
_DEBUG: Final = logging.DEBUG


@final
class _Unseen:
    """What a result says of a call that its tool did not ask for: nobody can have added anything to it."""

    __slots__ = ("id", "name")

    notes: tuple[Note, ...] = ()
    logs: tuple[str, ...] = ()
    attachments: tuple[Block, ...] = ()

    def __init__(self, id: str, name: str) -> None:  # noqa: A002 - as in ToolCall
        self.id = id
        self.name = name


@final
class Straight:
    """Runs straight calls of one toolkit."""

    __slots__ = ("_engine", "_log")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._log = engine.logger

    def run(
        self, session: Any, ready: Ready, arguments: Any, call_id: str | None, context: Any, agent: Any
    ) -> ToolResult | dict[str, Any] | None:
        """Run a sync tool in the caller's thread; no result when the call needs more than that (nothing has run then).

        It is then the decoded arguments, if they are what does not fit.
        """
        started = perf_counter()
        call_id = call_id or new_call_id()
        begun = _begin(session, ready, arguments, call_id, context, agent)
        if not isinstance(begun, tuple):
            return begun
        values, invocation = begun
        ready.stats.open += 1
        try:
            value = ready.invoke(values, invocation)
            if type(value) not in ready.renderers.by_type and _is_unfinished(value):
                late = self._late(session, ready, arguments, call_id, context, agent, value)
                result: ToolResult = self._engine.drivers.run_sync(*late)
                return self._counted(ready, finished(result, perf_counter() - started, 1))
        except BaseException as error:
            if is_interrupt(error):
                self._left(ready, call_id, error, started)
                raise
            return self._raised(session, ready, call_id, arguments, invocation, error, started)
        return self._conclude(ready, call_id, arguments, invocation, value, started)

    async def run_async(
        self, session: Any, ready: Ready, arguments: Any, call_id: str | None, context: Any, agent: Any
    ) -> ToolResult | dict[str, Any] | None:
        """`run` for event loops: an async tool has a deadline once it suspends, a sync one runs in a worker thread."""
        started = perf_counter()
        call_id = call_id or new_call_id()
        begun = _begin(session, ready, arguments, call_id, context, agent)
        if not isinstance(begun, tuple):
            return begun
        values, invocation = begun
        ready.stats.open += 1
        stopper = None
        try:
            if ready.straight_thread:
                stopper = self._watched()
                job = partial(ready.invoke, values, invocation)
                value, failure = await self._engine.drivers.in_worker(job, ready.policy.timeout)
                if failure is not None:
                    self._unwatched(stopper)
                    return self._raised(session, ready, call_id, arguments, invocation, failure, started)
            else:
                coroutine = ready.invoke(values, invocation)
                try:
                    first = coroutine.send(None)
                except StopIteration as stop:
                    value = stop.value
                else:
                    stopper = self._watched()
                    value = await self._engine.drivers.resumed(coroutine, first, ready.policy.timeout, stopper)
            self._released(stopper)
            if type(value) not in ready.renderers.by_type and _is_unfinished(value):
                late = self._late(session, ready, arguments, call_id, context, agent, value)
                result: ToolResult = await self._engine.drivers.run(*late)
                return self._counted(ready, finished(result, perf_counter() - started, 1))
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            departure = self._departure(error, stopper)
            if departure is not None:
                raise self._left(ready, call_id, departure, started)  # noqa: B904 - most often the same one
            return self._raised(session, ready, call_id, arguments, invocation, error, started)
        return self._conclude(ready, call_id, arguments, invocation, value, started)

    def _late(
        self, session: Any, ready: Ready, arguments: Any, call_id: str, context: Any, agent: Any, value: Any
    ) -> tuple[Steps, CancelToken]:
        """The steps that finish what a function returned unfinished, and what stops them."""
        late = self._engine.late(session, ready, call_id, arguments, context, agent)
        return self._engine.listed(late.token, late.late_steps(value)), late.token

    def _released(self, stopper: Any) -> None:
        """The tool has returned; if the caller has been cancelled meanwhile, the tool swallowed it."""
        if stopper is not None:
            self._engine.live.discard(stopper)
            if stopper.retire():
                raise _caller_left()

    def _departure(self, error: BaseException, stopper: Any) -> BaseException | None:
        """What leaves the call: a real Ctrl-C, or the caller's own cancellation, whatever the tool made of it."""
        if stopper is not None:
            self._unwatched(stopper)
        if is_interrupt(error):
            return error
        if _cancelling() <= (0 if stopper is None else stopper.expected):
            return None
        return error if is_cancellation(error) else None if stopper is None else _caller_left()

    def _watched(self) -> Any:
        """What closing the toolkit cancels the current task with, until `_unwatched`."""
        stopper = self._engine.drivers.stopper()
        self._engine.live.add(stopper)
        return stopper

    def _unwatched(self, stopper: Any) -> None:
        self._engine.live.discard(stopper)
        stopper.retire()

    def _conclude(
        self, ready: Ready, call_id: str, arguments: Any, invocation: Invocation | None, value: Any, started: float
    ) -> ToolResult:
        kind = type(value)
        known = ready.renderers.by_type.get(kind)
        call = None if invocation is None else invocation.opened_call()
        if known is None or not known[1] or call is not None:
            result = self._engine.outcomes.success(call or _Unseen(call_id, ready.name), value, ready.renderers)
            return self._counted(ready, finished(result, perf_counter() - started, 1))
        draft = ResultDraft()
        draft.call_id = call_id
        draft.name = ready.name
        draft.status = Status.SUCCESS
        draft._rendered = known[0]
        draft._value = value
        draft.error = None
        draft.attempts = 1
        draft.notes = draft.logs = draft.attachments = ()
        draft.metadata = _NO_METADATA
        draft.duration = seconds = perf_counter() - started
        draft.__class__ = ToolResult  # closes the draft
        stats = ready.stats
        stats.open -= 1
        stats.calls += 1
        stats.seconds += seconds
        stats.histogram[int(seconds * 1e6).bit_length()] += 1
        if self._log.isEnabledFor(_DEBUG):
            self._engine.log(draft)  # type: ignore[arg-type]
        return draft  # type: ignore[return-value]

    def _raised(
        self,
        session: Any,
        ready: Ready,
        call_id: str,
        arguments: Any,
        invocation: Invocation | None,
        error: BaseException,
        started: float,
    ) -> ToolResult:
        call = None if invocation is None else invocation.opened_call()
        result = self._engine.outcomes.failure(call or _Unseen(call_id, ready.name), error)
        if result.status is Status.SUSPENDED:
            call = call or ToolCall(call_id, ready.name, arguments)
            self._engine.remember_suspended(call, result, ready, session)
        return self._counted(ready, finished(result, perf_counter() - started, 1))

    def _left(self, ready: Ready, call_id: str, error: BaseException, started: float) -> BaseException:
        """What leaves the call, which is counted and logged all the same."""
        fault = ("cancelled", "the caller was cancelled")
        refusal = self._engine.outcomes.refusal(_Unseen(call_id, ready.name), Status.CANCELLED, *fault, exception=error)
        self._counted(ready, finished(refusal, perf_counter() - started, 1))
        return error

    def _counted(self, ready: Ready, result: ToolResult) -> ToolResult:
        ready.stats.open -= 1
        ready.stats.ended(result.status, result.duration)
        self._engine.log(result)
        return result


def _begin(
    session: Any, ready: Ready, arguments: Any, call_id: str, context: Any, agent: Any
) -> tuple[tuple[Any, ...], Invocation | None] | dict[str, Any] | None:
    """Decode and structure; for whatever does not fit the arguments as decoded, or None if the steps have to decode.

    The steps repair and explain it.
    """
    decoded = text = None
    keys = 0
    try:
        if type(arguments) is str:
            decoded, keys = fast_decode(arguments)
            text = arguments
            values = ready.accept(decoded, keys, text)
        elif type(arguments) is dict:
            if ready.passes_anything:
                check_value(arguments)
            decoded = arguments
            values = ready.accept(decoded, 0, None)
        elif arguments is None:
            decoded = {}
            values = ready.accept(decoded, 0, None)
        else:
            return None
        if not ready.uses_invocation:
            return values, None
        scope = session.scope if context == () and agent is None else call_scope(session, context, agent)
        return values, Invocation(session, ready.name, call_id, decoded, scope, ready.presets, agent)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return decoded if decoded is not None and text is not None and has_every_key(decoded, keys, text) else None


def _caller_left() -> BaseException:
    left: BaseException = sys.modules["asyncio"].CancelledError()
    return left


def _cancelling() -> int:
    task = sys.modules["asyncio"].current_task()
    return task.cancelling() if task is not None else 0


def _is_unfinished(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)
