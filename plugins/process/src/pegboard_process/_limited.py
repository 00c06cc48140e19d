"""Functions that read untrusted bytes, with a limit of memory and of time: each call in a process of its own."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple, final

from pegboard import CancelToken, PegboardError
from pegboard_process._data import NotDataError, decoded, encoded
from pegboard_process._errors import ProcessDiedError, UnexpectedAnswerError
from pegboard_process._template import (
    BEGUN,
    HEAD,
    NO_DATA,
    NO_FUNCTION,
    OUT_OF_MEMORY,
    READY,
    REQUEST,
    RETURNED,
)

__all__ = ["LimitError", "limited"]

PATIENCE: Final = 60.0
"""Seconds that a process may take to import the function's module."""
MOST_IDLE: Final = 2
"""Processes of one function that are kept for its next calls."""
TICK: Final = 0.05
"""Seconds between two looks at whether a call is to stop."""
_CODE: Final = (
    "import json, sys; path, *given = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from pegboard_process._template import serve; serve(*given)"
)
_SMALLEST: Final = 1 << 20


class LimitError(PegboardError):
    """A function took more than it may. Its process was ended.

    Args:
        message: What it took.
        limit: `"memory"`, `"seconds"`, or `"cancel"` for a call that was cancelled.
    """

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class _Limits(NamedTuple):
    memory: int
    seconds: float


class _GoneError(Exception):
    """A process had ended before the call began: another one will do."""


def limited(
    function: Callable[[Any], Any] | str,
    data: Any,
    *,
    memory: int,
    seconds: float,
    cancel: CancelToken | None = None,
) -> Any:
    """Call `function(data)` in a process of its own, and return what it returns.

    For parsers and engines of untrusted bytes: a file of a kilobyte can make one take all memory, or never end, and
    then the process is killed. It may be called from any thread, which waits.

    A process that has imported the module forks itself for each call, so that a call starts in milliseconds and finds
    nothing of another one; it ends after a minute without calls.

    Raises `LimitError` for a limit that was reached, `ProcessDiedError` for a process that crashed, `RemoteError` with
    the message of what the function raised, of the same built-in class, and `PegboardError` for data that cannot be
    sent, a function that cannot be imported, and a system that cannot fork a process.

    Args:
        function: A function at the top level of a module that can be imported, or its import string
            `"package.module:function"`: then what the module imports is imported there alone.
        data: Numbers, text, bytes, None, and lists and dicts with names of these; so is the result.
        memory: Bytes that it may take beyond what the process has taken for the module and the data. Linux has such a
            limit.
        seconds: Seconds that the function may run.
        cancel: Token that ends the process at once when it is cancelled. None for none.
    """
    if not hasattr(os, "fork"):
        raise PegboardError("limits of memory and time need a system that can fork a process, such as Linux or macOS")
    place = _place(function)
    name = place.replace(":", ".")
    try:
        content = encoded(data)
    except NotDataError:
        raise PegboardError(f"{name} takes text, numbers, bytes, lists, dicts; not {type(data)}") from None
    limits = _Limits(memory, seconds)
    while True:
        template, is_new = _idle.take(place)
        try:
            answer = template.call(content, limits, cancel)
        except _GoneError:
            death = template.death()
            if is_new:
                raise death from None
            continue
        except BaseException:
            template.end()
            raise
        _idle.keep(template)
        return _value(name, *answer)


def _place(function: Callable[[Any], Any] | str) -> str:
    """The import string of a function. Raises `PegboardError` for a text that is none."""
    place = function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
    if ":" not in place:
        raise PegboardError(f"{place!r} is no import string of a function: write package.module:function")
    return place


def _value(name: str, kind: bytes, content: bytes) -> Any:
    try:
        answer = decoded(content)
        if kind == RETURNED:
            return answer
        if kind == NO_DATA and isinstance(answer, str):
            raise PegboardError(f"{name} returned a {answer}, which is no data; return text or numbers")
        from pegboard_process._transfer import raised  # with multiprocessing

        described, *_ = answer
        error = raised((), *described)
    except (TypeError, ValueError):
        raise UnexpectedAnswerError from None
    raise error


