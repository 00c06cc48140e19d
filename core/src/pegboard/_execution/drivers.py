"""Drivers: how the stages of a call wait, on an event loop or in plain code; and what they run on."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, final

from pegboard._base.effects import (
    AttemptTimeoutError,
    ClosedError,
    Io,
    Outcome,
    Stage,
    is_async,
    is_interrupt,
    running_loop,
)
from pegboard._base.errors import PegboardError
from pegboard._execution.concurrency import standing_still
from pegboard._execution.loop_thread import LoopThread, to_the_end
from pegboard._execution.threads import (
    CLOSED,
    BackendPool,
    Pool,
    Ticket,
    WorkerPool,
    lending,
    local,
    performed,
    performed_later,
)
from pegboard._execution.timers import AbandonedTasks, JobWait, TaskGuard, bounded, resumed, timers_of
from pegboard._model.call import CancelToken

T = TypeVar("T")


@final
class Drivers:
    """Run stages, over one pool of threads and one event loop of the library's own."""

    resumed = staticmethod(resumed)

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self.abandoned = AbandonedTasks()
        self.loop = LoopThread(self.abandoned)

    def guard(self) -> TaskGuard:
        """Cancels what the current task does, until it is retired: `cancel(reason)`, from any thread."""
        return TaskGuard(self.abandoned)

    def block_on(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the library's own loop and wait for it; a worker that waits lends its slot.

        Raises `ClosedError` where that loop runs nothing.
        """
        with self.standstill():
            return self.wait(lambda: self.loop.run(start))

    def pool_for(self, backend: Any, timeout: float | None) -> tuple[Pool, float | None]:
        """Where a job runs, and after how long who waits gives up.

        A backend may keep the time itself: who waits must not go on before a process is gone, for instance.
        """
        if isinstance(backend, str):
            return self.pool, timeout
        if self.pool.closed:
            raise ClosedError(CLOSED)
        return BackendPool(backend), None if getattr(backend, "keeps_time", False) else timeout

    def close(self, stop: Callable[[], None]) -> None:
        """End the library's loop and threads. `stop` tells the calls to end, and ends what else they run on."""

        def end() -> None:
            try:
                stop()
            finally:
                self.loop.close()

        self.pool.close(stop=end)

    async def run(self, stage: Stage, token: CancelToken | None = None) -> Any:
        """Run a stage on the running loop. The caller's own cancellation leaves after the stage has cleaned up."""
        io = OnLoop(self, token)
        try:
            result = await stage(io)
            if io.interruption is not None:
                raise io.interruption from None
            return result
        finally:  # what a tool raised keeps this frame, and would keep its own result through it
            io.guard.retire()
            result = None

    def run_sync(self, stage: Stage, token: CancelToken | None = None) -> Any:
        """Run a stage from plain code. A real Ctrl-C leaves after the stage has cleaned up."""
        if running_loop() is None:
            return self._run_here(stage, token)
        with self.standstill():
            return self._run_here(stage, token)

    def _run_here(self, stage: Stage, token: CancelToken | None) -> Any:
        io = Here(self, token)
        try:
            stage(io).send(None)
        except StopIteration as stop:
            if io.interruption is not None:
                raise io.interruption from None
            return stop.value
        raise RuntimeError("a stage has suspended in plain code")

    @types.coroutine
    def in_worker(
        self, job: Callable[[], Any], timeout: float | None, pool: Pool | None = None, live: Any = None
    ) -> Generator[Any, Any, Outcome]:
        """Run a job in a worker thread, or another pool: what it came to, or why it was given up.

        While it runs, what is in `live` can cancel it: `cancel(reason)`, from any thread.
        """
        wait = JobWait(pool or self.pool, job)
        wait.loop, wait.timeout, wait.live = asyncio.get_running_loop(), timeout, live
        try:
            if local.pool is None:  # no worker's
                yield wait
            else:
                with lending():
                    yield wait
            return wait.outcome or (None, None)
        except BaseException as error:  # noqa: BLE001 - as above
            return None, error
        finally:
            wait.close()

    @contextmanager
    def standstill(self) -> Iterator[None]:
        """What runs in this thread, inside of a running event loop, keeps that loop from going on: it is said so."""
        loop = running_loop()
        if loop is None:
            yield
            return
        with self.loop.blocked(), standing_still(loop), timers_of(loop).handed_over():
            yield

    async def waited(self, future: concurrent.futures.Future[T]) -> T:
        """What a future comes to that other callers wait for too, on a loop."""
        return await asyncio.shield(asyncio.wrap_future(future))

    def wait(self, block: Callable[[], T]) -> T:
        """Block this thread. A worker lends its slot meanwhile, and no call is given to the loop that stands still."""
        with self.loop.blocked(), lending():
            return block()


@final
class OnLoop(Io):
    """How a stage waits on the running event loop: it awaits, in the task that it began in."""

    def __init__(self, drivers: Drivers, token: CancelToken | None) -> None:
        self._drivers = drivers
        self._token = token
        self.guard = TaskGuard(drivers.abandoned)
        self.interruption: BaseException | None = None
        if token is not None:
            token.on_cancel(self.guard.cancel)

    def _come_to(self, value: Any, error: BaseException | None = None) -> Outcome:
        """An outcome, unless it is the caller that leaves: that is kept until the stage has cleaned up."""
        guard = self.guard
        interrupt = error is not None and is_interrupt(error)
        if interrupt or (guard.task and guard.task.cancelling() and guard.caller_left()):
            leaving = interrupt or isinstance(error, asyncio.CancelledError)
            self.interruption = error if leaving else asyncio.CancelledError()
            guard.retire()
            if self._token is not None:
                self._token.cancel("the caller was cancelled")
        return value, error

    async def wait_for(self, start: Callable[[], Any], seconds: float | None = None) -> Outcome:
        """Await something that `start()` gives, for at most `seconds`."""
        try:  # without another frame: approvers and middleware are awaited here
            return self._come_to(await bounded(start(), seconds, self.guard))
        except BaseException as error:  # noqa: BLE001 - the stages decide what an exception means
            return self._come_to(None, error)

    async def work(
        self, job: Callable[[], Any], backend: Any, seconds: float | None = None, *, interruptible: bool = False
    ) -> Outcome:
        """Run a sync function where its `backend` says."""
        if backend == "inline":
            return self._come_to(*performed(job))
        try:
            pool, seconds = self._drivers.pool_for(backend, seconds)
        except BaseException as error:  # noqa: BLE001 - as above
            return self._come_to(None, error)
        return self._come_to(*await self._drivers.in_worker(job, seconds, pool))

    async def finish(self, close: Callable[[], Any]) -> Outcome:
        """Close what was opened, to its end even if the caller is cancelled meanwhile."""
        if is_async(close):
            return self._come_to(*await performed_later(close))
        ended: Future[Outcome] = Future()
        ticket = Ticket(self._drivers.pool, close, ended.set_result)
        try:
            self._drivers.pool.submit(ticket)
            await to_the_end(asyncio.wrap_future(ended))
        except BaseException as error:  # noqa: BLE001 - as above
            if ended.done():
                return self._come_to(None, error)
        if not ended.done() or ticket.thread is None:  # the pool runs nothing more
            return self._come_to(*performed(close))
        return self._come_to(*ended.result())

    async def sleep(self, seconds: float) -> Outcome:
        """Wait, or less when the task is cancelled."""
        return self._come_to(*await performed_later(lambda: asyncio.sleep(seconds)))

    async def turn(self, future: Future[None], seconds: float | None) -> Outcome:
        """Wait for the turn of a call at its limits."""
        try:
            with lending():
                turn = asyncio.wrap_future(future)
                done, _ = await asyncio.wait([turn], timeout=seconds)
                return self._come_to(turn.result()) if done else (None, AttemptTimeoutError(seconds or 0.0))
        except BaseException as error:  # noqa: BLE001 - as above
            return self._come_to(None, error)

    async def around(self, function: Callable[[Any, Any], Any], call: Any, inner: Stage) -> Outcome:
        """Run middleware."""
        drivers = self._drivers
        try:
            if is_async(function):
                around = function(call, lambda: drivers.run(inner))
                return self._come_to(await bounded(around, None, self.guard))
            return self._come_to(*await self._around_in_worker(function, call, inner))
        except BaseException as error:  # noqa: BLE001 - as above
            return self._come_to(None, error)

    async def _around_in_worker(self, function: Callable[[Any, Any], Any], call: Any, stage: Stage) -> Outcome:
        drivers, loop = self._drivers, asyncio.get_running_loop()
        inner: list[asyncio.Task[Any] | None] = []
        over = False

        async def within() -> Any:
            if over:  # a thread that was given up goes on
                raise asyncio.CancelledError("the call has ended")
            inner.append(asyncio.current_task())
            return await drivers.run(stage)

        def proceed() -> Any:
            coroutine = within()
            try:
                return drivers.wait(asyncio.run_coroutine_threadsafe(coroutine, loop).result)
            except RuntimeError:  # the loop is closed, long after it gave up this thread
                coroutine.close()
                raise

        try:
            return await drivers.in_worker(lambda: function(call, proceed), None)
        finally:
            over = True
            left = [task for task in inner if task is not None and not task.done()]
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)


