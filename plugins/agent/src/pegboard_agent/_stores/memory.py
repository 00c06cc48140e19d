"""Memory: conversations in the program or in a file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, final

from pegboard_agent._stores.file import RecordFile
from pegboard_agent._stores.protocol import ConversationConflictError
from pegboard_agent._stores.records import checked, waits
from pegboard_agent._stores.trimming import Summarize, Trimming
from pegboard_agent._stores.turns import Turns

__all__ = ["Memory"]


@final
class Memory:
    """Keeps conversations, a `ConversationStore`: in the program, or in a file of JSON lines.

    Any number of programs on one machine may share a file: each reads the records of all, one at a time adds to it, and
    one at a time has the turn in a conversation. The locks are in `<path>.lock`; the system releases those of a process
    that ends. An incomplete line of a program that ended is ignored, as is any line that cannot be read: there is a
    warning in the log, and the lines stay in the file, from which nothing is ever removed. Other users of the machine
    cannot read a file that is made here.

    Raises OSError if the path is not a regular file: a link, a FIFO, a device; ValueError for a `max_tokens` below 1,
    and for `summarize` without it.

    Args:
        path: The file. None keeps conversations in the program.
        max_tokens: About how many tokens of a conversation a request holds at most, as `estimated_tokens` counts them.
            Once a conversation is longer, requests omit its oldest whole turns until it is half as long, never the
            last; until the next cut they only grow, so that a provider's cache keeps them. The record keeps all
            messages. None for no limit.
        summarize: `summarize(messages)`, plain or async, returns a text that is sent in place of the omitted messages.
            None sends nothing in their place.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_tokens: int | None = None,
        summarize: Summarize | None = None,
    ) -> None:
        self.trimming = Trimming.of(max_tokens, summarize)
        self.blocking = path is not None
        self._records: dict[str | None, list[dict[str, Any]]] = {}
        self._file = None if path is None else RecordFile(Path(path), self._records)
        self._turns = Turns() if self._file is None else self._file.locks.turns
        self._guard, self._process = threading.Lock(), os.getpid()
        with self._reading():  # refuses a path that is not a regular file at once
            pass

    @property
    def session_ids(self) -> list[str | None]:
        """The ids of all conversations; None is that of the conversation without an id."""
        with self._reading() as records:
            return list(records)

    def load(self, session_id: str | None = None, after: int = 0) -> list[dict[str, Any]]:
        """The records of a conversation, oldest first, without the first `after`. Raises OSError as the class does."""
        with self._reading() as records:
            return [dict(record) for record in records.get(session_id, ())[after:]]

    def append(self, session_id: str | None, records: Sequence[Mapping[str, Any]], expected: int) -> None:
        """Add records to a conversation.

        Raises `ConversationConflictError` if it has another number, ValueError for an invalid record, OSError if the
        file cannot be written, or is not a regular file. Then nothing is written.

        Args:
            session_id: Name of the conversation. None: the one that has no name.
            records: The records, as JSON-able mappings.
            expected: Number of records that the conversation has.
        """
        added = [checked(record) for record in records]
        with nullcontext() if self._file is None else self._file.locks.writing(), self._lock():
            if self._file is not None:
                self._file.read()
            kept = self._records.get(session_id, [])
            if len(kept) != expected:
                raise ConversationConflictError(session_id, expected, len(kept))
            if added and self._file is not None:
                self._file.write(session_id, added)
            if added:
                self._records.setdefault(session_id, kept).extend(added)

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        """Hold a conversation for one turn. Raises OSError if no lock file can be made."""
        return self._turns.turn(session_id)

    def waiting(self) -> Mapping[str | None, int]:
        """The conversations whose last message has a parked call, with the number of their records."""
        with self._reading() as kept:
            return {session_id: len(records) for session_id, records in kept.items() if waits(records)}

    @contextmanager
    def _reading(self) -> Iterator[dict[str | None, list[dict[str, Any]]]]:
        """All records, those of other programs included; for one thread at a time."""
        with self._lock():
            if self._file is not None:
                self._file.read()
            yield self._records

    def _lock(self) -> threading.Lock:
        """The lock of the records."""
        if self._process != os.getpid():  # forked, perhaps while a thread held the lock
            self._guard, self._process = threading.Lock(), os.getpid()
        return self._guard

    def __repr__(self) -> str:
        return "Memory()" if self._file is None else f"Memory({str(self._file.path)!r})"
