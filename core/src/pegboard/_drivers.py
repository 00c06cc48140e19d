"""Drivers: perform the effects of a call's steps, on an event loop or from plain code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar, cast, final

from pegboard._call import CancelToken
from pegboard._effects import (
    Around,
    AttemptTimeoutError,
    Await,
    Effect,
    Outcome,
    Sleep,
    Steps,
    Turn,
    Work,
    is_interrupt,
)
from pegboard._pool import WorkerPool, current_pool

__all__ = ["Drivers", "OwnLoop", "Resumed", "bounded"]

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


async def bounded(awaitable: Any, timeout: float | None) -> Any:
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
        return self._wait(lambda: self._loop.run(start))

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
                if isinstance(error, asyncio.CancelledError) and stopper.from_caller():
                    interruption = error
                effect = steps.send((value, error))
        except StopIteration as stop:
            if interruption is not None:
                raise interruption from None
            return stop.value

    async def _perform(self, effect: Effect) -> Outcome:
        try:
            if isinstance(effect, Await):
                return await bounded(effect.start(), effect.timeout), None
            if isinstance(effect, Sleep):
                await asyncio.sleep(effect.seconds)
                return None, None
            if isinstance(effect, Around):
                return await self._surround(effect), None
            if isinstance(effect, Turn):
                return await asyncio.wrap_future(effect.future), None
            return await self._offload(effect)
        except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
            return None, error

    async def _surround(self, effect: Around) -> Any:
        if effect.is_async:
            return await effect.function(effect.call, lambda: self.run(effect.inner()))
        loop = asyncio.get_running_loop()

        def proceed() -> Any:
            return asyncio.run_coroutine_threadsafe(self.run(effect.inner()), loop).result()

        value, error = await self._offload(Work(lambda: effect.function(effect.call, proceed)))
        if error is not None:
            raise error
        return value

    async def _offload(self, work: Work) -> Outcome:
        if work.backend == "inline":
            return work.job(), None
        if work.backend in self._backends:
            return await bounded(asyncio.wrap_future(self._backends[work.backend].submit(work.job)), work.timeout), None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        ticket = self.pool.submit(work.job, _deliver_on(loop, future))
        handle = None if work.timeout is None else loop.call_later(work.timeout, _expire, future, work.timeout)
        try:
            return await future
        except BaseException as error:
            hanging = self.pool.abandon(ticket)
            if isinstance(error, AttemptTimeoutError):
                error.abandoned = hanging
            raise
        finally:
            if handle is not None:
                handle.cancel()

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
                return self._wait(lambda: self._loop.run(lambda: bounded(effect.start(), effect.timeout), token)), None
            if isinstance(effect, Sleep):
                (token.wait if token else time.sleep)(effect.seconds)
                return None, None
            if isinstance(effect, Around):
                return self._surround_sync(effect), None
            if isinstance(effect, Turn):
                return self._wait(effect.future.result), None
            return self._work(effect, token)
        except BaseException as error:  # noqa: BLE001 - the steps decide what an exception means
            return None, error

    def _surround_sync(self, effect: Around) -> Any:
        if not effect.is_async:
            return effect.function(effect.call, lambda: self.run_sync(effect.inner()))
        return self._wait(
            lambda: self._loop.run(lambda: effect.function(effect.call, lambda: self.run(effect.inner())))
        )

    def _work(self, work: Work, token: CancelToken | None) -> Outcome:
        if work.backend in self._backends:
            return self._backends[work.backend].submit(work.job).result(work.timeout), None
        if not work.interruptible or work.timeout is None or work.backend == "inline":
            return work.job(), None
        timeout = work.timeout
        return self._wait(lambda: self._in_thread(work.job, timeout, token))

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
            in_time = ready.wait(timeout)
        except BaseException:
            self.pool.abandon(ticket)
            raise
        hanging = not outcome and self.pool.abandon(ticket)
        if outcome:
            return outcome[0]
        if in_time:
            raise asyncio.CancelledError(token.reason if token else "")
        raise AttemptTimeoutError(timeout, abandoned=hanging)

    def _wait(self, block: Callable[[], T]) -> T:
        pool = current_pool()
        if pool is None:
            return block()
        with pool.lent():
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
            token.on_cancel(lambda: loop.call_soon_threadsafe(self._stop))

    def _stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._stopped = True
            self._task.cancel()

    def from_caller(self) -> bool:
        """Whether the cancellation that just arrived is the caller's."""
        if self._task is None:
            return False
        if self._stopped:
            self._stopped = False
            self._task.uncancel()
        return self._task.cancelling() > self._expected


@final
class OwnLoop:
    """The library's own event loop, in a daemon thread: where async tools run when plain code calls them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, start: Callable[[], Coroutine[Any, Any, T]], token: CancelToken | None = None) -> T:
        """Run a coroutine there and wait. Called from that very loop, a fresh one in a thread of its own is used."""
        loop = self._running()
        if threading.current_thread() is self._thread:
            return _in_fresh_loop(start)
        future = asyncio.run_coroutine_threadsafe(_outcome(start), loop)
        if token is not None:
            token.on_cancel(future.cancel)
        try:
            value, error = future.result()
        except concurrent.futures.CancelledError as cancelled:
            raise asyncio.CancelledError(*cancelled.args) from None
        except BaseException:
            future.cancel()
            raise
        if error is not None:
            raise error
        return cast("T", value)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("the toolkit is closed; its event loop runs nothing more")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="pegboard-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def close(self) -> None:
        """Cancel what runs there and end the thread."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(5.0)


async def _outcome(start: Callable[[], Coroutine[Any, Any, Any]]) -> Outcome:
    """What a coroutine comes to. A SystemExit that left a task would end the loop that everybody shares."""
    try:
        return await start(), None
    except BaseException as error:  # noqa: BLE001 - carried to whoever waits
        return None, error


def _in_fresh_loop(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    box: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: box.append(asyncio.run(_outcome(start))), name="pegboard-nested-loop", daemon=True
    )
    thread.start()
    thread.join()
    value, error = box[0]
    if error is not None:
        raise error
    return cast("T", value)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


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


def _expire(future: asyncio.Future[Outcome], timeout: float) -> None:
    if not future.done():
        future.set_exception(AttemptTimeoutError(timeout))
