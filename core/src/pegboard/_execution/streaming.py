"""Streaming: chunks on their way from wherever a tool runs to a listener, and batches of calls that report together."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from pegboard._base.effects import is_interrupt, new_future, pass_interrupt, running_loop
from pegboard._base.errors import PegboardError
from pegboard._execution.engine import Engine
from pegboard._execution.run import Run
from pegboard._execution.telemetry import logger
from pegboard._model.call import CancelToken, Chunk, Given, Listener, ToolCall, Unseen, new_call_id
from pegboard._model.result import Status, ToolResult
from pegboard._results.factory import shortened

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

_Call: TypeAlias = "tuple[Any, Any, str | None]"  # name, arguments, id
_Told: TypeAlias = Callable[[ToolResult], object]
_Deliver: TypeAlias = Callable[[Chunk], None]
_Tasks: TypeAlias = "dict[asyncio.Task[ToolResult], _Call]"

# What a stream yields: chunks while calls run, and each call's result.
Event: TypeAlias = Chunk | ToolResult

# Chunks that may be on their way. A thread that sends one more waits; so does a generator, before it is drawn on.
ROOM: Final = 1_024


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

        A tool on a loop cannot wait here: it has `drain`. What no listener can receive any more is dropped.
        """
        here = threading.get_ident() == self._home
        with self._changed:
            if not here and not self._has_room(token) and running_loop() is None:
                from pegboard._execution.threads import lending

                with lending():
                    self._changed.wait_for(lambda: self._has_room(token))
            if self._closed or (token.cancelled and not here):
                return
            self._open += 1
        if here:
            self._deliver(chunk)
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, chunk)

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
        """There is no listener any more."""
        with self._changed:
            self._closed = True
            self.wake()


def listen(run: Run, listener: Any) -> None:
    """Let a channel or a function hear what a call reports."""
    if isinstance(listener, ChunkChannel):
        run.channel = listener
    else:
        run.listener = partial(_tell, listener)


def heard(start: Callable[[Given, bool], Any], given: Given, on_loop: bool) -> Any:
    """What `start` comes to for a call with a listener, which hears everything on the loop that runs here.

    Raises `PegboardError` for a listener that plain code cannot call.
    """
    listener = given[2]
    if on_loop and not isinstance(listener, ChunkChannel):
        return _heard(start, given)
    if not on_loop and is_async_listener(listener):
        raise PegboardError("an async on_chunk is awaited on an event loop; use `await toolkit.call(...)`")
    return start(given, on_loop)


async def _heard(start: Callable[[Given, bool], Any], given: Given) -> Any:
    context, agent, listener, policy = given
    async with heard_by(listener) as channel:
        result = start((context, agent, channel, policy), True)
        while not isinstance(result, ToolResult):
            result = await result
        return result


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
        _tell(listener, chunk)
        channel.taken()

    channel = ChunkChannel(deliver)
    with closing(channel):
        yield channel


@asynccontextmanager
async def _pumped(listener: Listener) -> AsyncIterator[ChunkChannel]:
    import asyncio

    from pegboard._execution.timers import GRACE

    chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
    channel = ChunkChannel(chunks.put_nowait)

    async def pump() -> None:
        while (chunk := await chunks.get()) is not None:
            await _tell_later(listener, chunk)
            channel.taken()

    task = asyncio.create_task(pump())
    try:
        yield channel
        chunks.put_nowait(None)
        await asyncio.shield(task)
    finally:
        channel.close()
        task.cancel()
        await asyncio.wait([task], timeout=GRACE)


def _tell(listener: Listener, chunk: Chunk) -> None:
    """A listener that fails must not break the tool that reports to it."""
    try:
        answer = listener(chunk)
    except BaseException as error:  # noqa: BLE001 - as said above
        pass_interrupt(error)
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


_MEMBERS: Final = frozenset({"name", "arguments", "id"})
_MEANT: Final = {
    **dict.fromkeys(("input", "args", "argument", "kwargs", "parameters", "params"), "arguments"),
    **dict.fromkeys(("tool", "tool_name"), "name"),
    **dict.fromkeys(("call_id", "tool_call_id", "tool_use_id"), "id"),
}
"""What members are called elsewhere."""


def _normalised(call: Any) -> _Call:
    if isinstance(call, (tuple, list)) and len(call) == 2:  # `tuple | list` would be made for each call
        return call[0], call[1], new_call_id()
    if isinstance(call, ToolCall):
        return call, None, new_call_id()
    if isinstance(call, Mapping) and "name" in call and call.keys() <= _MEMBERS:
        return call["name"], call.get("arguments"), call.get("id") or new_call_id()
    raise _no_call(call)


def _no_call(call: Any) -> PegboardError:
    """The error for what is none, with what was meant."""
    known = "a call is a ToolCall, a (name, arguments) pair or a mapping with 'name', 'arguments' and perhaps 'id'"
    if isinstance(call, str):  # a lone pair that was taken for a list, for instance: its name would run without a word
        return PegboardError(
            f"{known}; got the text {shortened(call, 100)!r}: write [({shortened(call, 100)!r}, {{}})]"
        )
    if not isinstance(call, Mapping):
        return PegboardError(f"{known}; got a {type(call).__name__}")
    if not call.keys().isdisjoint(("type", "function", "function_call", "functionCall", "jsonrpc")):
        remedy = "a provider's own format is read by toolkit.dialect(...).calls(response)"
    else:
        remedy = ", ".join(f"{name!r} is called {_MEANT[name]!r} here" for name in call if name in _MEANT)
    return PegboardError(f"{known}; got one with {', '.join(map(repr, call))}{remedy and ': '}{remedy}")


