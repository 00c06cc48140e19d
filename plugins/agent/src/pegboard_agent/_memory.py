"""Memory: what was said, in the program or in a file."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

from pegboard.inspection import regular

__all__ = ["Memory"]


_log: Final = logging.getLogger("pegboard.agent")


@final
class Memory:
    """Conversations of an agent. `Memory(path)` keeps them in a file of JSON lines, one written as it happens.

    A line that the end of a program has torn is ignored, and so is any other that cannot be read: the log says so, and
    the file keeps them, for nothing is ever taken out of it. Who else has an account there cannot read a file that is
    made here. Raises OSError for what is no regular file: a link, a FIFO, a device.

    Each conversation is a list of records: messages as chat completions take them, `{"answers": n, "messages": [...]}`
    for call number n of the last message, and `{"parked": n, ...}` for one that waits.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._records: dict[str | None, list[dict[str, Any]]] = {}
        if self._path is not None:
            self._read(self._path)

    def _read(self, path: Path) -> None:
        try:
            with open(path, "rb", opener=regular) as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return
        unread = 0
        for line in filter(None, lines[:-1]):
            unread += not self._take(line)
        self._take(lines[-1])  # nothing, or a torn one
        if unread:
            _log.warning("%s: %d of %d lines cannot be read; they stay in the file", path, unread, len(lines) - 1)

    def _take(self, line: bytes) -> bool:
        """Whether a line could be read."""
        try:
            entry = json.loads(line)
            self._records.setdefault(entry.get("session_id"), []).append(dict(entry["record"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False
        return True

    @property
    def session_ids(self) -> list[str | None]:
        """The conversations that there are, None for the one without an id."""
        return list(self._records)

    def records(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Everything of a conversation, oldest first."""
        return list(self._records.get(session_id, ()))

    def append(self, record: Mapping[str, Any], session_id: str | None = None) -> None:
        """Add to a conversation. Raises OSError where the file cannot be written, or is no regular file."""
        if self._path is not None:
            line = json.dumps({"session_id": session_id, "record": record}, ensure_ascii=False)
            with open(self._path, "a+b", buffering=0, opener=_private) as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - 1))
                begun = b"" if file.read(1) in (b"", b"\n") else b"\n"  # a torn line is left to itself
                file.write(begun + line.encode("utf-8", "replace") + b"\n")
        self._records.setdefault(session_id, []).append(dict(record))


def _private(path: str, flags: int) -> int:
    return regular(path, flags, 0o600)
