"""A process for tools, in its parent. One thread at a time uses it; other threads only wake that one."""

from __future__ import annotations

import itertools
import os
import selectors
import signal
import socket
import threading
import time
import weakref
from contextlib import suppress
from mmap import mmap
from multiprocessing import get_context, process
from multiprocessing.connection import wait
from multiprocessing.heap import Arena
from typing import Any, Final, final

from pegboard import PegboardError
from pegboard_process._errors import ProcessDiedError
from pegboard_process._pipe import CANCEL, LAST, Frame, NearEnd, parts
from pegboard_process._watch import Watch
from pegboard_process._worker import FAREWELL, serve

__all__ = ["GUARD", "PREFIX", "UNGUARDED", "Child", "disown_all"]

PREFIX: Final = "pegboard-process-"
UNGUARDED: Final = 121
"""The exit code of a child whose main module calls a tool while it is imported."""
GUARD: Final = 'put what the main script does under `if __name__ == "__main__":`, for each process imports the script'

_numbers = itertools.count(1)
_reaping = threading.Lock()
"""Held while a process is checked for its end: of two checks at once, one would find no such process."""
_all: weakref.WeakSet[Child] = weakref.WeakSet()


@final
class Child:
    """A spawned process and the pipes to it."""

    def __init__(self) -> None:
        context = get_context("spawn")
        near_end, far_end = socket.socketpair()
        orders, heard = socket.socketpair()
        self._bell, self._rope = socket.socketpair()
        self._pipe = NearEnd(near_end)
        self._orders = NearEnd(orders)
        self._waiting = selectors.DefaultSelector()
        self._pipes: list[Any] = [self._waiting, self._pipe, self._orders, self._bell, self._rope]
        self._close = weakref.finalize(self, _close, self._pipes)
        # Daemonic, so that multiprocessing itself ends it with the program if nothing else has done so.
        name = f"{PREFIX}{next(_numbers)}"
        # A page for this child alone: those of `multiprocessing.RawArray` are shared with all others.
        page = Arena(LAST.size)
        self._page: mmap | bytes = page.buffer
        self._process = context.Process(target=serve, args=(far_end, heard, page), name=name, daemon=True)
        try:
            with _reaping:  # multiprocessing looks for ended ones when it starts one
                self._process.start()
                self._end = self._handle()
        except BaseException:
            self._close()
            raise
        finally:
            far_end.close()
            heard.close()
        ends = [self._end] if os.name == "posix" else []  # elsewhere the pipe alone tells
        for each in (self._pipe, self._bell, *ends):
            self._waiting.register(each, selectors.EVENT_READ)
        self._watch: Watch | None = None
        _all.add(self)
        self.ready = False
        self.idle = True
        self.jobs = 0

    def _handle(self) -> Any:
        """What tells that the process has ended."""
        # What multiprocessing waits for is a pipe, and processes that the tool has forked hold it open for longer.
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                handle = open(os.pidfd_open(self._process.pid or 0), "rb", buffering=0)  # noqa: PTH123, SIM115
                self._pipes.append(handle)
                return handle
        return self._process.sentinel

    def has_ended(self, seconds: float = 0.0) -> bool:
        """Whether it has ended, or does within `seconds`."""
        deadline = time.monotonic() + seconds
        wait([self._end], seconds)
        while self._is_alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)  # its files are closed a moment before it has ended
        return True

    def _is_alive(self) -> bool:
        with _reaping:
            return self._process.is_alive()

    def is_quiet(self) -> bool:
        """Whether it has sent nothing unrequested."""
        return self._pipe.is_quiet()

    def watched(self) -> Watch | None:
        """The watch by which the loop of this thread, if any, reads its answers."""
        if hasattr(self._waiting, "fileno"):  # else a loop cannot wait for all of its pipes at once
            self._watch = Watch.kept(self._watch, self._waiting.fileno())
        return self._watch

    def has_answer(self) -> bool:
        """Whether the frame that ends a job has arrived as a whole."""
        return self._pipe.has_answer()

    def say(self, kind: bytes, job: bytes, content: bytes = b"") -> None:
        """Send a frame as far as the pipe takes it; `hear` sends the rest. A frame for a dead process is dropped."""
        self._pipe.put(parts(kind, job, content))
        self._pipe.flush()

    def cancel(self, job: bytes, reason: str) -> None:
        """Tell it that its current job is over."""
        self._orders.put(parts(CANCEL, job, reason.encode()))
        self._orders.flush()

    def begun(self, job: bytes) -> float | None:
        """When it called the function of a job, as it says; None if it has not."""
        last, at = LAST.unpack_from(self._page)
        return float(at) if last == job else None

    def hear(self, deadline: float | None, *, undisturbed: bool = False) -> Frame | None:
        """The next frame; None at the deadline, or when the bell has rung.

        Raises `ProcessDiedError`, and `UnexpectedFrameError` for what is no frame of a child.
        """
        while True:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                return None  # even if there is something to hear: a tool that never stops talking has a time too
            frame = self._pipe.take()
            if frame is not None:
                return frame
            ready = self._ready(remaining)
            if self._bell in ready:
                if not undisturbed:
                    return None
                self._waiting.unregister(self._bell)
            try:
                if not self._pipe.fill() and self._end in ready:
                    raise self._death()
            except EOFError:
                raise self._death() from None

    def _ready(self, seconds: float | None) -> set[Any]:
        writes = 0 if self._pipe.flush() else selectors.EVENT_WRITE
        if writes:
            self._waiting.modify(self._pipe, selectors.EVENT_READ | writes)
        ready = {key.fileobj for key, _ in self._waiting.select(seconds)}
        if writes:
            self._waiting.modify(self._pipe, selectors.EVENT_READ)
        return ready

    def _death(self) -> Exception:
        if not self.has_ended(FAREWELL):  # the tool has closed the pipe, and nothing can come of it any more
            self._kill()
        code = self._process.exitcode
        if code == UNGUARDED and not self.ready:
            return PegboardError(f"the process of the tool could not start: {GUARD}")
        return ProcessDiedError(-9 if code is None else code)

    def ring(self) -> None:
        """Wake the thread that minds the process."""
        with suppress(OSError):
            self._rope.send(b"!")

    def request_end(self) -> None:
        """Have it end by itself."""
        for pipe in (self._waiting, self._pipe, self._orders):
            pipe.close()

    def bury(self, seconds: float = 0.0) -> None:
        """End it, after `seconds` at most, with all that its tools have started; returns when it has ended."""
        if self.has_ended(seconds) or self._kill():  # else the system itself cannot end it
            self._process.close()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._page = bytes(self._page)  # what is mapped has a file, which a traceback would keep open
        self._close()

    def disown(self) -> None:
        """It belongs to the process that this one was forked from."""
        process._children.discard(self._process)  # type: ignore[attr-defined]  # else multiprocessing ends it with us
        self._close()

    def _kill(self) -> bool:
        pid = self._process.pid
        with suppress(OSError):  # it may just have died
            if pid is not None and hasattr(os, "killpg") and os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
        self._process.kill()
        return self.has_ended(FAREWELL)


def disown_all() -> None:
    """This process was forked: the processes that there are belong to its parent."""
    global _reaping  # noqa: PLW0603 - a thread that was not forked may hold it
    _reaping = threading.Lock()
    for child in list(_all):
        child.disown()
    _all.clear()


def _close(pipes: list[Any]) -> None:
    for pipe in pipes:
        pipe.close()
