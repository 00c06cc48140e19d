"""A file of records: JSON lines, to which several programs add."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

from pegboard.inspection import regular
from pegboard_agent._stores.locks import FileLocks
from pegboard_agent._stores.records import is_record

__all__ = ["RecordFile"]

_log: Final = logging.getLogger("pegboard.agent")


@final
class RecordFile:
    """Reads the records of a file into `records`, and writes to it. The caller lets one thread at a time do either."""

    def __init__(self, path: Path, records: dict[str | None, list[dict[str, Any]]]) -> None:
        self.path = path
        self.locks = FileLocks.of(path)
        self._records = records
        self._file: tuple[int, int] | None = None  # device and number of the file that was read
        self._begin()

    def _begin(self) -> None:
        self._end = 0  # bytes that have been read
        self._lines = self._unread = 0
        self._records.clear()

    def read(self) -> None:
        """Read the new records. Another file of that name, or a shorter one, is read from its beginning.

        An incomplete last line is read when its end has come. Raises OSError if it is not a regular file.
        """
        try:
            if self._is_read(os.stat(self.path)):  # noqa: PTH116 - a path's own is slower
                return
            with open(self.path, "rb", opener=regular) as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._file or status.st_size < self._end:
                    self._file = status.st_dev, status.st_ino
                    self._begin()
                file.seek(self._end)
                *whole, last = file.read().split(b"\n")
        except FileNotFoundError:
            self._file = None
            self._begin()
            return
        before = self._unread
        for line in whole:
            self._end += len(line) + 1
            if line:
                self._lines += 1
                self._unread += not self._take(line)
        if last and self._take(last):  # only the line feed is missing
            self._lines += 1
            self._end += len(last)
        if self._unread > before:
            text = "%s: %d of %d lines cannot be read; they stay in the file"
            _log.warning(text, self.path, self._unread, self._lines)

    def _is_read(self, status: os.stat_result) -> bool:
        return (status.st_dev, status.st_ino, status.st_size) == (*(self._file or (0, 0)), self._end)

    def _take(self, line: bytes) -> bool:
        """Read a line; False if it cannot be read."""
        try:
            entry = json.loads(line)
            session_id, record = entry.get("session_id"), entry["record"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False
        if not is_record(record) or not isinstance(session_id, (str, type(None))):
            return False
        self._records.setdefault(session_id, []).append(record)
        return True

    def write(self, session_id: str | None, records: Iterable[Mapping[str, Any]]) -> None:
        """Add all records or none. The caller is the only writer, and has read the file to its end."""
        lines = b"".join(_line({"session_id": session_id, "record": record}) for record in records)
        with open(self.path, "a+b", buffering=0, opener=_private) as file:
            status = os.fstat(file.fileno())
            file.seek(max(0, status.st_size - 1))
            begun = b"" if file.read(1) in (b"", b"\n") else b"\n"  # an incomplete line stays alone
            rest = begun + lines
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError:  # such as a full disk
                with suppress(OSError):
                    file.truncate(status.st_size)
                raise
        self._file = status.st_dev, status.st_ino
        self._end = status.st_size + len(begun) + len(lines)
        self._lines += lines.count(b"\n")


def _line(entry: Mapping[str, Any]) -> bytes:
    try:
        return f"{json.dumps(entry, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which a model may write
        return f"{json.dumps(entry)}\n".encode()


def _private(path: str, flags: int) -> int:
    return regular(path, flags, 0o600)
