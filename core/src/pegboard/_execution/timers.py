"""Deadlines of what an event loop waits for, with one timer for all of them; and who cancels a task.

A timer for each call takes a quarter of the whole way to a worker thread and back, and nearly none ever rings. That of
a coroutine is set only when it first suspends: most never do.
"""

from __future__ import annotations

import asyncio
import math
import threading
import types
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias, final
from weakref import WeakKeyDictionary

from pegboard._base.effects import TIMED_OUT, AttemptTimeoutError, running_loop
from pegboard._execution.threads import Ticket

# Seconds that a coroutine has to end after it was cancelled. Counted in steps, which take longer where a machine is so
# busy that the loop hardly runs.
GRACE: Final = 2.0
_STEPS: Final = 4
_STEP: Final = GRACE / _STEPS


@final
class JobWait(Ticket):
    """A job that a task waits for, `timeout` seconds at most after a worker began it; queueing does not count.

    Its task takes it for a future, as `asyncio.isfuture` does, and goes on with the `outcome`. What has ended the job
    wakes the task itself: a future would take another turn of the loop, which is a fifth of the whole way.
    """

    loop: asyncio.AbstractEventLoop  # of the task
    timeout: float | None = None
    live: dict[Any, None] | None = None  # where it is found by what cancels all jobs
    _asyncio_future_blocking = True  # as of a future that is awaited
    _callback: Any
    _context: Any
    _timers: Timers | None = None

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the task."""
        return self.loop

    def add_done_callback(self, callback: Callable[[JobWait], object], *, context: Any) -> None:
        """Begin, for the task sleeps now: while its thread goes on, the worker waits for the interpreter."""
        self._callback, self._context = callback, context
        if self.timeout is not None:
            self._timers = timers_of(self.loop)
            self._timers.set(self.loop, self, self.timeout)
        if self.live is not None:
            self.live[self] = None
        try:
            self.pool.submit(self)
        except BaseException as error:  # noqa: BLE001 - a plugin's backend may raise anything
            self.give_up(error)

    def tell(self) -> None:
        """Wake the task."""
        # In its own thread the loop need not wake.
        soon = self.loop.call_soon if running_loop() is self.loop else self.loop.call_soon_threadsafe
        with suppress(RuntimeError):  # the loop is closed: no task waits any more
            soon(self._callback, self, context=self._context)

    def result(self) -> None:
        """Nothing is raised in the task; it looks at the outcome."""

    def cancel(self, msg: Any = None) -> bool:
        """Give the job up, as cancelled; from any thread."""
        error = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        ended = self.pool.abandon(self, error, relieve=False)
        if ended:
            self.tell()
            # A turn of the loop later: who cancels many calls at once cancels those that queue too, and none begins.
            try:
                self.loop.call_soon_threadsafe(self.pool.relieve)
            except RuntimeError:  # the loop is closed
                self.pool.relieve()
        return ended

    def ring(self) -> float:
        """The job is given up if its time is up; from any thread, for the loop may stand still."""
        left = (self.timeout or 0.0) - self.elapsed()
        if left <= 0:
            self.give_up(AttemptTimeoutError(self.timeout or 0.0, abandoned=True))
        return max(left, 0.0)

    def close(self) -> None:
        """The task waits no longer."""
        if self.outcome is None:  # the task goes another way
            self.pool.abandon(self)
        if self._timers is not None:
            self._timers.forget(self)
        if self.live is not None:
            self.live.pop(self, None)


@final
class AbandonedTasks(set["asyncio.Task[Any]"]):
    """The tasks that did not end when they were cancelled, as long as they go on; `count` is how many there were."""

    count = 0

    def leave(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Wait no longer for these."""
        for task in tasks:
            self.count += 1
            self.add(task)
            task.add_done_callback(self.discard)


@final
class TaskGuard:
    """Cancels the current task, when its time is up or when it is stopped, and takes that cancellation back.

    So the caller's own cancellation can be told from these, as `asyncio.timeout` tells it. A coroutine that is waited
    for then has `GRACE` seconds to end before it is given up.
    """

    __slots__ = ("_abandoned", "_given_up", "_patience", "cancels", "expected", "late", "task", "timeout", "waits")

    def __init__(self, abandoned: AbandonedTasks) -> None:
        self._abandoned = abandoned
        self.task: Any = asyncio.current_task()
        self.expected = self.task.cancelling() if self.task else 0
        self.timeout = 0.0
        self.waits = False  # for a coroutine
        self.cancels = 0  # those of ours that are not yet taken back
        self._patience = 0
        self.late = self._given_up = False

    def ring(self) -> float:
        """The time is up: the task is cancelled, and told why; if it goes on, its coroutine is given up."""
        if not self._patience:
            self.late = True
            self._cancel(TIMED_OUT)
        else:
            self._patience -= 1
            if not self._patience:
                self._given_up = True
                self._cancel()
                return 0.0
        return _STEP

    def cancel(self, reason: str = "") -> None:
        """Cancel the task, from any thread."""
        task = self.task
        if task is not None:
            with suppress(RuntimeError):  # the loop is closed: nothing runs there any more
                task.get_loop().call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self.task is not None and not self.task.done():
            self._cancel()
            if self.waits:
                loop = self.task.get_loop()
                timers_of(loop).set(loop, self, _STEP)

    def _cancel(self, *message: str) -> None:
        self._patience = self._patience or _STEPS
        self.cancels += 1
        self.task.cancel(*message)

    def caller_left(self) -> bool:
        """Whether the caller has been cancelled, whatever a tool made of it: one that swallows it keeps no caller."""
        task = self.task
        if task is None:
            return False
        if self.cancels:  # the next wait begins afresh
            for _ in range(self.cancels):
                task.uncancel()
            self.cancels = self._patience = 0
            self.late = self._given_up = False
        return bool(task.cancelling() > self.expected)

    def retire(self) -> bool:
        """The task goes on to other things: a late stop must not hit it, nor one leave its mark. As `caller_left`."""
        left = self.caller_left()
        self.task = None
        return left

    def throw(self, coroutine: Coroutine[Any, Any, Any], error: BaseException) -> Any:
        """Throw into a coroutine; what it yields then. One that is given up is not waited for any longer."""
        if not self._given_up:
            return coroutine.throw(error)
        # It is closed first: what it has open may hold this very task, and would cancel it later, in its caller's code.
        # Only what survives that goes on, in a task of its own.
        first, goes_on = None, True
        try:
            for kind in (asyncio.CancelledError, GeneratorExit, GeneratorExit):
                first = coroutine.throw(kind())
            self._abandoned.leave([asyncio.create_task(_going_on(coroutine, first, self._abandoned))])
        except BaseException:  # noqa: BLE001 - it has ended, no matter how
            self._abandoned.count += 1
            goes_on = False
        raise AttemptTimeoutError(self.timeout, abandoned=goes_on) if self.late else asyncio.CancelledError


