"""Execution: the steps of one call, written once for event loops and plain code."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, final

from pegboard._approval import Approval, ApprovalRequest
from pegboard._call import CancelToken, ToolCall
from pegboard._effects import (
    TIMED_OUT,
    Around,
    AttemptTimeoutError,
    Await,
    Outcome,
    Sleep,
    Steps,
    Turn,
    Work,
    is_cancellation,
)
from pegboard._errors import MissingContextError, PegboardError, Suspend
from pegboard._injection import release, resolve
from pegboard._invocation import Invocation
from pegboard._locks import Locks, Place
from pegboard._outcome import Outcomes, finished, redacted
from pegboard._policy import ExecutionPolicy
from pegboard._presets import secret_texts
from pegboard._ready import Ready
from pegboard._result import Status, ToolResult
from pegboard._streams import drain, drain_async

__all__ = ["Execution"]

# What no second attempt would change, or nobody wants one after.
_FINAL: Final = (Suspend, MissingContextError, PegboardError, KeyboardInterrupt)


@final
class Execution:
    """One run of a prepared call. `steps()` ends in its result and never raises for what a tool does."""

    def __init__(
        self,
        call: ToolCall,
        ready: Ready,
        values: tuple[Any, ...],
        invocation: Invocation,
        policy: ExecutionPolicy,
        outcomes: Outcomes,
        locks: Locks,
        readmit: Callable[[Any], tuple[Any, ...] | ToolResult],
    ) -> None:
        self.call = call
        self.ready = ready
        self.values = values
        self.invocation = invocation
        self.policy = policy
        self._outcomes = outcomes
        self._locks = locks
        self._readmit = readmit
        self._attempts = 0
        self.secrets = ready.secrets
        if ready.computed_secrets:
            self.secrets += secret_texts(invocation.presets[name] for name in ready.computed_secrets)

    @property
    def token(self) -> CancelToken:
        """Stops this run."""
        return self.invocation.token

    def steps(self) -> Steps:
        """Approval, locks, middleware, attempts; the result with its duration."""
        refusal = yield from self._approve()
        if refusal is not None:
            return refusal
        if self.token.cancelled:
            return self._cancelled()
        self.call.status = Status.RUNNING
        names = self._locks.missing(self.ready.locks)
        result = yield from (self._locked(names) if names else self._timed())
        return result

    def _cancelled(self) -> ToolResult:
        return self._outcomes.refusal(self.call, Status.CANCELLED, "cancelled", "the call was cancelled")

    def _timed(self) -> Steps:
        started = time.perf_counter()
        result = yield from self._through(0)
        return finished(result, time.perf_counter() - started, max(self._attempts, 1))

    # Approval --------------------------------------------------------------------------------------------------

    def _approve(self) -> Steps:
        reason = self.ready.approval_reason(self.call.typed)
        if reason is None:
            return None
        approver = self.invocation.session.approver
        if approver is None:
            return self._denied(
                "it needs approval and nobody can give it",
                f'pass approver= to Toolkit or session, or toolkit.set_permission({self.call.name!r}, "always")',
            )
        self.call.status = Status.AWAITING_APPROVAL
        request = ApprovalRequest(self.ready.tool, self.call.id, dict(self.call.arguments), reason)
        answer, error = yield from self._ask(approver, request)
        if self.token.cancelled or (error is not None and is_cancellation(error)):
            return self._cancelled()
        if error is not None:
            return self._denied(f"asking for approval failed{self._outcomes.because(error, self.secrets)}", cause=error)
        return self._answered(answer)

    def _ask(self, approver: Callable[[ApprovalRequest], Any], request: ApprovalRequest) -> Steps:
        if inspect.iscoroutinefunction(approver):
            return (yield Await(lambda: approver(request)))
        answer, error = yield Work(lambda: approver(request))
        if error is None and inspect.isawaitable(answer):
            return (yield Await(lambda: answer))
        return answer, error

    def _answered(self, answer: Any) -> ToolResult | None:
        if answer is True:
            return None
        if isinstance(answer, Approval) and answer.decision == "approve":
            return None
        if isinstance(answer, Approval) and answer.decision == "edit":
            admitted = self._readmit(answer.arguments)
            if isinstance(admitted, ToolResult):
                return admitted
            self.values = admitted
            return None
        if answer is False or isinstance(answer, Approval):
            why = answer.reason if isinstance(answer, Approval) else ""
            return self._denied(why or "it was not approved")
        return self._denied("the approver gave no answer", f"it returned {answer!r}, not True, False or an Approval")

    def _denied(self, why: str, remedy: str = "", cause: BaseException | None = None) -> ToolResult:
        details = {"remedy": remedy} if remedy else {}
        message = f"{self.call.name} was not run: {why}{f' (to allow it: {remedy})' if remedy else ''}"
        return self._outcomes.refusal(self.call, Status.DENIED, "denied", message, details, cause)

    # Locks and middleware --------------------------------------------------------------------------------------

    def _locked(self, names: list[str]) -> Steps:
        taken: list[tuple[str, Place]] = []
        token = None
        try:
            for name in names:
                place = self._locks.take(name)
                taken.append((name, place))
                if place.turn is not None:
                    _, error = yield Turn(place.turn, place.behind)
                    if error is not None:
                        return self._outcomes.failure(self.call, error)
            token = self._locks.hold(names)
            return (yield from self._timed())
        finally:
            if token is not None:
                self._locks.release(token)
            for name, place in reversed(taken):
                self._locks.leave(name, place)

    def _through(self, index: int) -> Steps:
        if index == len(self.ready.middleware):
            return (yield from self._try())
        middleware = self.ready.middleware[index]
        is_async = inspect.iscoroutinefunction(middleware.around)
        value, error = yield Around(middleware.around, self.call, lambda: self._through(index + 1), is_async)
        if error is not None:
            return self._outcomes.failure(self.call, error, self.secrets)
        if isinstance(value, ToolResult):
            foreign = value.call_id != self.call.id  # from a cache, for instance
            return self._outcomes.success(self.call, value, self.ready.renderers) if foreign else value
        name = middleware.name or getattr(middleware.around, "__qualname__", "middleware")
        message = f"middleware {name!r} returned a {type(value).__name__}, not a ToolResult; it must return proceed()'s"
        return self._outcomes.refusal(self.call, Status.ERROR, "middleware", message)

    # Attempts --------------------------------------------------------------------------------------------------

    def _try(self) -> Steps:
        while True:
            self._attempts += 1
            value, error = yield from self._attempt()
            if error is None or not self._retries(error, self._attempts):
                return self._conclude(value, error)
            delay = self.policy.backoff(self._attempts)
            _, stopped = yield Sleep(_spread(delay) if self.policy.jitter else delay)
            if stopped is not None or self.token.cancelled:
                return self._cancelled()

    def _attempt(self) -> Steps:
        cleanup: list[Any] = []
        outcome: Outcome = (None, None)
        try:
            for provider in self.ready.plan.managed:
                yield from resolve(provider, self.invocation, cleanup)
            outcome = yield from self._perform()
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - a resolver may raise anything
            outcome = (None, error)
        try:
            yield from release(cleanup)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - as above; the tool's own failure comes first
            outcome = outcome if outcome[1] is not None else (None, error)
        self.invocation.resolved.clear()
        return outcome

    def _perform(self) -> Steps:
        invoke = partial(self.ready.invoke, self.values, self.invocation)
        timeout = self.policy.timeout
        if self.ready.plan.kind == "async":
            value, error = yield Await(invoke, timeout)
        elif self.ready.plan.kind == "async_generator":
            return (yield Await(lambda: drain_async(invoke(), self.invocation.emitter), timeout))
        else:
            value, error = yield self._work(invoke)
        return (None, error) if error is not None else (yield from self._settled(value))

    def _settled(self, value: Any) -> Steps:
        """Whatever a callable gives may still have to be awaited or drawn from, a wrapped async function's say."""
        timeout = self.policy.timeout
        if inspect.isawaitable(value):
            pending = value
            value, error = yield Await(lambda: pending, timeout)
            if error is not None:
                return None, error
        if inspect.isasyncgen(value):
            stream = value
            return (yield Await(lambda: drain_async(stream, self.invocation.emitter), timeout))
        if inspect.isgenerator(value):
            return (yield self._work(lambda: value))
        return value, None

    def late_steps(self, value: Any) -> Steps:
        """Finish a straight call whose function returned something that is not finished yet."""
        self._attempts = 1
        value, error = yield from self._settled(value)
        return self._conclude(value, error)

    def _conclude(self, value: Any, error: BaseException | None) -> ToolResult:
        if isinstance(error, AttemptTimeoutError):
            self.token.cancel(TIMED_OUT)  # an abandoned thread can see that nobody waits for it
        if error is not None:
            return redacted(self._outcomes.failure(self.call, error, self.secrets), self.secrets)
        result = self._outcomes.success(self.call, value, self.ready.renderers, self.ready.tool.options.max_output)
        return redacted(result, self.secrets)

    def _work(self, invoke: Callable[[], Any]) -> Work:
        emitter, token = self.invocation.emitter, self.token

        def job() -> Any:
            value = invoke()
            return drain(value, emitter, token) if inspect.isgenerator(value) else value

        return Work(job, self.ready.backend, self.policy.timeout, "timeout" in self.policy.given)

    def _retries(self, error: BaseException, attempt: int) -> bool:
        if attempt >= self.policy.max_attempts or self.token.cancelled:
            return False
        if is_cancellation(error) or isinstance(error, _FINAL):
            return False
        if not isinstance(error, (*self.policy.retry_on, AttemptTimeoutError)):
            return False
        hints = self.ready.tool.hints
        if isinstance(error, AttemptTimeoutError) and error.abandoned and not hints.idempotent:
            return False  # the abandoned thread may still be at work
        own = self.ready.tool.options.policy
        asked = own is not None and "max_attempts" in own.given
        return asked or not (hints.idempotent is False or hints.destructive is True)


def _spread(delay: float) -> float:
    import random  # with hashlib behind it, which few programs need

    return random.uniform(0, delay)  # noqa: S311 - spreads load
