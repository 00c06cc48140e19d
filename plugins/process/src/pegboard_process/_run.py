"""One call in a process. One thread at a time sends it, reads its answer, keeps its time and ends it."""

from __future__ import annotations

import os
import threading
import time
from asyncio import CancelledError
from collections.abc import Generator
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final, Protocol, final

from pegboard import Job, PegboardError
from pegboard.inspection import function_kind
from pegboard_process._child import GUARD, Child
from pegboard_process._errors import ProcessDiedError, UnexpectedAnswerError
from pegboard_process._future import JobFuture
from pegboard_process._pipe import BEGUN, CHUNK, ITEM, JOB, NO_JOB, READY, UNREADABLE, UnexpectedFrameError
from pegboard_process._transfer import opened, pack, pass_on, unpack
from pegboard_process._watch import Watch

__all__ = ["CANCELLED", "Run"]

CANCELLED: Final = "the call was cancelled"
_TIMED_OUT: Final = "timed out"

_drawn: list[bytes] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)


def _random_id() -> bytes:
    """Eight random bytes. Many are drawn at a time, for asking the system takes long."""
    while True:
        with suppress(IndexError):
            return _drawn.pop()
        many = os.urandom(8 * 512)
        _drawn.extend(many[start : start + 8] for start in range(0, len(many), 8))


class Pool(Protocol):
    """Where a run gets its process."""

    grace: float
    patience: float

    def packs(self, job: Job) -> tuple[str, ...]:
        """The packs that the process has to know."""

    def rested(self, run: Run) -> Child | None:
        """An idle process, if there is one."""

    def hire(self, run: Run) -> Child:
        """A process."""

    def dismiss(self, run: Run, child: Child, *, usable: bool) -> None:
        """Take a process back."""

    def hand_over(self, run: Run) -> None:
        """Let a thread mind it."""

    def leave_place(self) -> None:
        """Give the place of a run that has ended to the next one."""


