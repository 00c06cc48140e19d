"""The way of a call, from the text that was sent to its result, and the fast path on it: begin with the function.

No rule of execution is written here a second time. A call that has approval, limits or middleware before its function
takes the steps. So does what a call cannot finish by itself (a retry, a generator, a suspended coroutine that somebody
may stop), with the value or the error that it has come to.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeAlias

from pegboard._arguments.decode import ATOMS, MAX_KEYS, check_value, fast_decode, has_every_key
from pegboard._arguments.validate import Validation
from pegboard._base import effects
from pegboard._base.effects import (
    Io,
    Outcome,
    Stage,
    StaleError,
    cancellation,
    guarded,
    is_cancellation,
    pass_interrupt,
)
from pegboard._base.jsonable import carried, owned
from pegboard._base.redaction import Redaction
from pegboard._execution.engine import BoundTool, Engine, Unavailable
from pegboard._execution.stages import CallStages
from pegboard._execution.telemetry import DEBUG, INFO, log_call, logger
from pegboard._injection.context import Scope
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Called, CallerSession, CancelToken, Given, Runner, ToolCall, Unseen, new_call_id
from pegboard._model.call import call_ids as _ids
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Note, Status, ToolResult, filled
from pegboard._model.subschemas import SCALARS
from pegboard._results.factory import finished, is_short, redacted

_SUCCESS: Final = Status.SUCCESS  # a member of an enum is looked up slowly

_SUSPENDED: Final = Status.SUSPENDED
# Guards who runs a call: it is held for an instant, and a lock for each call would cost more.
#
# A signal handler may stop a call in between.
claims: Final = threading.RLock()
guarded(claims)

# What a call is given that brings nothing of its own.
NOTHING_GIVEN: Final[Given] = ((), None, None, None)


# What is known of a call: session, tool, id, arguments, values, the invocation if one was needed, when it began,
# whether it is awaited.
_Facts: TypeAlias = tuple[CallerSession, BoundTool, str, Any, tuple[Any, ...], Invocation | None, float, bool]


class CallPath(Runner):
    """The way of every call of one toolkit, from its text or from where it was prepared to its result."""

    __slots__ = ("_engine", "_log", "live", "suspended")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._log: Any = None
        self.live = engine.live
        self.suspended: dict[int, ToolCall] = {}  # by identity: ids come from models, and come twice

    def run(  # noqa: C901, PLR0912, PLR0915 - in one piece, for each frame more would be a twentieth of a call
        self, session: CallerSession, bound: BoundTool, sent: Any, call_id: str | None, given: Given, on_loop: bool
    ) -> Any:
        """Run a tool. Gives the result or, `on_loop`, perhaps a coroutine that ends in it."""
        started = perf_counter()
        if not call_id:
            call_id = f"{_ids.prefix}{_ids.next()}"  # as `new_call_id`, without its frame
        elif not call_id.isascii() and carried(call_id) is not call_id:
            return self._settle(self._unnamed(call_id, bound.name))
        text = sent if type(sent) is str else None
        notes: tuple[Note, ...] = ()
        decoded, keys, invocation = None, 0, None
        try:
            decoded, keys = (_as_dict(sent, bound.shown), 0) if text is None else fast_decode(text)
            values = bound.accept(decoded, keys, text)
        except BaseException as error:  # noqa: BLE001 - whatever a type's own class raises, the value does not fit
            # Only what was decoded from a text in which no key came twice need not be read again.
            read = decoded if decoded is not None and text is not None and has_every_key(decoded, keys, text) else None
            admission = self._admitted(error, bound, call_id, sent, read)
            if type(admission) is ToolResult:
                return admission
            decoded, values, notes = admission.arguments, admission.values, admission.notes
        steps = None
        begins = bound.fast_async if on_loop else bound.fast_sync
        if bound.retries and begins and not SCALARS.issuperset(map(type, values)):
            begins = False
        if not begins or given is not NOTHING_GIVEN or bound.provided is None or notes:
            try:
                invocation = Invocation(session, bound, call_id, decoded, values, session.scope, self)
                if given is not NOTHING_GIVEN:
                    self._surround(invocation, given)
                if notes:
                    invocation.call.notes.extend(notes)
                if not begins or given[3] is not None:
                    steps = self._stages(invocation, given[3])
                elif bound.computed:
                    invocation.compute()
            except BaseException as error:  # noqa: BLE001 - a context, or a preset, may raise anything
                result = self._engine.not_begun(Unseen(call_id, bound.name, notes), bound, error)
                return self._counted(bound, result, bound.redact)
        facts = session, bound, call_id, decoded, values, invocation, started, on_loop
        stats = bound.stats
        stats.open += 1
        if steps is not None:
            return self._finish(facts, *steps)
        try:
            provided = bound.provided
            if invocation is not None:
                try:
                    provided = bound.plan.provide(invocation)
                except BaseException as error:  # noqa: BLE001 - as below, but the function has not begun
                    return self._failed(facts, error, begun=0)
                if bound.standing and invocation.scope is session.scope:
                    bound.provided = provided  # the same for all calls that bring nothing of their own
            if on_loop and bound.fast_thread:
                return self._in_thread(facts, partial(_begun, facts, provided))
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
        call = None if invocation is None else invocation.seen
        if call is None or not (call.notes or call.logs or call.attachments):
            result = filled(call_id, bound.name, _SUCCESS, known[0], value, None, seconds)
        else:
            said = tuple(call.notes), tuple(call.logs), tuple(call.attachments)
            result = filled(call_id, bound.name, _SUCCESS, known[0], value, None, seconds, 1, *said)
        if invocation is not None:
            if call is not None:
                if bound.redact is not None:
                    redacted(result, invocation.redact)
                call.result = result
                call.status = _SUCCESS
                invocation.seen = None  # it holds the invocation in turn
                if invocation.waiter is not None:
                    self._tell(call, invocation, result)
            if invocation.stops is not None:
                invocation.ended(_SUCCESS)
        stats.open -= 1  # as in `_counted`
        stats.calls += 1
        stats.seconds += seconds
        stats.histogram[int(seconds * 1e6).bit_length()] += 1
        if self._log is None and "logging" in sys.modules:
            self._log = logger()  # a program may load `logging` late
        if self._log is not None and self._log.isEnabledFor(DEBUG):
            log_call(result)
        return result

    def _surround(self, invocation: Invocation, given: Given) -> None:
        """Give an invocation what the call brings. Raises for a context that cannot be read, a preset likewise."""
        context, agent, listener, _ = given
        if agent is not None:
            invocation.agent = agent
            invocation.scope = Scope((agent,), level="agent", wider=invocation.scope)
        if context is not None and (type(context) is not tuple or context):
            invocation.scope = Scope(context, level="call", wider=invocation.scope)
        if listener is not None:
            from pegboard._execution.streaming import listen

            listen(invocation, listener)

    def _stages(
        self, invocation: Invocation, policy: ExecutionPolicy | None, outcome: Outcome | None = None, begun: int = 1
    ) -> tuple[Stage, CancelToken]:
        """The stages of a call, and what stops them; `outcome` is what its function has come to, if it has run."""
        own: ExecutionPolicy = invocation.ready.policy
        stages = CallStages(self._engine, invocation, own if policy is None else policy.merged_over(own))
        if outcome is None or type(outcome[1]) is StaleError:
            return stages.begin, stages.token
        value, error = outcome
        return partial(stages.late, value=value, error=error, begun=begun), stages.token

    # Waiting ---------------------------------------------------------------------------------------------------

    async def _in_thread(self, facts: _Facts, job: Callable[[], Any]) -> Any:
        """Run a sync tool in a worker thread."""
        engine = self._engine
        try:
            value, failure = await engine.drivers.in_worker(job, facts[1].policy.timeout, live=engine.live)
            if failure is None:
                return self._settled(facts, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            failure = error
        return self._late(facts, None, failure) if type(failure) is StaleError else self._failed(facts, failure)

    async def _suspended(self, facts: _Facts, coroutine: Any, first: Any) -> Any:
        """Wait for an async tool, which has a deadline from now on and is cancelled when the toolkit is closed."""
        drivers, live, invocation = self._engine.drivers, self._engine.live, facts[5]
        stopper = drivers.stopper()
        if self._engine.closed_at > facts[6]:  # before it waited, by the tool itself for instance
            stopper.cancel()
        if invocation is not None and (invocation.seen or invocation.stops):  # more has to hear of it if it is stopped
            return self._late(facts, drivers.resumed(coroutine, first, None, stopper))
        live[stopper] = stopper
        try:
            value = await drivers.resumed(coroutine, first, facts[1].policy.timeout, stopper)
            del live[stopper]
            if stopper.retire():  # the caller has been cancelled meanwhile, and the tool swallowed it
                raise cancellation()
            return self._settled(facts, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            live.pop(stopper, None)
            stopper.retire()
            return self._failed(facts, error, stopper)

    def _settled(self, facts: _Facts, value: Any) -> Any:
        """The result of a tool that has returned."""
        bound = facts[1]
        known = bound.renderers.by_type.get(type(value))
        if known is None and _is_unfinished(value):
            return self._late(facts, value)
        if known is None or not known[1] or facts[5] is not None or bound.max_output is not None:
            return self._conclude(facts, value)
        seconds = perf_counter() - facts[6]  # as in `run`
        bound.stats.open -= 1
        return self._counted(bound, filled(facts[2], bound.name, _SUCCESS, known[0], value, None, seconds))

    def _late(self, facts: _Facts, value: Any, error: BaseException | None = None, begun: int = 1) -> Any:
        """What comes of a call whose function has come to that, and that the steps have to finish."""
        session, bound, call_id, decoded, values, invocation, started, on_loop = facts
        if invocation is None:
            invocation = Invocation(session, bound, call_id, decoded, values, session.scope, self)
            facts = session, bound, call_id, decoded, values, invocation, started, on_loop
        return self._finish(facts, *self._stages(invocation, None, (value, error), begun))

    def _finish(self, facts: _Facts, stage: Stage, token: CancelToken) -> Any:
        """The result of the stages, or on a loop a coroutine that ends in it; `token` stops them."""
        drivers = self._engine._drivers or self._engine.drivers
        run = drivers.run if facts[-1] else drivers.run_sync
        return run(partial(self._recorded, facts, stage), token)

    async def _recorded(self, facts: _Facts, stage: Stage, io: Io) -> ToolResult:
        """The stages, whose end is told and counted even if the caller leaves."""
        try:
            # Not by a name: what a tool raised keeps this frame, and would keep its own result through it.
            return self._end(facts, await stage(io))
        except BaseException as failure:  # noqa: BLE001 - as in `run`
            return self._over(facts, self._staying(facts, failure))

    # Ending ----------------------------------------------------------------------------------------------------

    def _failed(self, facts: _Facts, error: BaseException, stopper: Any = None, begun: int = 1) -> Any:
        """What a call comes to that ended with an exception; raises what leaves the call."""
        if facts[-1] or isinstance(error, KeyboardInterrupt):  # else it cannot be the caller's
            error = self._staying(facts, error, stopper)
        if facts[1].policy.max_attempts > 1:
            return self._late(facts, None, error, begun)
        _, bound, call_id, _, _, invocation, started, _ = facts
        results = self._engine.results
        if invocation is not None or bound.redact or results.has_meaning(error):
            return self._over(facts, error, begun)
        fault, told = results.told(error)  # failing must not cost much more
        seconds = perf_counter() - started
        bound.stats.open -= 1
        return self._counted(bound, filled(call_id, bound.name, Status.ERROR, told, None, fault, seconds))

    def _staying(self, facts: _Facts, error: BaseException, stopper: Any = None) -> BaseException:
        """The exception, if it is the outcome of the call; raises what leaves it, which is counted all the same."""
        leaving = effects.is_interrupt(error)
        if not leaving and facts[-1] and is_cancelling() > (0 if stopper is None else stopper.expected):
            # The caller's own cancellation, whatever the tool made of it.
            leaving = is_cancellation(error)
            if not leaving and stopper is not None:
                leaving, error = True, cancellation()
        if leaving:
            fault = ("cancelled", "the caller was cancelled")
            self._end(facts, self._engine.results.refusal(_said(facts), Status.CANCELLED, *fault, exception=error))
            raise error
        return error

    def _conclude(self, facts: _Facts, value: Any) -> ToolResult:
        """The result of a call that returned."""
        session, bound, *_ = facts
        success = self._engine.results.success
        return self._end(facts, success(_said(facts), value, bound.renderers, bound.max_output, session))

    def _over(self, facts: _Facts, error: BaseException, begun: int = 1) -> ToolResult:
        """The result of a call that raised."""
        redact = facts[1].redact if facts[5] is None else facts[5].redact
        return self._end(facts, self._engine.results.failure(_said(facts), error, redact, begun))

    def _end(self, facts: _Facts, result: ToolResult) -> ToolResult:
        """The result of a call, told to whoever has seen the call."""
        session, bound, call_id, decoded, values, invocation, started, _ = facts
        if not result.duration:
            finished(result, perf_counter() - started)
        if invocation is None and result.status is _SUSPENDED:
            invocation = Invocation(session, bound, call_id, decoded, values, session.scope, self)
        redact = bound.redact if invocation is None else invocation.redact
        if redact is not None:
            redacted(result, redact)
        if invocation is not None:
            call = invocation.call if result.status is _SUSPENDED else invocation.seen
            if call is not None:
                self._tell(call, invocation, result)
            invocation.ended(result.status)
        bound.stats.open -= 1
        return self._counted(bound, result, redact)

    def _tell(self, call: ToolCall, invocation: Invocation | None, result: ToolResult) -> None:
        """Tell a call, and whoever waits for it, how it ended."""
        call.result = result
        call.status = status = result.status
        if status is _SUSPENDED:
            self.suspended[id(call)] = call
        if invocation is not None and invocation.waiter is not None:  # who begins to wait later looks at the result
            with claims:
                if not invocation.waiter.done():
                    invocation.waiter.set_result(result)

    def _counted(self, bound: BoundTool, result: ToolResult, redact: Redaction | None = None) -> ToolResult:
        bound.stats.ended(result.status, result.duration)
        if self._log is None and "logging" in sys.modules:
            self._log = logger()
        if self._log is not None and self._log.isEnabledFor(INFO):  # else not for DEBUG either
            log_call(result, redact)
        return result

    # What never runs -------------------------------------------------------------------------------------------

    def _settle(self, result: ToolResult, call: ToolCall | None = None) -> ToolResult:
        """The result of a call that has not run: counted, told and logged."""
        if result.status is not Status.NOT_FOUND:  # names that models make up are without number
            self._engine.stats.of(result.name).ended(result.status, result.duration)
        invocation: Invocation | None = None if call is None else call._state
        if call is not None:
            self._tell(call, invocation, result)
        log_call(result, None if invocation is None else invocation.redact)
        return result

    def unavailable(self, name: str, call_id: str | None, found: Unavailable) -> ToolResult:
        """The result of a call of a tool that cannot be called."""
        return self._settle(self._engine.results.refusal(Unseen(call_id or new_call_id(), name), *found))

    def _unnamed(self, call_id: str, name: str) -> ToolResult:
        """The result of a call whose id no answer could carry."""
        wrong = "the id of the call has half of a character, which UTF-8 cannot carry; give it another id"
        return self._engine.results.refusal(Unseen(carried(call_id), name), Status.INVALID, "invalid_call_id", wrong)

    def _admitted(
        self, error: BaseException, bound: BoundTool, call_id: str, sent: Any, decoded: Any
    ) -> ToolResult | Validation:
        """What became of arguments that do not fit as they are; without `decoded` ones they have to be read first."""
        pass_interrupt(error)
        engine = self._engine
        if bound.permission is Permission.NEVER:
            return self._settle(engine.results.not_permitted(Unseen(call_id, bound.name)))
        try:
            admission = engine.admission(bound, sent, decoded)
        except BaseException as failure:  # noqa: BLE001 - a plugin's handlers are at work here
            pass_interrupt(failure)
            return self.unavailable(bound.name, call_id, Unavailable.unusable(bound.name, failure))
        if admission.refusal is None:
            return admission
        call = Unseen(call_id, bound.name, admission.notes)
        return self._counted(bound, engine.refused(call, admission), bound.redact)


def _begun(facts: _Facts, provided: Any) -> Any:
    """Begin in a worker thread. Raises `StaleError` if something was decided anew while the call queued for it."""
    if not facts[0].holds(facts[1]):
        raise StaleError
    return facts[1].invoke(facts[4], provided)


def _said(facts: _Facts) -> Called:
    """What the result says of the call."""
    return Unseen(facts[2], facts[1].name) if facts[5] is None else facts[5].said


def _as_dict(sent: Any, shown: bool) -> dict[str, Any]:
    """Arguments that did not come as text. Raises TypeError for what has to be read first.

    What somebody is `shown` is copied: the caller may change its own mapping while they decide.
    """
    if sent is None:
        return {}
    if type(sent) is not dict:
        raise TypeError(f"arguments came as a {type(sent).__name__}")
    if len(sent) > MAX_KEYS:
        check_value(sent)
    for key, value in sent.items():
        if not key.isascii() or (type(value) not in ATOMS and (type(value) is not str or not value.isascii())):
            check_value(sent)
            break
    return owned(sent) if shown else sent


def is_cancelling() -> int:
    """How often the task that runs here was asked to end, and has not taken that back."""
    task = sys.modules["asyncio"].current_task()
    return task.cancelling() if task is not None else 0


def _is_unfinished(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)
