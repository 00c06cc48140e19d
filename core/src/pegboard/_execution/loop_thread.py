"""The library's own event loop: where async tools run when plain code calls them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar, cast, final

from attrs import define, field

from pegboard._base.effects import ClosedError, Outcome, after_fork
from pegboard._execution.threads import performed_later
from pegboard._execution.timers import GRACE, AbandonedTasks, TaskGuard, bounded
from pegboard._model.call import CancelToken

T = TypeVar("T")


@final
class LoopThread:
    """An event loop in a daemon thread, begun on first use."""

    def __init__(self, abandoned: AbandonedTasks) -> None:
        self._abandoned = abandoned
        self._closed = False
        self._begin()
        after_fork(self, LoopThread._begin)  # its thread is one of the parent

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runs: set[_Run] = set()
        self._blocked = 0

    def run(
        self,
        start: Callable[[], Coroutine[Any, Any, T]],
        token: CancelToken | None = None,
        timeout: float | None = None,
    ) -> T:
        """Run a coroutine there and wait until it has ended, however it ends; a token that is set cancels it.

        Raises `AttemptTimeoutError` after `timeout` seconds. While a tool blocks this very loop, a fresh one is used.
        """
        self.begin()
        if self._blocked or threading.current_thread() is self._thread:
            with closing(LoopThread(self._abandoned)) as fresh:
                return fresh.run(start, token, timeout)
        value, error = self._wait(_Run(lambda guard: bounded(start(), timeout, guard), self._abandoned), token)
        if error is not None:
            raise error
        return cast("T", value)

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

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """While the current thread waits: if it is the one of this loop, nothing runs there."""
        if threading.current_thread() is not self._thread:
            yield
            return
        self._blocked += 1
        try:
            yield
        finally:
            self._blocked -= 1

    def begin(self) -> asyncio.AbstractEventLoop:
        """The loop, begun now if it was not before. Raises `ClosedError` after `close`, and if no thread can start."""
        with self._lock:
            if self._closed:
                raise ClosedError("the toolkit is closed; its event loop runs nothing more")
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._serve, args=(loop,), name="pegboard-loop", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    loop.close()
                    raise ClosedError(str(error)) from error
                self._loop, self._thread = loop, thread
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self._wind_up())
            for run in list(self._runs):  # what ignored that it was to stop is not waited for
                run.end((None, asyncio.CancelledError("the toolkit was closed")))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

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
@define(eq=False)
class _Run:
    """A coroutine that a caller outside of the loop waits for; `ended` is its outcome once it has ended."""

    _start: Callable[[TaskGuard], Coroutine[Any, Any, Any]]
    _abandoned: AbandonedTasks
    _stoppable: Any = None
    task: asyncio.Task[Outcome] | None = None
    ended: Future[Outcome] = field(factory=Future)

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin; on the loop."""
        self._stoppable = self.task = loop.create_task(self._outcome())
        self.task.add_done_callback(self._done)

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel it; from any thread."""
        with suppress(RuntimeError):  # the loop is closed, and this has ended
            loop.call_soon_threadsafe(lambda: self._stoppable.cancel())  # noqa: PLW0108 - whichever it is by then

    async def _outcome(self) -> Outcome:
        # A SystemExit that left a task would end the loop that all calls share.
        self._stoppable = guard = TaskGuard(self._abandoned)
        return await performed_later(lambda: self._start(guard))

    def _done(self, task: asyncio.Task[Outcome]) -> None:
        # One that is cancelled was so before it began.
        self.end((None, asyncio.CancelledError()) if task.cancelled() else task.result())

    def end(self, outcome: Outcome) -> None:
        """Say what it came to; only the first word counts."""
        if not self.ended.done():
            self.ended.set_result(outcome)


async def aside(work: Callable[[], None]) -> None:
    """Do what blocks in a thread of its own, while the running loop goes on."""
    try:
        from concurrent.futures import ThreadPoolExecutor  # none is there while the interpreter is shutting down

        pool = ThreadPoolExecutor(1, "pegboard-aside")
        working = asyncio.get_running_loop().run_in_executor(pool, work)
    except RuntimeError:
        work()
        return
    await asyncio.shield(working)
    pool.shutdown()


async def to_the_end(future: asyncio.Future[Any]) -> None:
    """Wait until something has ended, and leave it alone; the caller's own cancellation is raised afterwards."""
    left: BaseException | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            left = error
    if left is not None:
        raise left
