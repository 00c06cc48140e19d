"""Running: one command from its start to its end, whatever it does meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Final, final

from attrs import define, field

from pegboard_shell._capture import Capture
from pegboard_shell._process import Event, Process

__all__ = ["Outcome", "Run"]

_TICK: Final = 0.25
"""Seconds after which a run looks whether it was told to stop, at the latest."""
_PATIENCE: Final = 3.0
"""Seconds beyond the grace that a supervisor has to end everything, and to say what it could not: it gives up itself
after two, and on a busy machine its word is worth the wait."""
_MOST_LATE_READS: Final = 256


@define
class Outcome:
    """How a command ended: `status` is its wait status, None if it never began (`error` is the system's number then).

    `left` counts processes that could not be ended; `duration` is in seconds.
    """

    stdout: Capture
    stderr: Capture
    status: int | None = None
    error: int | None = None
    timed_out: bool = False
    stopped: bool = False
    left: int = 0
    duration: float = 0.0


@final
@define(eq=False)
class Run:
    """Runs a command in a thread of its own, which ends soon after `timeout` (seconds) or `stop()`.

    `start` starts it; `limit` is how many bytes of each output are kept; `heard` takes every piece as it comes.
    """

    _start: Callable[[], Process]
    _timeout: float
    _grace: float
    _limit: int
    _heard: Callable[[str, bytes], None] | None = None
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _process: Process | None = field(default=None, init=False)
    _stopping: bool = field(default=False, init=False)

    def begin(self) -> Future[Outcome]:
        """Begin; the future ends with the outcome. Raises RuntimeError where no thread can be started."""
        future: Future[Outcome] = Future()
        context = copy_context()

        def serve() -> None:
            try:
                future.set_result(context.run(self._serve))
            except BaseException as error:  # noqa: BLE001 - carried to the caller that waits
                future.set_exception(error)

        threading.Thread(target=serve, name="pegboard-shell", daemon=True).start()
        return future

    def stop(self) -> None:
        """End the command; from any thread, at any time, any number of times."""
        with self._lock:
            self._stopping = True
            process = self._process
        if process is not None:
            process.end()

    def _serve(self) -> Outcome:
        began = time.monotonic()
        outcome = Outcome(Capture(self._limit), Capture(self._limit))
        if self._stopping:
            outcome.stopped, outcome.status = True, 15  # as if it had been told so at once
            return outcome
        try:
            process = self._start()
        except OSError as error:
            outcome.error = error.errno or 0
            return outcome
        try:
            with self._lock:
                self._process = process
            self._follow(process, outcome, began + self._timeout)
        finally:
            with self._lock:
                self._process = None
            process.close()
            outcome.duration = time.monotonic() - began
        return outcome

    def _follow(self, process: Process, outcome: Outcome, until: float) -> None:
        last: float | None = None
        while outcome.status is None and outcome.error is None:
            now = time.monotonic()
            if last is None and (self._stopping or now >= until):
                outcome.stopped, outcome.timed_out = self._stopping, not self._stopping
                last = now + self._grace + _PATIENCE
                process.end()
            elif last is not None and now >= last:
                process.force()
                outcome.status, outcome.left = 9, 1
                break
            next_look = min(_TICK, (until if last is None else last) - now)
            for event in process.poll(max(next_look, 0)):
                self._take(event, outcome)
        if last is None and self._stopping and outcome.status:
            outcome.stopped = True  # its end was read before this thread learned of the stop
        for _ in range(_MOST_LATE_READS):  # what was written before the end, without waiting
            late = process.poll(0)
            if not late:
                break
            for event in late:
                self._take(event, outcome)

    def _take(self, event: Event, outcome: Outcome) -> None:
        channel, data = event
        if channel in ("stdout", "stderr"):
            (outcome.stdout if channel == "stdout" else outcome.stderr).feed(data)
            if self._heard is not None:
                self._heard(channel, data)
        elif channel == "failed":
            outcome.error = int(data)
        elif channel == "ended" and outcome.status is None:
            status, left = map(int, data.split())
            outcome.status, outcome.left = status, left
