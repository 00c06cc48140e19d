"""The bridge between two loops: it carries work over and outcomes back, and wakes a loop once for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar, final

from pegboard_mcp._wire.reasons import UnreachableError

__all__ = ["Bridge", "Mailbox", "Mailboxes"]

T = TypeVar("T")


@final
class Mailbox:
    """Work for a loop, added by other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[Callable[[], Any]] = deque()
        self._woken = False

    def put(self, work: Callable[[], Any]) -> None:
        """Have `work()` done there soon. Raises `UnreachableError` for a loop that is closed."""
        self.add(work, self.wake)

    def put_with_others(self, work: Callable[[], Any], ours: asyncio.AbstractEventLoop) -> None:
        """`put`, from a turn of our loop that may have more for them: they are woken after it.

        Two threads that have work at the same time take turns at the interpreter, which is slow if they do it for
        every single piece.
        """
        self.add(work, partial(ours.call_soon, self.wake))

    def add(self, work: Callable[[], Any], wake: Callable[[], Any]) -> None:
        """Put it in, and call `wake()`, which has to wake the loop, unless a wake is already under way."""
        if self.loop.is_closed():
            raise UnreachableError("the connection has ended")
        self._waiting.append(work)
        if not self._woken:
            self._woken = True
            wake()

    def wake(self) -> None:
        """Have what waits done there soon."""
        with suppress(RuntimeError):  # it was closed this moment
            self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._woken = False  # at first, so that whatever is put in from now on wakes the loop again
        while self._waiting:
            self._waiting.popleft()()


@final
class Mailboxes:
    """One for each loop that has waiting callers."""

    def __init__(self) -> None:
        self._of: dict[asyncio.AbstractEventLoop, Mailbox] = {}

    def here(self) -> Mailbox:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        box = self._of.get(loop)
        if box is None:  # another thread has another loop
            for closed in [each for each in list(self._of) if each.is_closed()]:
                self._of.pop(closed, None)
            box = self._of[loop] = Mailbox(loop)
        return box


@final
class _Errand(Generic[T]):
    """Work on one loop for a caller that waits on another."""

    __slots__ = ("_failure", "_here", "_outcome", "_task", "_there", "_under_way", "_work", "answer")

    def __init__(
        self, work: Callable[[], Coroutine[Any, Any, T]], here: Mailbox, there: Mailbox, under_way: set[_Errand[Any]]
    ) -> None:
        self.answer: asyncio.Future[T] = here.loop.create_future()
        self._work = work
        self._here = here
        self._there = there
        self._under_way = under_way
        self._task: asyncio.Task[None] | None = None
        self._outcome: T
        self._failure: BaseException | None = None

    def begin(self) -> None:
        """On the other loop: do the work, unless the caller no longer waits."""
        if not self.answer.cancelled():
            self._task = self._there.loop.create_task(self._do())

    async def _do(self) -> None:
        try:
            self._outcome = await self._work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
            self._failure = error
        with suppress(UnreachableError):
            if len(self._under_way) > 1:
                self._here.put_with_others(self._settle, self._there.loop)
            else:
                self._here.put(self._settle)

    def stop(self) -> None:
        """There: the one who waited has been cancelled."""
        if self._task is not None:
            self._task.cancel()

    def _settle(self) -> None:
        if self.answer.done():
            return
        if self._failure is None:
            self.answer.set_result(self._outcome)
        elif isinstance(self._failure, asyncio.CancelledError):
            self.answer.cancel()
        else:
            self.answer.set_exception(self._failure)

    def give_up(self) -> None:
        """There, after the last turn: what was not done by then will not be done."""
        self._here.wake()
        with suppress(RuntimeError):
            self._here.loop.call_soon_threadsafe(self._fail)

    def _fail(self) -> None:
        if not self.answer.done():
            self.answer.set_exception(RuntimeError("the connection ended during the call; it may have run"))


@final
class Bridge:
    """Carries work to `loop` from any other. Waking a loop costs more than a short call does."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._there = Mailbox(loop)
        self._heres = Mailboxes()
        self._under_way: set[_Errand[Any]] = set()

    async def carry(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The outcome of `work()`, done there; cancelled with the caller that waits.

        Raises `UnreachableError` where nothing was begun.
        """
        errand = _Errand(work, self._heres.here(), self._there, self._under_way)
        self._under_way.add(errand)
        try:
            self._there.put(errand.begin)
            return await errand.answer
        except asyncio.CancelledError:
            with suppress(UnreachableError):
                self._there.put(errand.stop)
            raise
        finally:
            self._under_way.discard(errand)

    def end(self) -> None:
        """The loop has ended: end the waiting for work that will not be done."""
        for errand in self._under_way.copy():
            errand.give_up()
