"""The way of a call, from what was sent to its result, and the straight road on it: begin with the function.

No rule of execution is written here a second time. A call that has approval, limits or middleware before its function
takes its stages. So does what a call cannot finish by itself (a retry, a generator), with the value or the error that
it has come to. What leaves the straight road gets a record, its `Run`.
"""

from __future__ import annotations

import inspect
import sys
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pegboard._arguments.decode import fast_decode, has_every_key
from pegboard._base.effects import Io, Stage, StaleError, cancellation, pass_interrupt, tried
from pegboard._base.jsonable import carried
from pegboard._base.redaction import Redaction
from pegboard._execution import stages
from pegboard._execution.bound import BoundTool, Unavailable
from pegboard._execution.ending import Ending
from pegboard._execution.engine import Engine
from pegboard._execution.run import Run, admitted, not_provided, refused
from pegboard._execution.telemetry import DEBUG, INFO, ToolStats, log_call, logger
from pegboard._injection.context import Scope
from pegboard._model.call import CallerSession, Given, Runner, Unseen, new_call_id
from pegboard._model.call import call_ids as _ids
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import SUCCESS, Status, ToolResult, filled
from pegboard._model.subschemas import SCALARS
from pegboard._results.factory import is_short

if TYPE_CHECKING:
    from pegboard._execution.timers import TaskGuard


_Begun: TypeAlias = tuple[CallerSession, float, bool]  # whose call it is, since when, and whether on a loop
# What a call is given that brings nothing of its own.
NOTHING_GIVEN: Final[Given] = ((), None, None, None)


