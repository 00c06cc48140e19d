"""The library's own event loop: where async tools run when plain code calls them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast, final

from pegboard._call import CancelToken
from pegboard._effects import Outcome

__all__ = ["OwnLoop"]

T = TypeVar("T")


@final
class OwnLoop:
    """An event loop in a daemon thread, begun on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._blocked = 0

    def run(self, start: Callable[[], Coroutine[Any, Any, T]], token: CancelToken | None = None) -> T:
        """Run a coroutine there and wait. While a tool blocks this very loop, a fresh one is used."""
        if self._blocked or threading.current_thread() is self._thread:
            fresh = OwnLoop()
            try:
                return fresh.run(start, token)
            finally:
                fresh.close()
        future = self._submit(start)
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

    def begin(self) -> bool:
        """Begin now; whether there is a loop. There is none after `close`, and where no thread can be started."""
        try:
            with self._lock:
                self._begun()
        except RuntimeError:
            return False
        return True

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

    def _submit(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> concurrent.futures.Future[Outcome]:
        # Under the lock: what is submitted before `close` is cancelled by it, and never forgotten.
        with self._lock:
            loop = self._begun()
            return asyncio.run_coroutine_threadsafe(_outcome(start), loop)

    def _begun(self) -> asyncio.AbstractEventLoop:
        # Called under the lock.
        if self._closed:
            raise RuntimeError("the toolkit is closed; its event loop runs nothing more")
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
            if loop is not None:
                loop.call_soon_threadsafe(loop.stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)


async def _outcome(start: Callable[[], Coroutine[Any, Any, Any]]) -> Outcome:
    """What a coroutine comes to. A SystemExit that left a task would end the loop that everybody shares."""
    try:
        return await start(), None
    except BaseException as error:  # noqa: BLE001 - carried to whoever waits
        return None, error


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
