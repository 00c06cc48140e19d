"""Drivers: perform the effects of a call's steps, on an event loop or from plain code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar, final

from pegboard._alarms import alarms
from pegboard._call import CancelToken
from pegboard._effects import (
    TIMED_OUT,
    Around,
    AttemptTimeoutError,
    Await,
    Effect,
    Outcome,
    Sleep,
    Steps,
    Turn,
    Work,
    current_driver,
    is_interrupt,
)
from pegboard._errors import PegboardError
from pegboard._loops import OwnLoop
from pegboard._pool import Ticket, WorkerPool, lending

__all__ = ["Drivers", "Resumed", "bounded"]

T = TypeVar("T")


@final
class Resumed:
    """Continues a coroutine that was already sent its first None and yielded `first`."""

    __slots__ = ("_coroutine", "_first")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], first: Any) -> None:
        self._coroutine = coroutine
        self._first = first

    def __await__(self) -> Generator[Any, Any, Any]:
        yielded = self._first
        while True:
            try:
                sent = yield yielded
            except BaseException as error:  # noqa: BLE001 - everything thrown in belongs to the coroutine
                resume: Callable[[], Any] = _thrower(self._coroutine, error)
            else:
                resume = _sender(self._coroutine, sent)
            try:
                yielded = resume()
            except StopIteration as stop:
                return stop.value


def _thrower(coroutine: Coroutine[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: coroutine.throw(error)


def _sender(coroutine: Coroutine[Any, Any, Any], sent: Any) -> Callable[[], Any]:
    return lambda: coroutine.send(sent)


async def bounded(awaitable: Any, timeout: float | None) -> Any:  # noqa: ASYNC109 - this is what implements it
    """Await, for at most `timeout` seconds. The deadline is armed only when a coroutine first suspends."""
    if timeout is None:
        return await awaitable
    if isinstance(awaitable, Coroutine):
        try:
            first = awaitable.send(None)
        except StopIteration as stop:
            return stop.value
        awaitable = Resumed(awaitable, first)
    deadline = asyncio.timeout(timeout)
    try:
        async with deadline:
            return await awaitable
    except TimeoutError as error:
        if deadline.expired():
            raise AttemptTimeoutError(timeout) from error
        raise


@final
class Drivers:
    """The two drivers, over one pool of threads and one event loop of the library's own."""

    def __init__(self, pool: WorkerPool, backends: dict[str, Any] | None = None) -> None:
        self.pool = pool
        self._backends = backends or {}
        self._loop = OwnLoop()

    def block_on(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the library's own loop and wait for it; a worker that waits lends its slot."""
        return self.wait(lambda: self._loop.run(start))

    @property
    def available(self) -> bool:
        """Whether the library's loop can run something."""
        return self._loop.begin()

    def close(self) -> None:
        """End the library's loop and threads; backends of plugins too."""
        self._loop.close()
        self.pool.close()
        for name in sorted(self._backends):
            self._backends[name].close()

    # On an event loop ------------------------------------------------------------------------------------------

    async def run(self, steps: Steps, token: CancelToken | None = None) -> Any:
        """Drive steps on the running loop. The caller's own cancellation leaves after the steps have cleaned up."""
        task = asyncio.current_task()
        stopper = _Stopper(task, token)
        interruption: BaseException | None = None
        try:
            effect = next(steps)
            while True:
                value, error = await self._perform(effect)
                if error is not None and (is_interrupt(error) or stopper.is_from_caller(error)):
                    interruption = error
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
            if isinstance(effect, Turn):
                with lending():
                    return await asyncio.wrap_future(effect.future), None
            return await self._offload(effect)
        except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
            return None, error

    async def _surround(self, effect: Around) -> Outcome:
        if effect.is_async:
            return await effect.function(effect.call, lambda: self.run(effect.inner())), None
        loop = asyncio.get_running_loop()
        inner: list[concurrent.futures.Future[Any]] = []

        def proceed() -> Any:
            inner.append(asyncio.run_coroutine_threadsafe(self.run(effect.inner()), loop))
            return self.wait(inner[-1].result)

        try:
            return await self._offload(Work(lambda: effect.function(effect.call, proceed)))
        finally:
            for future in inner:
                future.cancel()

    async def _offload(self, work: Work) -> Outcome:
        if work.backend == "inline":
            return _performed(work.job)
        if work.backend in self._backends:
            return await bounded(asyncio.wrap_future(self._backends[work.backend].submit(work.job)), work.timeout), None
        return await self.in_worker(work.job, work.timeout)

    async def in_worker(self, job: Callable[[], Any], timeout: float | None) -> Outcome:  # noqa: ASYNC109
        """Run a job in a worker thread. Raises `AttemptTimeoutError` and what cancels the caller."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        ticket = self.pool.submit(job, _deliver_on(loop, future))
        watch = alarms(loop)
        if timeout is not None:
            watch.set(loop, future, ticket, timeout)
        try:
            with lending():
                return await future
        except BaseException as error:
            hanging = self.pool.abandon(ticket)
            if isinstance(error, AttemptTimeoutError):
                error.abandoned = hanging
            raise
        finally:
            watch.forget(future)

    # From plain code -------------------------------------------------------------------------------------------

    def run_sync(self, steps: Steps, token: CancelToken | None = None) -> Any:
        """Drive steps from plain code. A real Ctrl-C leaves after the steps have cleaned up."""
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

    def _perform_sync(self, effect: Effect, token: CancelToken | None) -> Outcome:
        try:
            if isinstance(effect, Await):
                return self._await(effect, token)
            if isinstance(effect, Sleep):
                (token.wait if token else time.sleep)(effect.seconds)
                return None, None
            if isinstance(effect, Around):
                return self._surround_sync(effect), None
            if isinstance(effect, Turn):
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

    def _turn(self, effect: Turn, token: CancelToken | None) -> Outcome:
        if current_driver() in effect.behind:
            raise PegboardError(
                "a call that holds the same lock runs on this event loop, which would wait for itself; "
                "use `await toolkit.call(...)`"
            )
        if token is not None:
            token.on_cancel(effect.future.cancel)
        try:
            return self.wait(effect.future.result), None
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError(token.reason if token else "") from None

    def _surround_sync(self, effect: Around) -> Any:
        if not effect.is_async:
            return effect.function(effect.call, lambda: self.run_sync(effect.inner()))
        return self.wait(lambda: self._loop.run(lambda: effect.function(effect.call, lambda: self.run(effect.inner()))))

    def _work(self, work: Work, token: CancelToken | None) -> Outcome:
        if work.backend in self._backends:
            return self._backends[work.backend].submit(work.job).result(work.timeout), None
        if not work.interruptible or work.timeout is None or work.backend == "inline":
            return work.job(), None
        timeout = work.timeout
        return self.wait(lambda: self._in_thread(work.job, timeout, token))

    def _in_thread(self, job: Callable[[], Any], timeout: float, token: CancelToken | None) -> Outcome:
        ready = threading.Event()
        if token is not None:
            token.on_cancel(ready.set)
        outcome: list[Outcome] = []

        def done(result: Outcome) -> None:
            outcome.append(result)
            ready.set()

        ticket = self.pool.submit(job, done)
        try:
            in_time = _in_time(ready, ticket, timeout)
        except BaseException:
            self.pool.abandon(ticket)
            raise
        hanging = not outcome and self.pool.abandon(ticket)
        if outcome:
            return outcome[0]
        if in_time:
            raise asyncio.CancelledError(token.reason if token else "")
        raise AttemptTimeoutError(timeout, abandoned=hanging)

    def wait(self, block: Callable[[], T]) -> T:
        """Block this thread. A worker lends its slot meanwhile, and nobody counts on the loop that stands still."""
        with self._loop.blocked(), lending():
            return block()


@final
class _Stopper:
    """Tells the caller's own cancellation from `call.stop()`, which cancels the same task."""

    def __init__(self, task: asyncio.Task[Any] | None, token: CancelToken | None) -> None:
        self._task = task
        self._expected = task.cancelling() if task else 0
        self._stopped = False
        if task is not None and token is not None:
            loop = task.get_loop()
            token.on_cancel(lambda: None if token.reason == TIMED_OUT else loop.call_soon_threadsafe(self._stop))

    def _stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._stopped = True
            self._task.cancel()

    def is_from_caller(self, error: BaseException) -> bool:
        """Whether what just arrived is the caller's cancellation."""
        if self._task is None or not isinstance(error, asyncio.CancelledError):
            return False
        self._take_back()
        return self._task.cancelling() > self._expected

    def _take_back(self) -> None:
        if self._stopped and self._task is not None:
            self._stopped = False
            self._task.uncancel()

    def retire(self) -> None:
        """The task goes on to other things: a late stop must not hit it, nor one leave its mark."""
        self._take_back()
        self._task = None


def _deliver_on(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Outcome]) -> Callable[[Outcome], None]:
    def deliver(outcome: Outcome) -> None:
        try:
            loop.call_soon_threadsafe(_set, future, outcome)
        except RuntimeError:
            return  # the loop closed while the tool ran: nobody is left to hear

    return deliver


def _set(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def _in_time(ready: threading.Event, ticket: Ticket, timeout: float) -> bool:
    """Whether a job is ready `timeout` seconds after a worker began it; queueing does not count."""
    left = timeout
    while not ready.wait(min(left, threading.TIMEOUT_MAX)):
        left = timeout - ticket.elapsed()
        if left <= 0:
            return False
    return True


def _performed(job: Callable[[], Any]) -> Outcome:
    # Here, not in a coroutine: there a StopIteration would become something else.
    try:
        return job(), None
    except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
        return None, error
