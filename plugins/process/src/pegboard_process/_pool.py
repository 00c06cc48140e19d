"""Processes for tools: spawned when one is needed, kept for the next, killed when a call has to end.

Each job is minded by one thread at a time, which alone touches the process that runs it: it starts it, sends the job,
passes on what the tool reports, keeps the time and kills. Other threads only ring a bell. A caller from plain code is
that thread itself; for a caller on an event loop the loop hears the answer, and hands the job to a thread of ours if
anything else comes.
"""

from __future__ import annotations

import atexit
import itertools
import os
import queue
import threading
import time
import weakref
from asyncio import CancelledError
from collections import deque
from concurrent.futures import Future
from multiprocessing import current_process
from typing import Any, Final, TypeAlias, final

from pegboard import Job
from pegboard.inspection import plugins_of
from pegboard_process._child import PREFIX, UNGUARDED, Child, disown_all
from pegboard_process._run import CANCELLED, Run
from pegboard_process._transfer import installed_packs
from pegboard_process._worker import FAREWELL, is_serving

__all__ = ["ProcessPool", "forget_all"]

_CLOSED: Final = "the toolkit was closed"
_CLOSING: Final = 5.0
"""Seconds that closing waits for jobs that end."""

_Inbox: TypeAlias = "queue.SimpleQueue[tuple[ProcessPool, Run] | None]"

_numbers = itertools.count(1)
_open: weakref.WeakSet[ProcessPool] = weakref.WeakSet()


