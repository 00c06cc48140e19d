"""The stages of one call, written once for event loops and plain code: approval, limits, middleware, attempts.

Each is a coroutine over the run and the `Io` that it waits by, and ends in a result: none raises for what a tool does.
"""

from __future__ import annotations

import inspect
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pegboard._base import effects
from pegboard._base.effects import (
    AttemptTimeoutError,
    Io,
    Outcome,
    StaleError,
    is_async,
    is_cancellation,
    pass_interrupt,
)
from pegboard._base.errors import MissingContextError, PegboardError, Suspend, ToolError, describe_exception
from pegboard._base.jsonable import owned
from pegboard._execution.bound import BoundTool, Unavailable
from pegboard._execution.run import Run, admit_again, not_provided
from pegboard._model.call import Unseen
from pegboard._model.policy import Permission
from pegboard._model.result import Status, ToolResult
from pegboard._model.subschemas import SCALARS
from pegboard._results.converters import drain, drain_async
from pegboard._results.factory import finished, redacted, shortened
from pegboard.extension import Job, Verdict

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pegboard._execution.concurrency import Permit


MAX_RETRIES_KEPT: Final = 100
"""Of one call, the last ones; a policy may ask for any number."""

MAX_REPORTED: Final = 1_000
"""Characters of the error of each attempt that was followed by another."""

_SILENT: Final = Verdict()

# What no second attempt would change, or must not be followed by one.
_FINAL: Final = (Suspend, MissingContextError, PegboardError, KeyboardInterrupt)


async def begin(run: Run, io: Io) -> ToolResult:
    """Approval, limits, middleware, attempts; the result with its duration."""
    run.yielded = []
    ready = run.ready
    if ready.may_ask or ready.checks or run._cancelled or not run.session.holds(ready):
        refusal = await _decide(run, io)
        if refusal is not None:
            return refusal
    return await (_limited(run, io) if run.ready.limits else _timed(run, io))


async def late(run: Run, io: Io, value: Any, error: BaseException | None) -> ToolResult:
    """What is left to do for a call of the straight road whose function has come to that."""
    run.yielded = []
    return finished(await _attempts(run, io, (value, error)), 0.0, run.begun, run.retries or ())


async def resumed(run: Run, io: Io, resume: Callable[[Any], Any], value: Any) -> ToolResult:
    """What a suspended call comes to with its answer, of which `resume` makes its result."""
    run.yielded, timeout, answer = [], run.policy.timeout, partial(resume, value)
    if is_async(resume):
        made, error = await io.wait_for(answer, timeout)
    else:
        backend = "inline" if run.ready.backend == "inline" else "thread"
        made, error = await io.work(answer, backend, timeout, interruptible=run.timeout_counts)
    if error is None:
        made, error = await _settled(run, io, made, timeout)
    return _concluded(run, made, error)


async def _timed(run: Run, io: Io) -> ToolResult:
    if run.seen is not None:
        run.seen.status = Status.RUNNING
    started = time.perf_counter()
    result = await (_through(run, 0, io) if run.ready.middleware else _attempts(run, io))
    return finished(result, time.perf_counter() - started, run.begun, run.retries or ())


def _refusal(run: Run, status: Status, kind: str, message: str, *facts: Any) -> ToolResult:
    return run.engine.results.refusal(run.called, status, kind, message, *facts)


def _cancelled(run: Run) -> ToolResult:
    return _refusal(run, Status.CANCELLED, "cancelled", "the call was cancelled")


async def _idle(run: Run, wait: Awaitable[Outcome]) -> Outcome:
    """Wait while the call has nothing running."""
    stats = run.ready.stats
    stats.waiting += 1
    try:
        return await wait
    finally:
        stats.waiting -= 1


# Deciding ------------------------------------------------------------------------------------------------------------


async def _decide(run: Run, io: Io) -> ToolResult | None:
    """Why the call may not run as things are now, its refusal; None if it may, with arguments as taken now."""
    refusal = None
    while refusal is None:
        if not run.session.holds(run.ready):
            refusal = _bind(run, run.session.ready(run.ready.asked))
        elif run._cancelled:
            refusal = _cancelled(run)
        elif run.ready.checks and run.judged is not run.arguments:
            refusal = await _judge(run, io)
        elif (reason := _unapproved(run)) is not None:
            refusal = await _approve(run, io, reason)
        else:
            break
    return refusal


