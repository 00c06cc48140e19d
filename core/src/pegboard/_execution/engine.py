"""The engine: prepares calls, runs them, settles their results."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast, final

from pegboard._arguments.decode import Accelerators, owned
from pegboard._arguments.validate import RepairMode, Validation, admit
from pegboard._base.effects import Outcome, Steps, current_driver, is_interrupt, new_future
from pegboard._base.errors import PegboardError, RegistrationError
from pegboard._execution.bound_tool import BoundTool, Unavailable
from pegboard._execution.concurrency import ConcurrencyLimits
from pegboard._execution.steps import CallSteps
from pegboard._execution.telemetry import Stats, log_call
from pegboard._injection.context import Scope
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Called, CancelToken, ToolCall
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Note, Status, ToolResult
from pegboard._model.tool import Tool
from pegboard._results.factory import ResultFactory, finished, masked, redacted

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard._execution.threads import WorkerPool

_NOBODY: Final = object()
"""Drives a call that was stopped before it began."""


_claims: Final = threading.RLock()
"""Guards who runs a call: it is held for an instant, and a lock for each call would cost more.

A signal handler may stop a call in between.
"""


@final
class Engine:
    """Runs calls. One for each toolkit; threads and loop begin on first use."""

    def __init__(
        self,
        outcomes: ResultFactory,
        threads: Callable[[], WorkerPool],
        *,
        repair: RepairMode = "safe",
        accelerators: Accelerators | None = None,
    ) -> None:
        if repair not in ("off", "safe", "max"):
            raise ValueError(f'repair takes "off", "safe" or "max", got {repair!r}')
        self.outcomes = outcomes
        self.repair: RepairMode = repair
        self.stats = Stats()
        self.limits = ConcurrencyLimits()
        self.backends: dict[str, Any] = {}
        """Where tools run, by the name that they say: the name alone if that is the core's own, else a plugin's."""
        self._threads = threads
        self.accelerators = accelerators or Accelerators()
        self.suspended: dict[int, ToolCall] = {}  # by identity: ids come from models, and come twice
        self._drivers: Any = None
        self._closed = False
        self._lock = threading.Lock()
        self.live: set[Any] = set()
        """What `close` stops: `cancel(reason)` of each call that can be stopped."""

    @property
    def drivers(self) -> Any:
        """The two drivers, made when the first call needs one: asyncio is not loaded before."""
        return self._drivers or self._made_drivers()

    def _made_drivers(self) -> Any:
        from pegboard._execution.drivers import Drivers

        with self._lock:
            if self._drivers is None:
                drivers = Drivers(self._threads())
                if self._closed:
                    drivers.close(lambda: None)
                self._drivers = drivers
            return self._drivers

    def statistics(self) -> dict[str, Any]:
        """The counts of all tools, the threads that hang in some of them, and the jobs that wait for a thread."""
        if self._drivers is None:
            return self.stats.to_dict()
        pool: WorkerPool = self._drivers.pool
        return self.stats.to_dict(abandoned_threads=pool.abandoned, queued=pool.queued)

    def close(self) -> None:
        """Stop all calls, then threads and loop; calls that need one end as errors from now on."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            drivers = self._drivers
        if drivers is None:
            self._stop_all()
        else:
            drivers.close(self._stop_all)

    def backend_of(self, tool: Tool) -> Any:
        """Where a tool runs. Raises `RegistrationError` if that is gone since the tool was registered."""
        name = tool.options.backend or "thread"
        if name not in self.backends:
            raise RegistrationError(f"the backend {name!r} of tool {tool.name!r} is not there any more")
        return self.backends[name]

    def _stop_all(self) -> None:
        for stoppable in list(self.live):
            stoppable.cancel("the toolkit was closed")
        for name, backend in sorted(self.backends.items()):
            if name != backend:
                backend.close()

    # Preparing -------------------------------------------------------------------------------------------------

    def prepare(self, session: Any, call: ToolCall, found: BoundTool | Unavailable) -> ToolCall:
        """Admit the arguments of a call of the tool that was found. Never raises: a bad call has its result at once."""
        call._runner = self
        try:
            if isinstance(found, BoundTool):
                self._admit(session, call, found)
                return call
        except BaseException as error:  # a plugin's handlers and predicates are at work here
            if is_interrupt(error):
                raise
            found = Unavailable.unusable(call.name, error)
        reasons = found.status, found.kind, found.message, found.details, found.exception
        self._settle(call, self.outcomes.refusal(call, *reasons))
        return call

    def unavailable(self, session: Any, call: ToolCall, found: Unavailable) -> ToolResult:
        """The result of a call of a tool that cannot be called."""
        return cast("ToolResult", self.prepare(session, call, found).result)

    def _admit(self, session: Any, call: ToolCall, bound: BoundTool) -> None:
        if bound.permission is Permission.NEVER:
            self._settle(call, self.outcomes.not_permitted(call))
            return
        sent = call.arguments
        admission = (_as_it_is(bound, sent, {}) if type(sent) is str else None) or self.admission(bound, sent)
        call.notes.extend(admission.notes)
        call.arguments = owned(admission.arguments)
        # A value that is no more than JSON is a part of the arguments; an approver is shown what nobody can change.
        shown = owned(admission.arguments) if bound.may_ask else admission.arguments
        call._state = state = Invocation(session, bound, call.id, shown, admission.values, session.scope, self)
        state.seen = call
        if admission.refusal is not None:
            call.typed = {}
            self._settle(call, self.refused(call, admission))
            return
        if bound.may_ask and bound.approval_reason(state.typed) is not None:
            call.status = Status.AWAITING_APPROVAL

    def admission(self, bound: BoundTool, sent: Any, refused: Any = None) -> Validation:
        """Admit what was sent to a tool; `refused` is what somebody decoded it to who found that it does not fit."""
        secrets = bound.secrets
        redact = partial(masked, secrets=secrets) if secrets else None
        read_only = bound.tool.options.read_only is True
        return admit(
            bound.plan,
            sent,
            mode=self.repair,
            read_only=read_only,
            redact=redact,
            refused=refused,
            read=self.accelerators.read,
        )

    def readmitted(self, invocation: Invocation, edited: Any) -> ToolResult | None:
        """Read the arguments that were shown to an approver anew, or those that it `edited`; the refusal of these."""
        bound: BoundTool = invocation.ready
        shown = invocation.arguments
        admission = _as_it_is(bound, None, shown) if edited is None else self.admission(bound, edited)
        admission = admission or self.admission(bound, shown)
        if admission.refusal is not None:
            return self.refused(invocation.said, admission)
        invocation.arguments, invocation.values = admission.arguments, admission.values
        call = invocation.seen if edited is None else invocation.call
        if call is not None:
            call.arguments = owned(admission.arguments)
            call.typed = invocation.typed
        if call is not None and edited is not None:
            call.notes.append(Note("the approver edited the arguments", kind="edited"))
        return None

    def refused(self, call: Called, admission: Validation) -> ToolResult:
        """The result of a call whose arguments do not fit."""
        details = {"problems": admission.problems or [str(admission.refusal)]}
        return self.outcomes.refusal(call, Status.INVALID, "invalid_arguments", str(admission.refusal), details)

    # Running ---------------------------------------------------------------------------------------------------

    async def run(self, call: ToolCall, options: Mapping[str, Any]) -> ToolResult:
        """Run a prepared call on the current loop; a call that is already running or done is waited for."""
        if call.result is not None:
            return call.result
        listener = options["on_chunk"]
        if listener is not None:
            from pegboard._execution.streaming import ChunkChannel, heard_by

            if not isinstance(listener, ChunkChannel):
                async with heard_by(listener) as channel:
                    return await self.run(call, {**options, "on_chunk": channel})
        waiter = self._claim(call)
        if waiter is not None:
            import asyncio

            return await asyncio.shield(asyncio.wrap_future(waiter))
        steps = self._begun(call, options)
        return cast("ToolResult", call.result if steps is None else await self.drivers.run(*steps))

    def run_sync(self, call: ToolCall, options: Mapping[str, Any]) -> ToolResult:
        """Run a prepared call from plain code. Raises `PegboardError` for a listener that has to be awaited."""
        if call.result is not None:
            return call.result
        if options["on_chunk"] is not None:
            from pegboard._execution.streaming import check_listener

            check_listener(options["on_chunk"])
        waiter = self._claim(call)
        if waiter is not None:
            return self._waited_for(call, waiter)
        steps = self._begun(call, options)
        return cast("ToolResult", call.result if steps is None else self.drivers.run_sync(*steps))

    def _waited_for(self, call: ToolCall, waiter: Future[ToolResult]) -> ToolResult:
        if not waiter.done() and cast("Invocation", call._state).driver == current_driver():
            message = f"{call.name} runs on this very event loop or thread; use `await call.execute()`"
            return self.outcomes.refusal(call, Status.ERROR, "deadlock", message)
        return cast("ToolResult", self.drivers.wait(waiter.result))

    def _claim(self, call: ToolCall) -> Future[ToolResult] | None:
        """None for who is to run the call, the first who asks; for everybody else the future of its result."""
        state = cast("Invocation", call._state)
        with _claims:
            if state.driver is None:
                state.driver = current_driver()
                return None
            if state.waiter is None:
                state.waiter = new_future()
            if call.result is not None and not state.waiter.done():
                state.waiter.set_result(call.result)
            return state.waiter

    def _begun(self, call: ToolCall, options: Mapping[str, Any]) -> tuple[Steps, CancelToken] | None:
        """The steps of a claimed call, and what stops them; None if it could not begin and has its result."""
        state: Invocation = call._state
        try:
            self.surround(state, options["context"], options["agent"], options["on_chunk"])
            steps, stopper = self.steps(state, options["policy"])
        except BaseException as error:  # a context that cannot be read, a preset that cannot be computed
            if is_interrupt(error):
                raise
            self._settle(call, self.not_begun(call, state.ready, error))
            return None
        return self._recorded(call, steps), stopper

    def surround(self, invocation: Invocation, context: Any, agent: Any, on_chunk: Any) -> Invocation:
        """Give an invocation what the call brings. Raises for a context that cannot be read, a preset likewise."""
        session = invocation.session
        invocation.scope = call_scope(session, context, agent)
        invocation.agent = session.agent if agent is None else agent
        computed = invocation.ready.computed
        if computed:
            call = invocation.seen or self.opened(invocation)
            invocation.presets = {**invocation.presets, **{name: compute(call) for name, compute in computed.items()}}
        if on_chunk is not None:
            from pegboard._execution.streaming import listen

            listen(invocation, on_chunk)
        return invocation

    def not_begun(self, call: Called, bound: BoundTool, error: BaseException) -> ToolResult:
        """The result of a call whose context cannot be read, or a preset of which cannot be computed."""
        message = f"the call of {call.name} could not begin{self.outcomes.because(error, bound.secrets)}"
        return self.outcomes.refusal(call, Status.ERROR, "setup", message, exception=error)

    def _recorded(self, call: ToolCall, steps: Steps) -> Steps:
        state: Invocation = call._state
        stats = state.ready.stats
        stats.open += 1
        try:
            result: ToolResult = yield from steps
        except Exception as error:  # noqa: BLE001 - a plugin's own objects are at work here, and others may wait for this
            result = self.outcomes.failure(call, error)
        finally:
            stats.open -= 1
        self._settle(call, result)
        state.ended()
        return result

    def steps(
        self, invocation: Invocation, policy: ExecutionPolicy | None, outcome: Outcome | None = None
    ) -> tuple[Steps, CancelToken]:
        """The steps of a call, and what stops them; `outcome` is what its function has come to, if it has run."""
        own: ExecutionPolicy = invocation.ready.policy
        steps = CallSteps(self, invocation, own if policy is None else policy.merged_over(own))
        return steps.steps() if outcome is None else steps.late(*outcome), invocation.stopper

    def opened(self, invocation: Invocation) -> ToolCall:
        """The call of an invocation that began without one."""
        call = ToolCall(invocation.call_id, invocation.name, owned(invocation.arguments))
        call.status = Status.RUNNING
        call._runner = self
        call._state = invocation
        if invocation.driver is None:
            invocation.driver = current_driver()
        invocation.seen = call
        return call

    # Ending ----------------------------------------------------------------------------------------------------

    def stop(self, call: ToolCall) -> None:
        """Ask a call to stop; one that has not begun ends as cancelled at once."""
        state = call._state
        if call.result is not None or state is None:
            return
        with _claims:
            stopper = None if state.driver is None else state.stopper
            state.driver = state.driver or _NOBODY
        if stopper is not None:
            stopper.cancel("stopped")
            return
        refusal = self.outcomes.refusal(call, Status.CANCELLED, "cancelled", "the call was stopped before it began")
        self._settle(call, refusal)

    def _settle(self, call: ToolCall, result: ToolResult) -> None:
        if result.status is not Status.NOT_FOUND:  # names that models make up are without number
            self.stats.of(call.name).ended(result.status, result.duration)
        self.tell(call, result)
        log_call(result, () if call._state is None else call._state.secrets)

    def tell(self, call: ToolCall, result: ToolResult) -> None:
        """Tell a call, and whoever waits for it, how it ended."""
        call.result = result
        call.status = result.status
        if result.status is Status.SUSPENDED:
            self.suspended[id(call)] = call
        state = call._state
        if state is not None:
            with _claims:
                if state.waiter is not None and not state.waiter.done():
                    state.waiter.set_result(result)

    def resume(self, call_id: str | ToolCall, value: Any, owed: list[ToolCall]) -> ToolResult:
        """Complete one of the `owed` calls with `value`, converted like a return value. Raises `PegboardError`."""
        call = _one_of(owed, call_id)
        if inspect.isawaitable(value):
            raise PegboardError(f"resume takes the answer itself, not a {type(value).__name__} to wait for; await it")
        if self.suspended.pop(id(call), None) is None:
            raise PegboardError(f"the call {call.id!r} was resumed meanwhile, by another thread")
        started = perf_counter()
        state: Invocation = call._state
        bound: BoundTool = state.ready
        result = self.outcomes.success(call, value, bound.renderers, bound.max_output)
        result = finished(redacted(result, state.secrets), perf_counter() - started)
        bound.stats.resumed()
        self._settle(call, result)
        return result


