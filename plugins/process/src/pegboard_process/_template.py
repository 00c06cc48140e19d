"""The process behind `limited`: it has imported a function's module, and forks itself for each call of the function.

A fork begins in a millisecond and has nothing of an earlier call; what it took
goes with it. A call that dies takes the template with it: its exit code is what the parent learns.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, final

from pegboard_process._answer import raised_answer, reason_of
from pegboard_process._data import NotDataError, decoded, encoded

__all__ = [
    "BEGUN",
    "HEAD",
    "NO_DATA",
    "NO_FUNCTION",
    "OUT_OF_MEMORY",
    "RAISED",
    "READY",
    "REQUEST",
    "RETURNED",
    "serve",
]

REQUEST: Final = struct.Struct("!QdQ")
"""A request: bytes of memory, seconds, and the size of the data that follow."""
HEAD: Final = struct.Struct("!cQ")
"""An answer: what it is, and the size of its content."""
READY: Final = b"r"
"""The function is there."""
NO_FUNCTION: Final = b"n"
"""It is not: the reason."""
BEGUN: Final = b"b"
"""A request has arrived: its call begins."""
RETURNED: Final = b"v"
"""The value."""
RAISED: Final = b"x"
"""What `raised_answer` has of an exception."""
NO_DATA: Final = b"s"
"""The value is no data: the name of its class."""
OUT_OF_MEMORY: Final = 122
"""The exit code of a call that took more memory than it may."""
LONGEST_IDLE: Final = 60.0
"""Seconds without a request after which a template ends by itself."""
GRACE: Final = 0.5
"""Seconds after its time in which the parent ends a call; later it ends by itself, for it may have lost its parent."""


def serve(descriptor: int, module: str, name: str) -> None:
    """Import the function and answer requests until the parent closes the socket. The main function of the process."""
    with socket.socket(fileno=descriptor) as pipe:
        try:
            function = attrgetter(name)(import_module(module))
        except BaseException as error:  # noqa: BLE001 - a module may raise anything
            pipe.sendall(_answer(NO_FUNCTION, encoded(reason_of(error))))
            return
        pipe.sendall(_answer(READY))
        pipe.settimeout(LONGEST_IDLE)
        with suppress(EOFError, OSError):
            while True:
                _Call.read(pipe, function).run()


def _answer(kind: bytes, content: bytes = b"") -> bytes:
    return HEAD.pack(kind, len(content)) + content


def _read(pipe: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        piece = pipe.recv(min(size - len(content), 1 << 20))
        if not piece:
            raise EOFError
        content += piece
    return bytes(content)


@final
class _Call:
    """One request, and the process that it is answered in."""

    def __init__(self, pipe: socket.socket, function: Callable[[Any], Any], memory: int, seconds: float) -> None:
        self._pipe = pipe
        self._function = function
        self._memory = memory
        self._seconds = seconds
        self._content = b""

    @classmethod
    def read(cls, pipe: socket.socket, function: Callable[[Any], Any]) -> _Call:
        """The next request. Raises EOFError or OSError where none comes."""
        memory, seconds, size = REQUEST.unpack(_read(pipe, REQUEST.size))
        call = cls(pipe, function, memory, seconds)
        call._content = _read(pipe, size)
        return call

    def run(self) -> None:
        """Answer it in a fork. If that dies, this process ends in the same way."""
        self._pipe.sendall(_answer(BEGUN))
        child = os.fork()
        if not child:
            self._answer_and_exit()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            with suppress(OSError):  # that of some cannot be set
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        if code:
            os._exit(code)

    def _answer_and_exit(self) -> None:
        code = 1
        try:
            self._pipe.settimeout(None)
            signal.setitimer(signal.ITIMER_REAL, self._seconds + GRACE)
            data = decoded(self._content)
            _limit_memory(self._memory)
            self._pipe.sendall(self._outcome(data))
            code = 0
        except MemoryError:
            code = OUT_OF_MEMORY
        finally:
            os._exit(code)

    def _outcome(self, data: Any) -> bytes:
        try:
            value = self._function(data)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises is the outcome
            return _answer(RAISED, raised_answer(error, [], []))
        try:
            return _answer(RETURNED, encoded(value))
        except NotDataError:
            return _answer(NO_DATA, encoded(type(value).__qualname__))


def _limit_memory(more: int) -> None:
    """Let the process take so many bytes more than it has. Where the system has no such limit nothing happens."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return
    import resource

    taken = int(statm.read_text("ascii").split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = taken + more
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
