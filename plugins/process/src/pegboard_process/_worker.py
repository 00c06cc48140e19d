"""The child's side: runs one job after another, and ends with its parent."""

from __future__ import annotations

import io
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator
from contextlib import closing, suppress
from inspect import isgenerator
from multiprocessing import current_process
from multiprocessing.connection import Connection
from typing import Any, Final, NoReturn, final

from pegboard import Block, CancelToken, Chunk, Emitter, ToolCall, describe_exception

__all__ = [
    "BEGUN",
    "CANCEL",
    "CHUNK",
    "ITEM",
    "JOB",
    "LOST",
    "RAISED",
    "READY",
    "RETURNED",
    "STUCK",
    "is_serving",
    "job_call",
    "job_emitter",
    "job_token",
    "serve",
]

# The first byte of a message says what the rest is. To the child:
JOB: Final = b"j"
"""A pickled header (call id, tool name, whether anybody listens) and the pickled (function, args, kwargs)."""
CANCEL: Final = b"c"
"""The reason, as UTF-8."""
# To the parent:
READY: Final = b"r"
"""The child waits for its first job."""
BEGUN: Final = b"b"
"""The function is about to be called: its time runs from here."""
CHUNK: Final = b"p"
"""What the tool emits, pickled."""
ITEM: Final = b"i"
"""What the tool yields, pickled."""
RETURNED: Final = b"v"
"""The value, which of a generator is what it returned, and what was logged and attached, pickled."""
RAISED: Final = b"x"
"""The exception, pickled by itself, or None; its type, message and traceback; logs and attachments as above."""
STUCK: Final = b"s"
"""What was returned or yielded cannot be pickled: the name of its class and the reason, pickled."""
LOST: Final = b"l"
"""The job cannot be read here: the reason, pickled."""

FAREWELL: Final = 2.0
"""Seconds that an idle child has for ending in order."""


@final
class _Desk:
    """What the job in hand can reach, and what it leaves behind for the call in the parent."""

    session: Any = None  # it stays in the parent

    def __init__(self, emitter: Emitter, token: CancelToken) -> None:
        self.emitter = emitter
        self.token = token
        self.calls: list[ToolCall] = []

    def left(self) -> tuple[list[str], list[Block]]:
        """Everything logged and attached."""
        logs = [line for call in self.calls for line in call.logs]
        return logs, [block for call in self.calls for block in call.attachments]


_desk = _Desk(Emitter(), CancelToken())
_serving = False


def is_serving() -> bool:
    """Whether this process is a child of Pegboard's that has come as far as waiting for jobs."""
    return _serving


def job_emitter() -> Emitter:
    """Stands for the job's emitter in a pickle."""
    return _desk.emitter


def job_token() -> CancelToken:
    """Stands for the job's token in a pickle."""
    return _desk.token


def job_call(call_id: str, name: str, arguments: Any, provider_meta: Any, typed: Any, by_hand: bool) -> ToolCall:
    """Stands for a call in a pickle: what is logged and attached to it here reaches the parent's."""
    call = ToolCall(call_id, name, arguments, provider_meta)
    call.typed = typed
    if by_hand:
        call.surround(_desk)
    _desk.calls.append(call)
    return call


def serve(pipe: Connection) -> None:
    """Run the jobs that come through `pipe` until it is closed. The main function of a child."""
    global _serving  # noqa: PLW0603 - a process serves or it does not
    _serving = True
    _leave_the_terminal()
    current_process().daemon = False  # else a tool could not use multiprocessing itself
    _Server(pipe).run()


