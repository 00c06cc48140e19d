"""Calls: what a program asks for, made as calls of the running session, several at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar, final

from pegboard import CancelToken, Chunk, Emitter, Session, Status, Suspend, ToolCall, ToolResult
from pegboard_code._program import StoppedError

__all__ = ["Caller", "Clock", "asks", "fails", "in_thread"]

TICK: Final = 0.2
"""Seconds between two looks at whether a call waits for approval, which does not count."""
T = TypeVar("T")


@final
class Clock:
    """The seconds that a program may still run. Raises `StoppedError` when they are spent."""

    def __init__(self, seconds: float, left: float | None = None) -> None:
        self._seconds = seconds
        self.left = seconds if left is None else left

    def spend(self, seconds: float) -> None:
        """Count time in which the program, or one of its calls, was at work."""
        self.left -= seconds
        if self.left <= 0:
            raise StoppedError(
                Status.TIMEOUT, "timeout", f"the program and its calls ran longer than {self._seconds:g} s"
            )

    async def wait(self, task: asyncio.Future[T], calls: list[ToolCall]) -> T:
        """Wait for a task, and cancel it when the time is up or the caller leaves."""
        try:
            while not task.done():
                began = time.perf_counter()
                await asyncio.wait({task}, timeout=min(max(self.left, 0.001), TICK))
                if not _all_ask(calls):
                    self.spend(time.perf_counter() - began)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


def _all_ask(calls: list[ToolCall]) -> bool:
    """Whether all calls that are not over wait for an approver."""
    waiting = [call.status for call in calls if call.result is None]
    return bool(waiting) and all(status is Status.AWAITING_APPROVAL for status in waiting)


@final
class Caller:
    """Makes calls in one session, on behalf of one call of `run_code`."""

    def __init__(
        self, session: Session, clock: Clock, emitter: Emitter, token: CancelToken, given: dict[str, Any]
    ) -> None:
        self.session = session
        self._clock = clock
        self._emitter = emitter
        self._token = token
        self._given = given

    async def call(self, calls: list[ToolCall]) -> list[ToolResult]:
        """Make calls on the running loop; the first that fails ends those that are not done."""
        given, heard = self._given, self._emitter.heard
        if len(calls) == 1:
            one = self.session.call(calls[0], **given, on_chunk=self._report if heard else None)
            return [await self._clock.wait(asyncio.ensure_future(one), calls)]
        return await self._clock.wait(asyncio.ensure_future(self._streamed(calls)), calls)

    async def _streamed(self, calls: list[ToolCall]) -> list[ToolResult]:
        results: dict[str, ToolResult] = {}
        stream: Any = self.session.stream(calls, **self._given)
        try:
            async for event in stream:
                if isinstance(event, Chunk):
                    self._report(event)
                    continue
                results[event.call_id] = event
                if fails(event):
                    break
        finally:
            await stream.aclose()
        return [results.get(call.id) or call.result or _ended(call) for call in calls]

    def call_sync(self, calls: list[ToolCall]) -> list[ToolResult]:
        """The same in plain code: a single call in this very thread, several on a loop of their own."""
        for call in calls:
            self.session.prepare(call)
            self._token.on_cancel(call.stop)
        if len(calls) > 1:
            return asyncio.run(self.call(calls))
        result = self.session.call_sync(calls[0], **self._given)
        self._clock.spend(result.duration)
        return [result]

    def _report(self, chunk: Chunk) -> None:
        self._emitter.emit(chunk.content)


def asks(result: ToolResult) -> bool:
    """Whether the approver of a call cannot decide now, for it has raised `Suspend`."""
    fault = result.error
    return result.status is Status.DENIED and fault is not None and isinstance(fault.exception, Suspend)


def fails(result: ToolResult) -> bool:
    """Whether a call has ended so that its program cannot wait for it."""
    return result.is_error and not asks(result)


def _ended(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, Status.CANCELLED, f"Error: {call.name} was ended, for another call failed")


async def in_thread(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run what blocks in a daemon thread, which no exit waits for; `stop` ends it if the caller leaves."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as failure:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(failure)
        if loop.is_closed():  # and the caller with it
            stop()

    loop = asyncio.get_running_loop()
    waited = asyncio.wrap_future(done)
    threading.Thread(target=run, name="pegboard-code", daemon=True).start()
    try:
        return await asyncio.shield(waited)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait({waited})
        waited.exception()  # it is not missed
        raise
