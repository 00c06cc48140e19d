"""Calls that run: on which loop, how they report, and those that wait until their client has asked its user."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import FunctionType
from typing import Any, Final, TypeVar, final

from attrs import define, field

from pegboard import Chunk, DataBlock, Session, Tool, ToolCall
from pegboard_mcp._client.asking import Human
from pegboard_mcp._client.remote_tool import counted, remote_of
from pegboard_mcp._wire.protocol import hears_progress

__all__ = ["Held", "HeldCalls", "Progress", "Workshop", "blocks_no_loop"]

T = TypeVar("T")
LIFETIME: Final = 600.0
"""Seconds for which a call waits for a human."""
MOST: Final = 1_000
_SUSPENDS: Final = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR


@final
class Workshop:
    """A loop on a thread of its own: a tool that blocks it delays other async tools, but no message of a client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="pegboard-mcp-tools", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `work()` there; cancelled with the caller that waits for it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    def close(self) -> None:
        """End the loop and the calls on it. A tool that blocks it keeps its thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(1.0)
        if not self._thread.is_alive():
            self._loop.close()

    async def _end(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=0.5)
        self._loop.stop()


def blocks_no_loop(tool: Tool) -> bool:
    """Whether a tool runs on a thread, or on a loop of another server's."""
    function = tool.function
    if remote_of(tool) is not None:
        return True
    return (
        type(function) is FunctionType and not function.__code__.co_flags & _SUSPENDS and tool.options.backend is None
    )


@final
class Progress:
    """Chunks of a tool as progress of its request, sent on the loop that the protocol runs on."""

    def __init__(self, context: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._count = 0.0
        self.is_heard = hears_progress(context)
        """Whether the client asks for progress; without that a call has no listener, which saves it some work."""

    def moved(self, other: Progress) -> None:
        """Report to another request from now on."""
        self._context = other._context

    async def report(self, chunk: Chunk) -> None:
        """Send one, and wait until it is sent: a tool that reports faster than its client reads slows down."""
        progress, total, message = self._read(chunk)
        sending = self._context.session.report_progress(progress, total, message)
        with suppress(Exception):  # a client that has disconnected needs no progress; the call ends by itself
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(sending, self._loop))

    def _read(self, chunk: Chunk) -> tuple[float, float | None, str | None]:
        """As the tool tells it, also by a block `{"progress": 50, "total": 100}`; else the number of chunks."""
        if chunk.progress is not None:
            self._count = chunk.progress.done
            message = chunk.text != counted(*chunk.progress) and chunk.text
            return self._count, chunk.progress.total, message or None
        data = chunk.content.data if isinstance(chunk.content, DataBlock) else None
        if isinstance(data, dict) and isinstance(data.get("progress"), int | float):
            self._count = float(data["progress"])
            return self._count, data.get("total"), data.get("message")
        self._count += 1.0
        return self._count, None, chunk.text or None


@final
@define(eq=False)
class Held:
    """A call that runs while the client asks its human."""

    session: Session
    call: ToolCall
    human: Human | None
    task: Any  # only one that may be held is a task
    progress: Progress
    expiry: asyncio.TimerHandle | None = field(default=None, init=False)


@final
class HeldCalls:
    """Calls that wait for their clients to come again, each for a while."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}

    def keep(self, held: Held) -> str:
        """Keep a call and return its key. If there are too many the call is cancelled, and the key is empty."""
        if len(self._held) >= MOST:
            held.task.cancel()
            return ""
        key = secrets.token_hex(12)
        self._held[key] = held
        held.expiry = asyncio.get_running_loop().call_later(LIFETIME, self._drop, key)
        return key

    def take(self, key: str) -> Held | None:
        """The call of that key; None if it has ended, or runs at another worker."""
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
