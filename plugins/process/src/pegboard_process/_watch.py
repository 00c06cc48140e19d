"""Jobs that an event loop waits for: the loop itself hears the answer, where a thread would have to wake for it.

It hears nothing else. Whatever takes longer than reading a short answer is left to a thread: chunks, deadlines, death.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable
from typing import Any, final

__all__ = ["Watch"]


@final
class Watch:
    """Watches one child for a loop, from the child's first job on. Other threads may call `close` only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop = loop
        self._fd = os.dup(fd)  # of its own: the loop must not meet another file under that number
        self._ready: Callable[[], Any] | None = None
        self._deadline = math.inf
        self._due = math.inf
        self._hears = False

    @classmethod
    def kept(cls, known: Watch | None, fd: int) -> Watch | None:
        """A watch by the loop that runs in this thread, the known one if that is its; None where there can be none."""
        loop = asyncio._get_running_loop()
        if loop is None or (known is not None and known._loop is loop):
            return known if loop is not None else None
        if known is not None:
            known.close()
        return cls(loop, fd)

    def expect(self, ready: Callable[[], Any], deadline: float) -> None:
        """Call `ready` when there is something to hear, or at the deadline; perhaps several times, until `forget`."""
        self._ready, self._deadline = ready, deadline
        if not self._hears:
            self._loop.add_reader(self._fd, self._hear)
            self._hears = True
        if deadline < self._due:
            self._arm()

    def forget(self) -> None:
        """No caller waits any more."""
        self._ready = None

    def _hear(self) -> None:
        if self._ready is not None:
            self._ready()
        else:  # a thread minds it now, or it has ended
            self._hears = False
            self._loop.remove_reader(self._fd)

    def _arm(self) -> None:
        self._due = self._deadline
        delay = max(self._due - time.monotonic(), 0.0)
        self._loop.call_later(delay, self._ring, self._due)

    def _ring(self, due: float) -> None:
        if due != self._due:
            return  # another was to ring before this one
        self._due = math.inf
        if self._ready is None:
            return
        if time.monotonic() < self._deadline:
            self._arm()
        else:
            self._ready()

    def close(self) -> None:
        """Hear no more; from any thread."""
        if asyncio._get_running_loop() is self._loop:
            self._leave()
            return
        try:
            self._loop.call_soon_threadsafe(self._leave)
        except RuntimeError:  # it is closed
            os.close(self._fd)

    def _leave(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
