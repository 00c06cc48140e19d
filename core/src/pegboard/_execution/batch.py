"""Batches: several calls at once, results in call order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, final

from pegboard._base.errors import PegboardError
from pegboard._execution.chunks import ChunkChannel
from pegboard._model.call import Chunk, Listener, ToolCall
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.result import ToolResult

__all__ = ["Batch", "Event", "as_call"]

T = TypeVar("T")

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
        """All results, in call order. Cancelling the caller cancels every call, and leaves when all have ended."""
        calls = [self._one(call, self._on_chunk) for call in self._calls]
        return await (_together(calls) if parallel else _in_turn(calls))

    def run_one_by_one(self) -> list[ToolResult]:
        """All results, in call order, from plain code: where no loop can be had."""
        options = {**self._options, "on_chunk": self._on_chunk}
        return [self._session.call_sync(name, sent, call_id=call_id, **options) for name, sent, call_id in self._calls]

    async def stream(self, *, parallel: bool) -> AsyncIterator[Event]:
        """Chunks and results as they come; leaving the iteration cancels what still runs.

        Tools that report faster than somebody iterates have to wait. Results do not: they are as many as the calls.
        """
        import asyncio

        events: asyncio.Queue[Event | None] = asyncio.Queue()
        channel = ChunkChannel(events.put_nowait)

        async def one(call: Any) -> None:
            events.put_nowait(await self._one(call, channel))

        async def everything() -> None:
            calls = [one(call) for call in self._calls]
            try:
                await (_together(calls) if parallel else _in_turn(calls))
            finally:
                events.put_nowait(None)

        running = asyncio.create_task(everything())
        try:
            while (event := await events.get()) is not None:
                if isinstance(event, Chunk):
                    channel.taken()
                yield event
            await running
        finally:
            channel.close()
            running.cancel()
            await asyncio.wait([running])

    def _one(self, call: tuple[Any, Any, str | None], on_chunk: Any) -> Coroutine[Any, Any, ToolResult]:
        name, arguments, call_id = call
        running: Coroutine[Any, Any, ToolResult] = self._session.call(
            name, arguments, call_id=call_id, on_chunk=on_chunk, **self._options
        )
        return running


async def _in_turn(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    waiting = deque(calls)
    results: list[T] = []
    try:
        while waiting:
            results.append(await waiting.popleft())
    finally:
        for call in waiting:
            call.close()  # it will never be awaited
    return results


async def _together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results, as of `asyncio.gather`, but when one raises, or the caller is cancelled, nothing stays running."""
    calls = list(calls)
    if len(calls) < 2:
        return await _in_turn(calls)
    import asyncio

    tasks = [asyncio.create_task(call) for call in calls]
    over = asyncio.get_running_loop().create_future()
    failed: list[asyncio.Task[T]] = []
    running = len(tasks)

    def ended(task: asyncio.Task[T]) -> None:
        nonlocal running
        running -= 1
        if not task.cancelled() and task.exception() is not None:
            failed.append(task)
        if (failed or not running) and not over.done():
            over.set_result(None)

    for task in tasks:
        task.add_done_callback(ended)
    try:
        await over  # not `asyncio.gather`, which would cancel those that are cleaning up once more
    finally:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
    return [task.result() for task in failed or tasks]


def as_call(name: Any, arguments: Any, call_id: str | None) -> ToolCall:
    """A `ToolCall` for whatever names one."""
    return name if isinstance(name, ToolCall) else ToolCall(call_id or "", name, arguments)


def _normalised(call: Any) -> tuple[Any, Any, str | None]:
    if isinstance(call, tuple | list) and len(call) == 2:
        return call[0], call[1], None
    if isinstance(call, ToolCall | str):
        return call, None, None
    if isinstance(call, Mapping) and "name" in call:
        return call["name"], call.get("arguments"), call.get("id")
    raise PegboardError(
        f"a call is a ToolCall, a (name, arguments) pair or a mapping with 'name'; got a {type(call).__name__}"
    )
