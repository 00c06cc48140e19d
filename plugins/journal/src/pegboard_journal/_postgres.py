"""A journal in PostgreSQL, for programs on any number of machines."""

from __future__ import annotations

import secrets
from typing import Any, Final, final

from pegboard_journal._store import LAST, TABLE, Execute, JournalError, Store

__all__ = ["PostgresStore"]

CHAIN: Final = 5_836_401_226
"""The number of the advisory lock that writers take one after another."""
MAKING: Final = CHAIN + 1
LIVING: Final = 583_640
"""The class of the advisory locks that processes hold while they live."""
OPTIONS: Final = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "application_name": "pegboard-journal"}
"""Options that the URL may override, in seconds and milliseconds."""
_ALIVE: Final = (
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = ? AND objid = ? "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@final
class PostgresStore(Store):
    """Rows in the table `pegboard_journal`. Once it is there, a role needs SELECT and INSERT; DELETE to prune."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            remedy = 'pip install "pegboard-journal[postgres]"'
            raise JournalError(f"a journal in PostgreSQL needs psycopg; install it with {remedy}") from None
        self.errors = (psycopg.Error, OSError)
        self.place = "in PostgreSQL"
        self._url = url
        super().__init__()

    def _forget(self) -> None:
        super()._forget()
        self._token = secrets.randbits(31)

    def _connect(self) -> Any:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        given = conninfo_to_dict(self._url)
        options: dict[str, Any] = {name: value for name, value in OPTIONS.items() if name not in given}
        connection = psycopg.connect(self._url, autocommit=True, **options)
        try:
            if connection.execute("SELECT to_regclass('pegboard_journal')").fetchone() == (None,):
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
                    for statement in TABLE:
                        connection.execute(statement.replace(" INTEGER", " BIGINT").encode())
            connection.execute("SELECT pg_advisory_lock(%s, %s)", (LIVING, self._token))
        except BaseException:
            connection.close()
            raise
        return connection

    def _connection(self) -> Any:
        if self._held and (self._held[0].closed or self._held[0].broken):
            self._held.clear()
        return super()._connection()

    def _begun(self, connection: Any, durable: bool) -> tuple[int, str]:
        try:
            return self._last(connection, durable)
        except self.errors:
            if not (connection.closed or connection.broken):
                raise
        # The connection was lost before anything was written: the server was started anew, for instance.
        return self._last(self._connection(), durable)

    def _last(self, connection: Any, durable: bool) -> tuple[int, str]:
        fast = "" if durable else "SET LOCAL synchronous_commit TO off;"
        cursor = connection.execute(f"BEGIN; {fast} SELECT pg_advisory_xact_lock({CHAIN:d}); {LAST}".encode())
        while cursor.nextset():  # each statement has a result, the last one the last row
            pass
        found: tuple[int, str] | None = cursor.fetchone()
        return found or (0, "")

    def _execute(self, connection: Any) -> Execute:
        # After a reconnection in `_begun` the transaction runs on the new connection.
        return lambda statement, values=(): self._held[0].execute(statement.replace("?", "%s"), values)

    @property
    def process(self) -> str:
        """The name of this process, for as long as it lives."""
        return str(self._token)

    def is_alive(self, process: str) -> bool:
        """Whether the process of that name still lives, as the server sees it."""
        if int(process) == self._token:
            return True

        def look() -> bool:
            found = self._execute(self._connection())(_ALIVE, (LIVING, int(process))).fetchone()
            return found is not None

        return self._guarded(look)

    def reason(self, error: Exception) -> str:
        """What went wrong, in one line. It never shows the password; drivers may name host and user."""
        from psycopg.conninfo import conninfo_to_dict

        from pegboard import Redaction

        try:
            password = conninfo_to_dict(self._url).get("password")
        except self.errors:  # a URL that cannot be read; the reason quotes it
            return "the url cannot be read"
        text = super().reason(error)
        return Redaction([password])(text) if password else text
