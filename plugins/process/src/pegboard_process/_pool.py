"""Processes for tools: spawned when one is needed, kept for the next, killed when a call has to end.

Each job is minded by a thread, which alone touches the process that runs it: it starts it, sends the job, passes on
what the tool reports, keeps the time and kills. Everybody else only rings a bell.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import threading
import time
import weakref
from asyncio import CancelledError
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from contextvars import copy_context
from multiprocessing import current_process, get_context
from multiprocessing.connection import wait
from typing import Any, Final, final

from pegboard import Job, PegboardError, ProcessDiedError
from pegboard.inspection import function_kind
from pegboard_process._pickling import pack, read, unpack
from pegboard_process._worker import BEGUN, CANCEL, CHUNK, FAREWELL, ITEM, JOB, READY, is_serving, serve

__all__ = ["ProcessPool"]

_PREFIX: Final = "pegboard-process-"
_UNGUARDED: Final = 121
"""The exit code of a child whose main module calls a tool while it is imported."""
_GUARD: Final = 'put what the main script does under `if __name__ == "__main__":`, for each process imports the script'

_CLOSED: Final = "the toolkit was closed"
_CANCELLED: Final = "the call was cancelled"
_TIMED_OUT: Final = "timed out"
_CLOSING: Final = 5.0
"""Seconds that closing waits for jobs that end."""

_numbers = itertools.count(1)
_reaping = threading.Lock()
"""Held by whoever asks whether a process has ended: of two that ask at once, one learns that it never was."""
_open: weakref.WeakSet[ProcessPool] = weakref.WeakSet()


@final
class _Child:
    """A spawned process and the pipes to it."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._bell, self._rope = context.Pipe(duplex=False)
        name = f"{_PREFIX}{next(_numbers)}"
        # Daemonic, so that multiprocessing itself ends it with the program should nobody else have done so.
        self._process = context.Process(target=serve, args=(theirs,), name=name, daemon=True)
        try:
            with _reaping:  # multiprocessing looks for ended ones when it starts one
                self._process.start()
        except BaseException:
            self._close_pipes()
            raise
        finally:
            theirs.close()
        self.ready = False
        self.idle = True
        self.jobs = 0

    def has_ended(self, seconds: float = 0.0) -> bool:
        """Whether it has ended, or does within `seconds`."""
        deadline = time.monotonic() + seconds
        wait([self._process.sentinel], seconds)
        while self._is_alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)  # its files are closed a moment before it is gone
        return True

    def _is_alive(self) -> bool:
        with _reaping:
            return self._process.is_alive()

    def say(self, kind: bytes, content: bytes = b"") -> None:
        """Send a message; one to a process that died is lost, and `hear` tells."""
        with suppress(OSError):
            self._pipe.send_bytes(kind + content)

    def hear(self, deadline: float | None, *, undisturbed: bool = False) -> tuple[bytes, bytes] | None:
        """The next message; None at the deadline, or when the bell has rung. Raises `ProcessDiedError`."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            return None  # even if there is something to hear: a tool that never stops talking has a time too
        sources: list[Any] = [self._pipe, self._process.sentinel]
        ready = wait(sources if undisturbed else [*sources, self._bell], left)
        if not ready or self._bell in ready:
            return None
        with suppress(EOFError, OSError):
            if self._pipe.poll():
                message = self._pipe.recv_bytes()
                return message[:1], message[1:]
        raise self._death()

    def _death(self) -> Exception:
        if not self.has_ended(FAREWELL):  # the tool has closed the pipe, and nothing can come of it any more
            self._kill()
        code = self._process.exitcode
        if code == _UNGUARDED and not self.ready:
            return PegboardError(f"the process of the tool could not start: {_GUARD}")
        return ProcessDiedError(-9 if code is None else code)

    def ring(self) -> None:
        """Wake the thread that minds the process."""
        with suppress(OSError):
            self._rope.send_bytes(b"")

    def hang_up(self) -> None:
        """Let it end by itself."""
        self._pipe.close()

    def bury(self, seconds: float = 0.0) -> None:
        """End it, after `seconds` at most, with all that its tools have started; returns when it is gone."""
        if self.has_ended(seconds) or self._kill():  # else the system itself cannot end it
            self._process.close()
        self._close_pipes()

    def _kill(self) -> bool:
        pid = self._process.pid
        with suppress(OSError):  # it may just have died
            if pid is not None and hasattr(os, "killpg") and os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
        self._process.kill()
        return self.has_ended(FAREWELL)

    def _close_pipes(self) -> None:
        for pipe in (self._pipe, self._bell, self._rope):
            pipe.close()


@final
class _Run:
    """One job in a process, minded by one thread."""

    def __init__(self, pool: ProcessPool, job: Job) -> None:
        self._pool = pool
        self._job = job
        self._lock = threading.Lock()
        self.future = _Future(self)
        self.context = copy_context()
        self._child: _Child | None = None
        self._stopped: str | None = None
        self._begun = False
        self._listens = False
        self._deadline: float | None = None

    def mind(self) -> None:
        """Run the job and tell its future."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self.context.run(self._result)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            self.future.set_exception(error)
        else:
            self.future.set_result(value)

    def _result(self) -> Any:
        parcel, self._listens = pack(self._job)
        while True:
            child = self._pool.hire(self)
            rested = child.ready
            try:
                self._take(child)
                return self._mind(child, parcel)
            except ProcessDiedError:
                if self._begun or not rested:
                    raise  # else it died while it rested, and nothing has happened yet: another will do
            finally:
                if not child.idle and self._has_begun(child):
                    self._warn(child)
                self._pool.dismiss(self, child, usable=self._leave(child))

    def stop(self, reason: str) -> None:
        """End the run, from any thread; the process is gone soon after."""
        with self._lock:
            self._stopped = self._stopped or reason
            if self._child is not None:
                self._child.ring()

    def _take(self, child: _Child) -> None:
        with self._lock:
            if self._stopped is not None:
                raise CancelledError(self._stopped)
            self._child = child

    def _leave(self, child: _Child) -> bool:
        """Nobody rings the bell from now on. Whether the process can do other work."""
        with self._lock:
            self._child = None
            return self._stopped is None and child.idle

    def _mind(self, child: _Child, parcel: bytes) -> Any:
        child.idle = False
        if child.ready:
            child.say(JOB, parcel)
        self._deadline = time.monotonic() + self._pool.patience
        with ExitStack() as around:
            kind, content = self._next(child, parcel, around)
            if kind != ITEM:
                child.idle = True
                return unpack(kind, content, self._job)
            try:
                return self._job.draw(self._relayed(child, content))
            except CancelledError:  # drawing heard of it sooner
                raise self._end() from None

    def _next(self, child: _Child, parcel: bytes, around: ExitStack) -> tuple[bytes, bytes]:
        """The first that comes of the function itself."""
        while True:
            kind, content = self._hear(child)
            if kind == READY:
                child.ready = True
                child.say(JOB, parcel)
                self._deadline = time.monotonic() + self._pool.patience
            elif kind == BEGUN:
                self._begun = True
                self._set_clock(around)
            else:
                return kind, content

    def _relayed(self, child: _Child, content: bytes) -> Generator[Any, None, Any]:
        """What the tool yields in its process, and then what it returns."""
        kind = ITEM
        while kind == ITEM:
            yield read(content)
            kind, content = self._hear(child)
        child.idle = True
        return unpack(kind, content, self._job)

    def _hear(self, child: _Child) -> tuple[bytes, bytes]:
        """The next message that is not a chunk. Raises when the time is up, and when the run was stopped."""
        while (message := child.hear(self._deadline)) is not None:
            if message[0] != CHUNK:
                return message
            self._job.emit(read(message[1]))
        raise self._end()

    def _set_clock(self, around: ExitStack) -> None:
        timeout = self._job.timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        if timeout is not None and self._job.emitter.heard:
            # A slow listener may make this thread wait, and only the token ends that. No sooner than the deadline.
            timer = threading.Timer(min(timeout + 0.01, threading.TIMEOUT_MAX), self._job.token.cancel, [_TIMED_OUT])
            timer.daemon = True
            timer.start()
            around.callback(timer.cancel)

    def _has_begun(self, child: _Child) -> bool:
        # Whoever stops the job may have been faster than the news that its function is called.
        if not self._begun and child.ready:
            with suppress(ProcessDiedError):
                news = child.hear(time.monotonic() + 0.01, undisturbed=True)
                self._begun = news is not None and news[0] == BEGUN
        return self._begun

    def _warn(self, child: _Child) -> None:
        """Let a tool that can hear it know that it is over, and give it a moment."""
        if not self._listens and function_kind(self._job.function) != "generator":
            return
        child.say(CANCEL, (self._stopped or _TIMED_OUT).encode())
        deadline = time.monotonic() + self._pool.grace
        with suppress(ProcessDiedError):
            while (message := child.hear(deadline, undisturbed=True)) is not None and message[0] in (CHUNK, ITEM):
                pass

    def _end(self) -> BaseException:
        if self._stopped is not None:
            return CancelledError(self._stopped)
        if self._deadline is None or time.monotonic() < self._deadline:
            return CancelledError(self._job.token.reason)
        if self._begun:
            return self._job.timed_out()
        return PegboardError(f"the process of the tool was not ready after {self._pool.patience:g} s; {_GUARD}")


