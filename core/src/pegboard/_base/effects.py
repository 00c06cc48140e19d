"""Effects: how the stages of a call wait, and what may become of them.

A rule of execution (approval, retry, injection, middleware) is written once, as a plain coroutine over an `Io`: one
awaits on an event loop, the other blocks in plain code.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from concurrent.futures import Future

# What something came to: a value, or the exception that it ended with.
Outcome: TypeAlias = tuple[Any, BaseException | None]
T = TypeVar("T")


_CO_COROUTINE: Final = 0x80  # as in `inspect`

# The reason of a token that was set because the attempt's time is up.
TIMED_OUT: Final = "timed out"


class Io(Protocol):
    """What the stages of a call wait by: on an event loop it awaits, in plain code it blocks and never suspends.

    Each gives an outcome, not an exception: a StopIteration could not leave a coroutine.
    """

    async def wait_for(self, start: Callable[[], Any], seconds: float | None = None) -> Outcome:
        """Await something that `start()` gives, for at most `seconds`."""

    async def work(
        self, job: Callable[[], Any], backend: Any, seconds: float | None = None, *, interruptible: bool = False
    ) -> Outcome:
        """Run the sync function `job` where its `backend` says, for at most `seconds`.

        `"thread"` and `"inline"` are the library's own; what else there is is the backend itself, and the job a `Job`.
        Plain code runs it in the caller's own thread unless that deadline was asked for (`interruptible`), which only
        another thread can keep.
        """

    async def finish(self, close: Callable[[], Any]) -> Outcome:
        """Close what was opened, a coroutine function or plain code, to its end, whatever is cancelled meanwhile."""

    async def sleep(self, seconds: float) -> Outcome:
        """Wait, or less when the call is asked to stop."""

    async def turn(self, future: Future[None], seconds: float | None) -> Outcome:
        """Wait for the turn of a call at its limits, for at most `seconds`."""

    async def around(self, function: Callable[[Any, Any], Any], call: Any, inner: Stage) -> Outcome:
        """Run middleware: `function(call, proceed)`, where `proceed()` goes on with the stage `inner`."""


# A part of a call: a coroutine function over what it waits by.
Stage: TypeAlias = Callable[[Io], Coroutine[Any, Any, Any]]


class AttemptTimeoutError(TimeoutError):
    """An attempt passed its deadline; not to be taken for a TimeoutError that a tool raises itself."""

    def __init__(self, seconds: float, *, abandoned: bool = False) -> None:
        super().__init__(f"timed out after {seconds:g} s")
        self.seconds = seconds
        self.abandoned = abandoned


class StaleError(Exception):
    """What was decided of a call has changed while it waited, and its function has not begun."""


class ClosedError(RuntimeError):
    """What the call needs to run is not there: the toolkit is closed, or the interpreter is shutting down."""


def running_loop() -> Any:
    """The event loop that runs in this thread, or None. Never loads asyncio."""
    asyncio = sys.modules.get("asyncio")
    return None if asyncio is None else asyncio._get_running_loop()


def is_async(function: Any) -> bool:
    """Whether a function has to be awaited; `inspect` takes six times as long for a plain one, and is loaded for it."""
    code = getattr(function, "__code__", None)
    if code is not None:
        return bool(code.co_flags & _CO_COROUTINE)
    from inspect import iscoroutinefunction

    return iscoroutinefunction(function)


def new_future() -> Future[Any]:
    """A future of `concurrent.futures`, which is loaded with the first one."""
    # With it comes `logging`: a fifth of the start of a program whose calls never wait.
    from concurrent.futures import Future

    return Future()


def cancellation(*args: Any) -> BaseException:
    """A new instance of asyncio's cancellation. The ground floor names it, so that only one room loads asyncio."""
    error: BaseException = import_module("asyncio").CancelledError(*args)
    return error


def is_cancellation(error: BaseException) -> bool:
    """Whether an exception is asyncio's cancellation, without loading asyncio for it."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is a real Ctrl-C: raised by the signal handler in the main thread, not by `raise`.

    The innermost frame of a KeyboardInterrupt from a signal stands at whatever instruction was running; that of a
    tool's own `raise KeyboardInterrupt` stands at RAISE_VARARGS.
    """
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    import opcode

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_code.co_code[trace.tb_lasti] != opcode.opmap["RAISE_VARARGS"]


def pass_interrupt(error: BaseException) -> None:
    """Raise a real Ctrl-C: code that may raise anything is contained here, the user at the keyboard is not."""
    if is_interrupt(error):
        raise error


def tried(function: Callable[..., T], *args: Any) -> T | None:
    """What third-party code gives; None where it raises, whatever it is but a real Ctrl-C."""
    try:
        return function(*args)
    except BaseException as error:  # noqa: BLE001 - SystemExit too
        pass_interrupt(error)
        return None


_renewed: Final[WeakKeyDictionary[Any, Callable[[Any], object]]] = WeakKeyDictionary()


def after_fork(owner: T, renew: Callable[[T], object]) -> None:
    """Call `renew(owner)` in each child of `os.fork`, which has no other threads, as long as the owner lives."""
    _renewed[owner] = renew


def guarded(lock: Any) -> None:
    """Let no fork happen while another thread holds a lock of the whole process: the child would never get it."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def _renew() -> None:
    for owner, renew in list(_renewed.items()):
        renew(owner)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