def _unapproved(run: Run) -> str | None:
    """Why this call still has to be approved."""
    ready = run.ready
    if not ready.may_ask or run.agreed is ready.tool.definition:
        return None
    return ready.approval_reason(run)


def _bind(run: Run, now: BoundTool | Unavailable) -> ToolResult | None:
    """Go on with the tool as it is now; the refusal if it cannot be called any more, or not so."""
    engine = run.engine
    if not isinstance(now, BoundTool):
        return engine.results.refusal(run.called, *now)
    if now.permission is Permission.NEVER:
        return engine.results.not_permitted(run.called)
    run.ready = now
    run.presets = now.fresh_presets() if now.fresh else now.presets
    return admit_again(run)


async def _judge(run: Run, io: Io) -> ToolResult | None:
    """Ask the guards about the call with these arguments: its refusal, None if it may run or they are new now."""
    run.judged = run.arguments
    for check in run.ready.checks:
        try:
            verdict = _SILENT if (found := check(run.call)) is None else found
            denied = not verdict.offered or verdict.permission is Permission.NEVER
        except BaseException as error:  # noqa: BLE001 - a call that cannot be judged does not run
            pass_interrupt(error)
            verdict, denied = Verdict(reason=f"a guard failed: {describe_exception(error)}"), True
        if denied:
            run.engine.tell("denial", {"by": "guard"})
            return _denied(run, verdict.message, verdict.reason)
        if verdict.permission is Permission.PROMPT and run.agreed is not run.ready.tool.definition:
            refusal = await _approve(run, io, verdict.reason or f"a policy asks about {run.name}", private=True)
            if refusal is not None or run.judged is not run.arguments:
                return refusal
    return None


async def _approve(run: Run, io: Io, reason: str, *, private: bool = False) -> ToolResult | None:
    ready, approver = run.ready, run.session.approver
    if approver is None:
        shown_reason = "" if private or ready.permission is Permission.PROMPT else f" ({reason})"
        remedy = f'pass approver= to Toolkit or session, or toolkit.set_permission({ready.name!r}, "always")'
        return _denied(run, f"it needs approval{shown_reason}, which cannot be given here; go on without it", remedy)
    if run.seen is not None:
        run.seen.status = Status.AWAITING_APPROVAL
    from pegboard._model.program import ApprovalRequest

    request = ApprovalRequest(ready.tool, run.call_id, owned(run.arguments), reason, session=run.session)
    ask = partial(approver, request)
    if is_async(approver):
        answer, error = await _idle(run, io.wait_for(ask))
    else:
        answer, error = await _idle(run, io.work(ask, "thread"))
        if error is None and answer is not True and inspect.isawaitable(answer):
            answer, error = await _idle(run, io.wait_for(lambda: answer))
    if run._cancelled or (error is not None and is_cancellation(error)):
        return _cancelled(run)
    engine = run.engine
    if error is not None:
        return _denied(run, f"asking for approval failed{engine.results.because(error, run.redact)}", cause=error)
    run.agreed = run.ready.tool.definition
    refused = _answered(run, answer)
    engine.tell("approval", {"answer": "approved" if refused is None else refused.status.value})
    return refused


def _answered(run: Run, answer: Any) -> ToolResult | None:
    # Read anew from what was shown: nothing that changed since then may run.
    if answer is True:
        fixed = run.seen is None and SCALARS.issuperset(map(type, run.values))
        return None if fixed else admit_again(run)
    from pegboard._model.program import Approval

    if isinstance(answer, Approval) and answer.decision != "deny":
        return admit_again(run, answer.arguments)
    if answer is False or isinstance(answer, Approval):
        return _denied(run, (answer and answer.reason) or "it was not approved")
    return _denied(run, "asking brought no answer", f"it returned {answer!r}, not True, False or an Approval")


def _denied(run: Run, why: str, remedy: str = "", cause: BaseException | None = None) -> ToolResult:
    details = {"remedy": remedy} if remedy else {}
    return _refusal(run, Status.DENIED, "denied", f"{run.name} was not run: {why}", details, cause)