@final
class _Future(Future[Any]):
    """What a job comes to. Cancelling it ends the job: its process is gone soon after."""

    def __init__(self, run: _Run) -> None:
        super().__init__()
        self._run = run

    def cancel(self) -> bool:
        """Kill what runs the job. Never is anything left to itself: the answer is True, but for one that is over."""
        if not super().cancel():
            self._run.stop(_CANCELLED)
        return not self.done() or self.cancelled()


@final
class ProcessPool:
    """At most `size` jobs at a time, each in a process that does nothing else meanwhile.

    A process begins when a job finds none idle, is kept for later jobs, and ends when the pool closes, or with its
    parent. One that was stopped is never used again.
    """

    def __init__(self, size: int | None, keep_warm: float | None, grace: float, patience: float) -> None:
        if current_process().name.startswith(_PREFIX) and not is_serving():
            # A child imports the main script, and the script calls a tool. Nothing good comes of going on.
            os._exit(_UNGUARDED)
        self.grace = grace
        self.patience = patience
        self._size = size or _cpus()
        self._keep_warm = keep_warm
        self._state = threading.Condition()
        self._queue: deque[_Run] = deque()
        self._minded = 0
        self._minding = threading.local()
        self._resting: list[_Child] = []
        self._runs: set[_Run] = set()
        self._closed = False
        _open.add(self)

    def submit(self, job: Job) -> Future[Any]:
        """Queue a job. Raises RuntimeError when the pool is closed or no thread can be started."""
        run = _Run(self, job)
        with self._state:
            if self._closed:
                raise RuntimeError("the pool of processes is closed")
            # Whoever minds a job and calls another meanwhile, in a listener, must not wait for its own place.
            if self._minded < self._size or getattr(self._minding, "now", False):
                name = f"pegboard-process-{next(_numbers)}"
                threading.Thread(target=self._mind, args=(run,), name=name, daemon=True).start()
                self._minded += 1
            else:
                self._queue.append(run)
        return run.future

    def _mind(self, run: _Run) -> None:
        self._minding.now = True
        following: _Run | None = run
        while following is not None:
            following.mind()
            with self._state:
                waits = self._queue and self._minded <= self._size
                following = self._queue.popleft() if waits else None
                if following is None:
                    self._minded -= 1
                    self._state.notify_all()

    def hire(self, run: _Run) -> _Child:
        """A process for a job, an idle one or a new one."""
        with self._state:
            if self._closed:
                raise CancelledError(_CLOSED)
            self._runs.add(run)
            if self._resting:
                return self._resting.pop()
        try:
            return _Child()
        except BaseException:
            self._over(run)
            raise

    def dismiss(self, run: _Run, child: _Child, *, usable: bool) -> None:
        """The job is over: keep the process if it is `usable`, else end it."""
        with self._state:
            kept = usable and not self._closed
            if kept:
                self._resting.append(child)
        if not kept:
            child.bury()
        elif self._keep_warm is not None:
            self._let_go_later(child, self._keep_warm)
        self._over(run)

    def _let_go_later(self, child: _Child, seconds: float) -> None:
        child.jobs = jobs = child.jobs + 1

        def let_go(pool: weakref.ref[ProcessPool]) -> None:
            this = pool()
            if this is not None:
                this._let_go(child, jobs)

        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), let_go, [weakref.ref(self)])
        timer.daemon = True
        timer.start()

    def _let_go(self, child: _Child, jobs: int) -> None:
        with self._state:
            if child.jobs != jobs or child not in self._resting:
                return  # it has worked since then, or it is gone
            self._resting.remove(child)
        child.hang_up()
        child.bury(FAREWELL)

    def _over(self, run: _Run) -> None:
        with self._state:
            self._runs.discard(run)
            self._state.notify_all()

    def close(self) -> None:
        """End every process, in order where it is idle; returns when they are gone, after some seconds at most."""
        with self._state:
            if self._closed:
                return
            self._closed = True
            runs, idle, queued = list(self._runs), list(self._resting), list(self._queue)
            self._resting.clear()
            self._queue.clear()
        for run in queued:
            run.future.cancel()
        for run in runs:
            run.stop(_CLOSED)
        for child in idle:
            child.hang_up()
        deadline = time.monotonic() + FAREWELL
        for child in idle:
            child.bury(max(0.0, deadline - time.monotonic()))
        with self._state:
            self._state.wait_for(lambda: not self._runs and not self._minded, _CLOSING)


def _cpus() -> int:
    """How many processes can work at once; never fewer than two, for one that hangs must not hold up the rest."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, usable)


@atexit.register  # after multiprocessing's own, so it runs before it
def _close_all() -> None:
    for pool in list(_open):
        pool.close()
