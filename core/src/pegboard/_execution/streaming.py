"""Streaming: chunks on their way from wherever a tool runs to a listener, and batches of calls that report together."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, final

from pegboard._base.effects import is_interrupt, new_future, running_loop
from pegboard._base.errors import PegboardError
from pegboard._execution.telemetry import logger
from pegboard._injection.invocation import Invocation
from pegboard._model.call import CancelToken, Chunk, Listener, ToolCall
from pegboard._model.result import ToolResult

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
_Start: TypeAlias = Callable[[], Coroutine[Any, Any, T]]
_Deliver: TypeAlias = Callable[[Chunk], None]

Event: TypeAlias = Chunk | ToolResult
"""What a stream yields: chunks while calls run, and each call's result."""

ROOM: Final = 1_024
"""Chunks that may be on their way. A thread that sends one more waits; so does a generator, before it is drawn on."""


@final
class ChunkChannel:
    """Made on the event loop of the listener, where `deliver` is called with each chunk; `taken` makes room again."""

    def __init__(self, deliver: _Deliver, room: int = ROOM) -> None:
        self._deliver = deliver
        self._room = room
        self._loop = running_loop()
        self._home = threading.get_ident()
        self._open = 0
        self._closed = False
        self._changed = threading.Condition()
        self._waiters: list[Future[None]] = []

    def send(self, chunk: Chunk, token: CancelToken) -> None:
        """Send a chunk; from a thread without an event loop wait for room before, or until `token` is set.

        Whoever sends on a loop cannot wait here: it has `drain`. What nobody can hear any more is dropped.
        """
        here = threading.get_ident() == self._home
        with self._changed:
            if not here and not self._has_room(token) and running_loop() is None:
                self._wait_for_room(token)
            if self._closed or (token.cancelled and not here):
                return
            self._open += 1
        if here:
            self._deliver(chunk)
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, chunk)

    def _wait_for_room(self, token: CancelToken) -> None:
        from pegboard._execution.threads import lending

        with lending():
            self._changed.wait_for(lambda: self._has_room(token))

    async def drain(self, token: CancelToken) -> None:
        """Wait until there is room, on any event loop."""
        from asyncio import wrap_future

        while True:
            with self._changed:
                if self._has_room(token):
                    return
                waiter: Future[None] = new_future()
                self._waiters.append(waiter)
            await wrap_future(waiter)

    def _has_room(self, token: CancelToken) -> bool:
        return self._open < self._room or self._closed or token.cancelled

    def taken(self) -> None:
        """The listener has dealt with a chunk."""
        with self._changed:
            self._open -= 1
            if self._open <= self._room // 2:  # not for each: waking all who wait costs as much as they are
                self.wake()

    def wake(self) -> None:
        """Let those who wait look again whether they still have to."""
        with self._changed:
            self._changed.notify_all()
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if waiter.set_running_or_notify_cancel():
                    waiter.set_result(None)

    def close(self) -> None:
        """Nobody listens any more."""
        with self._changed:
            self._closed = True
            self.wake()


@final
class _Outlet:
    """What one attempt reports to; who waits there wakes up when `token` says that the attempt is over."""

    __slots__ = ("_channel", "_token")

    def __init__(self, channel: ChunkChannel, token: CancelToken) -> None:
        self._channel = channel
        self._token = token
        token.on_cancel(channel.wake)

    def __call__(self, chunk: Chunk) -> None:
        """Send a chunk."""
        self._channel.send(chunk, self._token)

    async def drain(self) -> None:
        """Wait until there is room for more."""
        await self._channel.drain(self._token)


def listen(invocation: Invocation, listener: Any) -> None:
    """Let a channel or a function hear what a call reports."""
    if isinstance(listener, ChunkChannel):
        invocation.outlet = partial(_Outlet, listener)
    else:
        invocation.listener = partial(_tell, listener)


def check_listener(listener: Any) -> None:
    """Raise `PegboardError` for a listener that plain code cannot call."""
    if is_async_listener(listener):
        raise PegboardError("an async on_chunk is awaited on an event loop; use `await toolkit.call(...)`")


