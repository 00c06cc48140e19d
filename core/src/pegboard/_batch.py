"""Batches: several calls at once, results in call order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, TypeAlias, final

from pegboard._call import Chunk, Listener, ToolCall
from pegboard._errors import PegboardError
from pegboard._policy import ExecutionPolicy
from pegboard._result import ToolResult

__all__ = ["Batch", "Event", "as_call"]

Event: TypeAlias = Chunk | ToolResult
"""What a stream yields: chunks while calls run, and each call's result."""


@final
class Batch:
    """Some calls of one session with the options that they share."""

    def __init__(
        self,
        session: Any,
        calls: Iterable[Any],
        context: Any,
        agent: Any,
        on_chunk: Listener | None,
        policy: ExecutionPolicy | None,
    ) -> None:
        self._session = session
        self._calls = [_normalised(call) for call in calls]
        self._options = {"context": context, "agent": agent, "policy": policy}
        self._on_chunk = on_chunk

    async def run(self, *, parallel: bool) -> list[ToolResult]:
        """All results, in call order. Cancelling the caller cancels every call."""
        if not parallel or len(self._calls) < 2:
            return [await self._one(call, self._on_chunk) for call in self._calls]
        import asyncio

        return list(await asyncio.gather(*(self._one(call, self._on_chunk) for call in self._calls)))

    def run_one_by_one(self) -> list[ToolResult]:
        """All results, in call order, from plain code: where no loop can be had."""
        options = {**self._options, "on_chunk": self._on_chunk}
        return [self._session.call_sync(name, sent, call_id=call_id, **options) for name, sent, call_id in self._calls]

    async def stream(self, *, parallel: bool) -> AsyncIterator[Event]:
        """Chunks and results as they come; leaving the iteration cancels what still runs."""
        import asyncio

        events: asyncio.Queue[Event | None] = asyncio.Queue()

        async def one(call: Any) -> None:
            events.put_nowait(await self._one(call, events.put_nowait))

        async def everything() -> None:
            try:
                if parallel:
                    await asyncio.gather(*(one(call) for call in self._calls))
                else:
                    for call in self._calls:
                        await one(call)
            finally:
                events.put_nowait(None)

        running = asyncio.create_task(everything())
        try:
            while (event := await events.get()) is not None:
                yield event
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _one(self, call: tuple[Any, Any, str | None], on_chunk: Listener | None) -> ToolResult:
        name, arguments, call_id = call
        result: ToolResult = await self._session.call(
            name, arguments, call_id=call_id, on_chunk=on_chunk, **self._options
        )
        return result


def as_call(name: Any, arguments: Any, call_id: str | None) -> ToolCall:
    """A `ToolCall` for whatever names one."""
    return name if isinstance(name, ToolCall) else ToolCall(call_id or "", name, arguments)


def _normalised(call: Any) -> tuple[Any, Any, str | None]:
    if isinstance(call, ToolCall):
        return call, None, None
    if isinstance(call, str):
        return call, None, None
    if isinstance(call, Mapping) and "name" in call:
        return call["name"], call.get("arguments"), call.get("id")
    if isinstance(call, tuple | list) and len(call) == 2:
        return call[0], call[1], None
    raise PegboardError(
        f"a call is a ToolCall, a (name, arguments) pair or a mapping with 'name'; got a {type(call).__name__}"
    )
