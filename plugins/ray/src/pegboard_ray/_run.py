"""One call in a cluster, from its launch to its outcome."""

from __future__ import annotations

import itertools
import threading
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, final
from uuid import uuid4

import ray
from ray import exceptions as lost

from pegboard import Job, PegboardError, describe_exception
from pegboard_process.wire import BEGUN, CHUNK, ITEM, JobFuture, UnexpectedAnswerError, opened, pass_on, unpack
from pegboard_ray._arrivals import Arrivals
from pegboard_ray._cluster import Cluster
from pegboard_ray._errors import MismatchError, OutOfMemoryError, WorkerLostError
from pegboard_ray._order import LATE, MISMATCH, Frame, frames
from pegboard_ray._orders import Orders

__all__ = ["Run"]

_BOOT: Final = uuid4().hex

_keys: Final = (f"{_BOOT}{number}" for number in itertools.count(1))
_SHORT: Final = 1 << 16
"""Bytes of an answer that an event loop may read itself."""
_CANCELLED: Final = "the call was cancelled"
_LOST: Final = (
    lost.WorkerCrashedError,
    lost.NodeDiedError,
    lost.LocalRayletDiedError,
    lost.ObjectLostError,
    lost.RaySystemError,
)


@final
class Run:
    """A job at Ray. `over` is told when nothing of it is there any more."""

    def __init__(self, job: Job, grace: float, over: Callable[[Run], None]) -> None:
        self.future = JobFuture(partial(self.stop, _CANCELLED))
        self.options: dict[str, Any] = {}
        self.shape = ""
        self._job = job
        self._grace = grace
        self._over = over
        self._context = copy_context()
        self._key = next(_keys)
        self._lock = threading.Lock()
        self._cluster: Cluster | None = None
        self._ref: Any = None
        self._arrivals = Arrivals.here()
        self._is_here = False
        self._stopped: BaseException | None = None
        self._listens = False
        self._began = time.monotonic()
        self._unplaced: float | None = None

    @property
    def name(self) -> str:
        """The name of its tool."""
        return self._job.call.name

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

    def launch(self, cluster: Cluster, orders: Orders, *, here: bool = False) -> None:
        """Give it to Ray. What goes wrong is its outcome. A thread that has it `here` waits for the answer itself."""
        self._cluster, self._began = cluster, time.monotonic()
        if not self.future.set_running_or_notify_cancel():
            self._over(self)
            return
        try:
            known = orders.known(self._job)
            self.options, self.shape, self._listens = known.options, known.shape, known.listens
            streamed = self._listens or self._job.emitter.heard
            parcel = self._context.run(orders.written, self._job, self._key)
            ref = cluster.start(parcel, known.shape, known.options, streamed=streamed)
        except BaseException as error:  # noqa: BLE001 - also of what a call must not send
            self._end(error=error)
            return
        with self._lock:
            self._ref = ref
            stopped = self._stopped
        if streamed:
            threading.Thread(
                target=self._context.run, args=(self._mind,), name="pegboard-ray-call", daemon=True
            ).start()
        elif here:
            self._is_here = True
        else:
            self._listen()
        if stopped is not None:
            self._cancel()

    def wait(self) -> Any:
        """What it comes to, for a thread that has nothing else to do. A token that is set ends it."""
        with self.future.ended_by(self._job.token):
            if self._is_here:
                self._hear()
            return self.future.result()

    def _hear(self) -> None:
        try:
            said = ray.get(self._ref)
        except KeyboardInterrupt:
            self._listen()
            raise
        except Exception as error:  # noqa: BLE001 - whatever Ray has instead of an answer
            self._broken(error)
        else:
            self._settle(said)

    def _listen(self) -> None:
        self._ref.future().add_done_callback(self._answered)

    def _answered(self, future: Future[bytes]) -> None:
        """In a thread of Ray's, which must not wait: what takes longer goes on in another."""
        error = future.exception()
        if error is not None:
            threading.Thread(target=self._broken, args=(error,), name="pegboard-ray-lost", daemon=True).start()
            return
        said = future.result()
        if self._arrivals is not None and len(said) <= _SHORT:
            loop, arrivals = self._arrivals
            arrivals.put(loop, self._settle, said)
        else:
            self._settle(said)

    def _settle(self, said: bytes) -> None:
        try:
            ((kind, content),) = frames(said)
            value = self._outcome(kind, content)
        except BaseException as raised:  # noqa: BLE001 - what the tool raised, mostly
            self._end(error=raised)
        else:
            self._end(value)

    # What it says while it runs --------------------------------------------------------------------------------

    def _mind(self) -> None:
        said = self._said()
        try:
            value = self._heard(said)
        except lost.RayError as error:
            self._broken(error)
        except CancelledError as error:
            self.stop(str(error))  # drawing heard of it sooner, and a worker is still at it
            with suppress(BaseException):
                deque(said, maxlen=0)
            self._end(error=error)
        except BaseException as error:  # noqa: BLE001 - what the tool raised, mostly
            self._end(error=error)
        else:
            self._end(value)

    def _heard(self, said: Iterator[Frame]) -> Any:
        """What the call comes to, while what the tool reports is passed on."""
        with ExitStack() as around:
            kind, content = self._next(said)
            if kind == BEGUN:
                self._set_clock(around)
                kind, content = self._next(said)
            if kind == ITEM:
                return self._job.result(self._job.draw(self._relayed(content, said)))
            return self._outcome(kind, content)

    def _next(self, said: Iterator[Frame]) -> Frame:
        """The next that is not a chunk."""
        for kind, content in said:
            if kind != CHUNK:
                return kind, content
            pass_on(self._job, content)
        raise UnexpectedAnswerError

    def _said(self) -> Iterator[Frame]:
        for ref in self._ref:
            yield from frames(ray.get(ref))

    def _relayed(self, item: bytes, said: Iterator[Frame]) -> Generator[Any, None, Any]:
        """What the tool yields in its worker, and then what it returns."""
        kind, content = ITEM, item
        while kind == ITEM:
            yield opened(content)
            kind, content = self._next(said)
        return self._unpacked(kind, content)

    def _set_clock(self, around: ExitStack) -> None:
        timeout = self._job.timeout
        if timeout is not None and self._job.emitter.heard:
            # A slow listener may make this thread wait, and only the token ends that. No sooner than the deadline.
            timer = threading.Timer(min(timeout + 0.01, threading.TIMEOUT_MAX), self._job.token.cancel, ["timed out"])
            timer.daemon = True
            timer.start()
            around.callback(timer.cancel)

    # Ending ----------------------------------------------------------------------------------------------------

    def stop(self, reason: str) -> None:
        """End it, from any thread; its worker is gone soon after."""
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
        """End what was never launched."""
        if self.future.set_running_or_notify_cancel():
            self._end(error=error)
        else:
            self._over(self)

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
        return self._job.result(self._unpacked(kind, content))

    def _unpacked(self, kind: bytes, content: bytes) -> Any:
        if kind == LATE:
            raise self._job.timed_out()
        if kind == MISMATCH:
            raise MismatchError(f"{self.name} cannot run in the cluster: {content.decode()}; {_REMEDY}")
        return unpack(kind, content, self._job)

    def _broken(self, error: BaseException) -> None:
        """Ray has no answer: say why."""
        cluster = self._cluster
        if isinstance(error, lost.OutOfMemoryError):
            what = f"the worker of {self.name} was ended, for its node has no memory left"
            made: BaseException = OutOfMemoryError(what)
        elif isinstance(error, _LOST):
            late = cluster is not None and cluster.note(self._key) == b"timeout"
            what = f"the worker of {self.name} was lost before the tool ended ({type(error).__name__})"
            made = self._job.timed_out() if late else WorkerLostError(what)
        elif isinstance(error, lost.TaskCancelledError):
            made = WorkerLostError(f"the task of {self.name} was cancelled in the cluster")
        else:
            what = f"no worker could run {self.name}: {type(error).__name__}: {describe_exception(error)}"
            made = PegboardError(what)
        made.__cause__ = error
        self._end(error=made)

    def _end(self, value: Any = None, error: BaseException | None = None) -> None:
        with self._lock:
            error = self._stopped or error
        try:
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(value)
        finally:
            self._over(self)


_REMEDY: Final = "install the same versions there, for instance by the setting runtime_env"