def is_async_listener(listener: Any) -> bool:
    """Whether a listener has to be awaited."""
    called = getattr(type(listener), "__call__", None)  # noqa: B004 - the method itself is wanted
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(called)


@asynccontextmanager
async def heard_by(listener: Listener) -> AsyncIterator[ChunkChannel]:
    """A channel to a listener, which hears everything on the current loop: each chunk after the one before.

    At the end an async listener has heard everything that was sent.
    """
    if is_async_listener(listener):
        async with _pumped(listener) as channel:
            yield channel
        return

    def deliver(chunk: Chunk) -> None:
        try:
            _tell(listener, chunk)
        finally:
            channel.taken()

    channel = ChunkChannel(deliver)
    try:
        yield channel
    finally:
        channel.close()


@asynccontextmanager
async def _pumped(listener: Listener) -> AsyncIterator[ChunkChannel]:
    import asyncio

    chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
    channel = ChunkChannel(chunks.put_nowait)

    async def pump() -> None:
        while (chunk := await chunks.get()) is not None:
            try:
                await _tell_later(listener, chunk)
            finally:
                channel.taken()

    task = asyncio.create_task(pump())
    try:
        yield channel
        chunks.put_nowait(None)
        await asyncio.shield(task)
    finally:
        channel.close()
        task.cancel()
        await asyncio.wait([task])


def _tell(listener: Listener, chunk: Chunk) -> None:
    """A listener that fails must not break the tool that reports to it."""
    try:
        answer = listener(chunk)
    except BaseException as error:
        if is_interrupt(error):
            raise
        logger().warning("on_chunk failed for call %s", chunk.call_id, exc_info=True)
        return
    if inspect.iscoroutine(answer):
        answer.close()
        logger().warning("on_chunk of call %s gave a coroutine; pass the async function itself", chunk.call_id)


async def _tell_later(listener: Listener, chunk: Chunk) -> None:
    from asyncio import current_task

    try:
        await listener(chunk)
    except BaseException as error:
        task = current_task()
        if is_interrupt(error) or (task is not None and task.cancelling()):
            raise
        logger().warning("on_chunk failed for call %s", chunk.call_id, exc_info=True)


@final
class Batch:
    """Some calls of one session with the options that they share."""

    def __init__(
        self, session: Any, calls: Iterable[Any], options: Mapping[str, Any], on_chunk: Listener | None, parallel: bool
    ) -> None:
        self._session = session
        self._calls = [_normalised(call) for call in calls]
        self._options = options
        self._on_chunk = on_chunk
        self._gather = _together if parallel else _in_turn

    async def run(self) -> list[ToolResult]:
        """All results, in call order. Cancelling the caller cancels every call, and leaves when all have ended."""
        return await self._gather([partial(self._one, call, self._on_chunk) for call in self._calls])

    def run_one_by_one(self) -> list[ToolResult]:
        """All results, in call order, from plain code: where no loop can be had."""
        options = {**self._options, "on_chunk": self._on_chunk}
        return [self._session.call_sync(name, sent, call_id=call_id, **options) for name, sent, call_id in self._calls]

    async def stream(self) -> AsyncIterator[Event]:
        """Chunks and results as they come; leaving the iteration cancels what still runs.

        Tools that report faster than somebody iterates have to wait. Results do not: they are as many as the calls.
        """
        import asyncio

        events: asyncio.Queue[Event | None] = asyncio.Queue()
        channel = ChunkChannel(events.put_nowait)

        async def one(call: Any) -> None:
            events.put_nowait(await self._one(call, channel))

        async def everything() -> None:
            try:
                await self._gather([partial(one, call) for call in self._calls])
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


async def _in_turn(calls: list[_Start[T]]) -> list[T]:
    return [await call() for call in calls]


async def _together(calls: list[_Start[T]]) -> list[T]:
    """All results, as of `asyncio.gather`, but when one raises, or the caller is cancelled, nothing stays running."""
    if len(calls) < 2:
        return await _in_turn(calls)
    import asyncio

    tasks = [asyncio.create_task(call()) for call in calls]
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
