"""Floods: a server may say much at once, and little for ever; what says much for ever is not listened to."""

from __future__ import annotations

import threading
import time
from typing import Final, final

__all__ = ["FLOOD", "Meter"]

AT_ONCE: Final = 20_000
"""Unrequested messages: as many as a machine reads in some seconds."""
A_SECOND: Final = 200
"""So many more each second."""
FLOOD: Final = f"(a flood: more than {AT_ONCE:,} unrequested messages, and {A_SECOND:,} more each second)"


@final
class Meter:
    """Counts what a server sends of its own accord."""

    def __init__(self) -> None:
        self._left: float = AT_ONCE
        self._counted = time.monotonic()
        self._lock = threading.Lock()

    def expect(self, messages: int) -> None:
        """So many more have been asked for, by any thread."""
        with self._lock:
            self._left += messages

    def takes(self, messages: int) -> bool:
        """Count what came. Whether it is no flood yet."""
        with self._lock:
            self._left -= messages
            if self._left < 0:
                now = time.monotonic()
                self._left = min(AT_ONCE, self._left + A_SECOND * (now - self._counted))
                self._counted = now
            return self._left >= 0