# `ring()` ends a wait, or gives the seconds after which to ring again, if the time is not up after all.
Timer: TypeAlias = JobWait | TaskGuard


@final
class Timers:
    """The timers of one event loop, which alone may use them.

    They hold no reference to the loop, for they are kept only as long as it lives.
    """

    __slots__ = ("_due", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Timer, float] = {}
        self._due = math.inf

    def set(self, loop: asyncio.AbstractEventLoop, timer: Timer, seconds: float) -> None:
        """Ring after that time, unless the timer is forgotten before."""
        self._waiting[timer] = due = loop.time() + seconds
        if due < self._due:
            self._arm(loop, due)

    def forget(self, timer: Timer) -> None:
        """The task waits no longer. The loop rings all the same, and finds nothing to do."""
        self._waiting.pop(timer, None)

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """While the loop stands still, another thread gives up jobs whose time is up: the loop may wait for theirs."""
        jobs = [timer for timer in self._waiting if isinstance(timer, JobWait)]
        back = threading.Event()
        if jobs:
            with suppress(RuntimeError):  # the interpreter is shutting down
                threading.Thread(target=_ring_unheard, args=(jobs, back), name="pegboard-alarms", daemon=True).start()
        try:
            yield
        finally:
            back.set()

    def _arm(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._due = due
        loop.call_at(due, self._ring, loop, due)

    def _ring(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        if due != self._due:
            return  # another timer was set to ring before this one
        self._due = math.inf
        for timer in [timer for timer, expected in self._waiting.items() if expected <= due]:
            del self._waiting[timer]
            left = timer.ring()
            if left > 0:
                self._waiting[timer] = loop.time() + left
        if self._waiting:
            self._arm(loop, min(self._waiting.values()))


def _ring_unheard(jobs: list[JobWait], back: threading.Event) -> None:
    left = dict.fromkeys(jobs, 0.0)
    while left and not back.wait(min(left.values())):
        left = {job: seconds for job in left if (seconds := job.ring()) > 0}


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Timers] = WeakKeyDictionary()
_local = threading.local()


def timers_of(loop: asyncio.AbstractEventLoop) -> Timers:
    """The timers of a loop."""
    # A thread runs one loop for a long time, and looking into a weak dictionary is slow.
    known: tuple[Any, Timers] | None = getattr(_local, "known", None)
    if known is not None and known[0]() is loop:
        return known[1]
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Timers()
    _local.known = weakref.ref(loop), found
    return found


async def bounded(awaitable: Any, timeout: float | None, guard: TaskGuard) -> Any:
    """Await, for at most `timeout` seconds, or until the guard stops it. Raises `AttemptTimeoutError`."""
    coroutine = awaitable if isinstance(awaitable, (types.CoroutineType, Coroutine)) else _awaited(awaitable)
    try:
        first = coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    return await resumed(coroutine, first, timeout, guard)


@types.coroutine
def resumed(
    coroutine: Coroutine[Any, Any, Any], first: Any, timeout: float | None, guard: TaskGuard
) -> Generator[Any, Any, Any]:
    """Continue a coroutine that was sent its first None and yielded `first`, for at most `timeout` seconds.

    `guard` is that of the current task. Raises `AttemptTimeoutError`.
    """
    task = guard.task
    timers = timers_of(loop := task.get_loop())
    if timeout is not None:
        guard.timeout = timeout
        timers.set(loop, guard, timeout)
    guard.waits = True
    thrown: BaseException | None = None
    try:
        while True:  # not `yield from`: who gives up has to come in between
            try:
                yield first  # event loops send nothing but None
            except BaseException as error:  # noqa: BLE001 - everything thrown in belongs to the coroutine
                thrown = error
            if thrown is None:
                first = coroutine.send(None)
            else:
                first = guard.throw(coroutine, thrown)
                thrown = None
    except StopIteration as stop:
        return stop.value
    except asyncio.CancelledError as error:
        if guard.late and task.cancelling() - guard.cancels <= guard.expected:
            raise AttemptTimeoutError(guard.timeout) from error
        raise
    finally:
        thrown = None  # which holds this very frame
        guard.waits = False
        timers.forget(guard)  # a stop sets one even without a timeout
        if guard.cancels:
            guard.caller_left()


async def _going_on(coroutine: Coroutine[Any, Any, Any], first: Any, abandoned: AbandonedTasks) -> None:
    with suppress(BaseException):
        await resumed(coroutine, first, None, TaskGuard(abandoned))


async def _awaited(awaitable: Any) -> Any:
    return await awaitable
