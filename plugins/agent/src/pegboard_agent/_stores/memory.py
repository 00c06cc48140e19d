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
    """Keeps conversations, a `ConversationStore`: in the program, or with `path` in a file of JSON lines.

    Any number of programs on one machine may have one file: each reads what the others wrote, one at a time adds to it,
    and one at a time has the turn in a conversation. The locks are in `<path>.lock`, and end with the process that has
    them. A line that the end of a program has torn is ignored, and so is any other that cannot be read: the log says
    so, and the file keeps them, for nothing is ever taken out of it. Who else has an account there cannot read a file
    that is made here.

    With `max_tokens`, a model is sent about so many of a conversation at most, as `estimated_tokens` counts them, and
    the record keeps everything: once a conversation is longer, its oldest turns are left out until it is half as long,
    always whole ones, and never the last. `summarize(messages)`, plain or async, returns a text for what is left out,
    which is sent instead. In between, what is sent is only added to, so that a provider's cache keeps it.

    Raises OSError for what is no regular file: a link, a FIFO, a device; ValueError for a `max_tokens` below 1, and for
    `summarize` without it.
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
        with self._reading():  # what is no file is refused at once
            pass

    @property
    def session_ids(self) -> list[str | None]:
        """The conversations that there are, None for the one without an id."""
        with self._reading() as records:
            return list(records)

    def load(self, session_id: str | None = None, after: int = 0) -> list[dict[str, Any]]:
        """The records of a conversation, oldest first, without the first `after`. Raises OSError as the class does."""
        with self._reading() as records:
            return [dict(record) for record in records.get(session_id, ())[after:]]

    def append(self, session_id: str | None, records: Sequence[Mapping[str, Any]], expected: int) -> None:
        """Add records to a conversation that has `expected` ones.

        Raises `ConversationConflictError` for another number, ValueError for what is no record, OSError where the file
        cannot be written, or is no regular file: nothing is written then.
        """
        added = [checked(record) for record in records]
        with nullcontext() if self._file is None else self._file.locks.writing(), self._reading() as kept:
            found = len(kept.get(session_id, ()))
            if found != expected:
                raise ConversationConflictError(session_id, expected, found)
            if added and self._file is not None:
                self._file.write(session_id, added)
            if added:
                kept.setdefault(session_id, []).extend(added)

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        """Hold a conversation for one turn. Raises OSError where there can be no file for the locks."""
        return self._turns.turn(session_id)

    def waiting(self) -> Mapping[str | None, int]:
        """The conversations whose last message has a parked call, and how many records each has."""
        with self._reading() as kept:
            return {session_id: len(records) for session_id, records in kept.items() if waits(records)}

    @contextmanager
    def _reading(self) -> Iterator[dict[str | None, list[dict[str, Any]]]]:
        """All records, with those that other programs have written by now; one thread at a time."""
        if self._process != os.getpid():  # forked, perhaps while a thread held it
            self._guard, self._process = threading.Lock(), os.getpid()
        with self._guard:
            if self._file is not None:
                self._file.read()
            yield self._records

    def __repr__(self) -> str:
        return "Memory()" if self._file is None else f"Memory({str(self._file.path)!r})"