@final
class Run:
    """One job in a process, minded by one thread."""

    def __init__(self, pool: Pool, job: Job) -> None:
        self.pool = pool
        self._job = job
        self._lock = threading.Lock()
        self._id = _random_id()
        """It cannot be guessed: else an earlier job could leave a forged answer for it."""
        self.future: JobFuture
        self.context: Context
        self._child: Child | None = None
        self._early: Child | None = None
        """The process that has the job already."""
        self._watch: Watch | None = None
        self._stopped: str | None = None
        self._begun = False
        self._listens = False
        self._sent = 0.0
        self._deadline: float | None = None
        """Until the function is known to have begun, that of a look at whether it has."""
        self._alarm: threading.Timer | None = None

    def promise(self) -> Run:
        """Another thread will mind it, and complete its future."""
        self.future = JobFuture(partial(self.stop, CANCELLED))
        self.context = copy_context()
        return self

    def begin(self) -> bool:
        """Send the job at once if a process rests. Whether an event loop hears the answer, so that no thread has to."""
        self.future.set_running_or_notify_cancel()
        child = self.pool.rested(self)
        if child is None:
            return False
        try:
            self._take(child)
            self._send(child)
            self._early = child
        except BaseException as error:
            self.pool.dismiss(self, child, usable=self._leave(child))
            if not isinstance(error, Exception):  # any other the job's own thread will meet again
                raise
            return False
        self._watch = watch = child.watched()
        if watch is None:
            return False
        watch.expect(self._on_ready, self._deadline or 0.0)
        return True

    def _on_ready(self) -> None:
        if self._take_from_loop():
            child = self._early
            if child is not None and child.has_answer():
                self.mind()
                self.pool.leave_place()
            else:
                self.pool.hand_over(self)

    def _take_from_loop(self) -> bool:
        """Take the run from the event loop. Returns whether the loop had it; then the caller has to continue it."""
        with self._lock:
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.forget()
        return watch is not None

    def mind(self) -> None:
        """Run the job and complete its future."""
        if not self.future.running() and not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self.context.run(self.result)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            self.future.set_exception(error)
        else:
            self.future.set_result(value)

    def result(self) -> Any:
        """Run the job in this thread: its outcome."""
        while True:
            child, self._early = self._early, None
            has_it = child is not None
            child = child or self.pool.hire(self)
            rested = child.ready
            try:
                if not has_it:
                    self._take(child)
                return self._job.result(self._mind(child, has_it))
            except UnexpectedFrameError:
                raise UnexpectedAnswerError from None
            except ProcessDiedError as error:
                error.abandoned = self._has_begun(child)
                if self._begun or not rested:
                    raise  # else it died while it rested, and nothing has happened yet: another will do
            finally:
                if self._alarm is not None:
                    self._alarm.cancel()
                if not child.idle and self._has_begun(child):
                    self._warn(child)
                self.pool.dismiss(self, child, usable=self._leave(child))

    def waited(self) -> Any:
        """Its outcome, for a caller that has no place to mind it."""
        with self.future.ended_by(self._job.token):
            return self.future.result()

    def stop(self, reason: str) -> None:
        """End the run, from any thread; the process ends soon after."""
        with self._lock:
            self._stopped = self._stopped or reason
            if self._child is not None:
                self._child.ring()
        if self._take_from_loop():
            self.pool.hand_over(self)

    def _take(self, child: Child) -> None:
        with self._lock:
            if self._stopped is not None:
                raise CancelledError(self._stopped)
            self._child = child
            child.idle = child.ready  # one that has just begun to start is of no use until it says so

    def _leave(self, child: Child) -> bool:
        """Give up the process: no bell rings from now on. Returns whether it can do other work."""
        with self._lock:
            self._child = None
            return self._stopped is None and child.idle

    def _mind(self, child: Child, has_it: bool) -> Any:
        if child.ready and not has_it:
            self._send(child)
        elif not child.ready:
            self._deadline = time.monotonic() + self.pool.patience
        kind, content = self._hear(child)
        if kind == READY:
            child.ready = child.idle = True
            self._send(child)
            kind, content = self._hear(child)
        if kind != ITEM:
            return self._over(child, kind, content)
        try:
            return self._job.draw(self._relayed(child, content))
        except CancelledError:  # drawing heard of it sooner
            raise self._end() from None

    def _send(self, child: Child) -> None:
        # Made no sooner: what was decided anew since the job was submitted holds for it, and its arguments say so.
        parcel, self._listens = pack(self._job, self.pool.packs(self._job))
        child.idle = False
        child.say(JOB, self._id, parcel)
        self._sent = time.monotonic()
        self._set_look(self._sent)

    def _set_look(self, now: float) -> None:
        """The function has not been called yet: the next look is when its time may be up at the earliest."""
        timeout, latest = self._job.timeout, self._sent + self.pool.patience
        self._deadline = latest if timeout is None else min(now + timeout, latest)

    def _relayed(self, child: Child, content: bytes) -> Generator[Any, None, Any]:
        """What the tool yields in its process, and then what it returns."""
        kind = ITEM
        while kind == ITEM:
            yield opened(content)
            kind, content = self._hear(child)
        return self._over(child, kind, content)

    def _over(self, child: Child, kind: bytes, content: bytes) -> Any:
        """What the job came to. The process can be used again if its answer was one."""
        try:
            value = unpack(kind, content, self._job)
        except UnexpectedAnswerError:
            raise
        except BaseException:
            child.idle = True
            raise
        child.idle = True
        return value

    def _hear(self, child: Child) -> tuple[bytes, bytes]:
        """The next that is not a chunk. Raises when the time is up, and when the run was stopped."""
        while self._stopped is None:
            frame = child.hear(self._deadline)
            if frame is None:
                if self._has_time(child):
                    continue
                break
            kind, job, content = frame
            if job != (NO_JOB if kind == READY else self._id) or not self._is_due(child, kind):
                raise UnexpectedAnswerError
            if kind in (CHUNK, ITEM):
                self._set_alarm()
            if kind != CHUNK:
                return kind, content
            pass_on(self._job, content)
        raise self._end()

    def _is_due(self, child: Child, kind: bytes) -> bool:
        """Whether a child of ours would say that now."""
        if kind == READY:
            return not child.ready
        if not self._begun:
            self._look(child)
        return child.ready and kind != BEGUN and self._begun is (kind != UNREADABLE)

    def _look(self, child: Child) -> None:
        """Whether the function has been called: then its time runs since."""
        reported = child.begun(self._id)
        if reported is not None:
            self._begun, timeout = True, self._job.timeout
            since = reported if self._sent <= reported <= time.monotonic() else self._sent
            self._deadline = None if timeout is None else since + timeout

    def _has_time(self, child: Child) -> bool:
        """Whether the deadline that has passed was only that of a look."""
        if self._stopped is not None or self._begun or not child.ready:
            return False
        now = time.monotonic()
        self._look(child)
        if not self._begun:
            self._set_look(now)
        return self._deadline is None or now < self._deadline

    def _set_alarm(self) -> None:
        if self._alarm is None and self._deadline is not None and self._job.emitter.heard:
            # A slow listener may make this thread wait, and only the token ends that. No sooner than the deadline.
            seconds = max(self._deadline - time.monotonic(), 0.0) + 0.01
            self._alarm = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._job.token.cancel, [_TIMED_OUT])
            self._alarm.daemon = True
            self._alarm.start()

    def _has_begun(self, child: Child) -> bool:
        if not self._begun:
            self._look(child)
        return self._begun

    def _warn(self, child: Child) -> None:
        """Tell a tool that takes its token that its time is over, and give it a moment."""
        if not self._listens and function_kind(self._job.function) != "generator":
            return
        child.cancel(self._id, self._stopped or _TIMED_OUT)
        deadline = time.monotonic() + self.pool.grace
        with suppress(ProcessDiedError, UnexpectedFrameError):
            while (frame := child.hear(deadline, undisturbed=True)) is not None and frame.kind in (CHUNK, ITEM):
                pass

    def _end(self) -> BaseException:
        if self._stopped is not None:
            return CancelledError(self._stopped)
        if self._deadline is None or time.monotonic() < self._deadline:
            return CancelledError(self._job.token.reason)
        if self._begun:
            return self._job.timed_out()
        return PegboardError(f"the process of the tool was not ready after {self.pool.patience:g} s; {GUARD}")
