"""Ending: the one place where a call comes to its result, which is redacted, recorded, counted and logged."""

from __future__ import annotations

import sys
import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakSet

from pegboard._base.effects import cancellation, guarded, is_cancellation, is_interrupt
from pegboard._base.errors import Suspend
from pegboard._base.redaction import Redaction
from pegboard._execution.run import Run
from pegboard._execution.telemetry import INFO, Stats, log_call, logger
from pegboard._model.call import ToolCall
from pegboard._model.result import SUCCESS, Status, ToolResult, filled
from pegboard._results.factory import ResultFactory, finished, gathered, redacted

if TYPE_CHECKING:
    from pegboard._execution.timers import TaskGuard

_SUSPENDED: Final = Status.SUSPENDED  # a member of an enum is looked up slowly
_ERROR: Final = Status.ERROR

# Guards which thread runs a call: it is held for an instant, and a lock for each call would cost more.
#
# A signal handler may stop a call in between.
claims: Final = threading.RLock()
guarded(claims)


@final
class Ending:
    """Ends the calls of one toolkit, and knows those that are `suspended`."""

    __slots__ = ("_live", "_results", "_stats", "log", "shared", "suspended")

    def __init__(self, results: ResultFactory, stats: Stats, live: dict[Any, None]) -> None:
        self._results = results
        self._stats = stats
        self._live = live
        self.log: Any = None  # once `logging` is loaded
        self.suspended: dict[int, ToolCall] = {}  # by identity: ids come from models, and come twice
        self.shared: WeakSet[Any] = WeakSet()  # what other programs suspend and answer too

    def of(self, run: Run, result: ToolResult, gather: ToolCall | None = None) -> ToolResult:
        """End a call that has begun with its result, which may still have to `gather` what was added to the call."""
        ready, seconds, status = run.ready, result.duration, result.status
        if not seconds:
            seconds = perf_counter() - run.started
            finished(result, seconds)
        call = run.call if status is _SUSPENDED else run.seen
        if gather is not None and (gather.notes or gather.logs or gather.attachments):
            gathered(result, gather)
        redact = ready.redact and run.redact
        if redact is not None:
            redacted(result, redact)
        if call is not None:
            call.result, call.status = result, status
            if run.waiter is not None or status is _SUSPENDED:
                self.record(call, result)
            run.seen = None  # it holds the run in turn
        if run in self._live:
            run.ended()
        stats = ready.stats
        stats.open -= 1
        stats.calls += 1  # as `ToolStats.ended`, without its frame
        if status is not SUCCESS:
            stats.by_status[status] += 1
        stats.seconds += seconds
        stats.histogram[int(seconds * 1e6).bit_length()] += 1
        if self.log is None and "logging" in sys.modules:
            self.log = logger()  # a program may load `logging` late
        if self.log is not None and self.log.isEnabledFor(INFO):  # else not for DEBUG either
            log_call(result, redact)
        return result

    def raised(self, run: Run, error: BaseException, begun: int = 1) -> ToolResult:
        """End a call that has raised something, its function `begun` so often."""
        results = self._results
        if isinstance(error, Suspend):
            run.resume = error.resume
        if run.seen is None and run.ready.redact is None and not results.has_meaning(error):
            fault, text = results.told(error)  # failing must not cost much more
            seconds = perf_counter() - run.started
            return self.of(run, filled(run.call_id, run.name, _ERROR, text, None, fault, seconds, begun))
        return self.of(run, results.failure(run.called, error, run.redact, begun))

    def staying(self, run: Run, error: BaseException, guard: TaskGuard | None = None) -> BaseException:
        """The exception, where it is the outcome of the call; raises what leaves the call, which ends all the same.

        `guard` is what has cancelled the task in the name of the call, if it has.
        """
        leaving = is_interrupt(error)
        if not leaving and run.on_loop and is_cancelling() > (0 if guard is None else guard.expected):
            # The caller's own cancellation, whatever the tool made of it.
            leaving = is_cancellation(error)
            if not leaving and guard is not None:
                leaving, error = True, cancellation()
        if leaving:
            fault = "cancelled", "the caller was cancelled"
            self.of(run, self._results.refusal(run.called, Status.CANCELLED, *fault, exception=error))
            raise error
        return error

    def never(self, result: ToolResult, call: ToolCall | None = None, redact: Redaction | None = None) -> ToolResult:
        """End a call that has not begun: it took no time."""
        if call is not None:
            self.record(call, result)
            redact = None if call._state is None else call._state.redact
        if result.status is not Status.NOT_FOUND:  # names that models make up are without number
            self._stats.of(result.name).ended(result.status, result.duration)
        log_call(result, redact)
        return result

    def record(self, call: ToolCall, result: ToolResult) -> None:
        """Let a call, and those that wait for it, have its result."""
        call.result = result
        call.status = status = result.status
        if status is _SUSPENDED:
            self.suspended[id(call)] = call
        run: Run | None = call._state
        if run is not None and run.waiter is not None:  # one that begins to wait later looks at the result
            with claims:
                if not run.waiter.done():
                    run.waiter.set_result(result)


def is_cancelling() -> int:
    """How often the task that runs here was asked to end, and has not taken that back."""
    task = sys.modules["asyncio"].current_task()
    return task.cancelling() if task is not None else 0
