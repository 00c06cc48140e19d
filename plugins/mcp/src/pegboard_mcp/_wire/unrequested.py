"""What comes unrequested: a server's stderr, of which the end is kept, a flood of messages, and logs of libraries."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TextIO, final

__all__ = ["FLOOD", "QUIET", "Meter", "Tail"]

AT_ONCE: Final = 20_000
"""Unrequested messages that may come at once: as many as a machine reads in some seconds."""
A_SECOND: Final = 200
"""Unrequested messages for each further second."""
FLOOD: Final = f"(a flood: more than {AT_ONCE:,} unrequested messages, and {A_SECOND:,} more each second)"
QUIET: Final = ContextVar("QUIET", default=False)
"""Whether what libraries log here is for debugging alone: `problems` and results say what is wrong."""
KEPT: Final = 16_384
QUOTED: Final = 1_000


@final
class Meter:
    """Counts unrequested messages. Many at once are no flood, and neither are few for a long time."""

    def __init__(self) -> None:
        self._allowance: float = AT_ONCE
        self._counted = time.monotonic()
        self._lock = threading.Lock()

    def expect(self, messages: int) -> None:
        """Allow this many more messages, because they were requested; from any thread."""
        with self._lock:
            self._allowance += messages

    def takes(self, messages: int) -> bool:
        """Count messages. Returns False if they are a flood."""
        with self._lock:
            self._allowance -= messages
            if self._allowance < 0:
                now = time.monotonic()
                self._allowance = min(AT_ONCE, self._allowance + A_SECOND * (now - self._counted))
                self._counted = now
            return self._allowance >= 0


@final
class Tail:
    """A pipe whose reader keeps the last 16 KiB. `flooded()` is called where what comes has no end.

    `heard(line)` is called with each line, on any thread.
    """

    def __init__(
        self, flooded: Callable[[], None] = lambda: None, heard: Callable[[str], None] = lambda line: None
    ) -> None:
        self._flooded = flooded
        self._heard = heard
        read, write = os.pipe()
        self.file: TextIO = os.fdopen(write, "w", encoding="utf-8")
        """Where the process writes; it needs a real file descriptor."""
        self._kept = bytearray()
        self._ended = threading.Event()
        threading.Thread(target=self._drain, args=(read,), name="pegboard-mcp-stderr", daemon=True).start()

    def quoted(self, redact: Callable[[str], str]) -> str:
        """The last lines as text, a thousand characters at most. Masked before they are cut: half a secret is one."""
        text = redact(bytes(self._kept).decode("utf-8", "replace").replace("\r\n", "\n").strip())
        return text if len(text) <= QUOTED else f"...{text[-QUOTED:]}"

    def note(self, line: str) -> None:
        """Add a line, as the process would."""
        self._kept += f"{line}\n".encode()
        del self._kept[:-KEPT]
        self._heard(line)

    def flood(self) -> str:
        """Add that there was a flood, which is what comes back, and pass it on."""
        self.note(FLOOD)
        self._flooded()
        return FLOOD

    def close(self) -> None:
        """Close this end; what processes still write is read until the last of them has ended."""
        self.file.close()

    def finish(self, seconds: float) -> None:
        """Close this end, and give what a process that died has written `seconds` at most to arrive."""
        self.close()
        self._ended.wait(seconds)

    def _drain(self, read: int) -> None:
        begun = b""  # a line without its end
        with os.fdopen(read, "rb", buffering=0) as pipe:
            while chunk := pipe.read(8192):
                self._kept += chunk
                del self._kept[:-KEPT]
                *lines, begun = (begun + chunk).split(b"\n")
                begun = begun[:KEPT]
                for line in lines:
                    self._heard(line.decode("utf-8", "replace").rstrip())
        if begun:
            self._heard(begun.decode("utf-8", "replace"))
        self._ended.set()
