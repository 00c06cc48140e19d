"""PostgreSQL: each call on a connection of its own, which ends with it, in a transaction of a plain role."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, final

from pegboard import Redaction, ToolError
from pegboard_sql._catalog import ALLOWED, COLUMNS, POWERS, READ, TABLES, TYPES
from pegboard_sql._engine import CANCELLED, Run, too_long
from pegboard_sql._listing import Columns, listing
from pegboard_sql._records import LOOK, VALUE
from pegboard_sql._values import Taken, bounded_text

__all__ = ["Postgres"]

# Seconds for a connection, unless a call has less.
_CONNECTING: Final = 10
# Values that are fetched at once; each has at most four bytes for each of its characters.
_AT_ONCE: Final = 2_000
# Seconds for a server to end what it was asked to cancel; then the connection is cut.
_PATIENCE: Final = 0.6
# How the text of a value is read, by the type's number; all others stay text.
_READERS: Final[dict[int, Callable[[str], Any]]] = {
    16: "true".__eq__,
    20: int,
    21: int,
    23: int,
    26: int,
    700: float,
    701: float,
}
_WRITING: Final = ("INSERT", "UPDATE", "DELETE", "MERGE")
_DEFINING: Final = "CREATE ALTER DROP TRUNCATE COMMENT GRANT REVOKE REFRESH REINDEX DO CALL SELECT"


@final
class Postgres:
    """See `Engine`. Raises `ToolError` for a role that may do more than PostgreSQL can be asked to forbid."""

    kind = "PostgreSQL"

    def __init__(self, url: str, tables: tuple[str, ...] | None) -> None:
        self._url = url
        self._tables = tables

    def ask(self, run: Run, **request: Any) -> dict[str, Any]:
        """See `Engine`. With the connection everything ends that a session can keep, such as locks and settings."""
        import psycopg

        deadline = time.monotonic() + run.seconds
        try:
            seconds = max(2, min(_CONNECTING, int(run.seconds)))
            opened = psycopg.connect(self._url, autocommit=True, connect_timeout=seconds, client_encoding="UTF8")
        except psycopg.Error as error:
            raise ToolError(f"The database cannot be reached: {self._reason(error)}.") from None
        connection = _Connection(opened, deadline)
        try:
            with closing(opened), connection.stopped_by(run):
                connection.begin(self._tables, writes=request["act"] == "execute")
                return _ACTS[request["act"]](connection, request)
        except psycopg.Error as error:
            if run.cancel.cancelled:
                raise ToolError(CANCELLED) from None
            if time.monotonic() >= deadline or isinstance(error, psycopg.errors.QueryCanceled):
                raise too_long(run.seconds) from None
            raise ToolError(f"PostgreSQL: {self._reason(error, 'user', 'dbname')}. {LOOK}") from None

    def _reason(self, error: Any, *shown: str) -> str:
        """What the server, or the driver, says, without anything of the URL but the parts that may be shown."""
        from psycopg.conninfo import conninfo_to_dict

        with suppress(Exception):  # a URL that cannot be read; the reason quotes it
            given = conninfo_to_dict(self._url)
            text = (error.diag.message_primary or str(error)).strip()
            if "multiple commands" in text:
                text = "only one statement can be sent at a time"
            hint = f" ({error.diag.message_hint})" if error.diag.message_hint else ""
            hidden = [str(value) for key, value in given.items() if key not in shown]
            return Redaction(hidden)(f"{text}{hint}".rstrip("."))
        return type(error).__name__


@final
class _Connection:
    """A connection for one call, in its transaction. `allowed` are the relations that may be used, None for all."""

    def __init__(self, opened: Any, deadline: float) -> None:
        self._opened = opened
        self._deadline = deadline
        self.allowed: list[int] | None = None

    def begin(self, tables: tuple[str, ...] | None, *, writes: bool) -> None:
        """Begin the transaction. Raises `ToolError` for a role that is too powerful."""
        if powers := [name for (name,) in self.rows(POWERS)]:
            what = "a superuser" if "superuser" in powers else f"a member of {' and '.join(powers)}"
            raise ToolError(f"Nothing is run: this program reaches the database as {what}; it has to use a plain role.")
        if tables is not None:
            self.allowed = [number for (number,) in self.rows(ALLOWED, [list(tables)])]
        self.run("BEGIN READ WRITE" if writes else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query of our own."""
        found: list[Any] = self._opened.execute(query.encode(), values).fetchall()
        return found

    def run(self, statement: str) -> Any:
        """Run one statement: what is prepared cannot be more than one. The time of the call is set anew each time.

        A query can set `statement_timeout` for what comes after it.
        """
        remaining = max(1, int(1000 * (self._deadline - time.monotonic())))
        self._opened.execute(f"SET statement_timeout = {remaining:d}".encode())
        return self._opened.execute(statement.encode(), prepare=True)

    def described(self, statement: str) -> tuple[list[str], list[int], list[str]]:
        """The names, the types' numbers and the types' names of a statement's columns. It is not run.

        Raises `psycopg.Error` for what cannot be parsed, and for more than one statement.
        """
        from psycopg.errors import error_from_result
        from psycopg.pq import ExecStatus

        connection = self._opened.pgconn
        for done in (connection.prepare(b"", statement.encode()), connection.describe_prepared(b"")):
            if done.status != ExecStatus.COMMAND_OK:
                raise error_from_result(done, encoding="utf-8")
        fields = range(done.nfields)
        numbers = [done.ftype(field) for field in fields]
        names = self.rows(TYPES, [numbers, [done.fmod(field) for field in fields]])
        return [done.fname(field).decode("utf-8") for field in fields], numbers, [name for (name,) in names]

    def check(self) -> None:
        """Raises `ToolError` if the transaction has locked, and so read, a relation that is not allowed."""
        if self.allowed is not None and self.rows(READ, [self.allowed]):
            raise ToolError(f"This reaches tables that are not here, or the catalog. {LOOK}")

    @contextmanager
    def stopped_by(self, run: Run) -> Iterator[None]:
        """End what the connection does when the time is over or the call is cancelled."""
        over, ended = threading.Event(), threading.Event()
        run.cancel.on_cancel(over.set)

        def stop() -> None:
            over.wait(max(0.0, self._deadline - time.monotonic()))
            with suppress(Exception):
                ended.is_set() or self._opened.cancel_safe(timeout=_PATIENCE)
            if not ended.wait(_PATIENCE):
                with suppress(OSError), socket.socket(fileno=socket.dup(self._opened.fileno())) as cut:
                    cut.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=stop, name="pegboard-sql", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            over.set()
            thread.join()


