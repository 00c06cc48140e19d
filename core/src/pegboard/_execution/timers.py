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
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, final
from weakref import WeakKeyDictionary

from pegboard._base.effects import TIMED_OUT, AttemptTimeoutError, Outcome
from pegboard._execution.threads import Pool, Ticket


@final
class JobTimer:
    """Ends the wait for the job of a `ticket` `timeout` seconds after a worker began it; queueing does not count.

    Until then somebody may `cancel` it.
    """

    __slots__ = ("_future", "_pool", "_timeout", "ticket")

    ticket: Ticket

    def __init__(self, future: asyncio.Future[Outcome], timeout: float, pool: Pool) -> None:
        self._future = future
        self._timeout = timeout
        self._pool = pool

    def cancel(self, reason: str = "") -> None:
        """The job is given up and its wait ends, as cancelled; from any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._future.get_loop().call_soon_threadsafe(self._stop, reason)

    def _stop(self, reason: str) -> None:
        if not self._future.done():
            self._pool.abandon(self.ticket)
            self._future.set_result((None, asyncio.CancelledError(reason)))

    def ring(self) -> float:
        """The wait ends with `AttemptTimeoutError`."""
        left = self._timeout - self.ticket.elapsed()
        if left > 0:
            return left
        if not self._future.done():
            self._future.set_exception(AttemptTimeoutError(self._timeout))
        return 0.0

    def ring_unheard(self) -> float:
        """The job is given up; its wait ends when the loop goes on."""
        left = self._timeout - self.ticket.elapsed()
        if left <= 0:
            self._pool.abandon(self.ticket)
        return left


@final
class TaskGuard:
    """Cancels the current task, when its time is up or when somebody stops it, and takes that cancellation back.

    So the caller's own cancellation can be told from these, as `asyncio.timeout` tells it.
    """

    __slots__ = ("_stopped", "expected", "rang", "task")

    def __init__(self) -> None:
        self.task = task = asyncio.current_task()
        self.expected = task.cancelling() if task else 0
        self.rang = False
        self._stopped = False

    def ring(self) -> float:
        """The time is up: the task is cancelled, and told why; who set the timer takes that back."""
        self.rang = True
        if self.task is not None:
            self.task.cancel(TIMED_OUT)
        return 0.0

    def cancel(self, reason: str = "") -> None:
        """Cancel the task, from any thread."""
        task = self.task
        if task is not None:
            with suppress(RuntimeError):  # the loop is closed: nothing runs there any more
                task.get_loop().call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self.task is not None and not self.task.done():
            self._stopped = True
            self.task.cancel()

    def caller_left(self) -> bool:
        """Whether the caller has been cancelled, whatever a tool made of it: one that swallows it holds nobody."""
        task = self.task
        if task is None:
            return False
        if self._stopped:
            self._stopped = False
            task.uncancel()
        return task.cancelling() > self.expected

    def retire(self) -> bool:
        """The task goes on to other things: a late stop must not hit it, nor one leave its mark. As `caller_left`."""
        left = self.caller_left()
        self.task = None
        return left


Timer: TypeAlias = JobTimer | TaskGuard
"""`ring()` ends a wait, or gives the seconds after which to ring again, if the time is not up after all."""


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
        """Nobody waits any more. The loop rings all the same, and finds nothing to do."""
        self._waiting.pop(timer, None)

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """While the loop stands still, another thread gives up jobs whose time is up: the loop may wait for theirs."""
        jobs = [timer for timer in self._waiting if isinstance(timer, JobTimer)]
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


def _ring_unheard(jobs: list[JobTimer], back: threading.Event) -> None:
    left = dict.fromkeys(jobs, 0.0)
    while left and not back.wait(min(left.values())):
        left = {job: seconds for job in left if (seconds := job.ring_unheard()) > 0}


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Timers] = WeakKeyDictionary()
_local = threading.local()


def timers_of(loop: asyncio.AbstractEventLoop) -> Timers:
    """The timers of a loop."""
    # A thread runs one loop for a long time, and looking into a weak dictionary is slow.
    known = getattr(_local, "known", None)
    if known is not None and known[0]() is loop:
        mine: Timers = known[1]
        return mine
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Timers()
    _local.known = weakref.ref(loop), found
    return found


async def bounded(awaitable: Any, timeout: float | None) -> Any:  # noqa: ASYNC109 - this is what implements it
    """Await, for at most `timeout` seconds. Raises `AttemptTimeoutError`."""
    if timeout is None:
        return await awaitable
    coroutine = awaitable if isinstance(awaitable, Coroutine) else _awaited(awaitable)
    try:
        first = coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    return await resumed(coroutine, first, timeout, TaskGuard())


@types.coroutine
def continued(coroutine: Coroutine[Any, Any, Any], first: Any) -> Generator[Any, Any, Any]:
    """A coroutine that was sent its first None and yielded `first`, as one that can be awaited."""
    while True:
        thrown: BaseException | None = None
        try:
            yield first  # event loops send nothing but None
        except BaseException as error:  # noqa: BLE001 - everything thrown in belongs to the coroutine
            thrown = error
        if thrown is None:
            return (yield from coroutine)
        try:
            first = coroutine.throw(thrown)
        except StopIteration as stop:
            return stop.value
        finally:
            thrown = None  # which holds this very frame


@types.coroutine
def resumed(
    coroutine: Coroutine[Any, Any, Any], first: Any, timeout: float | None, guard: TaskGuard
) -> Generator[Any, Any, Any]:
    """Continue a coroutine that was sent its first None and yielded `first`, for at most `timeout` seconds.

    `guard` is that of the current task. Raises `AttemptTimeoutError`.
    """
    task = guard.task
    if task is None:
        raise RuntimeError("a call with a timeout runs in a task of an event loop")
    loop = task.get_loop()
    timers = timers_of(loop)
    if timeout is not None:
        timers.set(loop, guard, timeout)
    try:
        return (yield from continued(coroutine, first))
    except asyncio.CancelledError as error:
        if timeout is not None and guard.rang and task.cancelling() - 1 <= guard.expected:
            raise AttemptTimeoutError(timeout) from error
        raise
    finally:
        timers.forget(guard)
        if guard.rang:
            guard.rang = False
            task.uncancel()


async def _awaited(awaitable: Any) -> Any:
    return await awaitable
