"""A zoo of tools: they sleep, block, flood, fail in every way, call each other and return odd values."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pegboard import CancelToken, Emitter, ExecutionPolicy, ToolError, Toolkit, ToolResult, tool

__all__ = ["FAILURES", "GIFTS", "HANGING", "LOCKING", "OwnBaseError", "Zoo"]

FLOOD = 50


class OwnBaseError(BaseException):
    """Not an Exception."""


class UnspeakableError(Exception):
    """Cannot even be printed."""

    def __str__(self) -> str:
        raise OwnBaseError


FAILURES: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("no"),
    "ToolError": lambda: ToolError("no"),
    "TimeoutError": lambda: TimeoutError("mine"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "StopIteration": lambda: StopIteration(1),
    "StopAsyncIteration": lambda: StopAsyncIteration(1),
    "ExceptionGroup": lambda: BaseExceptionGroup("both", [ValueError("a"), SystemExit(1)]),
    "OwnBaseError": OwnBaseError,
    "UnspeakableError": UnspeakableError,
}


async def _dropped_by_chaos() -> str:
    await asyncio.sleep(0)
    return "late"


def _generator() -> Iterator[str]:
    yield "a"
    yield "b"


async def _stream() -> AsyncIterator[str]:
    yield "a"
    await asyncio.sleep(0)
    yield "b"


GIFTS: dict[str, Callable[[], Any]] = {
    "exception": lambda: ValueError("given, not raised"),
    "base exception": lambda: SystemExit(1),
    "exception class": lambda: ValueError,
    "coroutine": _dropped_by_chaos,
    "generator": _generator,
    "async generator": _stream,
    "function": lambda: _dropped_by_chaos,
    "object": object,
    "result": lambda: ToolResult("foreign", "foreign"),
    "much": lambda: "x" * 200_000,
    "nothing": lambda: None,
}


@tool(backend="process")
def spin(endless: bool = False) -> str:
    """Use up a processor, in a process of its own."""
    while endless:
        pass
    return "spun"


HANGING = ("hang", "hang_later", "poll", "stubborn", "lock_and_hang")
LOCKING = ("lock_a", "lock_ab", "lock_later", "alone")


class Zoo:
    """The tools of one toolkit. `release` releases those that block; `inside` are the threads inside of a sync tool."""

    def __init__(self, toolkit: Toolkit, patience: float) -> None:
        self.toolkit = toolkit
        self.patience = patience
        self.release = threading.Event()
        self.nested: list[ToolResult] = []
        self._guard = threading.Lock()
        self._inside: list[int] = []
        toolkit.register(
            *(self.echo, self.nap, self.hang, self.poll, self.flood, self.stream, self.fail, self.stream_fail),
            *(self.echo_later, self.nap_later, self.hang_later, self.stubborn, self.tidy, self.flood_later),
            *(self.stream_later, self.fail_later, self.give, self.give_later, self.down, self.fan, self.alone),
            *(self.down_later, self.fan_later, self.block, self.lock_a, self.lock_ab, self.lock_later),
            *(self.lock_and_hang, self.hold_a, self.hold_b, spin),
        )

    @property
    def inside(self) -> set[int]:
        """The threads that are in the body of a sync tool now."""
        with self._guard:
            return set(self._inside)

    @contextmanager
    def _body(self) -> Iterator[None]:
        me = threading.get_ident()
        with self._guard:
            self._inside.append(me)
        try:
            yield
        finally:
            with self._guard:
                self._inside.remove(me)

    # Plain ones ------------------------------------------------------------------------------------------------

    def echo(self, n: int = 0) -> int:
        """Answer."""
        return n

    async def echo_later(self, n: int = 0) -> int:
        """Answer on the loop."""
        return n

    def nap(self, ms: float = 1) -> str:
        """Block."""
        with self._body():
            time.sleep(ms / 1000)
            return "rested"

    async def nap_later(self, ms: float = 1) -> str:
        """Sleep."""
        await asyncio.sleep(ms / 1000)
        return "rested"

    # Those that block ------------------------------------------------------------------------------------------

    def hang(self) -> str:
        """Block, deaf to everything."""
        with self._body():
            self.release.wait(self.patience)
            return "released"

    async def hang_later(self) -> str:
        """Block on the loop."""
        await asyncio.Event().wait()
        return "never"

    def poll(self, token: CancelToken) -> str:
        """Block until asked to stop."""
        with self._body():
            token.wait(self.patience)
            return "stopped" if token.cancelled else "never told"

    async def stubborn(self) -> str:
        """Take the first cancellation for a joke."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.001)
        return "survived"

    @tool(locks=("a",))
    async def lock_and_hang(self) -> None:
        """Block with a lock held."""
        await asyncio.Event().wait()

    async def tidy(self, ms: float = 5) -> str:
        """Sleep, and take one's time for cleaning up."""
        try:
            await asyncio.sleep(ms / 1000)
        finally:
            await asyncio.sleep(0.001)
        return "tidy"

    # Those that flood ------------------------------------------------------------------------------------------

    def flood(self, emitter: Emitter) -> str:
        """Report too often."""
        with self._body():
            for n in range(FLOOD):
                emitter.emit(f"{n} " + "x" * 1000)
            return "y" * 100_000

    async def flood_later(self, emitter: Emitter) -> str:
        """Report too often on the loop."""
        for n in range(FLOOD):
            emitter.emit(f"{n} " + "x" * 1000)
            await asyncio.sleep(0)
        return "y" * 100_000

    def stream(self, n: int = FLOOD) -> Iterator[str]:
        """Yield."""
        for number in range(n):
            time.sleep(0.0001)
            yield f"{number} "

    async def stream_later(self, n: int = FLOOD) -> AsyncIterator[str]:
        """Yield on the loop."""
        for number in range(n):
            await asyncio.sleep(0)
            yield f"{number} "

    # Those that fail -------------------------------------------------------------------------------------------

    def fail(self, how: str) -> None:
        """Fail."""
        error = FAILURES[how]
        raise error()

    async def fail_later(self, how: str) -> None:
        """Fail on the loop."""
        await asyncio.sleep(0)
        error = FAILURES[how]
        raise error()

    def stream_fail(self, how: str) -> Iterator[str]:
        """Fail between two yields."""
        yield "a"
        error = FAILURES[how]
        raise error()

    def give(self, how: str) -> Any:
        """Return something odd."""
        return GIFTS[how]()

    async def give_later(self, how: str) -> Any:
        """Return something odd, on the loop."""
        await asyncio.sleep(0)
        return GIFTS[how]()

    # Those that call back --------------------------------------------------------------------------------------

    def _next(self, path: list[str], leaf: dict[str, Any]) -> tuple[str, dict[str, Any], ExecutionPolicy | None]:
        if path:
            return path[0], {"path": path[1:], "leaf": leaf}, None
        timeout = leaf.get("timeout")
        return leaf["name"], leaf["arguments"], ExecutionPolicy(timeout=timeout) if timeout else None

    def _noted(self, result: ToolResult) -> str:
        self.nested.append(result)
        return result.status.value

    def down(self, path: list[str], leaf: dict[str, Any]) -> str:
        """Call the next tool from a thread."""
        with self._body():
            name, arguments, policy = self._next(path, leaf)
            return self._noted(self.toolkit.call_sync(name, arguments, policy=policy))

    async def down_later(self, path: list[str], leaf: dict[str, Any]) -> str:
        """Call the next tool from a loop."""
        name, arguments, policy = self._next(path, leaf)
        return self._noted(await self.toolkit.call(name, arguments, policy=policy))

    async def block(self, path: list[str], leaf: dict[str, Any]) -> str:
        """Call the next tool from a loop that stands still meanwhile."""
        name, arguments, policy = self._next(path, leaf)
        return self._noted(self.toolkit.call_sync(name, arguments, policy=policy))

    def fan(self, path: list[str], leaf: dict[str, Any]) -> list[str]:
        """Call the next tool twice at once from a thread."""
        with self._body():
            name, arguments, policy = self._next(path, leaf)
            return [self._noted(each) for each in self.toolkit.call_many_sync([(name, arguments)] * 2, policy=policy)]

    async def fan_later(self, path: list[str], leaf: dict[str, Any]) -> list[str]:
        """Call the next tool twice at once from a loop."""
        name, arguments, policy = self._next(path, leaf)
        return [self._noted(each) for each in await self.toolkit.call_many([(name, arguments)] * 2, policy=policy)]

    @tool(locks=("a",))
    def hold_a(self, path: list[str], leaf: dict[str, Any]) -> str:
        """Call the next tool from a thread, holding a lock."""
        return self.down(path, leaf)

    @tool(locks=("b",))
    async def hold_b(self, path: list[str], leaf: dict[str, Any]) -> str:
        """Call the next tool from a loop, holding a lock."""
        return await self.down_later(path, leaf)

    # Those that lock -------------------------------------------------------------------------------------------

    @tool(exclusive=True)
    def alone(self, depth: int = 2) -> int:
        """Call itself, alone."""
        with self._body():
            time.sleep(0.0005)
            if depth:
                self._noted(self.toolkit.call_sync("alone", {"depth": depth - 1}))
            return depth

    @tool(locks=("a",))
    def lock_a(self) -> str:
        """Hold a lock."""
        with self._body():
            time.sleep(0.0005)
            return "a"

    @tool(locks=("b", "a"))
    def lock_ab(self) -> str:
        """Hold two locks."""
        with self._body():
            time.sleep(0.0005)
            return "ab"

    @tool(locks=("a", "b"))
    async def lock_later(self) -> str:
        """Hold two locks on the loop."""
        await asyncio.sleep(0.0005)
        return "ab"