def schema(connection: _Connection, request: dict[str, Any]) -> dict[str, Any]:
    found = connection.rows(TABLES, [connection.allowed])
    numbers = {name: number for number, name, _ in found}

    def described(names: Sequence[str]) -> Columns:
        columns: Columns = {name: [] for name in names}
        for owner, *fields in connection.rows(COLUMNS, [connection.allowed, [numbers[name] for name in names]]):
            columns[owner].append(fields)
        return columns

    return listing({name: kind for _, name, kind in found}, request["table"], described)


def query(connection: _Connection, request: dict[str, Any]) -> dict[str, Any]:
    columns, numbers, types = connection.described(request["text"])
    if not columns:
        raise ToolError("Only queries can be run: send one SELECT, WITH, VALUES or TABLE.")
    names = [f"c{number}" for number in range(len(columns))]
    bounded = ", ".join(f"pg_catalog.left({name}::pg_catalog.text, {VALUE + 1})" for name in names)
    inner = request["text"].rstrip("; \t\r\n")
    # A line break ends a comment of the query.
    wrapped = f"SELECT {bounded} FROM (\n{inner}\n) q({', '.join(names)})"  # noqa: S608 - one statement
    connection.run(f"DECLARE pegboard NO SCROLL CURSOR FOR {wrapped}")
    connection.check()
    taken = Taken(request["max_rows"])
    readers = [_READERS.get(number, str) for number in numbers]
    fetch = f"FETCH FORWARD {max(1, _AT_ONCE // len(columns)):d} FROM pegboard"
    has_room = True
    while has_room and (rows := connection.run(fetch).fetchall()):
        connection.check()
        for row in rows:
            values = (None if each is None else read(each) for each, read in zip(row, readers, strict=True))
            if not (has_room := taken.take(values)):
                break
    return taken.answer(columns, types)


def explain(connection: _Connection, request: dict[str, Any]) -> dict[str, Any]:
    lines = connection.run(f"EXPLAIN (FORMAT TEXT) {request['text']}").fetchall()
    connection.check()
    return {"plan": bounded_text("\n".join(line for (line,) in lines))}


def execute(connection: _Connection, request: dict[str, Any]) -> dict[str, Any]:
    if connection.described(request["text"])[0]:
        raise ToolError("This gives rows: leave RETURNING out, and send queries to sql_query.")
    cursor = connection.run(request["text"])
    verb = (cursor.statusmessage or "").partition(" ")[0]
    if verb not in _WRITING and (connection.allowed is not None or verb not in _DEFINING.split()):
        raise ToolError(f"{verb or 'This'} cannot be run: send one INSERT, UPDATE or DELETE.")
    connection.run("SET CONSTRAINTS ALL IMMEDIATE")  # what they would do at the end is checked too
    connection.check()
    connection.run("COMMIT")
    return {"rows": cursor.rowcount if verb in _WRITING else None}


# By the name of the request.
_ACTS: Final = {act.__name__: act for act in (schema, query, explain, execute)}
