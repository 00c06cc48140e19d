"""Execution: the steps of one call, written once for event loops and plain code."""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from pegboard._arguments.decode import owned
from pegboard._base.effects import (
    TIMED_OUT,
    Around,
    AttemptTimeoutError,
    Await,
    ClosedError,
    Outcome,
    Sleep,
    Steps,
    WaitForPermit,
    Work,
    is_cancellation,
)
from pegboard._base.errors import MissingContextError, PegboardError, Suspend, ToolError
from pegboard._execution.bound_tool import BoundTool
from pegboard._execution.concurrency import ConcurrencyLimits
from pegboard._injection.injectors import release, resolve
from pegboard._injection.invocation import Invocation
from pegboard._model.call import ToolCall
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Status, ToolResult
from pegboard._results.converters import drain, drain_async
from pegboard._results.factory import ResultFactory, finished, redacted, shortened
from pegboard.extension import Job

if TYPE_CHECKING:
    from pegboard._model.program import ApprovalRequest


class Caller(Protocol):
    """What the steps need of the engine."""

    outcomes: ResultFactory
    limits: ConcurrencyLimits

    def readmitted(self, invocation: Invocation, edited: Any) -> ToolResult | None:
        """Read the arguments of an approved call anew."""


MAX_RETRIES_TOLD: Final = 100  # of one call, the last ones; a policy may ask for any number
MAX_TOLD: Final = 1_000  # characters of the error of each

# What no second attempt would change, or nobody wants one after.
_FINAL: Final = (Suspend, MissingContextError, PegboardError, KeyboardInterrupt)


