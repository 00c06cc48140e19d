"""The library's own event loop: where async tools run when plain code calls them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast, final

from pegboard._base.effects import ClosedError, Outcome
from pegboard._execution.concurrency import place_above
from pegboard._model.call import CancelToken

T = TypeVar("T")

GRACE: Final = 2.0
"""Seconds that what was told to stop has to do so when the loop ends."""


@final
class LoopThread:
    """An event loop in a daemon thread, begun on first use."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runs: set[_Run] = set()
        self._closed = False
        self._blocked = 0

    def run(self, start: Callable[[], Coroutine[Any, Any, T]], token: CancelToken | None = None) -> T:
        """Run a coroutine there and wait until it has ended, however it ends; a token that is set cancels it.

        While a tool blocks this very loop, a fresh one is used.
        """
        loop = self.begin()
        place = place_above()
        if self._is_blocked() if place is None else not place.lean(loop, self._is_blocked):
            fresh = LoopThread()
            try:
                return fresh.run(start, token)
            finally:
                fresh.close()
        try:
            value, error = self._wait(_Run(start), token)
        finally:
            if place is not None:
                place.unlean(loop)
        if error is not None:
            raise error
        return cast("T", value)

    def _is_blocked(self) -> bool:
        return self._blocked > 0 or self.is_here

    def _wait(self, run: _Run, token: CancelToken | None) -> Outcome:
        with self._lock:
            # Under the lock: what is submitted before `close` is ended by it, and never forgotten.
            loop = self.begin()
            self._runs.add(run)
            loop.call_soon_threadsafe(run.begin, loop)
        try:
            if token is not None:
                token.on_cancel(lambda: run.stop(loop))
            try:
                return run.ended.result()
            except BaseException:  # a real Ctrl-C: it leaves when the coroutine has cleaned up
                run.stop(loop)
                with suppress(TimeoutError):
                    run.ended.result(GRACE)
                raise
        finally:
            self._runs.discard(run)

    @property
    def is_here(self) -> bool:
        """Whether the current thread is the one of this loop."""
        return threading.current_thread() is self._thread

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """While the current thread waits: if it is the one of this loop, nothing runs there."""
        if not self.is_here:
            yield
            return
        self._blocked += 1
        try:
            yield
        finally:
            self._blocked -= 1

    def begin(self) -> asyncio.AbstractEventLoop:
        """The loop, begun now if it was not before. Raises RuntimeError after `close`, and if no thread can start."""
        with self._lock:
            if self._closed:
                raise ClosedError("the toolkit is closed; its event loop runs nothing more")
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._serve, args=(loop,), name="pegboard-loop", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    loop.close()
                    raise
                self._loop, self._thread = loop, thread
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self._wind_up())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
            for run in list(self._runs):  # nobody waits for what ignored that it was to stop
                run.end((None, asyncio.CancelledError("the toolkit was closed")))

    async def _wind_up(self) -> None:
        """Give what was told to stop the time to do so; then cancel whatever is left, tasks of tools too."""
        open_ = [run.task for run in list(self._runs) if run.task is not None and not run.task.done()]
        if open_:
            await asyncio.wait(open_, timeout=GRACE)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE)

    def close(self) -> None:
        """End the thread, and what runs there."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            if loop is not None:
                loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join(3 * GRACE)


@final
class _Run:
    """A coroutine that somebody outside of the loop waits for; `ended` is its outcome once it has ended."""

    __slots__ = ("_start", "ended", "task")

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._start = start
        self.task: asyncio.Task[Outcome] | None = None
        self.ended: Future[Outcome] = Future()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin; on the loop."""
        self.task = loop.create_task(self._outcome())
        self.task.add_done_callback(self._done)

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel it; from any thread."""
        with suppress(RuntimeError):  # the loop is closed, and this has ended
            loop.call_soon_threadsafe(lambda: self.task and self.task.cancel())

    async def _outcome(self) -> Outcome:
        # A SystemExit that left a task would end the loop that everybody shares.
        try:
            return await self._start(), None
        except BaseException as error:  # noqa: BLE001 - carried to whoever waits
            return None, error

    def _done(self, task: asyncio.Task[Outcome]) -> None:
        cancelled = task.cancelled()  # before it began
        self.end((None, asyncio.CancelledError()) if cancelled else task.result())

    def end(self, outcome: Outcome) -> None:
        """Say what it came to; only the first word counts."""
        if not self.ended.done():
            self.ended.set_result(outcome)


async def aside(work: Callable[[], None]) -> None:
    """Do what blocks in a thread of its own, while the running loop goes on."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # the caller was cancelled, and its loop is closed
                loop.call_soon_threadsafe(done.set)

    thread = threading.Thread(target=run, name="pegboard-aside", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down
        work()
        return
    await done.wait()
    thread.join()
