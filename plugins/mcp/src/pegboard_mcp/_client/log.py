"""The log of a server: what it writes to stderr, and the messages of its logging."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from typing import Any, Final, final

from attrs import evolve, field, frozen

from pegboard import Redaction
from pegboard.inspection import spelled_out

__all__ = ["LEVELS", "Log", "LogLine"]

KEPT: Final = 1_000
"""Lines of one server; the oldest are dropped."""
LONGEST: Final = 1_000
"""Characters of a line that are shown."""
RAW: Final = 4_000
"""Characters of a line that are kept, to be masked before they are cut: half a secret is one."""
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@final
@frozen
class LogLine:
    """One line: `source` is `stderr`, `connection` for what is wrong with it, or `log` for the server's logging.

    `number` counts the lines of the server, `time` is in seconds since the epoch, `level` that of its logging.
    """

    number: int
    time: float
    source: str
    text: str = field(repr=False)
    level: str | None = None


@final
class Log:
    """The last lines of a server; thread-safe."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self.count = 0
        """How many lines there were."""

    def add(self, source: str, text: str, level: str | None = None) -> None:
        """Add a line; from any thread."""
        with self._lock:
            self.count += 1
            self._lines.append(LogLine(self.count, time.time(), source, text[:RAW], level))

    def message(self, parameters: Any) -> None:
        """Add a message of the server's logging, as the SDK gives it."""
        data = parameters.data
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self.add("log", f"{parameters.logger}: {text}" if parameters.logger else text, str(parameters.level))

    def lines(self, redact: Redaction) -> tuple[LogLine, ...]:
        """The lines that are kept, without secrets and without what moves a cursor."""
        with self._lock:
            kept = tuple(self._lines)
        return tuple(evolve(line, text=_shown(redact(line.text))) for line in kept)


def _shown(text: str) -> str:
    return spelled_out(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
