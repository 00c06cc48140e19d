"""Drivers: perform the effects of a call's steps, on an event loop or from plain code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, final

from pegboard._base.effects import (
    Around,
    AttemptTimeoutError,
    Await,
    ClosedError,
    Effect,
    Outcome,
    Sleep,
    Steps,
    WaitForPermit,
    Work,
    is_interrupt,
    running_loop,
)
from pegboard._execution.concurrency import blocking
from pegboard._execution.loop_thread import LoopThread
from pegboard._execution.threads import CLOSED, BackendPool, Pool, Ticket, WorkerPool, is_worker, lending, performed
from pegboard._execution.timers import JobTimer, TaskGuard, bounded, continued, resumed, timers_of
from pegboard._model.call import CancelToken

T = TypeVar("T")


@final
class Drivers:
    """The two drivers, over one pool of threads and one event loop of the library's own."""

    resumed = staticmethod(resumed)
    continued = staticmethod(continued)
    stopper = TaskGuard
    """Cancels what the current task does, until it is retired: `cancel(reason)`, from any thread."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self._loop = LoopThread()

    def block_on(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the library's own loop and wait for it; a worker that waits lends its slot."""
        with self._standstill():
            return self.wait(lambda: self._loop.run(start))

    @property
    def available(self) -> bool:
        """Whether the library's loop can run something."""
        try:
            self._loop.begin()
        except RuntimeError:
            return False
        return True

    def _pool_for(self, work: Work) -> tuple[Pool, float | None]:
        """Where a job runs, and after how long its driver gives up.

        A backend may keep the time itself: who waits must not go on before a process is gone, for instance.
        """
        if isinstance(work.backend, str):
            return self.pool, work.timeout
        if self.pool.closed:
            raise ClosedError(CLOSED)
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
        stopper = TaskGuard()
        if token is not None:
            token.on_cancel(stopper.cancel)
        interruption: BaseException | None = None
        try:
            effect = next(steps)
            while True:
                value, error = await self._perform(effect)
                if (error is not None and is_interrupt(error)) or stopper.caller_left():
                    interruption = error if _is_exit(error) else asyncio.CancelledError()
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

    async def _perform(self, effect: Effect) -> Outcome:
        try:
            if isinstance(effect, Await):
                return await bounded(effect.start(), effect.timeout), None
            if isinstance(effect, Sleep):
                await asyncio.sleep(effect.seconds)
                return None, None
            if isinstance(effect, Around):
                return await self._surround(effect)
            if isinstance(effect, WaitForPermit):
                with lending():
                    return await asyncio.wrap_future(effect.future), None
            if effect.backend == "inline":
                return performed(effect.job)
            pool, timeout = self._pool_for(effect)
            return await self.in_worker(effect.job, timeout, pool)
        except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
            return None, error

    async def _surround(self, effect: Around) -> Outcome:
        if effect.is_async:
            return await effect.function(effect.call, lambda: self.run(effect.inner())), None
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

    async def in_worker(
        self,
        job: Callable[[], Any],
        timeout: float | None,  # noqa: ASYNC109
        pool: Pool | None = None,
        live: set[Any] | None = None,
    ) -> Outcome:
        """Run a job in a worker thread, or another pool. Raises `AttemptTimeoutError` and what cancels the caller.

        While it runs, what is in `live` can cancel it: `cancel(reason)`, from any thread.
        """
        pool = self.pool if pool is None else pool
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        timers, timer, ticket, lends = timers_of(loop), JobTimer(future, timeout or 0.0, pool), None, is_worker()
        if timeout is not None:
            timers.set(loop, timer, timeout)
        if live is not None:
            live.add(timer)
        try:
            # The last thing before this thread sleeps: while it goes on, the worker waits for the interpreter.
            timer.ticket = ticket = pool.submit(job, partial(_deliver, future))
            if not lends:
                return await future
            with lending():
                return await future
        except BaseException as error:
            future.cancel()  # where the job could not even be submitted, nothing is left to be cancelled
            hanging = ticket is not None and pool.abandon(ticket)
            if isinstance(error, AttemptTimeoutError):
                error.abandoned = hanging
            raise
        finally:
            timers.forget(timer)
            if live is not None:
                live.discard(timer)

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

    def _perform_sync(self, effect: Effect, token: CancelToken | None) -> Outcome:
        try:
            if isinstance(effect, Await):
                return self._await(effect, token)
            if isinstance(effect, Sleep):
                (token.wait if token else time.sleep)(effect.seconds)
                return None, None
            if isinstance(effect, Around):
                return self._surround_sync(effect, token), None
            if isinstance(effect, WaitForPermit):
                return self._turn(effect, token)
            return self._work(effect, token)
        except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
            return None, error

    def _await(self, effect: Await, token: CancelToken | None) -> Outcome:
        try:
            return self.wait(lambda: self._loop.run(lambda: bounded(effect.start(), effect.timeout), token)), None
        except RuntimeError as error:
            if "different event loop" not in str(error) and "different loop" not in str(error):
                raise
            remedy = "what the tool uses belongs to a running event loop; there, use `await toolkit.call(...)`"
            raise RuntimeError(f"{error}; {remedy}") from error

    def _turn(self, effect: WaitForPermit, token: CancelToken | None) -> Outcome:
        if token is not None:
            token.on_cancel(effect.future.cancel)
        try:
            return self.wait(effect.future.result), None
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError(token.reason if token else "") from None

    def _surround_sync(self, effect: Around, token: CancelToken | None) -> Any:
        if not effect.is_async:
            return effect.function(effect.call, lambda: self.run_sync(effect.inner(), token))
        around = partial(effect.function, effect.call, lambda: self.run(effect.inner()))
        return self.wait(lambda: self._loop.run(around, token))

    def _work(self, work: Work, token: CancelToken | None) -> Outcome:
        unbounded = not work.interruptible or work.timeout is None
        in_caller = work.backend == "inline" or (work.backend == "thread" and unbounded)
        if in_caller:
            return work.job(), None
        pool, timeout = self._pool_for(work)
        return self.wait(lambda: self._in_pool(pool, work.job, timeout, token))

    @staticmethod
    def _in_pool(pool: Pool, job: Any, timeout: float | None, token: CancelToken | None) -> Outcome:
        ready = threading.Event()
        outcome: list[Outcome] = []

        def done(result: Outcome) -> None:
            outcome.append(result)
            ready.set()

        ticket = pool.submit(job, done)

        def give_up() -> None:  # at once, in the thread that stops the call: a job that still queues never begins
            if not ready.is_set():
                pool.abandon(ticket)
                ready.set()

        if token is not None:
            token.on_cancel(give_up)
        try:
            late = not _in_time(ready, ticket, timeout)
        except BaseException:
            pool.abandon(ticket)
            raise
        hanging = not outcome and pool.abandon(ticket)
        ready.set()  # nothing is left to give up
        if outcome:
            return outcome[0]
        if late and timeout is not None:
            raise AttemptTimeoutError(timeout, abandoned=hanging)
        raise asyncio.CancelledError(token.reason if token else "")

    def wait(self, block: Callable[[], T]) -> T:
        """Block this thread. A worker lends its slot meanwhile, and nobody counts on the loop that stands still."""
        if not is_worker() and not self._loop.is_here:
            return block()
        with self._loop.blocked(), lending():
            return block()


def _is_exit(error: BaseException | None) -> bool:
    return error is not None and (is_interrupt(error) or isinstance(error, asyncio.CancelledError))


def _deliver(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    try:
        future.get_loop().call_soon_threadsafe(_set, future, outcome)
    except RuntimeError:
        return  # the loop closed while the tool ran: nobody is left to hear


def _set(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def _in_time(ready: threading.Event, ticket: Ticket, timeout: float | None) -> bool:
    """Whether a job is ready `timeout` seconds after a worker began it; queueing does not count."""
    if timeout is None:
        return ready.wait()
    left = timeout
    while not ready.wait(min(left, threading.TIMEOUT_MAX)):
        left = timeout - ticket.elapsed()
        if left <= 0:
            return False
    return True
