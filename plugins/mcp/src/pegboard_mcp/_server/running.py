"""Relaying: what a far server asks while one of its tools runs here is put to the human at the near client."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, final

from attrs import define, field

from pegboard import Session, ToolCall

__all__ = ["Held", "HeldCalls", "Human", "human_of_this_call"]

LIFETIME: Final = 600.0
"""Seconds for which a call waits for a human."""
MOST: Final = 1_000

human_of_this_call: ContextVar[Human | None] = ContextVar("pegboard_mcp_human", default=None)


@final
class Human:
    """The user of the client that made a call. `put(message, form)` asks at once; without it a question waits.

    The newer protocol cannot ask while a call runs: the client is told to come again with the answer.
    """

    def __init__(self, put: Callable[[str, dict[str, Any]], Any] | None) -> None:
        self.asked: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._put = put
        self._loop = asyncio.get_running_loop()
        self._one_by_one = asyncio.Lock()
        self._answer: asyncio.Future[Any] | None = None

    async def ask(self, message: str, form: dict[str, Any]) -> Any:
        """The human's answer, an `ElicitResult`; may be awaited on any loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._ask(message, form), self._loop))

    async def _ask(self, message: str, form: dict[str, Any]) -> Any:
        async with self._one_by_one:
            if self._put is not None:
                return await self._put(message, form)
            self._answer = self._loop.create_future()
            self.asked.put_nowait((message, form))
            return await self._answer

    def answer(self, response: Any) -> None:
        """Give the answer to the question that waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(response)


@final
@define(eq=False)
class Held:
    """A call that runs while the client asks its human."""

    session: Session
    call: ToolCall
    human: Human | None
    task: Any  # only one that may be held is a task
    progress: Any
    expiry: asyncio.TimerHandle | None = field(default=None, init=False)


@final
class HeldCalls:
    """Calls that wait for their clients to come again, each for a while."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}

    def keep(self, held: Held) -> str:
        """Keep a call; nothing comes back for one too many, which is cancelled."""
        if len(self._held) >= MOST:
            held.task.cancel()
            return ""
        key = secrets.token_hex(12)
        self._held[key] = held
        held.expiry = asyncio.get_running_loop().call_later(LIFETIME, self._drop, key)
        return key

    def take(self, key: str) -> Held | None:
        """The call of that key; None for one that has ended, or waits elsewhere."""
        held = self._held.pop(key, None)
        if held is not None and held.expiry is not None:
            held.expiry.cancel()
        return held

    def _drop(self, key: str) -> None:
        if (held := self.take(key)) is not None:
            held.task.cancel()

    def close(self) -> None:
        """Cancel all of them."""
        for key in list(self._held):
            self._drop(key)
