"""Turns: who may go on with a conversation, one at a time, in this process and beyond it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol, final

__all__ = ["Claims", "Turns"]

SHORTEST, LONGEST = 0.002, 0.05
"""Seconds between two looks at what another process holds; each wait is longer than the one before."""
IN_LINE: Final = 0.005
"""Seconds between two looks at whose turn it is in this process."""


class Claims(Protocol):
    """What one process at a time holds, by a number below 2**62, and loses when it ends."""

    async def take(self, number: int) -> bool:
        """Hold the number, if no other process does."""
        ...

    async def free(self, number: int) -> None:
        """Hold it no longer, if this process does."""
        ...


@final
class Turns:
    """The turns of all conversations of one store: in this process in the order in which they came.

    Between processes there are two claims for each conversation. Whoever holds the first is the next to get the second,
    which is the turn: a process with many turns cannot keep the others out.
    """

    def __init__(self, claims: Claims | None = None) -> None:
        self._claims = claims
        self._lines: dict[str | None, list[object]] = {}
        self._guard = threading.Lock()
        self._process = os.getpid()

    @asynccontextmanager
    async def turn(self, session_id: str | None) -> AsyncIterator[None]:
        """Wait for a turn, and hold it."""
        own = object()
        line = self._join(session_id, own)
        try:
            while line[0] is not own:  # noqa: ASYNC110 - no event reaches other loops, and few wait
                await asyncio.sleep(IN_LINE)
            if self._claims is None:
                yield
                return
            async with _held(self._claims, session_id):
                yield
        finally:
            self._leave(session_id, line, own)

    def _join(self, session_id: str | None, own: object) -> list[object]:
        if self._process != os.getpid():  # the turns of the process that was forked are not this one's
            self._process, self._lines, self._guard = os.getpid(), {}, threading.Lock()
        with self._guard:
            line = self._lines.setdefault(session_id, [])
            line.append(own)
            return line

    def _leave(self, session_id: str | None, line: list[object], own: object) -> None:
        with self._guard:
            line.remove(own)
            if not line and self._lines.get(session_id) is line:
                del self._lines[session_id]


@asynccontextmanager
async def _held(claims: Claims, session_id: str | None) -> AsyncIterator[None]:
    digest = hashlib.sha256(f"pegboard-agent {json.dumps(session_id)}".encode()).digest()
    following = int.from_bytes(digest[:8]) >> 3 << 1
    turn = following + 1
    try:
        for number in (following, turn):
            wait = SHORTEST
            while not await claims.take(number):
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, LONGEST)
        await claims.free(following)
        yield
    finally:
        await claims.free(following)
        await claims.free(turn)
