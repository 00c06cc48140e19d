"""Keeps the time of calls where they run: a caller that waits on another machine cannot tell when they have begun."""

from __future__ import annotations

import math
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, final

from pegboard import CancelToken
from pegboard_ray import _guard
from pegboard_ray._order import NAMESPACE

__all__ = ["Watchdog"]

_SLACK: Final = 0.25
"""Seconds that the thread has for ending this process, before the guard does."""


@final
class Watchdog:
    """Ends this process when the time of the call in hand is up. Its thread sleeps through calls that are in time.

    A guard beside this process does so where the thread cannot, because the tool keeps the lock of the interpreter.
    """

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._deadline = math.inf
        self._wakes = math.inf
        self._call: tuple[str, CancelToken, float] | None = None
        self._late = False
        self._thread: threading.Thread | None = None
        self._guard: _Guard | None = None

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
                self._guard = _Guard() if os.name == "posix" else None
            if self._guard is not None:
                self._guard.expect(self._deadline + grace + _SLACK, key)
            if self._deadline < self._wakes:
                self._state.notify()
        try:
            yield lambda: self._late
        finally:
            with self._state:  # which the watchdog keeps when it kills
                self._call, self._deadline = None, math.inf
                if self._guard is not None:
                    self._guard.forget()

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


@final
class _Guard:
    """The process that ends this one, as this one has it."""

    def __init__(self) -> None:
        import ray

        address = ray.get_runtime_context().gcs_address
        with tempfile.TemporaryFile() as file:
            file.truncate(_guard.PAGE.size)
            self._page = mmap.mmap(file.fileno(), _guard.PAGE.size)
            self._wakes = math.inf
            self.forget()
            command = [sys.executable, "-P", _guard.__file__, str(file.fileno()), address, NAMESPACE.decode()]
            self._process = subprocess.Popen(  # noqa: S603 - a script of this pack
                command, stdin=subprocess.PIPE, pass_fds=[file.fileno()], bufsize=0
            )

    def expect(self, deadline: float, key: str) -> None:
        """Let it end this process at the deadline of a call."""
        _guard.PAGE.pack_into(self._page, 0, deadline, key.encode())
        # It looks at the page when it wakes, and has to be woken only for what is due sooner.
        if not time.monotonic() < self._wakes <= deadline:
            self._wakes = deadline
            with suppress(OSError):  # it has ended: the thread has to do without
                self._process.stdin.write(b"!")  # type: ignore[union-attr]

    def forget(self) -> None:
        """There is no call in hand."""
        _guard.PAGE.pack_into(self._page, 0, math.inf, b"")


def _note(key: str) -> None:
    """Write down for the program why this worker ended: by the key of the task, that of the call."""
    task, _, call = key.partition("/")
    with suppress(Exception):  # then it learns no more than that
        from ray.experimental.internal_kv import _internal_kv_put

        _internal_kv_put(task.encode(), call.encode(), namespace=NAMESPACE)
