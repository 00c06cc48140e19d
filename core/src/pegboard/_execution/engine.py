"""The engine: prepares calls, runs them, settles their results."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast, final

from pegboard._arguments.accelerators import Accelerators
from pegboard._arguments.decode import owned
from pegboard._arguments.validate import RepairMode, Validation, admit
from pegboard._base.effects import Steps, current_driver, is_interrupt, new_future
from pegboard._base.errors import PegboardError
from pegboard._execution.bound_tool import BoundTool, Unavailable
from pegboard._execution.chunks import ChunkChannel, heard_by, is_async_listener, listen
from pegboard._execution.concurrency import ConcurrencyLimits
from pegboard._execution.log import log_call
from pegboard._execution.stats import Stats
from pegboard._execution.steps import CallSteps
from pegboard._injection.context import Scope
from pegboard._injection.invocation import Invocation
from pegboard._model.call import CancelToken, ToolCall
from pegboard._model.permission import Permission
from pegboard._model.result import Note, Status, ToolResult
from pegboard._results.factory import Called, ResultFactory, finished, masked, redacted

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["CallState", "Engine", "call_scope"]


@final
class CallState:
    """The engine's own record of a call: the session that it belongs to and what it will run with."""

    __slots__ = ("arguments", "done", "driver", "execution", "ready", "session", "stopped", "values")

    def __init__(self, session: Any, ready: BoundTool | None = None, values: tuple[Any, ...] = ()) -> None:
        self.session = session
        self.ready = ready
        self.values = values
        self.arguments: Mapping[str, Any] = {}  # what `values` were read from
        self.execution: CallSteps | None = None
        self.done: Future[ToolResult] | None = None
        self.driver: Any = None
        self.stopped = False

    @property
    def token(self) -> CancelToken | None:
        """Stops the call once it runs."""
        return None if self.execution is None else self.execution.token

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that nothing about this call may show."""
        if self.execution is not None:
            return self.execution.secrets
        return () if self.ready is None else self.ready.secrets


@final
class Engine:
    """Runs calls. One for each toolkit; threads and loop begin on first use."""

    def __init__(
        self,
        outcomes: ResultFactory,
        *,
        repair: RepairMode = "safe",
        max_threads: int = 64,
        backends: Mapping[str, Any] | None = None,
        accelerators: Accelerators | None = None,
    ) -> None:
        if repair not in ("off", "safe", "max"):
            raise ValueError(f'repair takes "off", "safe" or "max", got {repair!r}')
        self.outcomes = outcomes
        self.repair: RepairMode = repair
        self.stats = Stats()
        self.limits = ConcurrencyLimits()
        self.backends = dict(backends or {})
        self.accelerators = accelerators or Accelerators()
        self.suspended: dict[int, ToolCall] = {}  # by identity: ids come from models, and come twice
        self._max_threads = max_threads
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
        from pegboard._execution.threads import WorkerPool

        with self._lock:
            if self._drivers is None:
                drivers = Drivers(WorkerPool(self._max_threads), self.backends)
                if self._closed:
                    drivers.close(lambda: None)
                self._drivers = drivers
            return self._drivers

    @property
    def abandoned(self) -> int:
        """Threads that hang in tools that timed out."""
        return 0 if self._drivers is None else int(self._drivers.pool.abandoned)

    @property
    def queued(self) -> int:
        """Jobs that wait for a worker thread."""
        return 0 if self._drivers is None else int(self._drivers.pool.queued)

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

    async def aclose(self) -> None:
        """`close`, while the running loop goes on: what is to end may have to end there."""
        from pegboard._execution.loop_thread import aside

        await aside(self.close)

    def _stop_all(self) -> None:
        for stoppable in list(self.live):
            stoppable.cancel("the toolkit was closed")

    # Preparing -------------------------------------------------------------------------------------------------

    def prepare(
        self, session: Any, call: ToolCall, found: BoundTool | Unavailable, admission: Validation | None = None
    ) -> ToolCall:
        """Admit the arguments of a call of the tool that was found. Never raises: a bad call has its result at once.

        `admission` is what the straight path found, if it got as far as that.
        """
        call._runner = self
        state = call._state = CallState(session)
        try:
            if isinstance(found, BoundTool):
                self._admit(call, state, found, admission)
                return call
        except BaseException as error:  # a plugin's handlers and predicates are at work here
            if is_interrupt(error):
                raise
            found = Unavailable.unusable(call.name, error)
        reasons = found.status, found.kind, found.message, found.details, found.exception
        self._settle(call, self.outcomes.refusal(call, *reasons))
        return call

    def _admit(self, call: ToolCall, state: CallState, ready: BoundTool, admission: Validation | None) -> None:
        if ready.permission is Permission.NEVER:
            self._settle(call, self.outcomes.not_permitted(call))
            return
        admission = admission or self.admission(ready, call.arguments)
        call.notes.extend(admission.notes)
        call.arguments = owned(admission.arguments)
        if admission.refusal is not None:
            self._settle(call, self.refused(call, admission))
            return
        state.ready, state.values = ready, admission.values
        # A value that is no more than JSON is a part of the arguments; an approver is shown what nobody can change.
        state.arguments = owned(admission.arguments) if ready.may_ask else admission.arguments
        call.typed = ready.plan.typed(admission.values)
        if ready.approval_reason(call.typed) is not None:
            call.status = Status.AWAITING_APPROVAL

    def admission(self, ready: BoundTool, sent: Any, refused: Any = None) -> Validation:
        """Admit what was sent to a tool; `refused` is what somebody decoded it to who found that it does not fit."""
        secrets = ready.secrets
        redact = partial(masked, secrets=secrets) if secrets else None
        read_only = ready.tool.options.read_only is True
        return admit(
            ready.plan,
            sent,
            mode=self.repair,
            read_only=read_only,
            redact=redact,
            refused=refused,
            read=self.accelerators.read,
        )

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
        if listener is not None and not isinstance(listener, ChunkChannel):
            async with heard_by(listener) as channel:
                return await self.run(call, {**options, "on_chunk": channel})
        steps, done = self._claim(call, options)
        if steps is None:
            import asyncio

            return await asyncio.shield(asyncio.wrap_future(done))
        return cast("ToolResult", await self.drivers.run(steps, cast("CallState", call._state).token))

    def run_sync(self, call: ToolCall, options: Mapping[str, Any]) -> ToolResult:
        """Run a prepared call from plain code. Raises `PegboardError` for a listener that has to be awaited."""
        if call.result is not None:
            return call.result
        if options["on_chunk"] is not None and is_async_listener(options["on_chunk"]):
            raise PegboardError("an async on_chunk is awaited on an event loop; use `await toolkit.call(...)`")
        steps, done = self._claim(call, options)
        if steps is None:
            return self._waited_for(call, done)
        return cast("ToolResult", self.drivers.run_sync(steps, cast("CallState", call._state).token))

    def _waited_for(self, call: ToolCall, done: Future[ToolResult]) -> ToolResult:
        if not done.done() and cast("CallState", call._state).driver == current_driver():
            message = f"{call.name} runs on this very event loop or thread; use `await call.execute()`"
            return self.outcomes.refusal(call, Status.ERROR, "deadlock", message)
        return cast("ToolResult", self.drivers.wait(done.result))

    def _claim(self, call: ToolCall, options: Mapping[str, Any]) -> tuple[Steps | None, Future[ToolResult]]:
        """Who runs the call: the first caller gets its steps, everybody else the future of its result."""
        with call._lock:
            state = cast("CallState", call._state)
            if state.done is not None:
                return None, state.done
            state.done = new_future()
            state.driver = current_driver()
            if call.result is not None:
                state.done.set_result(call.result)
                return None, state.done
        try:
            state.execution = self._execution(call, state, options)
            if state.stopped:  # meanwhile
                state.execution.token.cancel("stopped")
        except BaseException as error:  # a context that cannot be read, a preset that cannot be computed
            if is_interrupt(error):
                raise
            message = f"the call of {call.name} could not begin{self.outcomes.because(error, state.secrets)}"
            self._settle(call, self.outcomes.refusal(call, Status.ERROR, "setup", message, exception=error))
            return None, state.done
        return self._recorded(call, state.execution.steps()), state.done

    def _recorded(self, call: ToolCall, steps: Steps) -> Steps:
        stats = self.stats.of(call.name)
        stats.open += 1
        try:
            result: ToolResult = yield from self.listed(cast("CallState", call._state).token, steps)
        except Exception as error:  # noqa: BLE001 - a plugin's own objects are at work here, and others may wait for this
            result = self.outcomes.failure(call, error)
        finally:
            stats.open -= 1
        self._settle(call, result)
        return result

    def listed(self, token: CancelToken | None, steps: Steps) -> Steps:
        """The same steps; `close` sets `token` while they run."""
        self.live.add(token)
        try:
            return (yield from steps)
        finally:
            self.live.discard(token)

    def _execution(self, call: ToolCall, state: CallState, options: Mapping[str, Any]) -> CallSteps:
        ready = cast("BoundTool", state.ready)
        scope = call_scope(state.session, options["context"], options["agent"])
        agent = options["agent"] if options["agent"] is not None else state.session.agent
        presets = {**ready.presets, **{name: compute(call) for name, compute in ready.computed.items()}}
        invocation = Invocation(state.session, call.name, call.id, call.arguments, scope, presets, agent)
        invocation.call = call
        listen(invocation, options["on_chunk"])
        policy = ready.policy if options["policy"] is None else options["policy"].merged_over(ready.policy)
        return CallSteps(
            call,
            ready,
            state.values,
            invocation,
            policy,
            self.outcomes,
            self.limits,
            lambda edited: self._readmitted(call, ready, state.arguments, edited),
            state.arguments,
        )

    def late(self, session: Any, ready: BoundTool, call_id: str, arguments: Any, context: Any, agent: Any) -> CallSteps:
        """The execution of a straight call that turned out to be unfinished."""
        call = ToolCall(call_id, ready.name, arguments)
        state = CallState(session, ready)
        return self._execution(call, state, {"context": context, "agent": agent, "on_chunk": None, "policy": None})

    def _readmitted(self, call: ToolCall, ready: BoundTool, shown: Any, edited: Any) -> tuple[Any, ...] | ToolResult:
        admission = self.admission(ready, shown if edited is None else edited)
        if admission.refusal is not None:
            return self.refused(call, admission)
        call.arguments = owned(admission.arguments)
        call.typed = ready.plan.typed(admission.values)
        if edited is not None:
            call.notes.append(Note("the approver edited the arguments", kind="edited"))
        return admission.values

    # Ending ----------------------------------------------------------------------------------------------------

    def stop(self, call: ToolCall) -> None:
        """Ask a call to stop; one that has not begun ends as cancelled at once."""
        state = cast("CallState", call._state)
        with call._lock:
            begun = state.done is not None
            state.done = state.done or new_future()
            state.stopped = True
        if call.result is not None:
            return
        if begun:
            if state.execution is not None:
                state.execution.token.cancel("stopped")
            return
        refusal = self.outcomes.refusal(call, Status.CANCELLED, "cancelled", "the call was stopped before it began")
        self._settle(call, refusal)

    def _settle(self, call: ToolCall, result: ToolResult) -> None:
        call.result = result
        call.status = result.status
        state = cast("CallState", call._state)
        if result.status is not Status.NOT_FOUND:  # names that models make up are without number
            self.stats.of(call.name).ended(result.status, result.duration)
        if result.status is Status.SUSPENDED:
            self.suspended[id(call)] = call
        if state.done is not None and not state.done.done():
            state.done.set_result(result)
        self.log(result, state.secrets)

    def remember_suspended(self, call: ToolCall, result: ToolResult, ready: BoundTool, session: Any) -> None:
        """A straight call that was suspended waits for `resume` like any other."""
        call._runner = self
        call._state = CallState(session, ready)
        admission = self.admission(ready, call.arguments)
        if admission.refusal is None:
            call.arguments, call.typed = admission.arguments, ready.plan.typed(admission.values)
        call.result, call.status = result, result.status
        self.suspended[id(call)] = call

    def resume(self, call_id: str | ToolCall, value: Any, owed: list[ToolCall]) -> ToolResult:
        """Complete one of the `owed` calls with `value`, converted like a return value. Raises `PegboardError`."""
        call = _one_of(owed, call_id)
        if inspect.isawaitable(value):
            raise PegboardError(f"resume takes the answer itself, not a {type(value).__name__} to wait for; await it")
        if self.suspended.pop(id(call), None) is None:
            raise PegboardError(f"the call {call.id!r} was resumed meanwhile, by another thread")
        started = perf_counter()
        state = cast("CallState", call._state)
        ready = cast("BoundTool", state.ready)
        result = self.outcomes.success(call, value, ready.renderers, ready.tool.options.max_output)
        result = finished(redacted(result, state.secrets), perf_counter() - started, 1)
        ready.stats.resumed()
        self._settle(call, result)
        return result

    def log(self, result: ToolResult, secrets: Iterable[str] = ()) -> None:
        """One record for each call."""
        log_call(result, secrets)


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
    if agent is not None:
        scope = Scope((agent,), level="agent", wider=scope)
    if context is None or (type(context) is tuple and not context):
        return scope
    return Scope(context, level="call", wider=scope)