@final
class Here(Io):
    """How a stage waits in plain code: it blocks this thread, and never suspends."""

    def __init__(self, drivers: Drivers, token: CancelToken | None) -> None:
        self._drivers = drivers
        self._token = token
        self.interruption: BaseException | None = None

    def _come_to(self, function: Callable[..., Any], *args: Any) -> Outcome:
        """What a function comes to, as an outcome; a real Ctrl-C is kept until the stage has cleaned up."""
        value, error = performed(function, *args)
        try:
            if error is not None and is_interrupt(error):
                self.interruption = error
            return value, error
        finally:
            del error  # its traceback leads to this frame: a circle, which would wait for the garbage collector

    async def wait_for(self, start: Callable[[], Any], seconds: float | None = None) -> Outcome:
        """Await something on the library's own loop, for at most `seconds`."""
        value, error = self._come_to(self._on_the_loop, start, self._token, seconds)
        if isinstance(error, RuntimeError) and ("different event loop" in str(error) or "different loop" in str(error)):
            remedy = {"remedy": "use `await toolkit.call(...)`"}
            late = PegboardError("its event loop waits for this call", remedy)
            late.__cause__ = error
            return None, late
        return value, error

    def _on_the_loop(self, start: Callable[[], Any], token: CancelToken | None, timeout: float | None = None) -> Any:
        return self._drivers.wait(lambda: self._drivers.loop.run(start, token, timeout))

    async def work(
        self, job: Callable[[], Any], backend: Any, seconds: float | None = None, *, interruptible: bool = False
    ) -> Outcome:
        """Run a sync function: here, unless its backend or a seconds needs another place."""
        unbounded = not interruptible or seconds is None
        if backend == "inline" or (backend == "thread" and unbounded):
            return self._come_to(job)
        value, error = self._come_to(self._elsewhere, job, backend, seconds)
        return (None, error) if error is not None else value

    def _elsewhere(self, job: Callable[[], Any], backend: Any, timeout: float | None) -> Outcome:
        drivers = self._drivers
        pool, timeout = drivers.pool_for(backend, timeout)
        if timeout is None and hasattr(backend, "run_here"):
            return drivers.wait(partial(backend.run_here, job)), None
        return drivers.wait(lambda: self._in_pool(pool, job, timeout, self._token))

    async def finish(self, close: Callable[[], Any]) -> Outcome:
        """Close what was opened, to its end."""
        return self._come_to(self._on_the_loop, close, None) if is_async(close) else self._come_to(close)

    async def sleep(self, seconds: float) -> Outcome:
        """Wait, or less when the call is asked to stop."""
        return self._come_to(self._token.wait if self._token else time.sleep, seconds)

    async def turn(self, future: Future[None], seconds: float | None) -> Outcome:
        """Wait for the turn of a call at its limits."""
        if self._token is not None:
            self._token.on_cancel(future.cancel)
        value, error = self._come_to(self._drivers.wait, partial(future.result, seconds))
        if isinstance(error, concurrent.futures.CancelledError):
            return None, asyncio.CancelledError(self._token.reason if self._token else "")
        return value, AttemptTimeoutError(seconds or 0.0) if isinstance(error, TimeoutError) else error

    async def around(self, function: Callable[[Any, Any], Any], call: Any, inner: Stage) -> Outcome:
        """Run middleware."""
        drivers, token = self._drivers, self._token
        if is_async(function):
            return self._come_to(self._on_the_loop, partial(function, call, lambda: drivers.run(inner)), token)
        return self._come_to(function, call, lambda: drivers.run_sync(inner, token))

    @staticmethod
    def _in_pool(pool: Pool, job: Any, timeout: float | None, token: CancelToken | None) -> Outcome:
        ended = threading.Event()
        ticket = Ticket(pool, job, lambda _: ended.set())
        pool.submit(ticket)
        if token is not None:
            # At once, in the thread that stops the call: a job that still queues never begins.
            token.on_cancel(lambda: ticket.give_up(asyncio.CancelledError(token.reason)))
        left = timeout
        try:
            while not ended.wait(left if left is None else min(left, threading.TIMEOUT_MAX)):
                left = max(0.0, (timeout or 0.0) - ticket.elapsed())
                if not left:
                    ticket.give_up(AttemptTimeoutError(timeout or 0.0, abandoned=True))
        except BaseException:  # a real Ctrl-C
            pool.abandon(ticket)
            raise
        return ticket.outcome or (None, None)
