"""Runs: one command from its start to its end, whatever it does meanwhile, and what is kept of its output."""

from __future__ import annotations

import threading
import time
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Final, final

from attrs import define, field

from pegboard_shell._running.process import Event, Process

__all__ = ["Capture", "Outcome", "Run", "Streaming"]

_TICK: Final = 0.25
"""Seconds after which a run looks whether it is to stop, at the latest."""
_PATIENCE: Final = 3.0
"""Seconds beyond the grace that a supervisor has to end everything, and to say what it could not: it gives up itself
after two, and on a busy machine its word is worth the wait."""
_MOST_LATE_READS: Final = 256
_CONTINUATION: Final = bytes(range(0x80, 0xC0))


@final
class Capture:
    """Keeps `limit` bytes of what it is fed: the first two thirds and the last third of them."""

    def __init__(self, limit: int) -> None:
        self._tail_limit = limit // 3
        self._head_limit = limit - self._tail_limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take in what came next."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._tail_limit:  # not each time: moving the tail costs as much as it is long
            del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def cut(self) -> int:
        """How many bytes are not kept."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def text(self) -> str:
        """What is kept, as text; bytes that are no UTF-8 become U+FFFD, and what was cut is counted between."""
        tail = self._tail[max(0, len(self._tail) - self._tail_limit) :]
        if not self.cut:
            return (self._head + tail).decode("utf-8", "replace")
        head, tail = _without_half_a_character(self._head), tail[:3].lstrip(_CONTINUATION) + tail[3:]
        kept = len(head) + len(tail)
        between = f"\n[... {self.total - kept} of {self.total} bytes cut here ...]\n"
        return head.decode("utf-8", "replace") + between + tail.decode("utf-8", "replace")


def _without_half_a_character(data: bytearray) -> bytearray:
    for length in (1, 2, 3):
        lead = data[-length] if length <= len(data) else 0
        if lead >= 0xC0:
            complete = length >= (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)
            return data if complete else data[:-length]
        if lead < 0x80:
            break
    return data


@final
class Streaming:
    """Hands on the first `limit` bytes as text; who listens more slowly than a command writes must not fill memory."""

    def __init__(self, emit: Callable[[str], None], limit: int) -> None:
        self._emit = emit
        self._room = limit
        self._decoders: dict[str, IncrementalDecoder] = {}

    def __call__(self, channel: str, data: bytes) -> None:
        """Take what came next on a channel."""
        if self._room <= 0:
            return
        decoder = self._decoders.setdefault(channel, getincrementaldecoder("utf-8")("replace"))
        text = decoder.decode(data[: self._room])
        self._room -= len(data)
        if text:
            self._emit(text)
        if self._room <= 0:
            self._emit("\n[... further output is in the result only ...]\n")


@define
class Outcome:
    """How a command ended: `status` is its wait status, None if it never began (`error` is the system's number then).

    `unended` counts processes that could not be ended; `duration` is in seconds.
    """

    stdout: Capture
    stderr: Capture
    status: int | None = None
    error: int | None = None
    timed_out: bool = False
    stopped: bool = False
    unended: int = 0
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
            outcome.stopped, outcome.status = True, 15  # as if it had begun and been stopped at once
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
                outcome.status, outcome.unended = 9, 1
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
            status, unended = map(int, data.split())
            outcome.status, outcome.unended = status, unended
