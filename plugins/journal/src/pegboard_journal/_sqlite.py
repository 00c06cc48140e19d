"""A journal in a file of SQLite, for any number of processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any, Final, final

from pegboard_journal._presence import Presence
from pegboard_journal._store import LAST, TABLE, Execute, JournalError, Store

__all__ = ["SqliteStore"]

PATIENCE: Final = 30.0
"""Seconds that a write waits for those of other processes."""


@final
class SqliteStore(Store):
    """Rows in a file with write-ahead log. It must not lie on a network disk."""

    errors = (sqlite3.Error, OSError)

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        self.place = str(path)
        super().__init__()

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            try:
                os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
            except OSError as error:
                raise JournalError(f"journal {self.place}: the file cannot be made: {error.strerror}") from None
        connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            _log_ahead(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
            if (
                connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'pegboard_journal_intents'").fetchone()
                is None
            ):
                connection.execute("BEGIN IMMEDIATE")
                for statement in TABLE:
                    connection.execute(statement)
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        self._durable = False
        return connection

    def _begun(self, connection: Any, durable: bool) -> tuple[int, str]:
        if durable is not self._durable:
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        connection.execute("BEGIN IMMEDIATE")  # a deferred one that reads first fails where another writes
        return connection.execute(LAST).fetchone() or (0, "")

    def _execute(self, connection: Any) -> Execute:
        execute: Execute = connection.execute
        return execute

    @property
    def process(self) -> str:
        """The name of this process, for as long as it lives."""
        return str(Presence.at(f"{self._path}-live").token)

    def is_alive(self, process: str) -> bool:
        """Whether the process of that name still lives."""
        return Presence.at(f"{self._path}-live").is_alive(int(process))

    def reason(self, error: Exception) -> str:
        """What went wrong, in one line."""
        return str(error)


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turn the log on. While another process does, SQLite says at once that the file is locked, and does not wait."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        time.sleep(0.01)
