"""Alarms: when to stop waiting, with one timer for everything that an event loop waits for.

A timer for each call takes a quarter of the whole way to a worker thread and back, and nearly none ever rings.
"""

from __future__ import annotations

import asyncio
import math
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, final
from weakref import WeakKeyDictionary

from pegboard._base.effects import AttemptTimeoutError, Outcome
from pegboard._execution.threads import Pool, Ticket

__all__ = ["JobTimer", "Timer", "Timers", "alarms"]


class Timer(Protocol):
    """What happens when the time is up."""

    def ring(self) -> float:
        """End the wait; or the seconds after which to ring again, if the time is not up after all."""


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
class Timers:
    """The alarms of one event loop, which alone may use them.

    They hold no reference to the loop, for they are kept only as long as it lives.
    """

    __slots__ = ("_due", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Timer, float] = {}
        self._due = math.inf

    def set(self, loop: asyncio.AbstractEventLoop, alarm: Timer, seconds: float) -> None:
        """Ring after that time, unless the alarm is forgotten before."""
        self._waiting[alarm] = due = loop.time() + seconds
        if due < self._due:
            self._arm(loop, due)

    def forget(self, alarm: Timer) -> None:
        """Nobody waits any more. The timer stays: it will find nothing to do."""
        self._waiting.pop(alarm, None)

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """While the loop stands still, another thread gives up jobs whose time is up: the loop may wait for theirs."""
        jobs = [alarm for alarm in self._waiting if isinstance(alarm, JobTimer)]
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
        for alarm in [alarm for alarm, expected in self._waiting.items() if expected <= due]:
            del self._waiting[alarm]
            left = alarm.ring()
            if left > 0:
                self._waiting[alarm] = loop.time() + left
        if self._waiting:
            self._arm(loop, min(self._waiting.values()))


def _ring_unheard(jobs: list[JobTimer], back: threading.Event) -> None:
    left = dict.fromkeys(jobs, 0.0)
    while left and not back.wait(min(left.values())):
        left = {job: seconds for job in left if (seconds := job.ring_unheard()) > 0}


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Timers] = WeakKeyDictionary()
_local = threading.local()


def alarms(loop: asyncio.AbstractEventLoop) -> Timers:
    """The alarms of a loop."""
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