@final
class CallSteps:
    """One run of a prepared call. `steps()` ends in its result and never raises for what a tool does."""

    __slots__ = ("_attempts", "_engine", "_outcomes", "_retries", "_yielded", "invocation", "policy", "ready", "token")

    def __init__(self, engine: Caller, invocation: Invocation, policy: ExecutionPolicy) -> None:
        self._engine = engine
        self._outcomes = engine.outcomes
        self.invocation = invocation
        self.token = invocation.stopper  # stops the run; a tool gets a token of its own for each attempt
        self.ready: BoundTool = invocation.ready
        self.policy = policy
        self._attempts = 0
        self._yielded: list[Any] = []  # in this attempt
        self._retries: deque[Mapping[str, Any]] | None = None

    @property
    def call(self) -> ToolCall:
        """The call, which most steps can do without."""
        return self.invocation.call

    def steps(self) -> Steps:
        """Approval, locks, middleware, attempts; the result with its duration."""
        # As it is now: what was said of the tool since the call was prepared holds for it too.
        now = self.invocation.session.ready(self.ready.name)
        if type(now) is not BoundTool:
            now = self.ready
        if now.permission is Permission.NEVER:
            return self._outcomes.not_permitted(self.invocation.said)
        if now.may_ask:
            refusal = yield from self._approve(now)
            if refusal is not None:
                return refusal
        if self.token.cancelled:
            return self._cancelled()
        return (yield from (self._limited() if self.ready.limits else self._timed()))

    def late(self, value: Any, error: BaseException | None) -> Steps:
        """The same for a call on the fast path whose function has come to that: what is still to be done."""
        outcome = (None, error) if error is not None else (yield from self._attempt(partial(self._settled, value)))
        return self._finished(0.0, (yield from self._try(outcome)))

    def _cancelled(self) -> ToolResult:
        return self._outcomes.refusal(self.invocation.said, Status.CANCELLED, "cancelled", "the call was cancelled")

    def _timed(self) -> Steps:
        call = self.invocation.seen
        if call is not None:
            call.status = Status.RUNNING
        started = time.perf_counter()
        result = yield from (self._through(0) if self.ready.middleware else self._try())
        return self._finished(time.perf_counter() - started, result)

    def _finished(self, seconds: float, result: ToolResult) -> ToolResult:
        return finished(result, seconds, max(self._attempts, 1), self._retries or ())

    # Approval --------------------------------------------------------------------------------------------------

    def _approve(self, now: BoundTool) -> Steps:
        reason = now.approval_reason(self.invocation.typed)
        if reason is None:
            return None
        approver = self.invocation.session.approver
        if approver is None:
            told = "" if now.permission is Permission.PROMPT else f" ({reason})"
            return self._denied(
                f"it needs approval{told} and nobody can give it",
                f'pass approver= to Toolkit or session, or toolkit.set_permission({self.ready.name!r}, "always")',
            )
        from pegboard._model.program import ApprovalRequest

        if self.invocation.seen is not None:
            self.invocation.seen.status = Status.AWAITING_APPROVAL
        request = ApprovalRequest(self.ready.tool, self.invocation.call_id, owned(self.invocation.arguments), reason)
        with self.ready.stats.waits():
            answer, error = yield from self._ask(approver, request)
        if self.token.cancelled or (error is not None and is_cancellation(error)):
            return self._cancelled()
        if error is not None:
            return self._denied(
                f"asking for approval failed{self._outcomes.because(error, self.invocation.secrets)}", cause=error
            )
        return self._answered(answer)

    def _ask(self, approver: Callable[[ApprovalRequest], Any], request: ApprovalRequest) -> Steps:
        if is_async(approver):
            return (yield Await(lambda: approver(request)))
        answer, error = yield Work(lambda: approver(request))
        if error is None and answer is not True and inspect.isawaitable(answer):
            return (yield Await(lambda: answer))
        return answer, error

    def _answered(self, answer: Any) -> ToolResult | None:
        from pegboard._model.program import Approval

        decision = answer.decision if isinstance(answer, Approval) else None
        if answer is True or decision in ("approve", "edit"):
            # Read anew from what was shown: nothing that changed since then may run.
            return self._engine.readmitted(self.invocation, answer.arguments if decision == "edit" else None)
        if answer is False or isinstance(answer, Approval):
            why = answer.reason if isinstance(answer, Approval) else ""
            return self._denied(why or "it was not approved")
        return self._denied("the approver gave no answer", f"it returned {answer!r}, not True, False or an Approval")

    def _denied(self, why: str, remedy: str = "", cause: BaseException | None = None) -> ToolResult:
        details = {"remedy": remedy} if remedy else {}
        message = f"{self.call.name} was not run: {why}{f' (to allow it: {remedy})' if remedy else ''}"
        return self._outcomes.refusal(self.call, Status.DENIED, "denied", message, details, cause)

    # Limits and middleware --------------------------------------------------------------------------------------

    def _limited(self) -> Steps:
        limits = self._engine.limits
        try:
            place = limits.take(self.ready.limits)
        except PegboardError as error:
            return self._outcomes.refusal(self.invocation.said, Status.ERROR, "deadlock", str(error), exception=error)
        if place is None:
            return (yield from self._timed())
        try:
            if place.turn is not None:
                if self.invocation.seen is not None:
                    self.invocation.seen.status = Status.PENDING
                with self.ready.stats.waits():
                    _, left = yield WaitForPermit(place.turn)
                if left is not None:
                    return self._outcomes.failure(self.invocation.said, left)
            limits.enter(place)
            return (yield from self._timed())
        finally:
            limits.leave(place)
            limits.enter(place.above)

    def _through(self, index: int) -> Steps:
        if index == len(self.ready.middleware):
            return (yield from self._try())
        middleware = self.ready.middleware[index]
        awaited = is_async(middleware.around)
        value, error = yield Around(middleware.around, self.call, lambda: self._through(index + 1), awaited)
        if error is not None:
            return self._outcomes.failure(self.call, error, self.invocation.secrets)
        if isinstance(value, ToolResult):
            foreign = value.call_id != self.call.id  # from a cache, for instance
            return self._outcomes.success(self.call, value, self.ready.renderers) if foreign else value
        name = middleware.name or getattr(middleware.around, "__qualname__", "middleware")
        message = f"middleware {name!r} returned a {type(value).__name__}, not a ToolResult; it must return proceed()'s"
        return self._outcomes.refusal(self.call, Status.ERROR, "middleware", message)

    # Attempts --------------------------------------------------------------------------------------------------

    def _try(self, outcome: Outcome | None = None) -> Steps:
        """Attempts until one is the last; `outcome` is what a first one has come to."""
        attempt = 0  # of this round: middleware may go on to a second one
        while True:
            if outcome is None and self.token.cancelled:  # while middleware was at work
                return self._cancelled()
            attempt += 1
            self._attempts += 1
            value, error = outcome or (yield from self._attempt(self._perform))
            outcome = None
            if isinstance(error, AttemptTimeoutError):
                self.invocation.end_attempt(TIMED_OUT)  # an abandoned thread can see that nobody waits for it
            if error is None or not self._may_retry(error, attempt):
                return self._conclude(value, error)
            wait = self.policy.backoff(attempt)
            wait = _spread(wait) if self.policy.jitter else wait
            if self._retries is None:
                self._retries = deque(maxlen=MAX_RETRIES_TOLD)
            self._retries.append(self._told(error, wait))
            with self.ready.stats.waits():
                _, stopped = yield Sleep(wait)
            if stopped is not None or self.token.cancelled:
                return self._cancelled()

    def _told(self, error: BaseException, wait: float) -> Mapping[str, Any]:
        """What a program learns of an attempt that was followed by another."""
        message = shortened(self._outcomes.said(error, self.invocation.secrets), MAX_TOLD)
        return {"attempt": self._attempts, "type": type(error).__qualname__, "error": message, "wait": wait}

    def _attempt(self, perform: Callable[[], Steps]) -> Steps:
        cleanup: list[Any] = []
        self._yielded = []
        outcome: Outcome = (None, None)
        try:
            for provider in self.ready.plan.managed:
                yield from resolve(provider, self.invocation, cleanup)
            outcome = yield from perform()
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a resolver may raise anything
            outcome = (None, error)
        if not cleanup:
            return outcome
        try:
            yield from release(cleanup)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - as above; the tool's own failure comes first
            outcome = outcome if outcome[1] is not None else (None, error)
        self.invocation.resolved.clear()
        return outcome

    def _perform(self) -> Steps:
        invoke = partial(_invoked, self.ready.plan, self.invocation.values, self.invocation)
        timeout = self.policy.timeout
        if self.ready.plan.kind == "async":
            value, error = yield Await(invoke, timeout)
        elif self.ready.plan.kind == "async_generator":
            return (yield self._drained(invoke))
        else:
            value, error = yield self._work(invoke, self.ready.backend)
        return (None, error) if error is not None else (yield from self._settled(value))

    def _settled(self, value: Any) -> Steps:
        """Whatever a callable gives may still have to be awaited or drawn from, a wrapped async function's say."""
        if type(value) in self.ready.renderers.by_type:  # as those before it, which were finished
            return value, None
        timeout = self.policy.timeout
        if inspect.isawaitable(value):
            pending = value
            value, error = yield Await(lambda: pending, timeout)
            if error is not None:
                return None, error
        if inspect.isasyncgen(value):
            stream = value
            return (yield self._drained(lambda: stream))
        if inspect.isgenerator(value):
            return (yield self._work(lambda: value, "thread"))
        return value, None

    def _drained(self, begin: Callable[[], Any]) -> Await:
        emitter, yielded = self.invocation.emitter, self._yielded
        return Await(lambda: drain_async(begin(), emitter, yielded), self.policy.timeout)

    def _conclude(self, value: Any, error: BaseException | None) -> ToolResult:
        if isinstance(error, ClosedError) and self.token.cancelled:
            return self._cancelled()
        limit = self.ready.max_output
        if error is not None:
            failure = self._outcomes.failure(self.invocation.said, error, self.invocation.secrets)
            return redacted(self._outcomes.with_partial(failure, self._yielded, limit), self.invocation.secrets)
        result = self._outcomes.success(self.invocation.said, value, self.ready.renderers, limit)
        return redacted(result, self.invocation.secrets)

    def _work(self, invoke: Callable[[], Any], backend: Any) -> Work:
        invocation = self.invocation
        emitter, yielded = invocation.emitter, self._yielded

        def draw(stream: Generator[Any, Any, Any]) -> Any:
            return drain(stream, emitter, invocation.token, yielded)

        def run() -> Any:
            value = invoke()
            return draw(value) if inspect.isgenerator(value) else value

        job = run if isinstance(backend, str) else self._job(run, draw)
        return Work(job, backend, self.policy.timeout, "timeout" in self.policy.given)

    def _job(self, run: Callable[[], Any], draw: Callable[[Generator[Any, Any, Any]], Any]) -> Job:
        invocation, plan = self.invocation, self.ready.plan
        return Job(
            self.call,
            self.ready.tool,
            self.policy,
            json_arguments=invocation.arguments,
            typed=plan.typed(invocation.values),
            emitter=invocation.emitter,
            token=invocation.token,
            shown=frozenset(plan.names) - invocation.presets.keys(),
            run=run,
            bind=partial(plan.bind, invocation.values, invocation),
            draw=draw,
        )

    def _may_retry(self, error: BaseException, attempt: int) -> bool:
        if attempt >= self.policy.max_attempts or self.token.cancelled:
            return False
        if is_cancellation(error) or isinstance(error, _FINAL):
            return False
        retried = self.policy.retry_on
        if isinstance(error, ToolError):  # what the tool has to say, unless the policy names it
            retried = tuple(kind for kind in retried if issubclass(kind, ToolError))
        if not isinstance(error, (*retried, AttemptTimeoutError)):
            return False
        hints = self.ready.tool.hints
        if isinstance(error, AttemptTimeoutError) and error.abandoned and not hints.idempotent:
            return False  # the abandoned thread may still be at work
        own = self.ready.tool.options.policy
        asked = own is not None and "max_attempts" in own.given
        return asked or not (hints.idempotent is False or hints.destructive is True)


def _invoked(plan: Any, values: tuple[Any, ...], invocation: Invocation) -> Any:
    return plan.invoke(values, plan.provide(invocation))


def _spread(delay: float) -> float:
    import random  # with hashlib behind it, which few programs need

    return random.uniform(0, delay)  # noqa: S311 - spreads load


def is_async(function: Any) -> bool:
    """Whether a function has to be awaited; `inspect` takes six times as long for a plain one."""
    code = getattr(function, "__code__", None)
    return bool(code.co_flags & inspect.CO_COROUTINE) if code is not None else inspect.iscoroutinefunction(function)
