"""The fast path: a call that begins with the function itself, without approval, limit or middleware before it.

No rule of execution is written here a second time. What such a call cannot finish by itself (a retry, a generator, a
suspended coroutine that somebody may stop) goes to the steps, with the value or the error that it has come to.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeAlias, cast, final

from pegboard._arguments.decode import check_value, has_every_key
from pegboard._arguments.validate import Validation
from pegboard._base.effects import cancellation, is_cancellation, is_interrupt
from pegboard._execution.bound_tool import BoundTool, Unavailable
from pegboard._execution.engine import Engine
from pegboard._execution.log import DEBUG, INFO, listened, log_call
from pegboard._injection.invocation import Invocation
from pegboard._model.call import ToolCall
from pegboard._model.call import call_ids as _ids
from pegboard._model.content import Block
from pegboard._model.result import Note, Status, ToolResult, filled
from pegboard._results.factory import Called, finished, is_short, redacted

__all__ = ["FastPath"]

_SUCCESS: Final = Status.SUCCESS  # a member of an enum is looked up slowly
_NOTHING: Final = ()  # the one empty tuple that there is


@final
class _Unseen:
    """What a result says of a call that its tool did not ask for: it can have added nothing to it."""

    __slots__ = ("id", "name", "notes")

    logs: tuple[str, ...] = ()
    attachments: tuple[Block, ...] = ()

    def __init__(self, id: str, name: str, notes: tuple[Note, ...] = ()) -> None:  # noqa: A002 - as in ToolCall
        self.id = id
        self.name = name
        self.notes = notes


_Facts: TypeAlias = tuple[Any, BoundTool, str, Any, tuple[Any, ...], Any, Any, Any, Invocation | None, float, bool]
"""What is known of a call: session, tool, id, arguments, values, context, agent, listener, what was made of these if
the tool asks for it, when it began, whether it is awaited. Neither the call nor its surroundings are made for less."""


@final
class FastPath:
    """Runs the calls of one toolkit that can begin with the function."""

    __slots__ = ("_engine", "_log")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._log = listened()

    def run(  # noqa: C901 - each step is one line, and each frame more would be a tenth of a call
        self,
        session: Any,
        ready: BoundTool,
        sent: Any,
        call_id: str | None,
        context: Any,
        agent: Any,
        on_chunk: Any,
        on_loop: bool,
    ) -> Any:
        """Run a tool. Gives the result or, `on_loop`, perhaps a coroutine that ends in it."""
        started = perf_counter()
        call_id = call_id or f"{_ids.prefix}{_ids.next()}"  # as `new_call_id`, without its frame
        text = sent if type(sent) is str else None
        notes: tuple[Note, ...] = _NOTHING
        decoded, keys, invocation = None, 0, None
        try:
            decoded, keys = (_as_dict(ready, sent), 0) if text is None else ready.decode(text)
            values = ready.accept(decoded, keys, text)
        except BaseException as error:  # noqa: BLE001 - whatever a type's own class raises, the value does not fit
            read = decoded if _is_read(decoded, keys, text) else None
            admission = self._admitted(error, session, ready, call_id, sent, read)
            if type(admission) is ToolResult:
                return admission
            decoded, values, notes = admission.arguments, admission.values, admission.notes
        if notes or (ready.fetches and (ready.provided is None or context is not _NOTHING or agent is not None)):
            try:
                invocation = self._surrounded(session, ready, call_id, decoded, values, context, agent, on_chunk)
                if notes:
                    invocation.call.notes.extend(notes)
            except BaseException as error:  # noqa: BLE001 - a context, or a preset, may raise anything
                return self._not_begun(ready, call_id, notes, error)
        facts = session, ready, call_id, decoded, values, context, agent, on_chunk, invocation, started, on_loop
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
                return self._late(facts, value)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            return self._failed(facts, error)
        return self._conclude(facts, known, value)

    def _surrounded(
        self,
        session: Any,
        ready: BoundTool,
        call_id: str,
        decoded: Any,
        values: tuple[Any, ...],
        context: Any,
        agent: Any,
        on_chunk: Any,
    ) -> Invocation:
        """What the providers of one call look at; its scope is the session's unless it brings something of its own."""
        invocation = Invocation(session, ready, call_id, decoded, values, session.scope, self._engine)
        if ready.computed or context is not _NOTHING or agent is not None or on_chunk is not None:
            self._engine.surround(invocation, context, agent, on_chunk)
        return invocation

    # Waiting ---------------------------------------------------------------------------------------------------

    async def _in_thread(self, facts: _Facts, job: Callable[[], Any]) -> Any:
        """Run a sync tool in a worker thread."""
        engine = self._engine
        try:
            value, failure = await engine.drivers.in_worker(job, facts[1].policy.timeout, live=engine.live)
            if failure is None:
                return self._settled(facts, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            return self._failed(facts, error)
        return self._over(facts, failure)

    async def _suspended(self, facts: _Facts, coroutine: Any, first: Any) -> Any:
        """Wait for an async tool, which has a deadline from now on and is cancelled when the toolkit is closed."""
        drivers, live, invocation = self._engine.drivers, self._engine.live, facts[8]
        if invocation is not None and invocation.is_seen:  # more has to hear of it if the call is stopped
            return self._late(facts, drivers.continued(coroutine, first))
        stopper = drivers.stopper()
        live.add(stopper)
        try:
            value = await drivers.resumed(coroutine, first, facts[1].policy.timeout, stopper)
            live.discard(stopper)
            if stopper.retire():  # the caller has been cancelled meanwhile, and the tool swallowed it
                raise cancellation()
            return self._settled(facts, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            live.discard(stopper)
            stopper.retire()
            return self._failed(facts, error, stopper)

    def _settled(self, facts: _Facts, value: Any) -> Any:
        """The result of a tool that has returned."""
        known = facts[1].renderers.by_type.get(type(value))
        if known is None and _is_unfinished(value):
            return self._late(facts, value)
        return self._conclude(facts, known, value)

    def _late(self, facts: _Facts, value: Any, error: BaseException | None = None) -> Any:
        """What comes of a call that the steps have to finish: a result, or on a loop a coroutine that ends in one."""
        session, ready, call_id, decoded, values, context, agent, on_chunk, invocation, started, on_loop = facts
        if invocation is None:
            invocation = self._surrounded(session, ready, call_id, decoded, values, context, agent, on_chunk)
            facts = session, ready, call_id, decoded, values, context, agent, on_chunk, invocation, started, on_loop
        steps = self._engine.late(invocation, value, error)
        if on_loop:
            return self._later(facts, steps)
        try:
            result = self._engine.drivers.run_sync(*steps)
        except BaseException as failure:  # noqa: BLE001 - as in `run`
            return self._over(facts, self._staying(facts, failure))
        return self._end(facts, result)

    async def _later(self, facts: _Facts, steps: Any) -> ToolResult:
        try:
            result = await self._engine.drivers.run(*steps)
        except BaseException as failure:  # noqa: BLE001 - as in `run`
            return self._over(facts, self._staying(facts, failure))
        return self._end(facts, result)

    # Ending ----------------------------------------------------------------------------------------------------

    def _failed(self, facts: _Facts, error: BaseException, stopper: Any = None) -> Any:
        """What a call comes to that ended with an exception; raises what leaves the call."""
        if facts[-1] or isinstance(error, KeyboardInterrupt):  # else it cannot be the caller's
            error = self._staying(facts, error, stopper)
        if facts[1].policy.max_attempts > 1:
            return self._late(facts, None, error)
        return self._over(facts, error)

    def _staying(self, facts: _Facts, error: BaseException, stopper: Any = None) -> BaseException:
        """The exception, if it is the outcome of the call; raises what leaves it, which is counted all the same."""
        leaving = is_interrupt(error)
        if not leaving and facts[-1] and _cancelling() > (0 if stopper is None else stopper.expected):
            # The caller's own cancellation, whatever the tool made of it.
            leaving = is_cancellation(error)
            if not leaving and stopper is not None:
                leaving, error = True, cancellation()
        if leaving:
            fault = ("cancelled", "the caller was cancelled")
            self._end(facts, self._engine.outcomes.refusal(_call(facts), Status.CANCELLED, *fault, exception=error))
            raise error
        return error

    def _conclude(self, facts: _Facts, known: Any, value: Any) -> ToolResult:
        _, ready, call_id, _, _, _, _, _, invocation, started, _ = facts
        limit = ready.max_output
        if (
            known is None
            or not known[1]
            or (limit is not None and not is_short(value, limit))
            or (invocation is not None and invocation.is_seen)
        ):
            result = self._engine.outcomes.success(_call(facts), value, ready.renderers, limit)
            return self._end(facts, redacted(result, _secrets(facts)))
        seconds = perf_counter() - started
        result = filled(call_id, ready.name, _SUCCESS, known[0], value, None, seconds)
        stats = ready.stats  # as in `ended`
        stats.open -= 1
        stats.calls += 1
        stats.seconds += seconds
        stats.histogram[int(seconds * 1e6).bit_length()] += 1
        if self._log is None:
            self._log = listened()  # a program may load `logging` late
        if self._log is not None and self._log.isEnabledFor(DEBUG):
            log_call(result)
        return result

    def _over(self, facts: _Facts, error: BaseException) -> ToolResult:
        """The result of a call that raised."""
        _, ready, call_id, _, _, _, _, _, invocation, started, _ = facts
        outcomes = self._engine.outcomes
        secrets = ready.secrets if invocation is None else invocation.secrets
        if secrets or outcomes.has_meaning(error) or (invocation is not None and invocation.is_seen):
            return self._end(facts, redacted(outcomes.failure(_call(facts), error, secrets), secrets))
        fault, told = outcomes.told(error)  # failing must not cost much more
        seconds = perf_counter() - started
        ready.stats.open -= 1
        return self._counted(ready, filled(call_id, ready.name, Status.ERROR, told, None, fault, seconds))

    def _end(self, facts: _Facts, result: ToolResult) -> ToolResult:
        """The result of a call, told to whoever has seen the call."""
        session, ready, call_id, decoded, values, context, agent, on_chunk, invocation, started, _ = facts
        result = finished(result, perf_counter() - started)
        if invocation is None and result.status is Status.SUSPENDED:
            invocation = self._surrounded(session, ready, call_id, decoded, values, context, agent, on_chunk)
        if invocation is not None:
            call = invocation.call if result.status is Status.SUSPENDED else invocation.opened_call()
            if call is not None:
                self._engine.tell(call, result)
            invocation.ended()
        ready.stats.open -= 1
        return self._counted(ready, result, _secrets(facts))

    def _counted(self, ready: BoundTool, result: ToolResult, secrets: tuple[str, ...] = ()) -> ToolResult:
        ready.stats.ended(result.status, result.duration)
        if self._log is None:
            self._log = listened()
        if self._log is not None and self._log.isEnabledFor(INFO):  # else not for DEBUG either
            log_call(result, secrets)
        return result

    # What never runs -------------------------------------------------------------------------------------------

    def _admitted(
        self, error: BaseException, session: Any, ready: BoundTool, call_id: str, sent: Any, decoded: Any
    ) -> ToolResult | Validation:
        """What became of arguments that do not fit as they are; without `decoded` ones they have to be read first."""
        if is_interrupt(error):
            raise error
        engine = self._engine
        try:
            admission = engine.admission(ready, sent, decoded)
        except BaseException as failure:  # a plugin's handlers are at work here
            if is_interrupt(failure):
                raise
            unusable = Unavailable.unusable(ready.name, failure)
            return cast("ToolResult", engine.prepare(session, ToolCall(call_id, ready.name, sent), unusable).result)
        if admission.refusal is None:
            return admission
        call = _Unseen(call_id, ready.name, admission.notes)
        return self._counted(ready, engine.refused(call, admission), ready.secrets)

    def _not_begun(self, ready: BoundTool, call_id: str, notes: tuple[Note, ...], error: BaseException) -> ToolResult:
        if is_interrupt(error):
            raise error
        result = self._engine.not_begun(_Unseen(call_id, ready.name, notes), ready, error)
        return self._counted(ready, result, ready.secrets)


def _call(facts: _Facts) -> Called:
    """The call as its result sees it."""
    invocation = facts[8]
    call = None if invocation is None else invocation.opened_call()
    return _Unseen(facts[2], facts[1].name) if call is None else call


def _secrets(facts: _Facts) -> tuple[str, ...]:
    invocation = facts[8]
    return facts[1].secrets if invocation is None else invocation.secrets


def _as_dict(ready: BoundTool, sent: Any) -> dict[str, Any]:
    """Arguments that did not come as text. Raises TypeError for what has to be read first."""
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


def _provided(ready: BoundTool, invocation: Invocation) -> Any:
    """What a call is provided with; kept if it is the same for all calls that bring nothing of their own."""
    provided = ready.plan.provide(invocation)
    if ready.standing and invocation.scope is invocation.session.scope:
        ready.provided = provided
    return provided


def _cancelling() -> int:
    task = sys.modules["asyncio"].current_task()
    return task.cancelling() if task is not None else 0


def _is_unfinished(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)
