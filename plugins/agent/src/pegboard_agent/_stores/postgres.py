"""Conversations in PostgreSQL."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from pegboard import PegboardError
from pegboard_agent._stores.protocol import ConversationConflictError, ConversationStoreError, off_loop
from pegboard_agent._stores.records import checked, is_record, kind_of
from pegboard_agent._stores.trimming import Summarize, Trimming
from pegboard_agent._stores.turns import Turns

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresMemory"]

T = TypeVar("T")

TABLE: Final = """
CREATE TABLE IF NOT EXISTS pegboard_conversations (
    conversation text NOT NULL,  -- the session_id as JSON: "ann" in quotes, or null
    number integer NOT NULL,     -- of the record in its conversation, from 0
    kind text NOT NULL,          -- message, answers, parked, begun, shown, system_prompt or trimmed
    record text NOT NULL,        -- JSON
    written timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (conversation, number)
);
CREATE INDEX IF NOT EXISTS pegboard_conversations_parked
    ON pegboard_conversations (conversation, number) WHERE kind = 'parked';
"""
LOAD: Final = "SELECT record FROM pegboard_conversations WHERE conversation = %s AND number >= %s ORDER BY number"
COUNT: Final = "SELECT coalesce(max(number) + 1, 0) FROM pegboard_conversations WHERE conversation = %s"
APPEND: Final = f"""
INSERT INTO pegboard_conversations (conversation, number, kind, record)
SELECT %s, %s + place - 1, kind, record FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS new (kind, record, place)
WHERE ({COUNT}) = %s
"""  # noqa: S608 - made of the statement above
WAITING: Final = """
SELECT conversation,
    (SELECT max(number) + 1 FROM pegboard_conversations AS every WHERE every.conversation = parked.conversation)