# By hand: attrs makes one in three times as long, and a batch may be of one call.
class Batch:
    """Some calls of one session with the options that they share."""

    def __init__(
        self,
        call: Callable[..., Coroutine[Any, Any, ToolResult]],
        calls: Iterable[Any],
        options: Mapping[str, Any],
        on_chunk: Listener | None,
        parallel: bool,
        engine: Engine,
    ) -> None:
        if type(calls) is not list and (isinstance(calls, (str, bytes, Mapping)) or not isinstance(calls, Iterable)):
            raise PegboardError(f"several calls are a list; got a lone {type(calls).__name__}: put it into a list")
        self._call = call
        self._calls = [_normalised(each) for each in calls]
        self._options = options
        self._on_chunk = on_chunk
        self._parallel = parallel
        self._engine = engine

    async def run(self) -> list[ToolResult]:
        """All results, in call order. Cancelling the caller cancels every call, and leaves when all have ended."""
        if len(self._calls) == 1:  # in the caller's own task, as that call by itself
            return [await self._one(self._calls[0])]
        return await self.run_apart()

    async def run_apart(self) -> list[ToolResult]:
        """The same, each call in a task of its own: a tool that cancels its task ends its call and no other one."""
        return [result for calls in self._waves() for result in await self._together(calls)]

    def _waves(self) -> Iterable[list[_Call]]:
        """The calls that run at once, and after them the next ones."""
        return [self._calls] if self._parallel and self._calls else ([call] for call in self._calls)

    def run_one_by_one(self, call_sync: Callable[..., ToolResult]) -> list[ToolResult]:
        """All results, in call order, from plain code: where no loop can be had."""
        options = {**self._options, "on_chunk": self._on_chunk}
        return [call_sync(name, sent, call_id=call_id, **options) for name, sent, call_id in self._calls]

    async def stream(self) -> AsyncIterator[Event]:
        """Chunks and results as they come; leaving the iteration cancels what still runs.

        Tools that report faster than the caller iterates have to wait. Results do not: they are as many as the calls.
        """
        import asyncio

        events: asyncio.Queue[Any] = asyncio.Queue()
        self._on_chunk = channel = ChunkChannel(events.put_nowait)  # type: ignore[assignment]  # a listener of our own
        tasks: _Tasks = {}
        try:
            for calls in self._waves():
                tasks = self._begun(calls, events.put_nowait, told=events.put_nowait)
                while isinstance(event := await events.get(), (Chunk, ToolResult)):
                    if isinstance(event, Chunk):
                        channel.taken()
                    yield event
                if event is not None:
                    event.result()
        finally:
            channel.close()
            await self._leave(tasks)

    def _one(self, call: _Call) -> Coroutine[Any, Any, ToolResult]:
        name, arguments, call_id = call
        return self._call(name, arguments, call_id=call_id, on_chunk=self._on_chunk, **self._options)

    async def _together(self, calls: list[_Call]) -> list[ToolResult]:
        """All results, as of `asyncio.gather`; if one raises, or the caller is cancelled, nothing stays running."""
        import asyncio

        over: asyncio.Queue[asyncio.Task[ToolResult] | None] = asyncio.Queue()
        tasks = self._begun(calls, over.put_nowait)
        try:
            failed = await over.get()  # not `asyncio.gather`, which would cancel those that are cleaning up once more
        finally:
            await self._leave(tasks)
        if failed is not None:
            failed.result()
        return [self._result(task, call) for task, call in tasks.items()]

    def _begun(self, calls: list[_Call], over: Callable[[Any], object], told: _Told | None = None) -> _Tasks:
        """Tasks that run the calls. `told` gets each result; `over` the first task that raises, or None at the end."""
        import asyncio

        tasks = {asyncio.create_task(self._one(call)): call for call in calls}
        running = len(tasks)

        def ended(task: asyncio.Task[ToolResult]) -> None:
            nonlocal running
            failed = None if task.cancelled() or task.exception() is None else task
            running = 0 if failed else running - 1  # below 0 after one that has raised
            if told is not None and running >= 0 and not failed:
                told(self._result(task, tasks[task]))
            if running == 0:
                over(failed)

        for task in tasks:
            task.add_done_callback(ended)
        return tasks

    async def _leave(self, tasks: _Tasks) -> None:
        """Cancel what still runs, and wait until it has ended."""
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            from asyncio import wait

            from pegboard._execution.timers import GRACE

            _, ignoring = await wait(left, timeout=GRACE)
            self._engine.drivers.abandoned.leave(ignoring)

    def _result(self, task: asyncio.Task[ToolResult], call: _Call) -> ToolResult:
        """What a call came to whose task only its tool has cancelled, if it did."""
        if not task.cancelled():
            return task.result()
        known = call[0]
        said = known if isinstance(known, ToolCall) else Unseen(call[2] or "", str(known))
        why = f"{said.name} cancelled the task that it ran in"
        results = self._engine.results
        return getattr(known, "result", None) or results.refusal(said, Status.CANCELLED, "cancelled", why, attempts=1)
