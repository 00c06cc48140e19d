"""The workshop: where tools run while the protocol goes on elsewhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, final

__all__ = ["Workshop"]

T = TypeVar("T")


@final
class Workshop:
    """A loop on a thread of its own: a tool that blocks it holds up other async tools, and no message of a client."""

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
        """End the loop, and what runs there; a tool that blocks it is left behind."""
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
