"""The stages of one call, written once for event loops and plain code: approval, limits, middleware, attempts."""

from __future__ import annotations

import inspect
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping
from copy import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, final

from pegboard._base import effects
from pegboard._base.effects import AttemptTimeoutError, Io, Outcome, StaleError, is_async, is_cancellation
from pegboard._base.errors import MissingContextError, PegboardError, Suspend, ToolError
from pegboard._base.jsonable import owned
from pegboard._execution.engine import BoundTool, Engine, Unavailable
from pegboard._injection.invocation import Invocation
from pegboard._model.call import Unseen
from pegboard._model.policy import ExecutionPolicy, Permission
from pegboard._model.result import Status, ToolResult
from pegboard._model.subschemas import SCALARS
from pegboard._results.converters import drain, drain_async
from pegboard._results.factory import finished, redacted, shortened
from pegboard.extension import Job

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard._execution.concurrency import Permit
    from pegboard._model.program import ApprovalRequest


MAX_RETRIES_TOLD: Final = 100  # of one call, the last ones; a policy may ask for any number
MAX_TOLD: Final = 1_000  # characters of the error of each

# What no second attempt would change, or nobody wants one after.
_FINAL: Final = (Suspend, MissingContextError, PegboardError, KeyboardInterrupt)


@final
class CallStages:
    """One run of a call. `begin(io)` ends in its result and never raises for what a tool does."""

    __slots__ = (
        "_agreed",
        "_begun",
        "_engine",
        "_given",
        "_log",
        "_permit",
        "_results",
        "_said",
        "_sent",
        "_tries",
        "invocation",
        "policy",
        "ready",
        "token",
    )

    def __init__(self, engine: Engine, invocation: Invocation, policy: ExecutionPolicy) -> None:
        self._engine = engine
        self._results = engine.results
        self.invocation = invocation
        self.token = invocation.stopper  # stops the run; a tool gets a token of its own for each attempt
        self.ready: BoundTool = invocation.ready
        self.policy = policy
        self._given: Any = None  # what was provided for this attempt, if not where the function runs
        self._agreed: Any = None  # the definition of the tool that somebody agreed to, with these arguments
        self._permit: Permit | None = None  # what it holds while it runs
        self._sent = False  # whether a backend has got the arguments of this attempt
        self._tries = 0
        self._begun = 0  # how often the function has begun
        self._said: list[Any] = []  # what the tool has yielded in this attempt
        self._log: deque[Mapping[str, Any]] | None = None

    async def begin(self, io: Io) -> ToolResult:
        """Approval, locks, middleware, attempts; the result with its duration."""
        if self.ready.may_ask or self.token._cancelled or not self.invocation.session.holds(self.ready):
            refusal = await self._decide(io)
            if refusal is not None:
                return refusal
        return await (self._limited(io) if self.ready.limits else self._timed(io))

    def _unapproved(self) -> str | None:
        """Why somebody still has to agree to this call."""
        ready = self.ready
        if not ready.may_ask or self._agreed is ready.tool.definition:
            return None
        return ready.approval_reason(self.invocation.typed)

    async def _decide(self, io: Io) -> ToolResult | None:
        """Why the call may not run as things are now, its refusal; None if it may, with arguments as taken now."""
        session, refusal = self.invocation.session, None
        while refusal is None:
            if not session.holds(self.ready):
                refusal = self._bind(session.ready(self.ready.asked))
            elif (reason := self._unapproved()) is not None:
                refusal = await self._approve(io, reason)
            elif self.token._cancelled:
                refusal = self._cancelled()
            else:
                break
        return refusal

    def _bind(self, now: BoundTool | Unavailable) -> ToolResult | None:
        """Go on with the tool as it is now; the refusal if it cannot be called any more, or not so."""
        invocation = self.invocation
        if not isinstance(now, BoundTool):
            return self._results.refusal(invocation.said, *now)
        if now.permission is Permission.NEVER:
            return self._results.not_permitted(invocation.said)
        self.ready = invocation.ready = now
        invocation.presets = now.fresh_presets() if now.fresh else now.presets
        return self._engine.readmitted(invocation, None)

    async def late(self, io: Io, value: Any, error: BaseException | None, begun: int) -> ToolResult:
        """The same for a call of the fast path that has come to that, its function `begun`: what is left to do."""
        self._begun = begun
        return finished(await self._try(io, (value, error)), 0.0, self._begun, self._log or ())

    def _cancelled(self) -> ToolResult:
        return self._results.refusal(self.invocation.said, Status.CANCELLED, "cancelled", "the call was cancelled")

    async def _timed(self, io: Io) -> ToolResult:
        if self.invocation.seen is not None:
            self.invocation.seen.status = Status.RUNNING
        started = time.perf_counter()
        result = await (self._through(io, 0) if self.ready.middleware else self._try(io))
        return finished(result, time.perf_counter() - started, self._begun, self._log or ())

    # Approval --------------------------------------------------------------------------------------------------

    async def _approve(self, io: Io, reason: str) -> ToolResult | None:
        approver = self.invocation.session.approver
        if approver is None:
            told = "" if self.ready.permission is Permission.PROMPT else f" ({reason})"
            remedy = f'pass approver= to Toolkit or session, or toolkit.set_permission({self.ready.name!r}, "always")'
            return self._denied(f"it needs approval{told} and nobody is there to give it; go on without it", remedy)
        if self.invocation.seen is not None:
            self.invocation.seen.status = Status.AWAITING_APPROVAL
        call_id, shown = self.invocation.call_id, owned(self.invocation.arguments)
        ask = partial(approver, _approval_request()(self.ready.tool, call_id, shown, reason))
        if is_async(approver):
            answer, error = await self._idle(io.wait_for(ask))
        else:
            answer, error = await self._idle(io.work(ask, "thread"))
            if error is None and answer is not True and inspect.isawaitable(answer):
                answer, error = await self._idle(io.wait_for(lambda: answer))
        if self.token._cancelled or (error is not None and is_cancellation(error)):
            return self._cancelled()
        if error is not None:
            why = self._results.because(error, self.invocation.redact)
            return self._denied(f"asking for approval failed{why}", cause=error)
        self._agreed = self.ready.tool.definition
        refused = self._answered(answer)
        self._engine.tell("approval", {"answer": "approved" if refused is None else refused.status.value})
        return refused

    async def _idle(self, wait: Awaitable[Outcome]) -> Outcome:
        """Wait while the call has nothing running."""
        stats = self.ready.stats
        stats.waiting += 1
        try:
            return await wait
        finally:
            stats.waiting -= 1

    def _answered(self, answer: Any) -> ToolResult | None:
        # Read anew from what was shown: nothing that changed since then may run.
        if answer is True:
            fixed = self.invocation.seen is None and SCALARS.issuperset(map(type, self.invocation.values))
            return None if fixed else self._engine.readmitted(self.invocation, None)
        from pegboard._model.program import Approval

        if isinstance(answer, Approval) and answer.decision != "deny":
            return self._engine.readmitted(self.invocation, answer.arguments)
        if answer is False or isinstance(answer, Approval):
            return self._denied((answer and answer.reason) or "it was not approved")
        return self._denied("asking brought no answer", f"it returned {answer!r}, not True, False or an Approval")

    def _denied(self, why: str, remedy: str = "", cause: BaseException | None = None) -> ToolResult:
        details = {"remedy": remedy} if remedy else {}
        message = f"{self.invocation.call.name} was not run: {why}"
        return self._results.refusal(self.invocation.call, Status.DENIED, "denied", message, details, cause)

    # Limits and middleware --------------------------------------------------------------------------------------

    async def _limited(self, io: Io) -> ToolResult:
        limits = self._engine.limits
        try:
            permit = limits.take(self.ready.limits)
        except PegboardError as error:
            said = self.invocation.said
            return self._results.refusal(said, Status.ERROR, "deadlock", str(error), error.details, error)
        if permit is None:
            return await self._timed(io)
        try:
            if permit.turn is not None:
                if self.invocation.seen is not None:
                    self.invocation.seen.status = Status.PENDING
                refusal = await self._queued(io, permit, permit.turn)
                if refusal is not None:
                    return refusal
            limits.enter(permit)
            self._permit = permit
            return await self._timed(io)
        finally:
            limits.leave(permit)
            limits.enter(permit.above)

    async def _queued(self, io: Io, permit: Permit, turn: Future[None]) -> ToolResult | None:
        """Wait for the turn of a call, and no longer than its `timeout` for a thread that was abandoned."""
        while True:
            _, left = await self._idle(io.turn(turn, self.policy.timeout))
            if not isinstance(left, AttemptTimeoutError):
                return None if left is None else self._results.failure(self.invocation.said, left, attempts=0)
            if self._engine.limits.waits_for_abandoned(permit):
                name, labels = self.invocation.call.name, ", ".join(limit.label for limit in permit.limits)
                message = f"{name} was not run: a call before it timed out or was cancelled, and is still at work"
                details = {"waits_for": labels, "remedy": "let that tool end in time, or run it in a process"}
                return self._results.refusal(self.invocation.said, Status.ERROR, "held", message, details)

    def _inside(self, job: Callable[[], Any]) -> Callable[[], Any]:
        """A job in a thread, which keeps the permit of the call as long as it is at work."""
        permit = self._permit
        return job if permit is None else partial(self._engine.limits.run, permit, job)

    async def _through(self, io: Io, index: int) -> ToolResult:
        if index == len(self.ready.middleware):
            return redacted(await self._try(io), self.invocation.redact)
        middleware, call = self.ready.middleware[index], self.invocation.call
        awaited = is_async(middleware.around)
        inner = partial(self._through, index=index + 1)
        value, error = await io.around(middleware.around, call, inner, awaited=awaited)
        if error is not None:
            return self._results.failure(call, error, self.invocation.redact)
        if isinstance(value, ToolResult):
            # Another call's comes from a cache, for instance.
            if value.call_id == call.id:
                return value
            return self._results.success(call, value, self.ready.renderers, session=self.invocation.session)
        name = middleware.name or getattr(middleware.around, "__qualname__", "middleware")
        remedy = f"middleware {name!r} returned a {type(value).__name__}, not a ToolResult; it must return proceed()'s"
        message = f"what the program has put around {call.name} gave no result"
        return self._results.refusal(call, Status.ERROR, "middleware", message, {"remedy": remedy})

    # Attempts --------------------------------------------------------------------------------------------------

    async def _try(self, io: Io, outcome: Outcome | None = None) -> ToolResult:
        """Attempts until one is the last; `outcome` is what a first one has come to."""
        attempt = 0  # of this round: middleware may go on to a second one
        while True:
            if outcome is None:
                refusal = await self._anew(io)
                if refusal is not None:
                    return refusal
                plan = self.ready.plan
                provided = plan.managed or (plan.blocking and plan.kind.startswith("async"))
                outcome = await (self._provided(io) if provided else self._run(io, self.policy.timeout))
            value, error = outcome
            outcome = None
            if error is None and type(value) not in self.ready.renderers.by_type:  # those before were finished
                value, error = await self._settled(io, value, self.policy.timeout)
            if type(error) is StaleError:
                refusal = await self._decide(io)
                if refusal is not None:
                    return refusal
                continue
            attempt += 1
            self._tries += 1
            if isinstance(error, AttemptTimeoutError):
                self.invocation.end_attempt(effects.TIMED_OUT)  # an abandoned thread can see that nobody waits for it
            if error is None or not self._may_retry(error, attempt):
                return self._conclude(value, error)
            wait = self.policy.backoff(attempt)
            wait = max(_spread(wait) if self.policy.jitter else wait, _asked_for(error))
            self._log = self._log or deque(maxlen=MAX_RETRIES_TOLD)
            self._log.append(told := self._told(error, wait))
            self._engine.tell("retry", told)
            _, stopped = await self._idle(io.sleep(wait))
            if stopped is not None or self.token.cancelled:
                return self._cancelled()
            self._said = []

    async def _anew(self, io: Io) -> ToolResult | None:
        """Let an attempt have arguments and presets as they were sent, whatever one before it has made of them."""
        ready, invocation = self.ready, self.invocation
        if not SCALARS.issuperset(map(type, invocation.values)):
            if self._tries:
                refusal = self._engine.readmitted(invocation, None)
                if refusal is not None:
                    return refusal
            elif self.policy.max_attempts > 1 or ready.middleware:
                invocation.arguments = owned(invocation.arguments)  # the values are a part of the others
        if ready.fresh and self._tries:
            invocation.presets = {**invocation.presets, **ready.fresh_presets()}
        if not ready.computed or invocation.computed_for is ready:
            return None
        _, error = await io.work(invocation.compute, "thread", self.policy.timeout, interruptible=self._asked)
        if isinstance(error, AttemptTimeoutError) or (error is not None and is_cancellation(error)):
            return self._results.failure(invocation.said, error, invocation.redact, attempts=0)
        return None if error is None else self._engine.not_begun(invocation.said, ready, error)

    @property
    def _asked(self) -> bool:
        """Whether the timeout was asked for: then it holds in plain code too, which needs another thread."""
        return "timeout" in self.policy.given

    def _told(self, error: BaseException, wait: float) -> Mapping[str, Any]:
        """What a program learns of an attempt that was followed by another."""
        message = shortened(self._results.said(error, self.invocation.redact), MAX_TOLD)
        return {"attempt": self._tries, "type": type(error).__qualname__, "error": message, "wait": wait}

    async def _provided(self, io: Io) -> Outcome:
        """An attempt with what its injectors provide, and what they close afterwards, all within its time."""
        from pegboard._execution.providing import Budget, Providing

        plan, budget = self.ready.plan, Budget(self.policy.timeout)
        providing = Providing(io, self.invocation, budget, interruptible=self._asked)
        error: BaseException | None = None
        for provider in plan.managed:
            error = error or await providing.resolve(provider)
        if error is None and plan.blocking and plan.kind.startswith("async"):  # a worker provides for itself
            self._given, error = await providing.work(partial(plan.provide, self.invocation))
        outcome: Outcome = (None, error)
        if error is None:
            outcome = await self._run(io, budget.left())
            if outcome[1] is None:
                outcome = await self._settled(io, outcome[0], budget.left())
        failure = await providing.release()
        self._given = None
        return budget.named(outcome if failure is None or outcome[1] is not None else (None, failure))

    def _invoke(self, bind: bool = False) -> Any:
        """Begin the function, or `bind` what begins elsewhere. Raises `StaleError` if something was decided anew."""
        ready, invocation = self.ready, self.invocation
        # As `_unapproved` asks, without a frame for calls that have been agreed to.
        unapproved = ready.may_ask and self._agreed is not ready.tool.definition and self._unapproved() is not None
        if unapproved or self.token._cancelled or not invocation.session.holds(ready):
            raise StaleError
        plan = ready.plan
        if bind:
            bound = plan.bind(invocation.values, invocation)
            self._begun += not self._sent  # a backend may ask for them again, to say why they cannot be sent
            self._sent = True
            return bound
        provided = self._given or (plan.provide(invocation) if plan.fetches else invocation.presets)
        self._begun += 1
        return plan.invoke(invocation.values, provided)

    async def _run(self, io: Io, timeout: float | None) -> Outcome:
        """Run the function."""
        kind, backend, self._sent = self.ready.plan.kind, self.ready.backend, False
        if kind == "async":
            return await io.wait_for(self._invoke, timeout)
        if kind == "async_generator":
            return await io.wait_for(self._drained(self._invoke), timeout)
        job = (
            self._inside(self._invoke) if kind == "sync" and backend == "thread" else self._drawn(self._invoke, backend)
        )
        return await io.work(job, backend, timeout, interruptible=self._asked)

    async def _settled(self, io: Io, value: Any, timeout: float | None) -> Outcome:
        """Whatever a callable gives may still have to be awaited or drawn from, a wrapped async function's say."""
        if inspect.isawaitable(value):
            value, error = await io.wait_for(lambda: value, timeout)
            if error is not None:
                return None, error
        if inspect.isasyncgen(value):
            return await io.wait_for(self._drained(lambda: value), timeout)
        if inspect.isgenerator(value):
            job = self._drawn(lambda: value, "thread")
            return await io.work(job, "thread", timeout, interruptible=self._asked)
        return value, None

    def _drained(self, begin: Callable[[], Any]) -> Callable[[], Any]:
        emitter, yielded = self.invocation.heard, self._said
        return lambda: drain_async(begin(), emitter, yielded)

    def _conclude(self, value: Any, error: BaseException | None) -> ToolResult:
        if isinstance(error, effects.ClosedError) and self.token.cancelled:
            return self._cancelled()
        limit, session = self.ready.max_output, self.invocation.session
        if error is not None:
            failure = self._results.failure(self.invocation.said, error, self.invocation.redact)
            return self._results.with_partial(failure, self._said, limit, self.invocation.redact, session)
        return self._results.success(self.invocation.said, value, self.ready.renderers, limit, session)

    def _drawn(self, invoke: Callable[[], Any], backend: Any) -> Callable[[], Any]:
        """A job that runs the function and draws the generator that it may give."""
        invocation = self.invocation
        emitter, yielded = invocation.heard, self._said

        def draw(stream: Generator[Any, Any, Any]) -> Any:
            return drain(stream, emitter, invocation.token, yielded)

        def run() -> Any:
            value = invoke()
            return draw(value) if inspect.isgenerator(value) else value

        inside = self._inside(run)
        return inside if isinstance(backend, str) else self._job(inside, draw)

    def _job(self, run: Callable[[], Any], draw: Callable[[Generator[Any, Any, Any]], Any]) -> Job:
        invocation, plan = self.invocation, self.ready.plan
        unseen = Unseen(invocation.call_id, self.ready.name)
        return Job(
            self.invocation.call,
            self.ready.tool,
            self.policy,
            json_arguments=invocation.arguments,
            typed=plan.typed(invocation.values),
            emitter=invocation.emitter,
            token=invocation.token,
            shown=frozenset(plan.names) - invocation.presets.keys(),
            has_secrets=self.ready.redact is not None,
            run=run,
            arguments=partial(self._invoke, bind=True),
            draw=draw,
            # Copied as to another process, without the value. Who makes the call's own result cuts what is too long.
            result=lambda value: copy(self._results.success(unseen, value, self.ready.renderers, 1 << 62)),
            toolkit=invocation.session.toolkit,
        )

    def _may_retry(self, error: BaseException, attempt: int) -> bool:
        final = is_cancellation(error) or isinstance(error, _FINAL)
        if final or attempt >= self.policy.max_attempts or self.token.cancelled:
            return False
        retried = self.policy.retry_on
        if isinstance(error, ToolError):  # what the tool has to say, unless the policy names it
            retried = tuple(kind for kind in retried if issubclass(kind, ToolError))
        if not isinstance(error, (*retried, AttemptTimeoutError)):
            return False
        hints = self.ready.tool.hints
        if getattr(error, "abandoned", False) and not hints.idempotent:
            return False  # the abandoned thread may still be at work; a lost worker may have done its work
        if math.isinf(_asked_for(error)) or _asked_for(error) > self.policy.max_backoff:
            return False
        own = self.ready.tool.options.policy
        asked = own is not None and "max_attempts" in own.given
        return asked or not (hints.idempotent is False or hints.destructive is True)


@cache
def _approval_request() -> type[ApprovalRequest]:
    from pegboard._model.program import ApprovalRequest

    return ApprovalRequest


def _asked_for(error: BaseException) -> float:
    """The seconds that an exception's `retry_after` asks for, as servers do; infinity: no second attempt at all.

    Of an attempt whose time is up, what the tool's own cancellation came to.
    """
    asked = getattr(error.__cause__ if isinstance(error, AttemptTimeoutError) else error, "retry_after", None)
    return float(asked) if isinstance(asked, int | float) else 0.0


def _spread(delay: float) -> float:
    import random  # with hashlib behind it, which few programs need

    return random.uniform(0, delay)  # noqa: S311 - spreads load
