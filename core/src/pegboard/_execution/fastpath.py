"""The fast path: a call from the text that was sent to its result.

No rule of execution is written here a second time. A call that has approval, limits or middleware before its function
takes the steps. So does what a call cannot finish by itself (a retry, a generator, a suspended coroutine that somebody
may stop), with the value or the error that it has come to.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeAlias, final

from pegboard._arguments.decode import check_value, has_every_key
from pegboard._arguments.validate import Validation
from pegboard._base.effects import cancellation, is_cancellation, is_interrupt
from pegboard._execution.bound_tool import BoundTool, Unavailable
from pegboard._execution.engine import Engine
from pegboard._execution.telemetry import DEBUG, INFO, listened, log_call
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Called, ToolCall, Unseen
from pegboard._model.call import call_ids as _ids
from pegboard._model.policy import Permission
from pegboard._model.result import Note, Status, ToolResult, filled
from pegboard._results.factory import finished, is_short, redacted

_SUCCESS: Final = Status.SUCCESS  # a member of an enum is looked up slowly
_NOTHING: Final = ()

NOTHING_GIVEN: Final[tuple[Any, Any, Any, Any]] = ((), None, None, None)
"""Context, agent, listener and policy of a call that brings nothing of its own."""


_Facts: TypeAlias = tuple[
    Any, BoundTool, str, Any, tuple[Any, ...], tuple[Any, Any, Any, Any], Invocation | None, float, bool
]
"""What is known of a call: session, tool, id, arguments, values, what the caller gave (context, agent, listener,
policy), the invocation if one was needed, when it began, whether it is awaited."""


@final
class FastPath:
    """Runs the calls of one toolkit."""

    __slots__ = ("_engine", "_log")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._log: Any = None

    def run(  # noqa: C901, PLR0912, PLR0915 - in one piece, for each frame more would be a twentieth of a call
        self,
        session: Any,
        bound: BoundTool,
        sent: Any,
        call_id: str | None,
        given: tuple[Any, Any, Any, Any],
        on_loop: bool,
    ) -> Any:
        """Run a tool. Gives the result or, `on_loop`, perhaps a coroutine that ends in it."""
        started = perf_counter()
        call_id = call_id or f"{_ids.prefix}{_ids.next()}"  # as `new_call_id`, without its frame
        text = sent if type(sent) is str else None
        notes: tuple[Note, ...] = _NOTHING
        decoded, keys, invocation = None, 0, None
        try:
            decoded, keys = (_as_dict(bound, sent), 0) if text is None else bound.decode(text)
            values = bound.accept(decoded, keys, text)
        except BaseException as error:  # noqa: BLE001 - whatever a type's own class raises, the value does not fit
            read = decoded if _is_read(decoded, keys, text) else None
            admission = self._admitted(error, session, bound, call_id, sent, read)
            if type(admission) is ToolResult:
                return admission
            decoded, values, notes = admission.arguments, admission.values, admission.notes
        begins = bound.fast_async if on_loop else bound.fast_sync
        if not begins or given is not NOTHING_GIVEN or bound.provided is None or notes:
            try:
                invocation = self._surrounded(session, bound, call_id, decoded, values, given)
                if notes:
                    invocation.call.notes.extend(notes)
                steps = None if begins and given[3] is None else self._engine.steps(invocation, given[3])
            except BaseException as error:  # noqa: BLE001 - a context, or a preset, may raise anything
                return self._not_begun(bound, call_id, notes, error)
            if steps is not None:
                bound.stats.open += 1
                return self._finish(
                    (session, bound, call_id, decoded, values, given, invocation, started, on_loop), steps
                )
        facts = session, bound, call_id, decoded, values, given, invocation, started, on_loop
        stats = bound.stats
        stats.open += 1
        try:
            provided = bound.provided if invocation is None else _provided(bound, invocation)
            if on_loop and bound.fast_thread:
                return self._in_thread(facts, partial(bound.invoke, values, provided))
            value = bound.invoke(values, provided)
            if on_loop:
                try:
                    first = value.send(None)
                except StopIteration as stop:
                    value = stop.value
                else:
                    return self._suspended(facts, value, first)
            known = bound.renderers.by_type.get(type(value))
            if known is None and _is_unfinished(value):
                return self._late(facts, value)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            return self._failed(facts, error)
        limit = bound.max_output
        if known is None or not known[1] or (limit is not None and not is_short(value, limit)):
            return self._conclude(facts, value)
        seconds = perf_counter() - started
        if invocation is None or invocation.seen is None:
            result = filled(call_id, bound.name, _SUCCESS, known[0], value, None, seconds)
            if invocation is not None:
                invocation.ended()
        else:
            call = invocation.seen
            said = tuple(call.notes), tuple(call.logs), tuple(call.attachments)
            result = filled(call_id, bound.name, _SUCCESS, known[0], value, None, seconds, 1, *said)
            self._tell(invocation, result)
        stats.open -= 1  # as in `_counted`
        stats.calls += 1
        stats.seconds += seconds
        stats.histogram[int(seconds * 1e6).bit_length()] += 1
        if self._log is None:
            self._log = listened()  # a program may load `logging` late
        if self._log is not None and self._log.isEnabledFor(DEBUG):
            log_call(result)
        return result

    def _surrounded(
        self, session: Any, bound: BoundTool, call_id: str, decoded: Any, values: tuple[Any, ...], given: Any
    ) -> Invocation:
        """What the providers of one call look at; its scope is the session's unless it brings something of its own."""
        invocation = Invocation(session, bound, call_id, decoded, values, session.scope, self._engine)
        if given is not NOTHING_GIVEN or bound.computed:
            self._engine.surround(invocation, *given[:3])
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
        drivers, live, invocation = self._engine.drivers, self._engine.live, facts[6]
        if invocation is not None and (
            invocation.seen or invocation.stops
        ):  # more has to hear of it if the call is stopped
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
        if type(value) not in facts[1].renderers.by_type and _is_unfinished(value):
            return self._late(facts, value)
        return self._conclude(facts, value)

    def _late(self, facts: _Facts, value: Any, error: BaseException | None = None) -> Any:
        """What comes of a call whose function has come to that, and that the steps have to finish."""
        session, bound, call_id, decoded, values, given, invocation, started, on_loop = facts
        if invocation is None:
            invocation = self._surrounded(session, bound, call_id, decoded, values, given)
            facts = session, bound, call_id, decoded, values, given, invocation, started, on_loop
        return self._finish(facts, self._engine.steps(invocation, None, (value, error)))

    def _finish(self, facts: _Facts, steps: Any) -> Any:
        """The result of the steps, or on a loop a coroutine that ends in it."""
        if facts[-1]:
            return self._later(facts, steps)
        try:
            # Not by a name: what a tool raised keeps this frame, and would keep its own result through it.
            return self._end(facts, self._engine.drivers.run_sync(*steps))
        except BaseException as failure:  # noqa: BLE001 - as in `run`
            return self._over(facts, self._staying(facts, failure))

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
            call = Unseen(facts[2], facts[1].name) if facts[6] is None else facts[6].said
            self._end(facts, self._engine.outcomes.refusal(call, Status.CANCELLED, *fault, exception=error))
            raise error
        return error

    def _conclude(self, facts: _Facts, value: Any) -> ToolResult:
        """The result of a call that returned."""
        _, bound, call_id, _, _, _, invocation, _, _ = facts
        call: Called = Unseen(call_id, bound.name) if invocation is None else invocation.said
        return self._end(facts, self._engine.outcomes.success(call, value, bound.renderers, bound.max_output))

    def _over(self, facts: _Facts, error: BaseException) -> ToolResult:
        """The result of a call that raised."""
        _, bound, call_id, _, _, _, invocation, started, _ = facts
        outcomes = self._engine.outcomes
        if invocation is not None or bound.secrets or outcomes.has_meaning(error):
            call: Called = Unseen(call_id, bound.name) if invocation is None else invocation.said
            secrets = bound.secrets if invocation is None else invocation.secrets
            return self._end(facts, outcomes.failure(call, error, secrets))
        fault, told = outcomes.told(error)  # failing must not cost much more
        seconds = perf_counter() - started
        bound.stats.open -= 1
        return self._counted(bound, filled(call_id, bound.name, Status.ERROR, told, None, fault, seconds))

    def _end(self, facts: _Facts, result: ToolResult) -> ToolResult:
        """The result of a call, told to whoever has seen the call."""
        session, bound, call_id, decoded, values, given, invocation, started, _ = facts
        finished(result, result.duration or perf_counter() - started)
        if invocation is None and result.status is Status.SUSPENDED:
            invocation = self._surrounded(session, bound, call_id, decoded, values, given)
        secrets = bound.secrets
        if invocation is not None:
            secrets = self._tell(invocation, result)
        elif secrets:
            redacted(result, secrets)
        bound.stats.open -= 1
        return self._counted(bound, result, secrets)

    def _tell(self, invocation: Invocation, result: ToolResult) -> tuple[str, ...]:
        """Tell a call, if anybody has seen it, how it ended; the secrets that were in the way."""
        secrets = invocation.secrets
        if secrets:
            redacted(result, secrets)
        call = invocation.call if result.status is Status.SUSPENDED else invocation.seen
        if call is not None:
            self._engine.tell(call, result)
        invocation.ended()
        return secrets

    def _counted(self, bound: BoundTool, result: ToolResult, secrets: tuple[str, ...] = ()) -> ToolResult:
        bound.stats.ended(result.status, result.duration)
        if self._log is None:
            self._log = listened()
        if self._log is not None and self._log.isEnabledFor(INFO):  # else not for DEBUG either
            log_call(result, secrets)
        return result

    # What never runs -------------------------------------------------------------------------------------------

    def _admitted(
        self, error: BaseException, session: Any, bound: BoundTool, call_id: str, sent: Any, decoded: Any
    ) -> ToolResult | Validation:
        """What became of arguments that do not fit as they are; without `decoded` ones they have to be read first."""
        if is_interrupt(error):
            raise error
        engine = self._engine
        if bound.permission is Permission.NEVER:
            return self._counted(bound, engine.outcomes.not_permitted(Unseen(call_id, bound.name)))
        try:
            admission = engine.admission(bound, sent, decoded)
        except BaseException as failure:  # a plugin's handlers are at work here
            if is_interrupt(failure):
                raise
            unusable = Unavailable.unusable(bound.name, failure)
            return engine.unavailable(session, ToolCall(call_id, bound.name, sent), unusable)
        if admission.refusal is None:
            return admission
        call = Unseen(call_id, bound.name, admission.notes)
        return self._counted(bound, engine.refused(call, admission), bound.secrets)

    def _not_begun(self, bound: BoundTool, call_id: str, notes: tuple[Note, ...], error: BaseException) -> ToolResult:
        if is_interrupt(error):
            raise error
        result = self._engine.not_begun(Unseen(call_id, bound.name, notes), bound, error)
        return self._counted(bound, result, bound.secrets)


def _as_dict(bound: BoundTool, sent: Any) -> dict[str, Any]:
    """Arguments that did not come as text. Raises TypeError for what has to be read first."""
    if sent is None:
        return {}
    if type(sent) is not dict:
        raise TypeError(f"arguments came as a {type(sent).__name__}")
    if bound.plan.passes_anything:
        check_value(sent)
    return sent


def _is_read(decoded: dict[str, Any] | None, keys: int, text: str | None) -> bool:
    """Whether arguments were decoded, and from a text in which no key came twice."""
    return decoded is not None and text is not None and has_every_key(decoded, keys, text)


def _provided(bound: BoundTool, invocation: Invocation) -> Any:
    """What a call is provided with; kept if it is the same for all calls that bring nothing of their own."""
    provided = bound.plan.provide(invocation)
    if bound.standing and invocation.scope is invocation.session.scope:
        bound.provided = provided
    return provided


def _cancelling() -> int:
    task = sys.modules["asyncio"].current_task()
    return task.cancelling() if task is not None else 0


def _is_unfinished(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)