class CallPath(Runner):
    """The way of every call of one toolkit, from what was sent or from where it was prepared to its result."""

    __slots__ = ("ending", "engine", "live")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.ending = Ending(engine.results, engine.stats, engine.live)
        self.live = engine.live

    def run(  # noqa: C901, PLR0912 - in one piece, for each frame more would be a twentieth of a call
        self, session: CallerSession, bound: BoundTool, sent: Any, call_id: str | None, given: Given, on_loop: bool
    ) -> Any:
        """Run a tool. Gives the result or, `on_loop`, perhaps a coroutine that ends in it."""
        started = perf_counter()
        if not call_id:
            call_id = f"{_ids.prefix}{_ids.next()}"  # as `new_call_id`, without its frame
        elif not call_id.isascii() and carried(call_id) is not call_id:
            return self.ending.never(self._unnamed(call_id, bound.name))
        run: Any = None
        decoded, keys = None, 0
        try:
            if type(sent) is str:  # as in `BoundTool.read`
                decoded, keys = fast_decode(sent)
                values = bound.accept(decoded, keys, sent)
            else:
                decoded, values = bound.read(sent)
        except BaseException as error:  # noqa: BLE001 - whatever a type's own class raises, the value does not fit
            run = self._repaired(error, sent, decoded, keys, bound, call_id, (session, started, on_loop))
            if type(run) is not Run:
                return run
            decoded, values = run.arguments, run.values
        straight = (bound.begins_on_loop if on_loop else bound.straight) and given is NOTHING_GIVEN
        if straight and (not bound.retries or SCALARS.issuperset(map(type, values))):
            bound.stats.open += 1
            provided = bound.provided
        else:
            if bound.answer and not run and (found := self._answered(session, bound, decoded, call_id, given, started)):
                return found
            run = run or Run(session, bound, call_id, decoded, values, self, started, on_loop)
            provided = self._begin(run, given)
            if type(provided) is not dict:
                return provided
        try:
            if provided is None:
                run = run or Run(session, bound, call_id, decoded, values, self, started, on_loop)
                provided = bound.plan.provide(run)
                bound.provided = provided if bound.standing else None
            if on_loop and bound.in_thread:
                run = run or Run(session, bound, call_id, decoded, values, self, started, on_loop)
                return self._in_thread(run, provided)
            value = bound.invoke(values, provided)
            if on_loop:
                try:
                    first = value.send(None)
                except StopIteration as stop:
                    value = stop.value
                else:
                    run = run or Run(session, bound, call_id, decoded, values, self, started, on_loop)
                    return self._suspended(run, value, first)
            known = bound.renderers.by_type.get(type(value)) or bound.renderers.of_scalar(type(value))
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            run = run or Run(session, bound, call_id, decoded, values, self, started, on_loop)
            return self._failed(run, error, begun=0 if provided is None else 1)
        if known is None or not known[1] or (bound.max_output is not None and not is_short(value, bound.max_output)):
            return self._returned(run or Run(session, bound, call_id, decoded, values, self, started, on_loop), value)
        result = filled(call_id, bound.name, SUCCESS, known[0], value, None, perf_counter() - started)
        if run is not None:
            return self.ending.of(run, result, run.seen)
        self._count(bound.stats, result)
        return result

    def _answered(
        self, session: CallerSession, bound: BoundTool, arguments: Any, call_id: str, given: Given, started: float
    ) -> ToolResult | None:
        """The result that middleware has of an equal call, for this one, which does not run."""
        ask: Any = bound.answer
        kept = tried(ask, bound.tool, arguments, session) if given is NOTHING_GIVEN else None
        if type(kept) is not ToolResult or kept.status is not SUCCESS:
            return None
        said = kept._notes, kept.logs, kept.attachments, kept.metadata
        seconds = perf_counter() - started
        result = filled(call_id, bound.name, SUCCESS, kept._rendered, kept.value, None, seconds, 0, *said)
        bound.stats.open += 1
        self._count(bound.stats, result)
        return result

    def _count(self, stats: ToolStats, result: ToolResult, redact: Redaction | None = None) -> None:
        """End a call without a record: of the straight road, as `Ending.of` does, or refused, as `Ending.never`."""
        seconds, level = result.duration, DEBUG
        stats.calls += 1
        if result.status is SUCCESS:
            stats.open -= 1
            stats.seconds += seconds
            stats.histogram[int(seconds * 1e6).bit_length()] += 1
        else:
            level = INFO
            stats.by_status[result.status] += 1
        ending = self.ending
        if ending.log is None and "logging" in sys.modules:
            ending.log = logger()  # a program may load `logging` late
        if ending.log is not None and ending.log.isEnabledFor(level):
            log_call(result, redact)

    # Beginning -------------------------------------------------------------------------------------------------

    def _begin(self, run: Run, given: Given) -> Any:
        """Begin a call with a record: what its function is provided with, if that is next, else what comes of it."""
        bound = run.ready
        try:
            self.surround(run, given)
            begins = bound.begins_on_loop if run.on_loop else bound.begins
            if given[3] is not None or (bound.retries and not SCALARS.issuperset(map(type, run.values))):
                begins = False
            if begins and bound.computed:
                run.compute()
        except BaseException as error:  # noqa: BLE001 - a context, or a preset, may raise anything
            call = Unseen(run.call_id, bound.name, () if run.seen is None else tuple(run.seen.notes))
            return self.ending.never(not_provided(self.engine, call, bound, error), redact=bound.redact)
        bound.stats.open += 1
        if not begins:
            return self.drive(run, partial(stages.begin, run))
        try:
            return bound.plan.provide(run)
        except BaseException as error:  # noqa: BLE001 - an injector may raise anything
            return self._failed(run, error, begun=0)

    def surround(self, run: Run, given: Given) -> None:
        """Give a run what its call brings. Raises for a context that cannot be read."""
        context, agent, listener, policy = given
        if policy is not None:
            own: ExecutionPolicy = policy
            run.policy = own.merged_over(run.ready.policy)
        if agent is not None:
            run.agent = agent
            run.scope = Scope((agent,), level="agent", wider=run.scope)
        if context is not None and (type(context) is not tuple or context):
            run.scope = Scope(context, level="call", wider=run.scope)
        if listener is not None:
            from pegboard._execution.streaming import listen

            listen(run, listener)

    def _repaired(
        self, error: BaseException, sent: Any, decoded: Any, keys: int, bound: BoundTool, call_id: str, begun: _Begun
    ) -> Run | ToolResult:
        """A call whose arguments do not fit as they are: its run, if they do when they are repaired, else its result.

        `decoded` is what text with so many `keys` was decoded to, if it could be.
        """
        if not isinstance(error, Exception):  # no other can be a Ctrl-C
            pass_interrupt(error)
        engine = self.engine
        if decoded is not None and not has_every_key(decoded, keys, sent):
            decoded = None  # a key came twice: it is read with more care
        if bound.permission is Permission.NEVER:
            return self.ending.never(engine.results.not_permitted(Unseen(call_id, bound.name)))
        try:
            admission = admitted(engine, bound, sent, decoded=decoded)
        except BaseException as failure:  # noqa: BLE001 - a plugin's handlers are at work here
            pass_interrupt(failure)
            return self.unavailable(bound.name, call_id, Unavailable.unusable(bound.name, failure))
        if admission.refusal is not None:
            refusal = refused(engine, Unseen(call_id, bound.name, admission.notes), admission)
            self._count(bound.stats, refusal, bound.redact)
            return refusal
        session, started, on_loop = begun
        run = Run(session, bound, call_id, admission.arguments, admission.values, self, started, on_loop)
        if admission.notes:
            run.call.notes.extend(admission.notes)
        return run

    # What never runs -------------------------------------------------------------------------------------------

    def unavailable(self, name: str, call_id: str | None, found: Unavailable) -> ToolResult:
        """The result of a call of a tool that cannot be called."""
        return self.ending.never(self.engine.results.refusal(Unseen(call_id or new_call_id(), name), *found))

    def _unnamed(self, call_id: str, name: str) -> ToolResult:
        """The result of a call whose id no answer could carry."""
        wrong = "the id of the call has half of a character, which UTF-8 cannot carry; give it another id"
        return self.engine.results.refusal(Unseen(carried(call_id), name), Status.INVALID, "invalid_call_id", wrong)

    # Going on --------------------------------------------------------------------------------------------------

    def drive(self, run: Run, stage: Stage) -> Any:
        """The result of a stage of the call, or on a loop a coroutine that ends in it; to cancel the run stops it."""
        self.live[run] = None
        drivers = self.engine.drivers
        return (drivers.run if run.on_loop else drivers.run_sync)(partial(self._ended, run, stage), run)

    async def _ended(self, run: Run, stage: Stage, io: Io) -> ToolResult:
        """A stage, whose end is recorded even if the caller leaves."""
        try:
            # Not by a name: what a tool raised keeps this frame, and would keep its own result through it.
            return self.ending.of(run, await stage(io))
        except BaseException as failure:  # noqa: BLE001 - as in `run`
            return self.ending.raised(run, self.ending.staying(run, failure))

    async def _in_thread(self, run: Run, provided: Any) -> Any:
        """Run a sync tool in a worker thread."""
        engine = self.engine
        try:
            job = partial(_begun_in_thread, run, provided)
            value, failure = await engine.drivers.in_worker(job, run.ready.policy.timeout, live=engine.live)
            if failure is None:
                return self._returned(run, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            failure = error
        return self._late(run, None, failure) if type(failure) is StaleError else self._failed(run, failure)

    async def _suspended(self, run: Run, coroutine: Any, first: Any) -> Any:
        """Wait for an async tool, which has a deadline from now on and is cancelled when the toolkit is closed."""
        drivers, live = self.engine.drivers, self.engine.live
        guard = drivers.guard()
        if self.engine.closed_at > run.started:  # before it waited, by the tool itself for instance
            guard.cancel()
        if run.seen is not None or run._token is not None:  # more has to hear of it if it is stopped
            return self._late(run, drivers.resumed(coroutine, first, None, guard))
        live[guard] = None
        try:
            value = await drivers.resumed(coroutine, first, run.ready.policy.timeout, guard)
            del live[guard]
            if guard.retire():  # the caller has been cancelled meanwhile, and the tool swallowed it
                raise cancellation()
            return self._returned(run, value)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            live.pop(guard, None)
            guard.retire()
            return self._failed(run, error, guard)

    def _returned(self, run: Run, value: Any) -> Any:
        """What comes of a call whose function has returned: its result, or a coroutine where more has to be done."""
        bound = run.ready
        known = bound.renderers.by_type.get(type(value))
        if known is None:
            if inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value):
                return self._late(run, value)
        elif known[1] and bound.max_output is None:  # as in `run`
            seconds = perf_counter() - run.started
            result = filled(run.call_id, bound.name, SUCCESS, known[0], value, None, seconds)
            return self.ending.of(run, result, run.seen)
        result = self.engine.results.success(run.called, value, bound.renderers, bound.max_output, run.session)
        return self.ending.of(run, result)

    def _failed(self, run: Run, error: BaseException, guard: TaskGuard | None = None, begun: int = 1) -> Any:
        """What comes of a call that has raised something; raises what leaves the call."""
        if run.on_loop or isinstance(error, KeyboardInterrupt):  # else it cannot be the caller's
            error = self.ending.staying(run, error, guard)
        if run.ready.retries:
            return self._late(run, None, error, begun)
        return self.ending.raised(run, error, begun)

    def _late(self, run: Run, value: Any, error: BaseException | None = None, begun: int = 1) -> Any:
        """What comes of a call whose function has come to that, and that its stages have to finish."""
        if type(error) is StaleError:
            return self.drive(run, partial(stages.begin, run))
        run.begun = begun
        return self.drive(run, partial(stages.late, run, value=value, error=error))


def _begun_in_thread(run: Run, provided: Any) -> Any:
    """Begin. Raises `StaleError` if something was decided anew while the call queued for its thread."""
    if not run.session.holds(run.ready):
        raise StaleError
    return run.ready.invoke(run.values, provided)