FROM (
    SELECT conversation, max(number) AS number FROM pegboard_conversations WHERE kind = 'parked' GROUP BY conversation
) AS parked
WHERE NOT EXISTS (
    SELECT FROM pegboard_conversations AS later
    WHERE later.conversation = parked.conversation AND later.number > parked.number AND later.kind = 'message'
)
"""
MAKING: Final = 5_836_401_221
"""The number of the advisory lock of the program that makes the table."""
OPTIONS: Final = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "application_name": "pegboard-agent"}
"""Options that the URL may override, in seconds and milliseconds."""


@final
class PostgresMemory:
    """Keeps conversations, a `ConversationStore`, in a table of PostgreSQL, for programs on any number of machines.

    It needs `pegboard-agent[postgres]`. The table `pegboard_conversations` is made if it is missing; after that the
    role needs only SELECT and INSERT. A store has one connection. It is made at the first use, again in a forked
    process, and again after it was lost. Turns are advisory locks of that connection, so a pooler in between must not
    share a session among clients.

    Raises `PegboardError` without psycopg, ValueError as `Memory` does. Each method raises `ConversationStoreError` if
    the server cannot be reached, does not answer, or refuses: then no record is lost, and the next use connects again.

    Args:
        url: Address such as `postgresql://user:password@host/database`. No message shows it.
        max_tokens: About how many tokens of a conversation a request holds at most, as in `Memory`. None for no limit.
        summarize: Makes a text in place of omitted messages, as in `Memory`.
    """

    def __init__(self, url: str, *, max_tokens: int | None = None, summarize: Summarize | None = None) -> None:
        try:
            import psycopg  # noqa: F401 - to see whether it is installed
        except ImportError:
            remedy = 'pip install "pegboard-agent[postgres]"'
            raise PegboardError(f"PostgresMemory needs psycopg; install it with {remedy}") from None
        self.trimming = Trimming.of(max_tokens, summarize)
        self._url = url
        self._turns = Turns(self)
        self._forget()

    def _forget(self) -> None:
        """Set the state without a connection: at the beginning, and in a forked process."""
        self._connection: Connection[Any] | None = None
        self._held: set[int] = set()
        self._guard = threading.Lock()
        self._process = os.getpid()

    def load(self, session_id: str | None, after: int = 0) -> list[dict[str, Any]]:
        """The records of a conversation, oldest first, without the first `after`.

        Raises `ConversationStoreError` also for an invalid row, which another program must have written.
        """
        rows = self._do(lambda server: server.execute(LOAD, (json.dumps(session_id), after)).fetchall())
        return [_read(session_id, row[0]) for row in rows]

    def append(self, session_id: str | None, records: Sequence[Mapping[str, Any]], expected: int) -> None:
        """Add records to a conversation, in one statement.

        Raises `ConversationConflictError` if it has another number, ValueError for an invalid record.

        Args:
            session_id: Name of the conversation. None: the one that has no name.
            records: The records, as JSON-able mappings.
            expected: Number of records that the conversation has.
        """
        from psycopg.errors import UniqueViolation

        added = [checked(record) for record in records]
        name = json.dumps(session_id)
        kinds, texts = [kind_of(record) for record in added], [json.dumps(record) for record in added]

        def write(server: Connection[Any]) -> int:
            """The number of records if it is not the expected one."""
            try:
                done = server.execute(APPEND, (name, expected, kinds, texts, name, expected)).rowcount
            except UniqueViolation:  # another writer was first by an instant
                done = -1
            if done == len(added) > 0:
                return expected
            found = server.execute(COUNT, (name,)).fetchone()
            return int(found[0]) if found else 0

        found = self._do(write, again=False)
        if found != expected:
            raise ConversationConflictError(session_id, expected, found)

    def waiting(self) -> Mapping[str | None, int]:
        """The conversations whose last message has a parked call, with the number of their records."""
        rows = self._do(lambda server: server.execute(WAITING).fetchall())
        return {json.loads(name): number for name, number in rows}

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        """Hold a conversation for one turn. If its connection is lost, the turn ends at its next use of the store."""
        return self._turns.turn(session_id)

    async def take(self, number: int) -> bool:
        """Take an advisory lock; False if another connection has it."""
        return await off_loop(self._lock, number)

    def _lock(self, number: int) -> bool:
        taken = self._do(lambda server: server.execute("SELECT pg_try_advisory_lock(%s)", (number,)).fetchone())
        if taken is not None and taken[0]:
            self._held.add(number)
        return number in self._held

    async def free(self, number: int) -> None:
        """Release an advisory lock, if this store has it. The server has released the locks of a lost connection."""
        if number in self._held and self._process == os.getpid():
            await off_loop(self._unlock, number)

    def _unlock(self, number: int) -> None:
        self._held.discard(number)
        with suppress(ConversationStoreError):
            self._do(lambda server: server.execute("SELECT pg_advisory_unlock(%s)", (number,)), again=False)

    def close(self) -> None:
        """Close the connection; the next use makes another one."""
        if self._process == os.getpid():
            with self._guard:
                self._lose()

    # The connection --------------------------------------------------------------------------------------------

    def _do(self, work: Callable[[Connection[Any]], T], *, again: bool = True) -> T:
        """The result of some statements. A connection that proves to be lost is made again, unless it held locks."""
        import psycopg

        if self._process != os.getpid():
            _inherited.append(self._connection)  # closing it would end that of the other process
            self._forget()
        with self._guard:
            again = again and self._connection is not None and not self._held
            try:
                return self._try(work)
            except psycopg.OperationalError as error:
                if not again or self._connection is not None:
                    raise self._failure(error) from None
            except psycopg.Error as error:
                raise self._failure(error) from None
            try:
                return self._try(work)
            except psycopg.Error as error:
                raise self._failure(error) from None

    def _try(self, work: Callable[[Connection[Any]], T]) -> T:
        if self._connection is None:
            self._connection = self._connected()
        try:
            return work(self._connection)
        finally:
            if self._connection.broken or self._connection.closed:
                self._lose()

    def _lose(self) -> None:
        self._held.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> Connection[Any]:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        options: dict[str, Any] = {**OPTIONS, **conninfo_to_dict(self._url)}
        connection = psycopg.connect(autocommit=True, **options)
        try:
            there = connection.execute("SELECT to_regclass('pegboard_conversations')").fetchone()
            if there is None or there[0] is None:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))  # IF NOT EXISTS alone may race
                    connection.execute(TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _failure(self, error: Exception) -> ConversationStoreError:
        """The error for a failure of the server, without any part of the URL."""
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        reason = f"{type(error).__name__}: {error}"
        try:
            parts = [str(part) for name, part in conninfo_to_dict(self._url).items() if name not in ("port", "sslmode")]
        except ProgrammingError:
            reason, parts = "its URL cannot be read", []
        for part in sorted(filter(None, parts), key=len, reverse=True):
            reason = reason.replace(part, "***")
        reason = " ".join(reason.split())
        return ConversationStoreError(
            f"the database of the conversations failed; the next use connects again: {reason}"
        )

    def __repr__(self) -> str:
        return "PostgresMemory()"

    def __del__(self) -> None:
        with suppress(Exception):  # when the interpreter ends, modules may be unloaded
            self.close()


_inherited: Final[list[Any]] = []
"""Connections of the parent of a forked process, never closed here."""


def _read(session_id: str | None, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except ValueError:
        record = None
    if not is_record(record):
        raise ConversationStoreError(f"a row of {session_id!r} is no record of a conversation: {text[:200]}")
    checked_record: dict[str, Any] = record
    return checked_record
