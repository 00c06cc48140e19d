"""The straight path: a call that has nothing to wait for but its function.

No rule of execution is written here a second time: a call that needs approval, a lock, middleware, a retry or a repair
is answered with None, or with its repaired arguments, before anything has run, and takes the steps of `_execution`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeAlias, final

from pegboard._arguments.decode import check_value, has_every_key
from pegboard._arguments.validate import Validation
from pegboard._base.effects import Steps, is_cancellation, is_interrupt
from pegboard._execution.bound_tool import BoundTool
from pegboard._execution.engine import Engine, call_scope
from pegboard._execution.log import DEBUG, INFO, listened
from pegboard._injection.invocation import Invocation
from pegboard._model.call import CancelToken, ToolCall, new_call_id
from pegboard._model.content import Block
from pegboard._model.result import Note, ResultDraft, Status, ToolResult
from pegboard._results.factory import finished

__all__ = ["FastPath"]

_NO_METADATA: Final[Mapping[str, Any]] = {}
_SUCCESS: Final = Status.SUCCESS  # a member of an enum is looked up slowly
_ERROR: Final = Status.ERROR
_NOTHING: Final = ()  # the one empty tuple that there is


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


_Facts: TypeAlias = tuple[Any, BoundTool, Any, str, Any, Any, Invocation | None, float, bool]
"""What is known of a call that turned out to be less straight: what `run` got, its invocation, when it began."""


@final
class FastPath:
    """Runs straight calls of one toolkit."""

    __slots__ = ("_engine", "_log")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._log = listened()

    def run(
        self, session: Any, ready: BoundTool, sent: Any, call_id: str | None, context: Any, agent: Any, on_loop: bool
    ) -> Any:
        """Run a tool. Gives the result or, `on_loop`, perhaps a coroutine that ends in it.

        If the call needs more, nothing has run: then what became of its arguments if they do not fit, else None.
        """
        started = perf_counter()
        call_id = call_id or new_call_id()
        text = sent if type(sent) is str else None
        decoded, keys, values, invocation = None, 0, None, None
        try:
            decoded, keys = (_as_dict(ready, sent), 0) if text is None else ready.decode(text)
            values = ready.accept(decoded, keys, text)
            if ready.fetches and (ready.provided is None or context is not _NOTHING or agent is not None):
                invocation = _surroundings(session, ready, call_id, decoded, context, agent)
        except BaseException as error:  # noqa: BLE001 - whatever a type's own class raises, the value does not fit
            misfit = decoded if values is None and _is_read(decoded, keys, text) else None  # else it is the context
            return self._refused(error, ready, call_id, sent, misfit)
        facts = session, ready, sent, call_id, context, agent, invocation, started, on_loop
        ready.stats.open += 1
        try:
            provided = ready.provided if invocation is None else _provided(ready, invocation)
            if on_loop and ready.fast_thread:
                return self._in_thread(facts, partial(ready.invoke, values, provided))
            value = ready.invoke(values, provided)
            if on_loop:
                try:
                    first = value.send(None)
                except StopIteration as stop:
                    value = stop.value
                else:
                    return self._suspended(facts, value, first)
            known = ready.renderers.by_type.get(type(value))
            if known is None and _is_unfinished(value):
                return self._unfinished(facts, value)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            return self._failed(facts, error)
        return self._conclude(ready, call_id, invocation, known, value, started)

    async def _in_thread(self, facts: _Facts, job: Callable[[], Any]) -> ToolResult:
        """Run a sync tool in a worker thread."""
        engine = self._engine
        try:
            value, failure = await engine.drivers.in_worker(job, facts[1].policy.timeout, live=engine.live)
            if failure is None:
                return self._settled(facts, value) or await self._late_on_loop(facts, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            return self._failed(facts, error)
        return self._raised(facts, failure)

    async def _suspended(self, facts: _Facts, coroutine: Any, first: Any) -> ToolResult:
        """Wait for an async tool, which has a deadline from now on and is cancelled when the toolkit is closed."""
        drivers, live = self._engine.drivers, self._engine.live
        stopper = drivers.stopper()
        live.add(stopper)
        try:
            value = await drivers.resumed(coroutine, first, facts[1].policy.timeout, stopper)
            live.discard(stopper)
            if stopper.retire():  # the caller has been cancelled meanwhile, and the tool swallowed it
                raise _caller_left()
            return self._settled(facts, value) or await self._late_on_loop(facts, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            live.discard(stopper)
            stopper.retire()
            return self._failed(facts, error, stopper)

    def _unfinished(self, facts: _Facts, value: Any) -> Any:
        """What comes of a value that is not finished yet: a result, or on a loop a coroutine that ends in one."""
        if facts[-1]:  # on a loop
            return self._finished(facts, value)
        result: ToolResult = self._engine.drivers.run_sync(*self._late(facts, value))
        return self._timed(facts, result)

    async def _finished(self, facts: _Facts, value: Any) -> ToolResult:
        try:
            return await self._late_on_loop(facts, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            return self._failed(facts, error)

    async def _late_on_loop(self, facts: _Facts, value: Any) -> ToolResult:
        result: ToolResult = await self._engine.drivers.run(*self._late(facts, value))
        return self._timed(facts, result)

    def _settled(self, facts: _Facts, value: Any) -> ToolResult | None:
        """The result of a tool that has returned; None if what it returned is not finished yet."""
        _, ready, _, call_id, _, _, invocation, started, _ = facts
        known = ready.renderers.by_type.get(type(value))
        if known is None and _is_unfinished(value):
            return None
        return self._conclude(ready, call_id, invocation, known, value, started)

    def _late(self, facts: _Facts, value: Any) -> tuple[Steps, CancelToken]:
        """The steps that finish what a function returned unfinished, and what stops them."""
        session, ready, sent, call_id, context, agent, *_ = facts
        late = self._engine.late(session, ready, call_id, sent, context, agent)
        return self._engine.listed(late.token, late.late_steps(value)), late.token

    def _failed(self, facts: _Facts, error: BaseException, stopper: Any = None) -> ToolResult:
        """What a call comes to that ended with an exception; raises what leaves the call."""
        if is_interrupt(error):
            raise self._left(facts, error)
        if facts[-1] and _cancelling() > (0 if stopper is None else stopper.expected):
            # The caller's own cancellation, whatever the tool made of it.
            if is_cancellation(error):
                raise self._left(facts, error)
            if stopper is not None:
                raise self._left(facts, _caller_left())
        return self._raised(facts, error)

    def _conclude(
        self, ready: BoundTool, call_id: str, invocation: Invocation | None, known: Any, value: Any, started: float
    ) -> ToolResult:
        call = None if invocation is None else invocation.opened_call()
        if known is None or not known[1] or call is not None:
            result = self._engine.outcomes.success(call or _Unseen(call_id, ready.name), value, ready.renderers)
            return self._counted(ready, finished(result, perf_counter() - started, 1))
        draft = ResultDraft()
        draft.call_id = call_id
        draft.name = ready.name
        draft.status = _SUCCESS
        draft._rendered = known[0]
        draft._value = value
        draft._fault = None
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
        if self._log is None:
            self._log = listened()  # a program may load `logging` late
        if self._log is not None and self._log.isEnabledFor(DEBUG):
            self._engine.log(draft)  # type: ignore[arg-type]
        return draft  # type: ignore[return-value]

    def _raised(self, facts: _Facts, error: BaseException) -> ToolResult:
        session, ready, sent, call_id, _, _, invocation, started, _ = facts
        call = None if invocation is None else invocation.opened_call()
        outcomes = self._engine.outcomes
        if call is not None or outcomes.has_meaning(error):
            result = outcomes.failure(call or _Unseen(call_id, ready.name), error)
            if result.status is Status.SUSPENDED:
                call = call or ToolCall(call_id, ready.name, sent)
                self._engine.remember_suspended(call, result, ready, session)
            return self._timed(facts, result)
        draft = ResultDraft()  # as in `_conclude`: failing must not cost much more
        draft.call_id = call_id
        draft.name = ready.name
        draft.status = _ERROR
        draft._fault, draft._rendered = outcomes.told(error)
        draft._value = None
        draft.attempts = 1
        draft.notes = draft.logs = draft.attachments = ()
        draft.metadata = _NO_METADATA
        draft.duration = seconds = perf_counter() - started
        draft.__class__ = ToolResult  # closes the draft
        stats = ready.stats
        stats.open -= 1
        stats.calls += 1
        stats.by_status[_ERROR] += 1
        stats.seconds += seconds
        stats.histogram[int(seconds * 1e6).bit_length()] += 1
        return self._logged(draft)  # type: ignore[arg-type]

    def _logged(self, result: ToolResult) -> ToolResult:
        if self._log is None:
            self._log = listened()
        if self._log is not None and self._log.isEnabledFor(INFO):  # else not for DEBUG either
            self._engine.log(result)
        return result

    def _refused(
        self, error: BaseException, ready: BoundTool, call_id: str, sent: Any, decoded: dict[str, Any] | None
    ) -> ToolResult | Validation | None:
        """For arguments that do not fit and cannot be mended: the result; else what became of them, for the steps.

        Without `decoded` arguments the steps have to read them first.
        """
        if is_interrupt(error):
            raise error
        if decoded is None:
            return None
        try:
            admission = self._engine.admission(ready, sent, decoded)
        except BaseException as failure:  # a plugin's handlers are at work here, and the steps say so
            if is_interrupt(failure):
                raise
            return None
        if admission.refusal is None or admission.notes:
            return admission
        result = self._engine.refused(_Unseen(call_id, ready.name), admission)
        ready.stats.ended(result.status, result.duration)
        return self._logged(result)

    def _left(self, facts: _Facts, error: BaseException) -> BaseException:
        """What leaves the call, which is counted and logged all the same."""
        call = _Unseen(facts[3], facts[1].name)
        fault = ("cancelled", "the caller was cancelled")
        self._timed(facts, self._engine.outcomes.refusal(call, Status.CANCELLED, *fault, exception=error))
        return error

    def _timed(self, facts: _Facts, result: ToolResult) -> ToolResult:
        _, ready, *_, started, _ = facts
        return self._counted(ready, finished(result, perf_counter() - started, 1))

    def _counted(self, ready: BoundTool, result: ToolResult) -> ToolResult:
        ready.stats.open -= 1
        ready.stats.ended(result.status, result.duration)
        return self._logged(result)


def _as_dict(ready: BoundTool, sent: Any) -> dict[str, Any]:
    """Arguments that did not come as text. Raises TypeError for what only the steps can read."""
    if sent is None:
        return {}
    if type(sent) is not dict:
        raise TypeError(f"arguments came as a {type(sent).__name__}")
    if ready.passes_anything:
        check_value(sent)
    return sent


def _is_read(decoded: dict[str, Any] | None, keys: int, text: str | None) -> bool:
    """Whether arguments were decoded, and from a text in which no key came twice."""
    return decoded is not None and text is not None and has_every_key(decoded, keys, text)


def _surroundings(
    session: Any, ready: BoundTool, call_id: str, decoded: dict[str, Any], context: Any, agent: Any
) -> Invocation:
    """What the providers of one call look at; its scope is the session's unless it brings something of its own."""
    own = context is not _NOTHING or agent is not None
    scope = call_scope(session, context, agent) if own else session.scope
    return Invocation(session, ready.name, call_id, decoded, scope, ready.presets, agent)


def _provided(ready: BoundTool, invocation: Invocation) -> Any:
    """What a call is provided with; kept if it is the same for all calls that bring nothing of their own."""
    provided = ready.plan.provide(invocation)
    if ready.plan.standing and invocation.scope is invocation.session.scope:
        ready.provided = provided
    return provided


def _caller_left() -> BaseException:
    left: BaseException = sys.modules["asyncio"].CancelledError()
    return left


def _cancelling() -> int:
    task = sys.modules["asyncio"].current_task()
    return task.cancelling() if task is not None else 0


def _is_unfinished(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)