# Limits and middleware -----------------------------------------------------------------------------------------------


async def _limited(run: Run, io: Io) -> ToolResult:
    limits = run.engine.limits
    try:
        permit = limits.take(run.ready.limits)
    except PegboardError as error:
        return _refusal(run, Status.ERROR, "deadlock", str(error), error.details, error)
    if permit is None:
        return await _timed(run, io)
    try:
        if permit.turn is not None:
            if run.seen is not None:
                run.seen.status = Status.PENDING
            refusal = await _queued(run, io, permit, permit.turn)
            if refusal is not None:
                return refusal
        limits.enter(permit)
        run.permit = permit
        return await _timed(run, io)
    finally:
        limits.leave(permit)
        limits.enter(permit.above)


async def _queued(run: Run, io: Io, permit: Permit, turn: Future[None]) -> ToolResult | None:
    """Wait for the turn of a call, and no longer than its `timeout` for a thread that was abandoned."""
    engine = run.engine
    while True:
        _, left = await _idle(run, io.turn(turn, run.policy.timeout))
        if not isinstance(left, AttemptTimeoutError):
            return None if left is None else engine.results.failure(run.called, left, attempts=0)
        if engine.limits.waits_for_abandoned(permit):
            labels = ", ".join(limit.label for limit in permit.limits)
            message = f"{run.name} was not run: a call before it timed out or was cancelled, and is still at work"
            details = {"waits_for": labels, "remedy": "let that tool end in time, or run it in a process"}
            return _refusal(run, Status.ERROR, "held", message, details)


async def _through(run: Run, index: int, io: Io) -> ToolResult:
    """Go through the middleware from that one on."""
    results = run.engine.results
    if index == len(run.ready.middleware):
        return redacted(await _attempts(run, io), run.redact)
    middleware, call = run.ready.middleware[index], run.call
    value, error = await io.around(middleware.around, call, partial(_through, run, index + 1))
    if error is not None:
        return results.failure(call, error, run.redact)
    if isinstance(value, ToolResult):
        # Another call's comes from a cache, for instance.
        ours = value.call_id == call.id
        return value if ours else results.success(call, value, run.ready.renderers, session=run.session)
    name = middleware.name or getattr(middleware.around, "__qualname__", "middleware")
    remedy = f"middleware {name!r} returned a {type(value).__name__}, not a ToolResult; it must return proceed()'s"
    message = f"what the program has put around {call.name} gave no result"
    return _refusal(run, Status.ERROR, "middleware", message, {"remedy": remedy})


# Attempts ------------------------------------------------------------------------------------------------------------


async def _attempts(run: Run, io: Io, outcome: Outcome | None = None) -> ToolResult:
    """Attempts until one is the last; `outcome` is what a first one has come to."""
    attempt = 0  # of this round: middleware may go on to a second one
    while True:
        if outcome is None:
            ready = run.ready
            refusal = _anew(run, ready)
            if refusal is None and ready.computed and run.computed_for is not ready:
                refusal = await _computed(run, io)
            if refusal is not None:
                return refusal
            plan = ready.plan
            provided = plan.managed or (plan.blocking and plan.kind.startswith("async"))
            outcome = await (_provided(run, io) if provided else _function(run, io, run.policy.timeout))
        value, error = outcome
        outcome = None
        if error is None and type(value) not in run.ready.renderers.by_type:  # those before were finished
            value, error = await _settled(run, io, value, run.policy.timeout)
        if type(error) is StaleError:
            refusal = await _decide(run, io)
            if refusal is not None:
                return refusal
            continue
        attempt += 1
        run.attempted(error)
        if error is None or not _may_retry(run, error, attempt):
            return _concluded(run, value, error)
        wait = run.policy.backoff(attempt)
        wait = max(_spread(wait) if run.policy.jitter else wait, _asked_for(error))
        _note_retry(run, error, wait)
        _, stopped = await _idle(run, io.sleep(wait))
        if stopped is not None or run._cancelled:
            return _cancelled(run)
        run.yielded = []


