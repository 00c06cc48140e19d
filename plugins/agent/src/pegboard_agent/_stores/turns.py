"""Turns: one run at a time goes on with a conversation, in this process and in others."""

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
"""Seconds between two attempts to take a claim that another process holds; each wait is longer than the last."""
IN_LINE: Final = 0.005
"""Seconds between two looks at the first run in line in this process."""


class Claims(Protocol):
    """Claims by numbers below 2**62: one process at a time holds a number, and releases it when it ends."""

    async def take(self, number: int) -> bool:
        """Take a number; False if another process holds it."""
        ...

    async def free(self, number: int) -> None:
        """Release a number, if this process holds it."""
        ...


@final
class Turns:
    """The turns of all conversations of one store: in this process in the order in which they came.

    Between processes there are two claims for each conversation. The process that holds the first is the next to get
    the second, which is the turn: a process with many turns cannot block the other processes.
    """

    def __init__(self, claims: Claims | None = None) -> None:
        self._claims = claims
        self._lines: dict[str | None, list[object]] = {}
        self._guard = threading.Lock()
        self._process = os.getpid()

    @asynccontextmanager
    async def turn(self, session_id: str | None) -> AsyncIterator[None]:
        """Wait for the turn, and hold it inside the block."""
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
        if self._process != os.getpid():  # a forked process has none of its parent's turns
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
