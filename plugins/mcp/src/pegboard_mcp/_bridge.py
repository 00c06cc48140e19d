"""The bridge between two loops: work is carried over, its outcome back, and a loop is woken once for all that waits."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, final
from weakref import WeakKeyDictionary

__all__ = ["Bridge"]

T = TypeVar("T")


@final
class _Mailbox:
    """What a loop is to do, put in by other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[Callable[[], Any]] = deque()
        self._woken = False

    def put(self, work: Callable[[], Any]) -> None:
        """Have `work()` done there soon. Raises RuntimeError for a loop that is closed."""
        self._waiting.append(work)
        if not self._woken:
            self._woken = True
            self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._woken = False  # at first, so that whatever is put in from now on wakes the loop again
        while self._waiting:
            self._waiting.popleft()()


@final
class Bridge:
    """Carries work to `loop` from any other. Waking a loop costs more than a short call does."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._there = _Mailbox(loop)
        self._heres: WeakKeyDictionary[asyncio.AbstractEventLoop, _Mailbox] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._under_way: dict[asyncio.Future[Any], _Mailbox] = {}

    async def carry(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The outcome of `work()`, done there; cancelled with whoever waits. Raises RuntimeError where it has ended."""
        here = self._here()
        answer: asyncio.Future[T] = here.loop.create_future()
        begun: list[asyncio.Task[T]] = []

        def settle(task: asyncio.Task[T]) -> None:
            self._under_way.pop(answer, None)
            with suppress(RuntimeError):  # nobody waits any more: that loop is closed
                here.put(lambda: _settle(answer, task))

        def begin() -> None:
            if not answer.cancelled():
                begun.append(self._there.loop.create_task(work()))
                begun[0].add_done_callback(settle)

        self._under_way[answer] = here
        try:
            self._there.put(begin)
            return await answer
        except asyncio.CancelledError:
            with suppress(RuntimeError):
                self._there.put(lambda: [task.cancel() for task in begun])
            raise
        finally:
            self._under_way.pop(answer, None)

    def end(self) -> None:
        """The loop has ended: nobody waits for what will not be done."""
        for answer, here in list(self._under_way.items()):
            with suppress(RuntimeError):
                here.put(partial(_give_up, answer))

    def _here(self) -> _Mailbox:
        loop = asyncio.get_running_loop()
        with self._lock:
            found = self._heres.get(loop)
            if found is None:
                found = self._heres[loop] = _Mailbox(loop)
            return found


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(RuntimeError("the connection ended during the call; it may have run"))


def _settle(answer: asyncio.Future[T], task: asyncio.Task[T]) -> None:
    if answer.done():
        return
    if task.cancelled():
        answer.cancel()
    elif (error := task.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(task.result())