def _anew(run: Run, ready: BoundTool) -> ToolResult | None:
    """Let an attempt have arguments and presets as they were sent, whatever one before it has made of them."""
    if not SCALARS.issuperset(map(type, run.values)):
        if run.tries:
            refusal = admit_again(run)
            if refusal is not None:
                return refusal
        elif run.policy.max_attempts > 1 or ready.middleware:
            run.arguments = owned(run.arguments)  # the values are a part of the arguments
    if ready.fresh and run.tries:
        run.presets = {**run.presets, **ready.fresh_presets()}
    return None


async def _computed(run: Run, io: Io) -> ToolResult | None:
    """Compute the presets of a call; its refusal where one cannot be had."""
    _, error = await io.work(run.compute, "thread", run.policy.timeout, interruptible=run.timeout_counts)
    if isinstance(error, AttemptTimeoutError) or (error is not None and is_cancellation(error)):
        return run.engine.results.failure(run.called, error, run.redact, attempts=0)
    return None if error is None else not_provided(run.engine, run.called, run.ready, error)


def _note_retry(run: Run, error: BaseException, wait: float) -> None:
    """Keep what a program learns of an attempt that is followed by another, and tell of it."""
    message = shortened(run.engine.results.said(error, run.redact), MAX_REPORTED)
    retry = {"attempt": run.tries, "type": type(error).__qualname__, "error": message, "wait": wait}
    run.retries = run.retries or deque(maxlen=MAX_RETRIES_KEPT)
    run.retries.append(retry)
    run.engine.tell("retry", retry)


async def _provided(run: Run, io: Io) -> Outcome:
    """An attempt with what its injectors provide, and what they close afterwards, all within its time."""
    from pegboard._execution.providing import Budget, Providing

    plan, budget = run.ready.plan, Budget(run.policy.timeout)
    providing = Providing(io, run, budget, interruptible=run.timeout_counts)
    error: BaseException | None = None
    for provider in plan.managed:
        error = error or await providing.resolve(provider)
    if error is None and plan.blocking and plan.kind.startswith("async"):  # a worker provides for itself
        run.provided, error = await providing.work(partial(plan.provide, run))
    outcome: Outcome = (None, error)
    if error is None:
        outcome = await _function(run, io, budget.left())
        if outcome[1] is None:
            outcome = await _settled(run, io, outcome[0], budget.left())
    failure = await providing.release()
    run.provided = None
    return budget.named(outcome if failure is None or outcome[1] is not None else (None, failure))


def _invoke(run: Run, bind: bool = False) -> Any:
    """Begin the function, or `bind` what begins elsewhere. Raises `StaleError` if something was decided anew."""
    ready = run.ready
    # As `_unapproved` asks, without a frame for calls that have been agreed to.
    unapproved = ready.may_ask and run.agreed is not ready.tool.definition and _unapproved(run) is not None
    if unapproved or run._cancelled or not run.session.holds(ready):
        raise StaleError
    plan = ready.plan
    if bind:
        bound = plan.bind(run.values, run)
        run.begun += not run.sent  # a backend may ask for them again, to say why they cannot be sent
        run.sent = True
        return bound
    provided = run.provided or (plan.provide(run) if plan.fetches else run.presets)
    run.begun += 1
    return plan.invoke(run.values, provided)


async def _function(run: Run, io: Io, timeout: float | None) -> Outcome:
    """Run the function."""
    kind, backend, run.sent = run.ready.plan.kind, run.ready.backend, False
    begin = partial(_invoke, run)
    if kind == "async":
        return await io.wait_for(begin, timeout)
    if kind == "async_generator":
        return await io.wait_for(_drained(run, begin), timeout)
    job = _inside(run, begin) if kind == "sync" and backend == "thread" else _drawn(run, begin, backend)
    return await io.work(job, backend, timeout, interruptible=run.timeout_counts)


async def _settled(run: Run, io: Io, value: Any, timeout: float | None) -> Outcome:
    """Whatever a callable gives may still have to be awaited or drawn from, a wrapped async function's say."""
    if inspect.isawaitable(value):
        value, error = await io.wait_for(lambda: value, timeout)
        if error is not None:
            return None, error
    if inspect.isasyncgen(value):
        return await io.wait_for(_drained(run, lambda: value), timeout)
    if inspect.isgenerator(value):
        job = _drawn(run, lambda: value, "thread")
        return await io.work(job, "thread", timeout, interruptible=run.timeout_counts)
    return value, None


