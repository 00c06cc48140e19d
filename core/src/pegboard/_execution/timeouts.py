"""Deadlines of coroutines, armed only when a coroutine first suspends: most never do; and who cancels a task."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any, final

from pegboard._base.effects import TIMED_OUT, AttemptTimeoutError
from pegboard._execution.timers import alarms

__all__ = ["TaskGuard", "bounded", "continued", "resumed"]


@final
class TaskGuard:
    """Cancels the current task, when its time is up or when somebody stops it, and takes that cancellation back.

    So the caller's own cancellation can be told from these, as `asyncio.timeout` tells it.
    """

    __slots__ = ("_stopped", "expected", "rang", "task")

    def __init__(self) -> None:
        self.task = task = asyncio.current_task()
        self.expected = task.cancelling() if task else 0
        self.rang = False
        self._stopped = False

    def ring(self) -> float:
        """The time is up: the task is cancelled, and told why; who set the alarm takes that back."""
        self.rang = True
        if self.task is not None:
            self.task.cancel(TIMED_OUT)
        return 0.0

    def cancel(self, reason: str = "") -> None:
        """Cancel the task, from any thread."""
        task = self.task
        if task is not None:
            with suppress(RuntimeError):  # the loop is closed: nothing runs there any more
                task.get_loop().call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self.task is not None and not self.task.done():
            self._stopped = True
            self.task.cancel()

    def caller_left(self) -> bool:
        """Whether the caller has been cancelled, whatever a tool made of it: one that swallows it holds nobody."""
        task = self.task
        if task is None:
            return False
        if self._stopped:
            self._stopped = False
            task.uncancel()
        return task.cancelling() > self.expected

    def retire(self) -> bool:
        """The task goes on to other things: a late stop must not hit it, nor one leave its mark. As `caller_left`."""
        left = self.caller_left()
        self.task = None
        return left


async def bounded(awaitable: Any, timeout: float | None) -> Any:  # noqa: ASYNC109 - this is what implements it
    """Await, for at most `timeout` seconds. Raises `AttemptTimeoutError`."""
    if timeout is None:
        return await awaitable
    coroutine = awaitable if isinstance(awaitable, Coroutine) else _awaited(awaitable)
    try:
        first = coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    return await resumed(coroutine, first, timeout, TaskGuard())


@types.coroutine
def continued(coroutine: Coroutine[Any, Any, Any], first: Any) -> Generator[Any, Any, Any]:
    """A coroutine that was sent its first None and yielded `first`, as one that can be awaited."""
    while True:
        thrown: BaseException | None = None
        try:
            yield first  # event loops send nothing but None
        except BaseException as error:  # noqa: BLE001 - everything thrown in belongs to the coroutine
            thrown = error
        if thrown is None:
            return (yield from coroutine)
        try:
            first = coroutine.throw(thrown)
        except StopIteration as stop:
            return stop.value
        finally:
            thrown = None  # which holds this very frame


@types.coroutine
def resumed(
    coroutine: Coroutine[Any, Any, Any], first: Any, timeout: float | None, guard: TaskGuard
) -> Generator[Any, Any, Any]:
    """Continue a coroutine that was sent its first None and yielded `first`, for at most `timeout` seconds.

    `guard` is that of the current task. Raises `AttemptTimeoutError`.
    """
    task = guard.task
    if task is None:
        raise RuntimeError("a call with a timeout runs in a task of an event loop")
    loop = task.get_loop()
    watch = alarms(loop)
    if timeout is not None:
        watch.set(loop, guard, timeout)
    try:
        return (yield from continued(coroutine, first))
    except asyncio.CancelledError as error:
        if timeout is not None and guard.rang and task.cancelling() - 1 <= guard.expected:
            raise AttemptTimeoutError(timeout) from error
        raise
    finally:
        watch.forget(guard)
        if guard.rang:
            guard.rang = False
            task.uncancel()


async def _awaited(awaitable: Any) -> Any:
    return await awaitable
