"""Alarms: when to stop waiting for jobs in worker threads, with one timer for all jobs that an event loop waits for.

A timer for each job takes a quarter of the whole way to a worker thread and back, and nearly none ever rings.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, final
from weakref import WeakKeyDictionary

from pegboard._effects import AttemptTimeoutError
from pegboard._pool import Ticket

__all__ = ["Alarms", "alarms"]


@final
class Alarms:
    """The alarms of one event loop, which alone may use them.

    They hold no reference to the loop, for they are kept only as long as it lives.
    """

    __slots__ = ("_due", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[Any], tuple[float, float, Ticket]] = {}
        self._due = math.inf

    def set(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], ticket: Ticket, timeout: float) -> None:
        """End the wait for `future` `timeout` seconds after a worker began the job; queueing does not count."""
        due = loop.time() + timeout
        self._waiting[future] = (due, timeout, ticket)
        self._arm(loop, due)

    def forget(self, future: asyncio.Future[Any]) -> None:
        """Nobody waits any more. The timer stays: it will find nothing to do."""
        self._waiting.pop(future, None)

    def _arm(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        if due < self._due:
            self._due = due
            loop.call_at(due, self._ring, loop, due)

    def _ring(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        if due != self._due:
            return  # another timer was set to ring before this one
        self._due = math.inf
        for future, (expected, timeout, ticket) in list(self._waiting.items()):
            if expected > due:
                continue
            left = timeout - ticket.elapsed()
            if left > 0:
                self._waiting[future] = (loop.time() + left, timeout, ticket)
            else:
                del self._waiting[future]
                if not future.done():
                    future.set_exception(AttemptTimeoutError(timeout))
        if self._waiting:
            self._arm(loop, min(expected for expected, _, _ in self._waiting.values()))


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Alarms] = WeakKeyDictionary()


def alarms(loop: asyncio.AbstractEventLoop) -> Alarms:
    """The alarms of a loop."""
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Alarms()
    return found