def _concluded(run: Run, value: Any, error: BaseException | None) -> ToolResult:
    if isinstance(error, effects.ClosedError) and run._cancelled:
        return _cancelled(run)
    results, limit = run.engine.results, run.ready.max_output
    if isinstance(error, Suspend):
        run.resume = error.resume
    if error is not None:
        failure = results.failure(run.called, error, run.redact)
        return results.with_partial(failure, run.yielded, limit, run.redact, run.session)
    return results.success(run.called, value, run.ready.renderers, limit, run.session)


def _inside(run: Run, job: Callable[[], Any]) -> Callable[[], Any]:
    """A job in a thread, which keeps the permit of the call as long as it is at work."""
    return job if run.permit is None else partial(run.engine.limits.run, run.permit, job)


def _drained(run: Run, begin: Callable[[], Any]) -> Callable[[], Any]:
    emitter, yielded = run.heard, run.yielded
    return lambda: drain_async(begin(), emitter, yielded)


def _drawn(run: Run, invoke: Callable[[], Any], backend: Any) -> Callable[[], Any]:
    """A job that runs the function and draws the generator that it may give."""
    emitter, yielded = run.heard, run.yielded

    def draw(stream: Generator[Any, Any, Any]) -> Any:
        return drain(stream, emitter, run.token, yielded)

    def work() -> Any:
        value = invoke()
        return draw(value) if inspect.isgenerator(value) else value

    inside = _inside(run, work)
    return inside if isinstance(backend, str) else _job(run, inside, draw)


def _job(run: Run, work: Callable[[], Any], draw: Callable[[Generator[Any, Any, Any]], Any]) -> Job:
    ready, plan, results = run.ready, run.ready.plan, run.engine.results
    unseen = Unseen(run.call_id, ready.name)
    return Job(
        run.call,
        ready.tool,
        run.policy,
        json_arguments=run.arguments,
        typed=plan.typed(run.values),
        emitter=run.emitter,
        token=run.token,
        shown=frozenset(plan.names) - run.presets.keys(),
        has_secrets=ready.redact is not None,
        run=work,
        arguments=partial(_invoke, run, bind=True),
        draw=draw,
        # Copied as to another process, without the value. Who makes the call's own result cuts what is too long.
        result=lambda value: copy(results.success(unseen, value, ready.renderers, 1 << 62)),
        toolkit=run.session.toolkit,
    )


def _may_retry(run: Run, error: BaseException, attempt: int) -> bool:
    final = is_cancellation(error) or isinstance(error, _FINAL)
    if final or attempt >= run.policy.max_attempts or run._cancelled:
        return False
    retried = run.policy.retry_on
    if isinstance(error, ToolError):  # what the tool has to say, unless the policy names it
        retried = tuple(kind for kind in retried if issubclass(kind, ToolError))
    if not isinstance(error, (*retried, AttemptTimeoutError)):
        return False
    hints = run.ready.tool.hints
    if getattr(error, "abandoned", False) and not hints.idempotent:
        return False  # the abandoned thread may still be at work; a lost worker may have done its work
    if math.isinf(_asked_for(error)) or _asked_for(error) > run.policy.max_backoff:
        return False
    own = run.ready.tool.options.policy
    asked = own is not None and "max_attempts" in own.given
    return asked or not (hints.idempotent is False or hints.destructive is True)


def _asked_for(error: BaseException) -> float:
    """The seconds that an exception's `retry_after` asks for, as servers do; infinity: no second attempt at all.

    Of an attempt whose time is up, what the tool's own cancellation came to.
    """
    asked = getattr(error.__cause__ if isinstance(error, AttemptTimeoutError) else error, "retry_after", None)
    return float(asked) if isinstance(asked, int | float) else 0.0


def _spread(delay: float) -> float:
    import random  # with hashlib behind it, which few programs need

    return random.uniform(0, delay)  # noqa: S311 - spreads load
