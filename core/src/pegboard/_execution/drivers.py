"""Drivers: perform the effects of a call's steps, on an event loop or from plain code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, final

from pegboard._base import effects
from pegboard._base.effects import AttemptTimeoutError, Outcome, Steps, is_interrupt, running_loop
from pegboard._base.errors import PegboardError
from pegboard._execution.concurrency import blocking
from pegboard._execution.loop_thread import LoopThread
from pegboard._execution.threads import CLOSED, BackendPool, Pool, Ticket, WorkerPool, lending, local, performed
from pegboard._execution.timers import AbandonedTasks, JobWait, TaskGuard, bounded, resumed, timers_of
from pegboard._model.call import CancelToken

T = TypeVar("T")


@final
class Drivers:
    """The two drivers, over one pool of threads and one event loop of the library's own."""

    resumed = staticmethod(resumed)

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self.abandoned = AbandonedTasks()
        self._loop = LoopThread(self.abandoned)

    def stopper(self) -> TaskGuard:
        """Cancels what the current task does, until it is retired: `cancel(reason)`, from any thread."""
        return TaskGuard(self.abandoned)

    def block_on(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the library's own loop and wait for it; a worker that waits lends its slot.

        Raises `ClosedError` where that loop runs nothing.
        """
        with self._standstill():
            return self.wait(lambda: self._loop.run(start))

    def _pool_for(self, work: effects.Work) -> tuple[Pool, float | None]:
        """Where a job runs, and after how long its driver gives up.

        A backend may keep the time itself: who waits must not go on before a process is gone, for instance.
        """
        if isinstance(work.backend, str):
            return self.pool, work.timeout
        if self.pool.closed:
            raise effects.ClosedError(CLOSED)
        return BackendPool(work.backend), None if getattr(work.backend, "keeps_time", False) else work.timeout

    def close(self, stop: Callable[[], None]) -> None:
        """End the library's loop and threads. `stop` tells the calls to end, and ends what else they run on."""

        def end() -> None:
            try:
                stop()
            finally:
                self._loop.close()

        self.pool.close(stop=end)

    # On an event loop ------------------------------------------------------------------------------------------

    async def run(self, steps: Steps, token: CancelToken | None = None) -> Any:
        """Drive steps on the running loop. The caller's own cancellation leaves after the steps have cleaned up."""
        stopper = TaskGuard(self.abandoned)
        if token is not None:
            token.on_cancel(stopper.cancel)
        interruption: BaseException | None = None
        try:
            effect = next(steps)
            while True:
                value, error = await self._perform(effect, stopper)
                interrupt = error is not None and is_interrupt(error)
                if interrupt or (stopper.task and stopper.task.cancelling() and stopper.caller_left()):
                    leaving = interrupt or isinstance(error, asyncio.CancelledError)
                    interruption = error if leaving else asyncio.CancelledError()
                    stopper.retire()
                    if token is not None:
                        token.cancel("the caller was cancelled")
                effect = steps.send((value, error))
        except StopIteration as stop:
            if interruption is not None:
                raise interruption from None
            return stop.value
        finally:
            stopper.retire()

    def _perform(self, effect: effects.Effect, guard: TaskGuard) -> Awaitable[Outcome]:
        if isinstance(effect, effects.Work) and effect.backend == "thread":
            return self.in_worker(effect.job, effect.timeout)
        return self._performed(effect, guard)

    async def _performed(self, effect: effects.Effect, guard: TaskGuard) -> Outcome:
        try:
            if isinstance(effect, effects.Await):
                return await bounded(effect.start(), effect.timeout, guard), None
            if isinstance(effect, effects.Sleep):
                await asyncio.sleep(effect.seconds)
                return None, None
            if isinstance(effect, effects.Around):
                if not effect.is_async:
                    return await self._surround(effect)
                around = effect.function(effect.call, lambda: self.run(effect.inner()))
                return await bounded(around, None, guard), None
            if isinstance(effect, effects.WaitForPermit):
                with lending():
                    turn = asyncio.wrap_future(effect.future)
                    await asyncio.wait([turn], timeout=effect.timeout)
                    return (turn.result() if turn.done() else None), _late(effect)
            if effect.backend == "inline":
                return performed(effect.job)
            pool, timeout = self._pool_for(effect)
            return await self.in_worker(effect.job, timeout, pool)
        except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
            return None, error

    async def _surround(self, effect: effects.Around) -> Outcome:
        loop = asyncio.get_running_loop()
        inner: list[asyncio.Task[Any] | None] = []
        over = False

        async def within() -> Any:
            if over:  # a thread that was given up goes on
                raise asyncio.CancelledError("the call has ended")
            inner.append(asyncio.current_task())
            return await self.run(effect.inner())

        def proceed() -> Any:
            coroutine = within()
            try:
                return self.wait(asyncio.run_coroutine_threadsafe(coroutine, loop).result)
            except RuntimeError:  # the loop is closed, long after it gave up this thread
                coroutine.close()
                raise

        try:
            return await self.in_worker(lambda: effect.function(effect.call, proceed), None)
        finally:
            over = True
            left = [task for task in inner if task is not None and not task.done()]
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)

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

    # From plain code -------------------------------------------------------------------------------------------

    def run_sync(self, steps: Steps, token: CancelToken | None = None) -> Any:
        """Drive steps from plain code. A real Ctrl-C leaves after the steps have cleaned up."""
        if running_loop() is None:
            return self._drive(steps, token)
        with self._standstill():
            return self._drive(steps, token)

    @contextmanager
    def _standstill(self) -> Iterator[None]:
        """What runs in this thread, inside of a running event loop, keeps that loop from going on: it is said so."""
        loop = running_loop()
        if loop is None:
            yield
            return
        with self._loop.blocked(), blocking(loop), timers_of(loop).handed_over():
            yield

    def _drive(self, steps: Steps, token: CancelToken | None) -> Any:
        interruption: BaseException | None = None
        try:
            effect = next(steps)
            while True:
                value, error = self._perform_sync(effect, token)
                if error is not None and is_interrupt(error):
                    interruption = error
                effect = steps.send((value, error))
        except StopIteration as stop:
            if interruption is not None:
                raise interruption from None
            return stop.value
        finally:
            value = error = None  # what a tool raised keeps this frame, and would keep itself through it

    def _perform_sync(self, effect: effects.Effect, token: CancelToken | None) -> Outcome:
        try:
            if isinstance(effect, effects.Work):
                return self._work(effect, token)
            if isinstance(effect, effects.Await):
                return self._await(effect, token)
            if isinstance(effect, effects.Sleep):
                (token.wait if token else time.sleep)(effect.seconds)
                return None, None
            if isinstance(effect, effects.Around):
                return self._surround_sync(effect, token), None
            return self._turn(effect, token)
        except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
            return None, error

    def _await(self, effect: effects.Await, token: CancelToken | None) -> Outcome:
        try:
            return self.wait(lambda: self._loop.run(effect.start, token, effect.timeout)), None
        except RuntimeError as error:
            if "different event loop" not in str(error) and "different loop" not in str(error):
                raise
            remedy = {"remedy": "use `await toolkit.call(...)`"}
            raise PegboardError("its event loop waits for this call", remedy) from error

    def _turn(self, effect: effects.WaitForPermit, token: CancelToken | None) -> Outcome:
        if token is not None:
            token.on_cancel(effect.future.cancel)
        try:
            return self.wait(partial(effect.future.result, effect.timeout)), None
        except TimeoutError:
            return None, _late(effect)
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError(token.reason if token else "") from None

    def _surround_sync(self, effect: effects.Around, token: CancelToken | None) -> Any:
        if not effect.is_async:
            return effect.function(effect.call, lambda: self.run_sync(effect.inner(), token))
        around = partial(effect.function, effect.call, lambda: self.run(effect.inner()))
        return self.wait(lambda: self._loop.run(around, token))

    def _work(self, work: effects.Work, token: CancelToken | None) -> Outcome:
        unbounded = not work.interruptible or work.timeout is None
        if work.backend == "inline" or (work.backend == "thread" and unbounded):
            return work.job(), None
        pool, timeout = self._pool_for(work)
        if timeout is None and hasattr(work.backend, "run_here"):
            return self.wait(partial(work.backend.run_here, work.job)), None
        return self.wait(lambda: self._in_pool(pool, work.job, timeout, token))

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

    async def waited(self, future: concurrent.futures.Future[T]) -> T:
        """What a future comes to that others wait for too, on a loop."""
        return await asyncio.shield(asyncio.wrap_future(future))

    def wait(self, block: Callable[[], T]) -> T:
        """Block this thread. A worker lends its slot meanwhile, and nobody counts on the loop that stands still."""
        with self._loop.blocked(), lending():
            return block()


def _late(effect: effects.WaitForPermit) -> AttemptTimeoutError | None:
    """The error of a turn that has not come in time."""
    return None if effect.future.done() else AttemptTimeoutError(effect.timeout or 0.0)
