"""Stores of conversations: the protocol, and how an agent speaks to what may block."""

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
    """A conversation has another number of records than its writer expected; nothing was written.

    `session_id` names the conversation, `expected` and `found` are the two numbers.
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
    """Keeps conversations: each is a list of records, to which is only ever added. None is an id like any text.

    A record is a dict of JSON: a message as chat completions take it, `{"answers": n, "messages": [...]}` for call
    number n of the last message with calls, `{"parked": n, "reason": ...}` for one that waits, `{"begun": id, "agent":
    name}` for a conversation with a sub-agent, `{"shown": [names]}` for the tools that were listed, in their order,
    `{"system_prompt": text}` for what a function gave as that, and `{"trimmed": n, "summary": ...}` where the first n
    messages are sent no more.

    `load`, `append` and `waiting` are plain functions, may block for as long as a disk or a database takes, and come
    from any thread. An agent calls them on threads of its own while it is on an event loop, unless the store has an
    attribute `blocking` that is False. `Agent.owed`, `toolkit.pending` and `toolkit.resume` call them where they are
    called themselves. What they raise ends the turn; an agent keeps what it could not write, and writes it in the next.

    A store may have an attribute `trimming`, which `Memory` documents.
    """

    def load(self, session_id: str | None, after: int = 0) -> list[dict[str, Any]]:
        """The records of a conversation, oldest first, without the first `after`; none for one that is not there."""
        ...

    def append(self, session_id: str | None, records: Sequence[Mapping[str, Any]], expected: int) -> None:
        """Add records to a conversation that has `expected` ones: all of them or none, so that each reader sees them.

        Raises `ConversationConflictError` for another number, ValueError for what is no record; nothing is written
        then.
        """
        ...

    def lock(self, session_id: str | None) -> AbstractAsyncContextManager[None]:
        """Hold a conversation for one turn, which may take minutes: one at a time, over threads, loops and processes.

        Those that wait are served in about the order in which they came, and block no event loop. It is released when
        its holder ends, however that is. It keeps turns apart and no writers: an answer that `toolkit.resume` is given
        is appended while a turn runs.
        """
        ...

    def waiting(self) -> Mapping[str | None, int]:
        """The conversations whose last message has a parked call, and how many records each has.

        All answers may be there by then.
        """
        ...


def named(session_id: str | None) -> str:
    """A conversation in a sentence."""
    return "the conversation without a session_id" if session_id is None else f"the conversation {session_id!r}"


async def off_loop(function: Callable[..., T], *args: Any) -> T:
    """What a function returns that may block. A caller that is cancelled waits for its end all the same."""
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
