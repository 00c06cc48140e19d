"""Answers on their way to an event loop, which wakes once for all that have come meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, final
from weakref import WeakKeyDictionary

__all__ = ["Arrivals"]

Settle: TypeAlias = Callable[[], Any]

_lock = threading.Lock()


@final
class Arrivals:
    """Those of one loop."""

    def __init__(self) -> None:
        self._waiting: list[Settle] = []

    @classmethod
    def here(cls) -> tuple[asyncio.AbstractEventLoop, Arrivals] | None:
        """The loop that runs in this thread, and what comes there; None without one."""
        loop = asyncio._get_running_loop()
        return None if loop is None else (loop, _known.get(loop) or _known.setdefault(loop, cls()))

    def put(self, loop: asyncio.AbstractEventLoop, settle: Settle) -> None:
        """Let the loop settle a call; where it is closed, that is done here."""
        with _lock:
            self._waiting.append(settle)
            if len(self._waiting) > 1:
                return
        try:
            loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # it is closed
            self._settle()

    def _settle(self) -> None:
        with _lock:
            waiting, self._waiting = self._waiting, []
        for settle in waiting:
            settle()


_known: WeakKeyDictionary[asyncio.AbstractEventLoop, Arrivals] = WeakKeyDictionary()