def _as_it_is(bound: BoundTool, text: str | None, shown: Mapping[str, Any]) -> Validation | None:
    """Arguments that fit as they were sent, or shown before, which is what most do; None for all others."""
    try:
        decoded, keys = (owned(shown), 0) if text is None else bound.decode(text)
        return Validation(decoded, bound.accept(decoded, keys, text))
    except BaseException as error:  # whatever a type's own class raises; who admits them reads them anew
        if is_interrupt(error):
            raise
        return None


def _one_of(owed: list[ToolCall], call_id: str | ToolCall) -> ToolCall:
    found = [call for call in owed if call is call_id or call.id == call_id]
    if len(found) == 1:
        return found[0]
    if found:
        raise PegboardError(
            f"{len(found)} suspended calls have the id {call_id!r}; resume each in its own session, or hand over "
            "the call itself, from `pending`"
        )
    wanted = call_id.id if isinstance(call_id, ToolCall) else call_id
    ids = ", ".join(sorted(call.id for call in owed)) or "none"
    raise PegboardError(f"no suspended call has the id {wanted!r}; owed: {ids}")


def call_scope(session: Any, context: Any, agent: Any) -> Scope:
    """The scope of one call: its own objects, then the agent, then the session's."""
    scope: Scope = session.scope
    if agent is None and type(context) is tuple and not context:
        return scope
    if agent is not None:
        scope = Scope((agent,), level="agent", wider=scope)
    if context is None or (type(context) is tuple and not context):
        return scope
    return Scope(context, level="call", wider=scope)
