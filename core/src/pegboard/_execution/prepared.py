"""Prepared calls: admitted first, run later, once, from wherever they are asked for; stopped, suspended and resumed."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, cast, final

from pegboard._arguments.validate import Validation
from pegboard._base.effects import Io, is_cancellation, is_interrupt, new_future, pass_interrupt, tried
from pegboard._base.errors import PegboardError, Suspend
from pegboard._base.jsonable import carried, owned
from pegboard._base.redaction import Redaction
from pegboard._execution import stages
from pegboard._execution.bound import BoundTool, Unavailable
from pegboard._execution.ending import claims, is_cancelling
from pegboard._execution.run import Run, admitted, not_provided, refused
from pegboard._execution.runner import CallPath
from pegboard._execution.telemetry import log_call
from pegboard._model.call import CallerSession, Given, ToolCall, new_call_id
from pegboard._model.policy import Permission
from pegboard._model.result import Status, ToolResult
from pegboard._results.factory import finished, redacted
from pegboard.extension import EnteredCall

_NO_SECRETS: Final = Redaction()


@final
class CallRunner(CallPath):
    """Runs the calls of one toolkit, at once or as they were prepared."""

    __slots__ = ()

    def prepare(self, session: CallerSession, call: ToolCall) -> ToolCall:
        """Admit the arguments of a call. Never raises: a bad call has its result at once.

        One that was prepared before stays as it is, and belongs to its session: in another one it is an error.
        """
        if call._runner is not None:
            if call._runner is self and (call._state is None or call._state.session is session):
                return call
            call = ToolCall(call.id, call.name, call.arguments, call.provider_meta)
            call._runner = self
            message = f"this call of {call.name} belongs to the session that prepared it"
            remedy = {"remedy": "run it with its own execute(), or prepare it here"}
            foreign = self.engine.results.refusal(call, Status.ERROR, "foreign", message, remedy)
            return self._refused(foreign, call, session)
        call._runner, bound = self, None
        try:
            bound = session.ready(call.name)
            refusal = self._admit(session, call, bound)
        except BaseException as error:  # noqa: BLE001 - a plugin's handlers and predicates are at work here
            pass_interrupt(error)
            refusal = self.engine.results.refusal(call, *Unavailable.unusable(call.name, error))
        return call if refusal is None else self._refused(refusal, call, session, bound)

    def _refused(self, refusal: ToolResult, call: ToolCall, session: CallerSession, bound: Any = None) -> ToolCall:
        """A prepared call that never runs."""
        self._within(session, bound, call, None, partial(self.ending.never, refusal, call))
        return call

    def entered(
        self, session: CallerSession, bound: BoundTool, sent: Any, call_id: str | None, given: Given, on_loop: bool
    ) -> Any:
        """`run`, within the middleware around whole calls."""
        call_id = call_id or new_call_id()
        call = ToolCall(call_id, bound.name, sent)
        work = partial(self.run, session, bound, sent, call_id, given, on_loop)
        return self._within(session, bound, call, given[1], work, on_loop)

    def absent(self, session: CallerSession, name: str, call_id: str | None, found: Unavailable) -> ToolResult:
        """`unavailable`, within such middleware."""
        call = ToolCall(call_id or "", name)
        work = partial(self.unavailable, name, call.id, found)
        return cast("ToolResult", self._within(session, None, call, None, work))

    def _within(
        self,
        session: CallerSession,
        bound: Any,
        call: ToolCall,
        agent: Any,
        work: Callable[[], Any],
        on_loop: bool = False,
    ) -> Any:
        """What the work of a call comes to within such middleware, which is an `error` if that fails."""
        if not self.engine.around:
            return work()
        known = type(bound) is BoundTool
        # Which secrets a call with computed ones had is not known any more when it is over.
        redact = None if known and bound.computed_secrets else (known and bound.redact) or _NO_SECRETS
        who = agent or session.agent, redact, session, call.id, call.provider_meta.get("parent")
        entered = EnteredCall(bound.tool if known else None, call.arguments, *who, {})
        within = _Within(self, call, redact, work)
        work = within.proceed
        for each in reversed(self.engine.around):
            work = partial(each.around, entered, work)
        return within.result(work, on_loop)

    def _admit(self, session: CallerSession, call: ToolCall, bound: BoundTool | Unavailable) -> ToolResult | None:
        engine = self.engine
        if isinstance(bound, Unavailable):
            return engine.results.refusal(call, *bound)
        if call.result is not None:  # a dialect read it, and it came incomplete
            return call.result
        if carried(call.id) is not call.id:
            return self._unnamed(call.id, call.name)
        if bound.permission is Permission.NEVER:
            return engine.results.not_permitted(call)
        sent = call.arguments
        read = tried(bound.read, sent) if type(sent) is str else None
        admission = admitted(engine, bound, sent) if read is None else Validation(*read)
        call.notes.extend(admission.notes)
        call.arguments = owned(admission.arguments)
        # A value that is no more than JSON is a part of the arguments; an approver is shown what can no longer change.
        shown = owned(admission.arguments) if bound.may_ask else admission.arguments
        call._state = run = Run(session, bound, call.id, shown, admission.values, self, 0.0, False)
        run.seen = call
        if admission.refusal is not None:
            call.typed = {}
            return refused(engine, call, admission)
        if bound.may_ask and bound.approval_reason(run) is not None:
            call.status = Status.AWAITING_APPROVAL
        return None

    def execute(self, call: ToolCall, given: Given, on_loop: bool) -> Any:
        """Run a prepared call; one that is already running or done is waited for.

        Gives the result or, `on_loop`, perhaps what has to be awaited for it. Raises `PegboardError` for a listener
        that has to be awaited.
        """
        if call.result is not None:
            return call.result
        if given[2] is None:
            return self._execute(call, given, on_loop)
        from pegboard._execution.streaming import heard

        return heard(partial(self._execute, call), given, on_loop)

    def _execute(self, call: ToolCall, given: Given, on_loop: bool) -> Any:
        run: Run = call._state
        waiter = self._claim(call, run)
        if waiter is not None:
            return self.engine.drivers.waited(waiter) if on_loop else self._waited_for(call, waiter)
        work = partial(self._perform, call, run, given, on_loop)
        return self._within(run.session, run.ready, call, given[1], work, on_loop)

    def _perform(self, call: ToolCall, run: Run, given: Given, on_loop: bool) -> Any:
        bound = run.ready
        run.started, run.on_loop = perf_counter(), on_loop
        try:
            self.surround(run, given)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            return self.ending.never(not_provided(self.engine, call, bound, error), call)
        bound.stats.open += 1
        return self.drive(run, partial(stages.begin, run))

    def _claim(self, call: ToolCall, run: Run) -> Any:
        """None for the first that asks, which is to run the call; for all others the future of its result."""
        with claims:
            if run.driver is None:
                run.driver = threading.get_ident()
                return None
            if run.waiter is None:
                run.waiter = new_future()
            if call.result is not None and not run.waiter.done():
                run.waiter.set_result(call.result)
            return run.waiter

    def _waited_for(self, call: ToolCall, waiter: Any) -> Any:
        if not waiter.done() and call._state.driver == threading.get_ident():
            message = f"this call of {call.name} runs here already, and cannot be waited for in between"
            remedy = {"remedy": "it runs on this very event loop or thread; use `await call.execute()`"}
            return self.engine.results.refusal(call, Status.ERROR, "deadlock", message, remedy)
        return self.engine.drivers.wait(waiter.result)

    def stop(self, call: ToolCall) -> None:
        """Ask a call to stop; one that has not begun ends as cancelled at once."""
        run: Run | None = call._state
        if call.result is not None or run is None:
            return
        with claims:
            runs = run.driver is not None
            run.driver = run.driver or "none"
        if runs:
            run.cancel("stopped")
            return
        message = "the call was stopped before it began"
        refusal = self.engine.results.refusal(call, Status.CANCELLED, "cancelled", message)
        self._refused(refusal, call, run.session, run.ready)

    def suspend(self, call: ToolCall, reason: str, resume: Any = None) -> ToolResult:
        """Suspend a prepared call instead of running it; one that cannot be called has its result already.

        One that is suspended is owed again, if it was withdrawn. Without `resume` its tool may know how to go on.
        """
        if call.status is Status.SUSPENDED:
            self.ending.suspended[id(call)] = call
        if call.result is None and self._claim(call, call._state) is None:
            restored = getattr(call._state.ready.tool.face, "restored", None)
            call._state.resume = restored(call) if resume is None and restored is not None else resume
            suspended = self.engine.results.failure(call, Suspend(reason))
            self._refused(suspended, call, call._state.session, call._state.ready)
        return cast("ToolResult", call.result)

    def resume(self, call_id: str | ToolCall, value: Any, owed: list[ToolCall], on_loop: bool = False) -> Any:
        """Complete one of the `owed` calls with `value`, converted like a return value. Raises `PegboardError`.

        Gives the result or, `on_loop`, perhaps what has to be awaited for it.
        """
        call = _one_of(owed, call_id)
        if inspect.isawaitable(value):
            raise PegboardError(f"resume takes the answer itself, not a {type(value).__name__} to wait for; await it")
        if self.ending.suspended.pop(id(call), None) is None:
            raise PegboardError(f"the call {call.id!r} was resumed meanwhile, by another thread")
        started = perf_counter()
        run: Run = call._state
        bound = run.ready
        if run.resume is not None:
            resume, run.resume = run.resume, None
            run.seen, run.on_loop, run.started = call, on_loop, started
            bound.stats.resumed()
            bound.stats.open += 1
            return self.drive(
                run, partial(self._resumed, call, run, partial(stages.resumed, run, resume=resume, value=value))
            )
        result = self.engine.results.success(call, value, bound.renderers, bound.max_output, run.session)
        self._take_answer(call, result, run, started)
        bound.stats.resumed()
        return self.ending.never(result, call)

    async def _resumed(self, call: ToolCall, run: Run, stage: Callable[[Io], Any], io: Io) -> ToolResult:
        result: ToolResult = await stage(io)
        if result.status is not Status.SUSPENDED:
            self._take_answer(call, result, run, run.started)
        return result

    def _take_answer(self, call: ToolCall, result: ToolResult, run: Run, started: float) -> None:
        """Finish the result of an answer, and tell of it; a call whose answer cannot be kept stays suspended.

        Raises `PegboardError` where another program has answered the call before.
        """
        finished(redacted(result, run.redact), perf_counter() - started)
        session, first = run.session, True
        if session.shared is not None:
            try:
                first = session.shared.answer(session, call, result)
            except BaseException:
                self.ending.suspended[id(call)] = call
                raise
        if not first:
            raise PegboardError(f"the call {call.id!r} was answered meanwhile, by another program")
        self.engine.tell("resumed", {"call": call, "result": result})


@final
class _Within:
    """One call within the middleware around whole calls: what that raises is the result of the call."""

    def __init__(self, runner: CallRunner, call: ToolCall, redact: Redaction | None, work: Callable[[], Any]) -> None:
        self._runner = runner
        self._call = call
        self._redact = redact
        self._work = work
        self._began = False

    def proceed(self) -> Any:
        """Go on to the call itself."""
        self._began = True
        return self._work()

    def result(self, outermost: Callable[[], Any], on_loop: bool) -> Any:
        """The result or, `on_loop`, perhaps a coroutine that ends in it."""
        try:
            found = outermost()
            if type(found) is ToolResult:
                return self._told(found)
            if on_loop and inspect.isawaitable(found):
                return self._later(found)
            return self._failed(_no_result(found))
        except BaseException as error:
            if is_interrupt(error) or (on_loop and is_cancellation(error) and is_cancelling()):
                raise
            return self._failed(error)
        finally:  # what a tool raised keeps this frame, and would keep its own result through it
            found = None

    async def _later(self, found: Any) -> ToolResult:
        try:
            while inspect.isawaitable(found):
                found = await found
            return self._told(found) if isinstance(found, ToolResult) else self._failed(_no_result(found))
        except GeneratorExit:  # the caller waits no longer
            raise
        except BaseException as error:
            if is_interrupt(error) or (is_cancellation(error) and is_cancelling()):
                raise
            return self._failed(error)
        finally:
            found = None

    def _told(self, result: ToolResult) -> ToolResult:
        """A prepared call has its result, also where middleware did not proceed."""
        if self._call._runner is not None and self._call.result is None:
            self._runner.ending.record(self._call, result)
        return result

    def _failed(self, error: BaseException) -> ToolResult:
        """The result of a call around which the program's own code has failed."""
        call, runner = self._call, self._runner
        results = runner.engine.results
        message = f"what the program has put around {call.name} failed{results.because(error, self._redact)}"
        result = results.refusal(call, Status.ERROR, "middleware", message, {}, error, attempts=int(self._began))
        prepared = call if call._runner is not None else None
        if not self._began:
            return runner.ending.never(result, prepared)
        if prepared is not None:
            runner.ending.suspended.pop(id(call), None)
            runner.ending.record(call, result)
        log_call(result, self._redact)
        return result


def _no_result(found: Any) -> TypeError:
    if inspect.iscoroutine(found):
        found.close()
    return TypeError(f"middleware returned a {type(found).__name__}, not a ToolResult; it must return proceed()'s")


def _one_of(owed: list[ToolCall], call_id: str | ToolCall) -> ToolCall:
    found = [call for call in owed if call is call_id or call.id == call_id]
    if len(found) == 1:
        return found[0]
    if found:
        remedy = "resume each in its own session, or hand over the call itself, from `pending`"
        raise PegboardError(f"{len(found)} suspended calls have the id {call_id!r}; {remedy}")
    ids = ", ".join(sorted(call.id for call in owed)) or "none"
    raise PegboardError(f"no suspended call has the id {getattr(call_id, 'id', call_id)!r}; owed: {ids}")