@final
class _Server:
    """Two threads: the main one runs jobs, the other listens, for a job must hear that it was cancelled."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._jobs: queue.SimpleQueue[tuple[bytes, CancelToken] | None] = queue.SimpleQueue()
        self._speaking = threading.Lock()
        self._busy = False

    def run(self) -> None:
        threading.Thread(target=self._listen, name="pegboard-pipe", daemon=True).start()
        self._say(READY)
        while (job := self._jobs.get()) is not None:
            self._work(*job)

    def _listen(self) -> None:
        token = CancelToken()
        while True:
            try:
                message = self._pipe.recv_bytes()
            except (EOFError, OSError):
                self._hang_up()
            if message[:1] == CANCEL:
                token.cancel(message[1:].decode())
            else:
                token = CancelToken()
                self._busy = True
                self._jobs.put((message[1:], token))

    def _hang_up(self) -> NoReturn:
        """The parent closed the pipe. It does so to idle children; a busy one has lost its parent, and nobody waits."""
        self._jobs.put(None)
        if not self._busy:
            time.sleep(FAREWELL)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    def _say(self, kind: bytes, content: bytes = b"") -> None:
        with self._speaking, suppress(OSError):  # the parent is gone, and the listening thread knows
            self._pipe.send_bytes(kind + content)

    def _work(self, message: bytes, token: CancelToken) -> None:
        global _desk  # noqa: PLW0603 - what unpickling refers to
        stream = io.BytesIO(message)
        call_id, name, heard = pickle.load(stream)  # noqa: S301 - from the process that made this one
        open_ = [True]

        def listen(chunk: Chunk) -> None:
            if open_:  # a thread that the tool left behind must not speak into the next job
                self._say(CHUNK, pickle.dumps(chunk.content))

        _desk = _Desk(Emitter(call_id, name, listen if heard else None), token)
        kind, content = self._answer(stream, _desk)
        open_.clear()
        _flush()
        self._busy = False
        self._say(kind, content)

    def _answer(self, stream: io.BytesIO, desk: _Desk) -> tuple[bytes, bytes]:
        try:
            function, args, kwargs = pickle.load(stream)  # noqa: S301 - as above
        except BaseException as error:  # noqa: BLE001 - importing the tool's module may raise anything
            return LOST, pickle.dumps(_reason(error))
        self._say(BEGUN)
        try:
            value = function(*args, **kwargs)
            if isgenerator(value):
                value = self._draw(value, desk.token)
        except _StuckError as stuck:
            return STUCK, stuck.content
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the outcome of its call
            return RAISED, _raised(error, desk)
        try:
            return RETURNED, pickle.dumps((value, *desk.left()))
        except Exception as error:  # noqa: BLE001 - the value's own methods are at work here
            return STUCK, _stuck(value, error)

    def _draw(self, stream: Generator[Any, Any, Any], token: CancelToken) -> Any:
        """Send what a generator yields, until it has ended or its job has; what it returned."""
        with closing(stream):
            while not token.cancelled:
                try:
                    item = next(stream)
                except StopIteration as stop:
                    return stop.value
                try:
                    content = pickle.dumps(item)
                except Exception as error:
                    raise _StuckError(_stuck(item, error)) from error
                self._say(ITEM, content)
        return None


@final
class _StuckError(Exception):
    """An item of a stream cannot be pickled."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.content = content


def _stuck(value: Any, error: Exception) -> bytes:
    return pickle.dumps((type(value).__qualname__, _reason(error)))


def _raised(error: BaseException, desk: _Desk) -> bytes:
    trace = _traceback(error)
    error.__traceback__ = None
    try:
        sent = pickle.dumps(error)
        pickle.loads(sent)  # noqa: S301 - many an exception can be written but not read
    except Exception:  # noqa: BLE001 - the exception's own methods are at work here
        sent = None
    told = (sent, type(error).__qualname__, describe_exception(error), trace)
    try:
        return pickle.dumps((*told, *desk.left()))
    except Exception:  # noqa: BLE001 - an attachment that cannot be sent must not hide the error
        return pickle.dumps((*told, [], []))


def _traceback(error: BaseException) -> str:
    try:
        # The first frame is this module's.
        lines = traceback.format_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
    except Exception:  # noqa: BLE001 - formatting calls the exception's own __str__
        return describe_exception(error)
    return "".join(lines)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {describe_exception(error)}"


def _leave_the_terminal() -> None:
    """A Ctrl-C is the parent's affair. A group of its own also lets the parent end what the tool has started."""
    if hasattr(os, "setpgid"):
        with suppress(OSError):
            os.setpgid(0, 0)
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a tool may have closed or replaced them
            stream.flush()
