"""Keeps the time of calls where they run: whoever waits for them far away cannot tell when they have begun."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import final

from pegboard import CancelToken
from pegboard_ray._order import NAMESPACE

__all__ = ["Watchdog"]


@final
class Watchdog:
    """Ends this process when the time of the call in hand is up. Its thread sleeps through calls that are in time."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._deadline = math.inf
        self._wakes = math.inf
        self._call: tuple[str, CancelToken, float] | None = None
        self._late = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(
        self, timeout: float | None, key: str, token: CancelToken, grace: float
    ) -> Iterator[Callable[[], bool]]:
        """Watch a call; what is yielded says whether its time was up. `token` is set first, if it has a `grace`."""
        if timeout is None:
            yield lambda: False
            return
        with self._state:
            self._call, self._late = (key, token, grace), False
            self._deadline = time.monotonic() + timeout
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="pegboard-watchdog", daemon=True)
                self._thread.start()
            if self._deadline < self._wakes:
                self._state.notify()
        try:
            yield lambda: self._late
        finally:
            with self._state:  # which the watchdog keeps when it kills
                self._call, self._deadline = None, math.inf

    def _watch(self) -> None:
        with self._state:
            while True:
                self._wakes = self._deadline
                left = self._deadline - time.monotonic()
                if left > 0:
                    self._state.wait(None if left == math.inf else min(left, threading.TIMEOUT_MAX))
                elif self._call is not None:
                    self._end(*self._call)

    def _end(self, key: str, token: CancelToken, grace: float) -> None:
        call, self._late, self._deadline = self._call, True, math.inf
        if grace:
            token.cancel("timed out")
            end = time.monotonic() + grace
            while self._call is call and (left := end - time.monotonic()) > 0:
                self._state.wait(left)
        if self._call is call:
            _note(key)
            os.kill(os.getpid(), signal.SIGKILL)


def _note(key: str) -> None:
    """Write down for the program why this worker is gone: by the key of the task, that of the call."""
    task, _, call = key.partition("/")
    with suppress(Exception):  # then it learns no more than that
        from ray.experimental.internal_kv import _internal_kv_put

        _internal_kv_put(task.encode(), call.encode(), namespace=NAMESPACE)
