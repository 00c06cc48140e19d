"""Providing: what injectors give to one attempt, off the event loop and within its time; and how that is closed."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, final

from pegboard._base.effects import AttemptTimeoutError, Io, Outcome
from pegboard._base.markers import MISSING
from pegboard._execution.loop_thread import to_the_end
from pegboard._execution.threads import performed
from pegboard._injection.injectors import Provider
from pegboard._injection.invocation import Invocation


@final
class Budget:
    """The seconds of one attempt: those that its injectors take are not there for its function. Queueing takes none."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._used = 0.0

    def left(self) -> float | None:
        """What is left; None without a timeout."""
        return None if self._timeout is None else max(self._timeout - self._used, 0.0)

    def use(self, started: float) -> None:
        """Count what has passed since then, by `perf_counter`."""
        self._used += perf_counter() - started

    def named(self, outcome: Outcome) -> Outcome:
        """An outcome whose deadline is that of the whole attempt."""
        error = outcome[1]
        if not isinstance(error, AttemptTimeoutError) or self._timeout is None or error.seconds == self._timeout:
            return outcome
        late = AttemptTimeoutError(self._timeout, abandoned=error.abandoned)
        late.__cause__ = error.__cause__
        return None, late


@final
class Providing:
    """Asks the injectors of one attempt, and closes what they opened: last first, each to its end."""

    def __init__(self, io: Io, invocation: Invocation, budget: Budget, *, interruptible: bool) -> None:
        self._io = io
        self._invocation = invocation
        self._budget = budget
        self._interruptible = interruptible  # from plain code: the timeout was asked for
        self._lock = threading.Lock()
        self._opened: list[Any] = []
        self._over = False

    async def work(self, job: Callable[[], Any]) -> Outcome:
        """What plain code of the program comes to, off the event loop, with the context variables that it sets."""

        def run() -> Any:
            started = perf_counter()
            try:
                return job(), contextvars.copy_context()
            finally:
                self._budget.use(started)

        found, error = await self._io.work(run, "thread", self._budget.left(), interruptible=self._interruptible)
        if error is not None:
            return None, error
        value, context = found
        _adopt(context)
        return value, None

    async def resolve(self, provider: Provider) -> BaseException | None:
        """Run a managed provider and those that it needs, once for each attempt; the error that one of them raised."""
        invocation, function = self._invocation, provider.function
        if function is None or not provider.managed or function in invocation.resolved:
            return None
        for needed in provider.needs.values():
            if error := await self.resolve(needed):
                return error
        value, error = await self._value(provider, function)
        if error is None:
            invocation.resolved[function] = value
        return error

    async def _value(self, provider: Provider, function: Callable[..., Any]) -> Outcome:
        def start() -> Any:
            return function(**{name: needed.give(self._invocation) for name, needed in provider.needs.items()})

        if provider.kind == "generator":
            return await self.work(partial(self._begin, start))
        if provider.kind == "sync" or any(needed.blocking for needed in provider.needs.values()):
            value, error = await self.work(start)
        else:
            value, error = performed(start)
        if error is not None:
            return None, error
        if inspect.isasyncgen(value):
            life = Lifetime(value)
            self._opened.append(life.close)
            return await self._awaited(life.open)
        return await self._awaited(lambda: value) if inspect.isawaitable(value) else (value, None)

    def _begin(self, start: Callable[[], Any]) -> Any:
        """Open a generator; one that is open only when the attempt is over is closed at once."""
        generator = start()
        value = next(generator, MISSING)
        close = partial(next, generator, None)
        with self._lock:
            if not self._over:
                self._opened.append(close)
                return value
        return close()

    async def _awaited(self, start: Callable[[], Any]) -> Outcome:
        started = perf_counter()
        outcome = await self._io.wait_for(start, self._budget.left())
        self._budget.use(started)
        return outcome

    async def release(self) -> BaseException | None:
        """Close what was opened; every one is closed, and the first failure is what this gives."""
        with self._lock:
            self._over = True
        first: BaseException | None = None
        while self._opened:
            _, error = await self._io.finish(self._opened.pop())
            first = first or error
        self._invocation.resolved.clear()
        return first


@final
class Lifetime:
    """An async generator in a task of its own: opened, used by others, and closed to its end there.

    The cancellation of who waits reaches it only while it opens. Context variables that it sets are set for them too.
    """

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._outcome: Outcome = (None, None)
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> Any:
        """Its first value."""
        context = contextvars.copy_context()
        self._task = asyncio.create_task(self._live(), context=context)
        try:
            await self._opened.wait()
        except asyncio.CancelledError:
            if not self._opened.is_set():
                self._task.cancel()
                await to_the_end(self._task)
            raise
        _adopt(context)
        value, error = self._outcome
        if error is not None:
            raise error
        return value

    async def _live(self) -> None:
        try:
            self._outcome = await anext(self._generator, MISSING), None
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._outcome = None, error
            return
        finally:
            self._opened.set()
        with suppress(asyncio.CancelledError):  # the loop ends: it is closed all the same
            await self._closing.wait()
        await anext(self._generator, None)

    async def close(self) -> None:
        """Close it, to its end however often the caller is cancelled meanwhile. Raises what that raises."""
        self._closing.set()
        if self._task is not None:
            await to_the_end(self._task)
            if not self._task.cancelled():
                self._task.result()


def _adopt(context: contextvars.Context) -> None:
    """Set the context variables here that were set there."""
    for variable, value in context.items():
        if variable.get(MISSING) is not value:
            variable.set(value)
