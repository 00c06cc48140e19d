"""The end of what a process writes to stderr, kept in memory and no more of it than that."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TextIO, final

from pegboard_mcp._wire.flood import FLOOD

__all__ = ["Tail"]

KEPT = 16_384
QUOTED = 1_000


@final
class Tail:
    """A pipe whose reader keeps the last 16 KiB. `flooded()` is called where what comes has no end."""

    def __init__(self, flooded: Callable[[], None] = lambda: None) -> None:
        self._flooded = flooded
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
        with os.fdopen(read, "rb", buffering=0) as pipe:
            while chunk := pipe.read(8192):
                self._kept += chunk
                del self._kept[:-KEPT]
        self._ended.set()
