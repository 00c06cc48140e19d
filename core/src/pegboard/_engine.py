"""The engine: prepares calls, runs them, settles their results."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, Final, cast, final

from pegboard._admission import Admission, RepairMode, admit
from pegboard._approval import Permission
from pegboard._call import Listener, ToolCall
from pegboard._effects import Steps, current_driver, is_interrupt
from pegboard._errors import PegboardError
from pegboard._execution import Execution
from pegboard._invocation import Invocation
from pegboard._locks import Locks
from pegboard._outcome import Outcomes, masked, redacted, written
from pegboard._ready import Absent, Ready
from pegboard._result import Note, Status, ToolResult
from pegboard._scope import Scope
from pegboard._stats import Stats

__all__ = ["Engine", "Prepared", "call_scope"]

_logger: Final = logging.getLogger("pegboard")
_logger.addHandler(logging.NullHandler())


@final
class Prepared:
    """The engine's own record of a call: the session that it belongs to and what it will run with."""

    __slots__ = ("done", "driver", "execution", "ready", "session", "stopped", "values")

    def __init__(self, session: Any, ready: Ready | None = None, values: tuple[Any, ...] = ()) -> None:
        self.session = session
        self.ready = ready
        self.values = values
        self.execution: Execution | None = None
        self.done: Future[ToolResult] | None = None
        self.driver: Any = None
        self.stopped = False

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
        outcomes: Outcomes,
        *,
        repair: RepairMode = "safe",
        max_threads: int = 64,
        backends: Mapping[str, Any] | None = None,
    ) -> None:
        if repair not in ("off", "safe", "max"):
            raise ValueError(f'repair takes "off", "safe" or "max", got {repair!r}')
        self.outcomes = outcomes
        self.repair: RepairMode = repair
        self.stats = Stats()
        self.locks = Locks()
        self.logger = _logger
        self.backends = dict(backends or {})
        self.suspended: dict[str, ToolCall] = {}
        self._max_threads = max_threads
        self._drivers: Any = None
        self._closed = False

    @property
    def drivers(self) -> Any:
        """The two drivers, made when the first call needs one: asyncio is not loaded before."""
        if self._drivers is None:
            from pegboard._drivers import Drivers
            from pegboard._pool import WorkerPool

            self._drivers = Drivers(WorkerPool(self._max_threads), self.backends)
            if self._closed:
                self._drivers.close()
        return self._drivers

    @property
    def abandoned(self) -> int:
        """Threads that hang in tools that timed out."""
        return 0 if self._drivers is None else int(self._drivers.pool.abandoned)

    def close(self) -> None:
        """Stop threads and loop; calls that need one end as errors from now on."""
        if not self._closed:
            self._closed = True
            if self._drivers is not None:
                self._drivers.close()

    # Preparing -------------------------------------------------------------------------------------------------

    def prepare(self, session: Any, call: ToolCall, found: Ready | Absent, refused: Any = None) -> ToolCall:
        """Admit the arguments of a call of the tool that was found. Never raises: a bad call has its result at once.

        `refused` are the arguments as the straight path decoded them, if it found that they do not fit.
        """
        call._runner = self
        state = call._state = Prepared(session)
        try:
            if isinstance(found, Ready):
                self._admit(call, state, found, refused)
                return call
        except BaseException as error:  # a plugin's handlers and predicates are at work here
            if is_interrupt(error):
                raise
            found = Absent.unusable(call.name, error)
        reasons = found.status, found.kind, found.message, found.details, found.exception
        self._settle(call, self.outcomes.refusal(call, *reasons))
        return call

    def _admit(self, call: ToolCall, state: Prepared, ready: Ready, refused: Any) -> None:
        if ready.permission is Permission.NEVER:
            message = f"{call.name} is not permitted"
            remedy = {"remedy": f'toolkit.set_permission({call.name!r}, "always") or "prompt"'}
            self._settle(call, self.outcomes.refusal(call, Status.DENIED, "denied", message, remedy))
            return
        admission = self.admission(ready, call.arguments, refused)
        call.notes.extend(admission.notes)
        call.arguments = admission.arguments
        if admission.refusal is not None:
            self._settle(call, self._refused(call, admission))
            return
        state.ready, state.values = ready, admission.values
        call.typed = ready.plan.typed(admission.values)
        if ready.approval_reason(call.typed) is not None:
            call.status = Status.AWAITING_APPROVAL

    def admission(self, ready: Ready, sent: Any, refused: Any = None) -> Admission:
        """Admit what was sent to a tool; `refused` as in `prepare`."""
        secrets = ready.secrets
        redact = partial(masked, secrets=secrets) if secrets else None
        read_only = ready.tool.options.read_only is True
        return admit(ready.plan, sent, mode=self.repair, read_only=read_only, redact=redact, refused=refused)

    def _refused(self, call: ToolCall, admission: Admission) -> ToolResult:
        details = {"problems": [str(problem) for problem in admission.problems] or [str(admission.refusal)]}
        return self.outcomes.refusal(call, Status.INVALID, "invalid_arguments", str(admission.refusal), details)

    # Running ---------------------------------------------------------------------------------------------------

    async def run(self, call: ToolCall, options: Mapping[str, Any]) -> ToolResult:
        """Run a prepared call on the current loop; a call that is already running or done is waited for."""
        if call.result is not None:
            return call.result
        steps, done = self._claim(call, _on_this_loop(options))
        if steps is None:
            import asyncio

            return await asyncio.shield(asyncio.wrap_future(done))
        state = cast("Prepared", call._state)
        token = state.execution.token if state.execution else None
        return cast("ToolResult", await self.drivers.run(steps, token))

    def run_sync(self, call: ToolCall, options: Mapping[str, Any]) -> ToolResult:
        """Run a prepared call from plain code."""
        if call.result is not None:
            return call.result
        steps, done = self._claim(call, options)
        if steps is None:
            return self._waited_for(call, done)
        state = cast("Prepared", call._state)
        token = state.execution.token if state.execution else None
        return cast("ToolResult", self.drivers.run_sync(steps, token))

    def _waited_for(self, call: ToolCall, done: Future[ToolResult]) -> ToolResult:
        if not done.done() and cast("Prepared", call._state).driver == current_driver():
            message = f"{call.name} runs on this very event loop or thread; use `await call.execute()`"
            return self.outcomes.refusal(call, Status.ERROR, "deadlock", message)
        return cast("ToolResult", self.drivers.wait(done.result))

    def _claim(self, call: ToolCall, options: Mapping[str, Any]) -> tuple[Steps | None, Future[ToolResult]]:
        """Who runs the call: the first caller gets its steps, everybody else the future of its result."""
        with call._lock:
            state = cast("Prepared", call._state)
            if state.done is not None:
                return None, state.done
            state.done = Future()
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
        self.stats.running += 1
        try:
            result: ToolResult = yield from steps
        except Exception as error:  # noqa: BLE001 - a plugin's own objects are at work here, and others may wait for this
            result = self.outcomes.failure(call, error)
        finally:
            self.stats.running -= 1
        self._settle(call, result)
        return result

    def _execution(self, call: ToolCall, state: Prepared, options: Mapping[str, Any]) -> Execution:
        ready = cast("Ready", state.ready)
        scope = call_scope(state.session, options["context"], options["agent"])
        agent = options["agent"] if options["agent"] is not None else state.session.agent
        listener = _guarded(options["on_chunk"], _logger)
        presets = {**ready.presets, **{name: compute(call) for name, compute in ready.computed.items()}}
        invocation = Invocation(state.session, call.name, call.id, call.arguments, scope, presets, agent, listener)
        invocation.call = call
        policy = ready.policy if options["policy"] is None else options["policy"].merged_over(ready.policy)
        return Execution(
            call,
            ready,
            state.values,
            invocation,
            policy,
            self.outcomes,
            self.locks,
            lambda edited: self._readmitted(call, ready, edited),
        )

    def late(self, session: Any, ready: Ready, call_id: str, arguments: Any, context: Any, agent: Any) -> Execution:
        """The execution of a straight call that turned out to be unfinished."""
        call = ToolCall(call_id, ready.name, arguments)
        state = Prepared(session, ready)
        return self._execution(call, state, {"context": context, "agent": agent, "on_chunk": None, "policy": None})

    def _readmitted(self, call: ToolCall, ready: Ready, edited: Any) -> tuple[Any, ...] | ToolResult:
        admission = self.admission(ready, edited)
        if admission.refusal is not None:
            return self._refused(call, admission)
        call.arguments = admission.arguments
        call.typed = ready.plan.typed(admission.values)
        call.notes.append(Note("the approver edited the arguments", kind="edited"))
        return admission.values

    # Ending ----------------------------------------------------------------------------------------------------

    def stop(self, call: ToolCall) -> None:
        """Ask a call to stop; one that has not begun ends as cancelled at once."""
        state = cast("Prepared", call._state)
        with call._lock:
            begun = state.done is not None
            state.done = state.done or Future()
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
        state = cast("Prepared", call._state)
        if result.status is not Status.NOT_FOUND:  # names that models make up are without number
            self.stats.of(call.name).ended(result.status, result.duration)
        if result.status is Status.SUSPENDED:
            self.suspended[call.id] = call
        if state.done is not None and not state.done.done():
            state.done.set_result(result)
        self.log(result, state.secrets)

    def remember_suspended(self, call: ToolCall, result: ToolResult, ready: Ready, session: Any) -> None:
        """A straight call that was suspended waits for `resume` like any other."""
        call._runner = self
        call._state = Prepared(session, ready)
        admission = self.admission(ready, call.arguments)
        if admission.refusal is None:
            call.arguments, call.typed = admission.arguments, ready.plan.typed(admission.values)
        call.result, call.status = result, result.status
        self.suspended[call.id] = call

    def resume(self, call_id: str, value: Any, owed: list[ToolCall]) -> ToolResult:
        """Complete one of the `owed` calls with `value`, converted like a return value. Raises `PegboardError`."""
        ids = sorted(call.id for call in owed)
        call = self.suspended.pop(call_id, None) if call_id in ids else None
        if call is None:
            raise PegboardError(f"no suspended call has the id {call_id!r}; owed: {', '.join(ids) or 'none'}")
        started = perf_counter()
        state = cast("Prepared", call._state)
        ready = cast("Ready", state.ready)
        result = redacted(self.outcomes.success(call, value, ready.renderers), state.secrets)
        object.__setattr__(result, "duration", perf_counter() - started)
        self._settle(call, result)
        return result

    def log(self, result: ToolResult, secrets: Iterable[str] = ()) -> None:
        """One record for each call: DEBUG for success, INFO for anything else, with the traceback of an exception."""
        if result.error is None:
            _logger.debug("%s %s: %s in %.6f s", result.name, result.call_id, result.status.value, result.duration)
        elif _logger.isEnabledFor(logging.INFO):
            line = "%s %s: %s in %.6f s: %s"
            message = result.error.message
            if result.error.kind == "exception" and result.error.exception is not None:
                message = written(result.error.exception, secrets)
            _logger.info(line, result.name, result.call_id, result.status.value, result.duration, message)


def call_scope(session: Any, context: Any, agent: Any) -> Scope:
    """The scope of one call: its own objects, then the agent, then the session's."""
    scope: Scope = session.scope
    if agent is not None:
        scope = Scope((agent,), level="agent", wider=scope)
    if context is None or (type(context) is tuple and not context):
        return scope
    return Scope(context, level="call", wider=scope)


def _guarded(listener: Listener | None, log: logging.Logger) -> Listener | None:
    """A listener that fails must not break the tool that reports to it."""
    if listener is None:
        return None

    def listen(chunk: Any) -> None:
        try:
            listener(chunk)
        except BaseException as error:
            if is_interrupt(error):
                raise
            log.warning("on_chunk failed for call %s", chunk.call_id, exc_info=True)

    return listen


def _on_this_loop(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same options, with a listener that hears everything on the loop's own thread, worker threads' chunks too."""
    listener = _guarded(options["on_chunk"], _logger)
    if listener is None:
        return options
    from asyncio import get_running_loop

    loop = get_running_loop()
    home = threading.get_ident()

    def listen(chunk: Any) -> None:
        if threading.get_ident() == home:
            listener(chunk)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody is left to hear
            loop.call_soon_threadsafe(listener, chunk)

    return {**options, "on_chunk": listen}
