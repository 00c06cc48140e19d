"""Deadlines of coroutines, armed only when a coroutine first suspends: most never do."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any

from pegboard._alarms import TaskAlarm, alarms
from pegboard._effects import AttemptTimeoutError

__all__ = ["bounded", "resumed"]


async def bounded(awaitable: Any, timeout: float | None) -> Any:  # noqa: ASYNC109 - this is what implements it
    """Await, for at most `timeout` seconds. Raises `AttemptTimeoutError`."""
    if timeout is None:
        return await awaitable
    coroutine = awaitable if isinstance(awaitable, Coroutine) else _awaited(awaitable)
    try:
        first = coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    return await resumed(coroutine, first, timeout)


@types.coroutine
def resumed(coroutine: Coroutine[Any, Any, Any], first: Any, timeout: float | None) -> Generator[Any, Any, Any]:
    """Continue a coroutine that was sent its first None and yielded `first`, for at most `timeout` seconds.

    As `asyncio.timeout` does, the deadline cancels the task, and takes that cancellation back. Raises
    `AttemptTimeoutError`.
    """
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a call with a timeout runs in a task of an event loop")
    loop, before = task.get_loop(), task.cancelling()
    alarm, watch = TaskAlarm(task), alarms(loop)
    if timeout is not None:
        watch.set(loop, alarm, timeout)
    try:
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
    except asyncio.CancelledError as error:
        if timeout is not None and alarm.rang and task.cancelling() - 1 <= before:
            raise AttemptTimeoutError(timeout) from error
        raise
    finally:
        watch.forget(alarm)
        if alarm.rang:
            task.uncancel()


async def _awaited(awaitable: Any) -> Any:
    return await awaitable