@final
class _Template:
    """A process that has imported the module of a function, and the socket to it; for one call at a time."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.name = place.replace(":", ".")
        self._pipe, far = socket.socketpair()
        given = json.dumps([sys.path, far.fileno(), *place.split(":", 1)])
        with far, ExitStack() as undone:
            undone.callback(self._pipe.close)
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and a function of the program
                [sys.executable, "-c", _CODE, given],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[far.fileno()],
                start_new_session=True,  # a Ctrl-C is the program's affair; and what it starts can be ended with it
            )
            undone.pop_all()
        try:
            kind, content = self._hear(time.monotonic() + PATIENCE, _SMALLEST)
            if kind != READY:
                reason = decoded(content) if kind == NO_FUNCTION else "its process sent something else"
                raise PegboardError(f"{self.name} cannot be called in a process: {reason}")
        except (TimeoutError, EOFError, OSError) as error:
            self.end()
            raise PegboardError(f"the process for {self.name} did not start: {type(error).__name__}") from error
        except BaseException:
            self.end()
            raise

    def call(self, content: bytes, limits: _Limits, cancel: CancelToken | None) -> tuple[bytes, bytes]:
        """The kind and the content of the answer. Raises `_GoneError` where the process had ended before."""
        try:
            self._pipe.settimeout(PATIENCE)
            self._pipe.sendall(REQUEST.pack(*limits, len(content)))
            self._pipe.sendall(content)
            if self._hear(time.monotonic() + PATIENCE, 0)[0] != BEGUN:
                raise UnexpectedAnswerError
        except (EOFError, OSError):
            raise _GoneError from None
        try:
            return self._hear(time.monotonic() + limits.seconds, max(limits.memory, _SMALLEST), cancel)
        except TimeoutError:
            raise self._too_long(limits) from None
        except (EOFError, OSError):
            raise self.death(limits) from None

    def _hear(self, deadline: float, most: int, cancel: CancelToken | None = None) -> tuple[bytes, bytes]:
        """The next answer. Raises TimeoutError, EOFError, OSError, and `UnexpectedAnswerError` for a larger one."""
        kind, size = HEAD.unpack(self._read(HEAD.size, deadline, cancel))
        if size > most:
            raise UnexpectedAnswerError
        return kind, self._read(size, deadline, cancel)

    def _read(self, size: int, deadline: float, cancel: CancelToken | None) -> bytes:
        content = bytearray()
        while len(content) < size:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            if cancel is not None and cancel.cancelled:
                raise LimitError(f"{self.name} was stopped: its call was cancelled", "cancel")
            self._pipe.settimeout(remaining if cancel is None else min(remaining, TICK))
            try:
                piece = self._pipe.recv(min(size - len(content), 1 << 20))
            except TimeoutError:
                continue
            if not piece:
                raise EOFError
            content += piece
        return bytes(content)

    def death(self, limits: _Limits | None = None) -> Exception:
        """Why the process has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.returncode
        self.end()
        if limits is not None and code == OUT_OF_MEMORY:
            mebibytes = limits.memory / (1 << 20)
            return LimitError(f"{self.name} needs more than {mebibytes:,.0f} MiB of memory for this", "memory")
        if limits is not None and code == -signal.SIGALRM:
            return self._too_long(limits)
        return ProcessDiedError(-signal.SIGKILL if code is None else code)

    def _too_long(self, limits: _Limits) -> LimitError:
        return LimitError(f"{self.name} takes longer than {limits.seconds:g} s for this", "seconds")

    def end(self) -> None:
        """End it, and the call in it."""
        self._pipe.close()
        if self._process.poll() is None:
            with suppress(OSError):  # it has just ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def leave(self) -> None:
        """It belongs to the process that this one was forked from."""
        self._pipe.close()
        self._process.returncode = 0  # else Popen warns of a process that runs


@final
class _Idle:
    """The processes that wait for a call, by the function."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, list[_Template]] = {}

    def take(self, place: str) -> tuple[_Template, bool]:
        """A process for a function, and whether it is a new one."""
        with self._lock:
            kept = self._kept.get(place)
            if kept:
                return kept.pop(), False
        return _Template(place), True

    def keep(self, template: _Template) -> None:
        """Have it for later calls."""
        with self._lock:
            kept = self._kept.setdefault(template.place, [])
            if len(kept) < MOST_IDLE:
                kept.append(template)
                return
        template.end()

    def end_all(self) -> None:
        """End them all; the program ends."""
        with self._lock:
            kept = [template for each in self._kept.values() for template in each]
            self._kept.clear()
        for template in kept:
            template.end()

    def forget(self) -> None:
        """This process was forked: they belong to its parent."""
        kept = [template for each in self._kept.values() for template in each]
        self._begin()
        for template in kept:
            template.leave()


_idle: Final = _Idle()
atexit.register(_idle.end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.forget)
