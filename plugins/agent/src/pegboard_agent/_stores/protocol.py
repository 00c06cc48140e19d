"""Stores of conversations: the protocol, and calls of functions that may block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, runtime_checkable

from pegboard import PegboardError

__all__ = ["ConversationConflictError", "ConversationStore", "ConversationStoreError", "named", "off_loop"]

T = TypeVar("T")


class ConversationStoreError(PegboardError):
    """A store of conversations cannot be reached, read or written."""


class ConversationConflictError(ConversationStoreError):
    """A conversation has not the number of records that its writer expected; nothing was written.

    Args:
        session_id: Name of the conversation.
        expected: Number of records that the writer expected.
        found: Number of records that it has.
    """

    def __init__(self, session_id: str | None, expected: int, found: int) -> None:
        super().__init__(
            f"{named(session_id)} has {found} records, not {expected}: another writer was first, and nothing was "
            "written; load it again"
        )
        self.session_id = session_id
        self.expected = expected
        self.found = found


@runtime_checkable
class ConversationStore(Protocol):
    """Keeps conversations. Each is a list of records that only grows. None is an id like any text.

    A record is a dict of JSON: a message of chat completions, `{"answers": n, "messages": [...]}` for call number n of
    the last message with calls, `{"parked": n, "reason": ...}` for a call that waits, `{"begun": id, "agent": name}`
    for a conversation with a sub-agent, `{"shown": [names]}` for the tools that were listed, in their order,
    `{"system_prompt": text}` for the result of a function, and `{"trimmed": n, "summary": ...}` if requests omit the
    first n messages.

    `load`, `append` and `waiting` are plain functions. They may block for as long as a disk or a database takes, and
    are called from any thread. On an event loop an agent calls them on threads of its own, unless the store has an
    attribute `blocking` that is False. `Agent.owed`, `toolkit.pending` and `toolkit.resume` call them on the caller's
    thread. An exception ends the turn; an agent keeps the records that it could not write, and writes them in the next
    turn.

    A store may have an attribute `trimming`, which `Memory` documents.
    """

    def load(self, session_id: str | None, after: int = 0) -> list[dict[str, Any]]:
        """The records of a conversation, oldest first, without the first `after`; an empty list for an unknown id."""
        ...

    def append(self, session_id: str | None, records: Sequence[Mapping[str, Any]], expected: int) -> None:
        """Add all records or none to a conversation; every reader sees them afterwards.

        Raises `ConversationConflictError` if it has another number, ValueError for an invalid record. Then nothing is
        written.

        Args:
            session_id: Name of the conversation. None: the one that has no name.
            records: The records, as JSON-able mappings.
            expected: Number of records that the conversation has.
        """
        ...

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        """Hold a conversation for one turn, which may take minutes: one at a time, over threads, loops and processes.

        Waiting turns come in about the order of their requests, and do not block an event loop. The lock is released
        when its process ends, also when it is killed. It separates turns but not writers: `toolkit.resume` appends an
        answer while a turn runs.
        """
        ...

    def waiting(self) -> Mapping[str | None, int]:
        """The conversations whose last message has a parked call, with the number of their records.

        The calls may have been answered since.
        """
        ...


def named(session_id: str | None) -> str:
    """The name of a conversation in a sentence."""
    return "the conversation without a session_id" if session_id is None else f"the conversation {session_id!r}"


async def off_loop(function: Callable[..., T], *args: Any) -> T:
    """The result of a function that may block. A cancelled caller still waits for its end."""
    running = asyncio.get_running_loop().run_in_executor(None, function, *args)
    cancelled: BaseException | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # the caller no longer waits
        raise cancelled
    return running.result()
