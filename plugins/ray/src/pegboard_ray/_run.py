"""One call in a cluster, from its order to its outcome."""

from __future__ import annotations

import itertools
import threading
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, final

import ray
from ray import exceptions

from pegboard import Job, PegboardError, describe_exception
from pegboard_process.wire import BEGUN, CHUNK, ITEM, JobFuture, UnexpectedAnswerError, opened, pass_on, unpack
from pegboard_ray._arrivals import Arrivals
from pegboard_ray._errors import MismatchError, OutOfMemoryError, WorkerLostError
from pegboard_ray._order import LATE, MISMATCH, Frame, frames
from pegboard_ray._orders import Known, written

__all__ = ["LOSSES", "Run"]

_keys: Final = map(str, itertools.count(1))
_SHORT: Final = 1 << 16
"""Bytes of an answer that an event loop may read itself."""
_CANCELLED: Final = "the call was cancelled"
LOSSES: Final = (
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.LocalRayletDiedError,
    exceptions.ObjectLostError,
    exceptions.RaySystemError,
)


@final
class Run:
    """A job at Ray. `over` is called when it has ended."""

    def __init__(self, job: Job, grace: float, over: Callable[[Run], None]) -> None:
        self.future = JobFuture(partial(self.stop, _CANCELLED))
        self.options: dict[str, Any] = {}
        self.shape = ""
        self.is_streamed = False
        self.is_alone = job.emitter.heard
        """Whether it has a task of its own, whatever its tool is like."""
        self.job = job
        self._grace = grace
        self._over = over
        self._context = copy_context()
        self._key = next(_keys)
        self._lock = threading.Lock()
        self._ref: Any = None
        self._arrivals = Arrivals.here()
        self._hear: Callable[[], None] | None = None
        self._lose: Callable[[BaseException], None] = _unheard
        self._is_begun = False
        self._is_over = False
        self._stopped: BaseException | None = None
        self._listens = False
        self._began = time.monotonic()
        self._unplaced: float | None = None

    @property
    def name(self) -> str:
        """The name of its tool."""
        return self.job.call.name

    def seconds(self) -> float:
        """Since it was launched."""
        return time.monotonic() - self._began

    def is_unplaced(self, *, placed: bool, patience: float) -> bool:
        """Whether no node has had what it asks for, for longer than that."""
        if placed:
            self._unplaced = None
            return False
        self._unplaced = self._unplaced or time.monotonic()
        return time.monotonic() - self._unplaced >= patience

    # Beginning -------------------------------------------------------------------------------------------------

    def boarded(self, known: Known, flight: str) -> bytes | None:
        """Its order, now that it is launched; None for what has ended instead. What goes wrong is its outcome."""
        self._began = time.monotonic()
        if not self._is_running():
            self._over(self)
            return None
        try:
            self.options, self.shape, self._listens = known.options, known.shape, known.listens
            self.is_streamed = self._listens or self.job.emitter.heard
            return self._context.run(written, self.job, known, f"{flight}/{self._key}")
        except BaseException as error:  # noqa: BLE001 - also of what a call must not send
            self.end(error=error)
            return None

    def _is_running(self) -> bool:
        """Whether it is to run, or to end with an error: it was neither cancelled while it waited, nor has it ended."""
        with self._lock:
            if not (self._is_begun or self._is_over):
                self._is_begun = self.future.set_running_or_notify_cancel()
            return self._is_begun and not self._is_over

    def launched(self, ref: Any, hear: Callable[[], None] | None, lose: Callable[[BaseException], None]) -> None:
        """Hear of its task. `hear` waits for the answer in the thread that has the call, `lose` hears of its loss."""
        self._hear, self._lose = hear, lose
        with self._lock:
            self._ref = ref
            stopped = self._stopped
        if self.is_streamed:
            threading.Thread(
                target=self._context.run, args=(self._mind,), name="pegboard-ray-call", daemon=True
            ).start()
        if stopped is not None:
            self._cancel()

    def begins_anew(self, noted: str) -> bool:
        """Whether it does, in a task of its own, now that one is lost. Not if it was to end, or its time is up."""
        if self._is_over or self._stopped is not None or noted == self._key:
            return False
        self.is_alone = True
        return True

    def wait(self) -> Any:
        """What it comes to, for a thread that has nothing else to do. A token that is set ends it."""
        with self.future.ended_by(self.job.token):
            if self._hear is not None:
                self._hear()
            return self.future.result()

    def answered(self, kind: bytes, content: bytes) -> None:
        """Hear what it came to, in a thread that must not wait."""
        if self._arrivals is not None and self._hear is None and len(content) <= _SHORT:
            loop, arrivals = self._arrivals
            arrivals.put(loop, partial(self._settle, kind, content))
        else:
            self._settle(kind, content)

    def _settle(self, kind: bytes, content: bytes) -> None:
        try:
            value = self._outcome(kind, content)
        except BaseException as raised:  # noqa: BLE001 - what the tool raised, mostly
            self.end(error=raised)
        else:
            self.end(value)

    # What it says while it runs --------------------------------------------------------------------------------

    def _mind(self) -> None:
        stream = self._stream()
        try:
            value = self._heard(stream)
        except exceptions.RayError as error:
            self._lose(error)
        except CancelledError as error:
            self.stop(str(error))  # drawing heard of it sooner, and a worker is still at it
            with suppress(BaseException):
                deque(stream, maxlen=0)
            self.end(error=error)
        except BaseException as error:  # noqa: BLE001 - what the tool raised, mostly
            self.end(error=error)
        else:
            self.end(value)

    def _heard(self, stream: Iterator[Frame]) -> Any:
        """What the call comes to, while what the tool reports is passed on."""
        with ExitStack() as around:
            kind, content = self._next(stream)
            if kind == BEGUN:
                self._set_clock(around)
                kind, content = self._next(stream)
            if kind == ITEM:
                return self.job.result(self.job.draw(self._relayed(content, stream)))
            return self._outcome(kind, content)

    def _next(self, stream: Iterator[Frame]) -> Frame:
        """The next that is not a chunk."""
        for kind, content in stream:
            if kind != CHUNK:
                return kind, content
            pass_on(self.job, content)
        raise UnexpectedAnswerError

    def _stream(self) -> Iterator[Frame]:
        for ref in self._ref:
            yield from frames(ray.get(ref))

    def _relayed(self, item: bytes, stream: Iterator[Frame]) -> Generator[Any, None, Any]:
        """What the tool yields in its worker, and then what it returns."""
        kind, content = ITEM, item
        while kind == ITEM:
            yield opened(content)
            kind, content = self._next(stream)
        return self._unpacked(kind, content)

    def _set_clock(self, around: ExitStack) -> None:
        timeout = self.job.timeout
        if timeout is not None and self.job.emitter.heard:
            # A slow listener may make this thread wait, and only the token ends that. No sooner than the deadline.
            timer = threading.Timer(min(timeout + 0.01, threading.TIMEOUT_MAX), self.job.token.cancel, ["timed out"])
            timer.daemon = True
            timer.start()
            around.callback(timer.cancel)

    # Ending ----------------------------------------------------------------------------------------------------

    def stop(self, reason: str) -> None:
        """End it, from any thread; its worker ends soon after."""
        self.fail(CancelledError(reason))

    def fail(self, error: BaseException | None) -> None:
        """The same, with this outcome."""
        with self._lock:
            if self._stopped is not None:
                return
            self._stopped = error
            launched = self._ref is not None
        if launched:
            self._cancel()

    def refuse(self, error: BaseException | None) -> None:
        """End it with an error, whether it waits or runs; nothing is cancelled in the cluster."""
        if self._is_running():
            self.end(error=error)
        else:
            self._over(self)

    def drop(self, reason: str) -> None:
        """End what waits to be launched, as cancelled."""
        if self._is_begun:
            self.end(error=CancelledError(reason))
        else:
            self.future.cancel()

    def _cancel(self) -> None:
        if self._listens:
            self._ask(force=False)
            timer = threading.Timer(self._grace, self._ask, kwargs={"force": True})
            timer.daemon = True
            timer.start()
        else:
            self._ask(force=True)

    def _ask(self, *, force: bool) -> None:
        if not self.future.done():
            with suppress(Exception):  # it has just ended, or Ray has
                ray.cancel(self._ref, force=force)

    def _outcome(self, kind: bytes, content: bytes) -> Any:
        return self.job.result(self._unpacked(kind, content))

    def _unpacked(self, kind: bytes, content: bytes) -> Any:
        if kind == LATE:
            raise self.job.timed_out()
        if kind == MISMATCH:
            raise MismatchError(f"{self.name} cannot run in the cluster: {content.decode()}; {_REMEDY}")
        return unpack(kind, content, self.job)

    def broken(self, error: BaseException, noted: str) -> None:
        """End it with the reason why Ray has no answer; `noted` is the key of the call whose time was up."""
        if isinstance(error, exceptions.OutOfMemoryError):
            what = f"the worker of {self.name} was ended, for its node has no memory left"
            made: BaseException = OutOfMemoryError(what)
        elif noted == self._key:
            made = self.job.timed_out()
        elif isinstance(error, LOSSES):
            made = WorkerLostError(f"the worker of {self.name} was lost before the tool ended ({type(error).__name__})")
        elif isinstance(error, exceptions.TaskCancelledError):
            made = WorkerLostError(f"the task of {self.name} was cancelled in the cluster")
        else:
            what = f"no worker could run {self.name}: {type(error).__name__}: {describe_exception(error)}"
            made = PegboardError(what)
        made.__cause__ = error
        self.end(error=made)

    def end(self, value: Any = None, error: BaseException | None = None) -> None:
        """End it with a value or an error, the first time."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            error = self._stopped or error
        try:
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(value)
        finally:
            self._hear, self._lose = None, _unheard  # its flight has it in turn
            self._over(self)


def _unheard(error: BaseException) -> None:
    """Of a flight that it is not on."""


_REMEDY: Final = "install the same versions there, for instance by the setting runtime_env"
