"""Stores: append-only rows chained by hash, in a database that several programs write."""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from pegboard import PegboardError
from pegboard_journal._entry import COLUMNS, PRUNED, RUNNING, Row, chained

__all__ = ["Execute", "JournalError", "Store"]

T = TypeVar("T")
Execute = Callable[..., Any]
"""Runs a statement with `?` for its values, and gives a cursor."""

_TYPES: Final = {"seq": "INTEGER PRIMARY KEY", "follows": "INTEGER", "turn": "INTEGER", "attempts": "INTEGER NOT NULL"}
_REALS: Final = ("started", "duration")
_DECLARED: Final = ", ".join(
    f"{name} {_TYPES.get(name, 'DOUBLE PRECISION' if name in _REALS else 'TEXT')}" for name in COLUMNS
)
_CLAIMED: Final = "WHERE claim IS NOT NULL"
TABLE: Final = (
    f"CREATE TABLE IF NOT EXISTS pegboard_journal ({_DECLARED})",
    f"CREATE UNIQUE INDEX IF NOT EXISTS pegboard_journal_claims ON pegboard_journal (claim, turn) {_CLAIMED}",
    "CREATE INDEX IF NOT EXISTS pegboard_journal_sessions ON pegboard_journal (session, seq) WHERE session IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS pegboard_journal_follows ON pegboard_journal (follows) WHERE follows IS NOT NULL",
    f"CREATE INDEX IF NOT EXISTS pegboard_journal_intents ON pegboard_journal (seq) WHERE status = '{RUNNING}'",
)
LAST: Final = "SELECT seq, hash FROM pegboard_journal ORDER BY seq DESC LIMIT 1"
_INSERT: Final = f"INSERT INTO pegboard_journal ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
_CLAIM: Final = f"{_INSERT} ON CONFLICT (claim, turn) {_CLAIMED} DO NOTHING RETURNING seq"
_SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM pegboard_journal AS this"  # noqa: S608 - names of our own
CURRENT: Final = "NOT EXISTS (SELECT 1 FROM pegboard_journal AS later WHERE later.follows = this.seq)"
"""Of the rows of one call, the last."""
_PAGE: Final = 500


class JournalError(PegboardError):
    """The journal cannot be read or written. The message names the place, and no password."""


class Store(ABC):
    """Where rows are kept. One connection, made at the first use, and made anew in a forked process."""

    place: str
    """How messages name it."""
    errors: tuple[type[Exception], ...]
    """What its driver raises."""

    def __init__(self) -> None:
        self._inherited: list[Any] = []
        self._forget()
        self._finalizer = weakref.finalize(self, _close, self._held)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._held: list[Any] = []  # the connection, once there is one
        self._pid = os.getpid()

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection to a journal that has its table."""

    @abstractmethod
    def _begun(self, connection: Any, durable: bool) -> tuple[int, str]:
        """Begin a transaction that no other one can pass; the number and the hash of the last row."""

    @abstractmethod
    def _execute(self, connection: Any) -> Execute:
        """Runs statements on a connection."""

    @property
    @abstractmethod
    def process(self) -> str:
        """The name of this process, for as long as it lives."""

    @abstractmethod
    def is_alive(self, process: str) -> bool:
        """Whether the process of that name still lives."""

    # Connections -----------------------------------------------------------------------------------------------

    def _connection(self) -> Any:
        if not self._held:
            self._held.append(self._connect())
        return self._held[0]

    def _renew(self) -> None:
        """In a forked process: use nothing of the parent's, and close nothing of it either."""
        if self._pid != os.getpid():
            self._finalizer.detach()
            self._inherited.append(self._held)
            self._forget()
            self._finalizer = weakref.finalize(self, _close, self._held)

    def close(self) -> None:
        """Close the connection. The next use makes another one."""
        self._renew()
        with self._lock:
            _close(self._held)

    def _guarded(self, work: Callable[[], T]) -> T:
        self._renew()
        with self._lock:
            try:
                return work()
            except self.errors as error:
                raise JournalError(f"journal {self.place}: {self.reason(error)}") from None

    def reason(self, error: Exception) -> str:
        """What went wrong, in one line."""
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"

    def _transaction(self, work: Callable[[Execute, int, str], T], durable: bool = False) -> T:
        """Run `work(execute, seq, hash)` with the last row; all or nothing is kept of it."""
        connection = self._connection()
        seq, before = self._begun(connection, durable)
        execute = self._execute(connection)
        try:
            done = work(execute, seq, before)
            execute("COMMIT")
        except BaseException:
            try:
                execute("ROLLBACK")
            except self.errors:  # the connection is lost, and the transaction with it
                _close(self._held)
            raise
        return done

    # Rows ------------------------------------------------------------------------------------------------------

    def append(self, row: Row, *, durable: bool = False) -> Row | None:
        """Append a row, `durable` also if the power fails at once; None if its claim was taken by another call.

        Raises `JournalError` if it cannot be written.
        """
        return self._guarded(
            lambda: self._transaction(lambda execute, seq, before: _added(execute, seq, before, row), durable)
        )

    def rows(self, where: str, *values: Any, order: str = "seq", limit: int = _PAGE) -> list[Row]:
        """Rows that fit a condition. Raises `JournalError` if they cannot be read."""
        statement = f"{_SELECT} WHERE {where} ORDER BY {order} LIMIT {limit:d}"

        def read() -> list[Row]:
            return [Row(*row) for row in self._execute(self._connection())(statement, values).fetchall()]

        return self._guarded(read)

    def every(self, where: str = "1 = 1", values: Sequence[Any] = ()) -> Iterator[Row]:
        """All rows that fit, in order, read page by page."""
        after = 0
        while page := self.rows(f"seq > ? AND {where}", after, *values):
            yield from page
            after = page[-1].seq

    def prune(self, before: float) -> int:
        """Remove the rows before the first one that began at `before` or later; leaves an anchor. How many went."""

        def work(execute: Execute, seq: int, last: str) -> int:
            kept = execute(_FIRST_KEPT, (before,)).fetchone()[0]
            through = seq if kept is None else kept - 1
            known = execute("SELECT hash FROM pegboard_journal WHERE seq = ?", (through,)).fetchone()
            if known is None:
                return 0
            anchor = Row(status=PRUNED, started=before, turn=through, fingerprint=known[0])
            _added(execute, seq, last, anchor)
            removed: int = execute("DELETE FROM pegboard_journal WHERE seq <= ?", (through,)).rowcount
            return removed

        return self._guarded(lambda: self._transaction(work, durable=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"


_FIRST_KEPT: Final = f"SELECT min(seq) FROM pegboard_journal WHERE started >= ? AND status <> '{PRUNED}'"  # noqa: S608


def _added(execute: Execute, seq: int, before: str, row: Row) -> Row | None:
    members = (seq + 1, *row[1:-1])
    row = Row(*members, chained(before, members))
    if row.claim is None:  # most rows: to return something costs SQLite a table of its own
        execute(_INSERT, row)
        return row
    return row if execute(_CLAIM, row).fetchone() else None


def _close(held: list[Any]) -> None:
    while held:
        held.pop().close()