@final
class ProcessPool:
    """At most `size` jobs at a time, each in a process that does nothing else meanwhile.

    A process begins when a job finds none idle, is kept for later jobs, and ends when the pool closes, or with its
    parent. One that was stopped is never used again.
    """

    def __init__(self, size: int | None, keep_warm: float | None, grace: float, patience: float) -> None:
        if current_process().name.startswith(PREFIX) and not is_serving():
            # A child imports the main script, and the script calls a tool. Nothing good comes of going on.
            os._exit(UNGUARDED)
        self.grace = grace
        self.patience = patience
        self._size = size or _cpus()
        self._keep_warm = keep_warm
        self._state = threading.Condition()
        self._queue: deque[Run] = deque()
        self._minded = 0
        self._minding = threading.local()
        self._minders: list[_Inbox] = []
        """Of the threads that have nothing to mind."""
        weakref.finalize(self, _send_away, self._minders).atexit = False
        self._resting: list[Child] = []
        self._runs: set[Run] = set()
        self._closed = False
        self._packs: tuple[Any, tuple[str, ...]] = (None, ())
        _open.add(self)

    def submit(self, job: Job) -> Future[Any]:
        """Queue a job. Raises RuntimeError when the pool is closed or no thread can be started."""
        run = Run(self, job).promise()
        with self._state:
            if self._closed:
                raise RuntimeError("the pool of processes is closed")
            # A thread that minds a job and calls another meanwhile, in a listener, must not wait for its own place.
            has_place = self._minded < self._size or getattr(self._minding, "now", False)
            if has_place:
                if not self._minders:
                    self._minders.append(_minder())
                self._minded += 1
            else:
                self._queue.append(run)
        if has_place:
            is_heard = False
            try:
                is_heard = run.begin()
            except BaseException:  # a real Ctrl-C
                run.stop(CANCELLED)
                raise
            finally:
                if not is_heard:
                    self.hand_over(run)
        return run.future

    def hand_over(self, run: Run) -> None:
        """Let a thread mind a job that has a place."""
        with self._state:
            inbox = self._minders.pop() if self._minders else _minder()
        inbox.put((self, run))

    def run(self, job: Job) -> Any:
        """Run a job: its outcome. This thread minds it itself if there is room, for it would only wait."""
        run, inner = Run(self, job), getattr(self._minding, "now", False)
        with self._state:
            if self._closed:
                raise RuntimeError("the pool of processes is closed")
            minds = inner or self._minded < self._size
            if minds:
                self._minded += 1
            else:
                self._queue.append(run.promise())
        if not minds:
            return run.waited()
        try:
            self._minding.now = True
            job.token.on_cancel(lambda: run.stop(job.token.reason))
            return run.result()
        finally:
            self._minding.now = inner
            self.leave_place()

    def leave_place(self) -> None:
        """A thread that has minded its own job goes on to other things: one of ours minds what waits."""
        with self._state:
            following = self._following()
        if following is not None:
            self.hand_over(following)

    def _following(self) -> Run | None:
        # Called under the lock, by who has a place and nothing to mind any more.
        if self._queue and self._minded <= self._size:
            return self._queue.popleft()
        self._minded -= 1
        if self._closed:
            self._state.notify_all()
        return None

    def mind(self, run: Run, inbox: _Inbox) -> None:
        """Mind a job, and those that wait then. The thread that does is kept for later ones."""
        self._minding.now = True
        following: Run | None = run
        while following is not None:
            following.mind()
            with self._state:
                following = self._following()
                if following is None and self._closed:
                    inbox.put(None)
                elif following is None:
                    self._minders.append(inbox)

    def packs(self, job: Job) -> tuple[str, ...]:
        """The installed packs of the job's toolkit that bring types or converters, for the process to know them too."""
        plugins = plugins_of(job.toolkit)
        if self._packs[0] is not plugins:
            self._packs = plugins, installed_packs(plugins, "provide_types", "provide_converters")
        return self._packs[1]

    def hire(self, run: Run) -> Child:
        """A process for a job, an idle one or a new one."""
        child = self.rested(run)
        if child is not None:
            return child
        with self._state:
            if self._closed:
                raise CancelledError(_CLOSED)
            self._runs.add(run)
        try:
            return Child()
        except BaseException:
            self._over(run)
            raise

    def rested(self, run: Run) -> Child | None:
        """An idle process for a job, if there is one."""
        while True:
            with self._state:
                if self._closed or not self._resting:
                    return None
                self._runs.add(run)
                child = self._resting.pop()
            if child.is_quiet():
                return child
            child.bury()  # it sent something, or it has ended

    def dismiss(self, run: Run, child: Child, *, usable: bool) -> None:
        """The job is over: keep the process if it is `usable`, else end it."""
        with self._state:
            kept = usable and self._keep_warm != 0 and not self._closed
            if kept:
                self._resting.append(child)
        if not kept:
            child.bury()
        elif self._keep_warm is not None:
            self._let_go_later(child, self._keep_warm)
        self._over(run)

    def _let_go_later(self, child: Child, seconds: float) -> None:
        child.jobs = jobs = child.jobs + 1

        def let_go(pool: weakref.ref[ProcessPool]) -> None:
            this = pool()
            if this is not None:
                this._let_go(child, jobs)

        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), let_go, [weakref.ref(self)])
        timer.daemon = True
        timer.start()

    def _let_go(self, child: Child, jobs: int) -> None:
        with self._state:
            if child.jobs != jobs or child not in self._resting:
                return  # it has worked since then, or it has ended
            self._resting.remove(child)
        child.request_end()
        child.bury(FAREWELL)

    def _over(self, run: Run) -> None:
        with self._state:
            self._runs.discard(run)
            if self._closed:
                self._state.notify_all()

    def close(self) -> None:
        """End every process, in order where it is idle; returns when they have ended, after some seconds at most."""
        with self._state:
            if self._closed:
                return
            self._closed = True
            runs, idle, queued = list(self._runs), list(self._resting), list(self._queue)
            _send_away(self._minders)
            self._resting.clear()
            self._queue.clear()
        for run in queued:
            run.future.cancel()
        for run in runs:
            run.stop(_CLOSED)
        for child in idle:
            child.request_end()
        deadline = time.monotonic() + FAREWELL
        for child in idle:
            child.bury(max(0.0, deadline - time.monotonic()))
        with self._state:
            self._state.wait_for(lambda: not self._runs and not self._minded, _CLOSING)


def _minder() -> _Inbox:
    """A thread that minds what comes into its inbox, until that is None; it keeps no pool alive while it waits."""
    inbox: _Inbox = queue.SimpleQueue()

    def work() -> None:
        while (given := inbox.get()) is not None:
            pool, run = given
            pool.mind(run, inbox)
            del given, pool, run

    threading.Thread(target=work, name=f"pegboard-process-{next(_numbers)}", daemon=True).start()
    return inbox


def _send_away(minders: list[_Inbox]) -> None:
    while minders:
        minders.pop().put(None)


def _cpus() -> int:
    """How many processes can work at once; never fewer than two, for one that is blocked must not delay the rest."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, usable)


def forget_all() -> None:
    """This process was forked: the pools that there are, and their processes, belong to its parent."""
    _open.clear()
    disown_all()


@atexit.register  # after multiprocessing's own, so it runs before it
def _close_all() -> None:
    for pool in list(_open):
        pool.close()
