"""The child's side: runs one job after another, and ends with its parent."""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from multiprocessing import current_process
from multiprocessing.heap import Arena
from typing import Any, Final, NoReturn, final

from pegboard import Block, CancelToken, Chunk, Emitter, ToolCall
from pegboard_process._answer import Answers, fitting, performed, reason_of, reported
from pegboard_process._carrier import within
from pegboard_process._data import encoded
from pegboard_process._pipe import (
    CHUNK,
    LAST,
    NO_JOB,
    READY,
    UNREADABLE,
    Frame,
    parts,
    read_frame,
)
from pegboard_process._traces import Surroundings

__all__ = ["FAREWELL", "is_serving", "job_call", "job_emitter", "job_token", "serve"]

FAREWELL: Final = 2.0
"""Seconds that an idle child has for ending in order."""


@final
class _Desk:
    """What the current job can use, and what it collects for the call in the parent."""

    session: Any = None  # it stays in the parent

    def __init__(self, emitter: Emitter, token: CancelToken) -> None:
        self.emitter = emitter
        self.token = token
        self.calls: list[ToolCall] = []

    def collected(self) -> tuple[list[str], list[Block]]:
        """Everything logged and attached."""
        logs = [str(line) for call in self.calls for line in call.logs]
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


def serve(pipe: socket.socket, orders: socket.socket, page: Arena) -> None:
    """Run the jobs that come through `pipe` until it is closed; `orders` end them. The main function of a child.

    What is on the `page` its parent sees.
    """
    global _serving  # noqa: PLW0603 - a process serves or it does not
    _serving = True
    _leave_the_terminal()
    current_process().daemon = False  # else a tool could not use multiprocessing itself
    _Server(pipe, orders, page).run()


@final
class _Server:
    """Two threads: the main one takes jobs and runs them, the other hears that the one in hand was cancelled.

    Each has a socket of its own: a job that one thread took for the other would wait until the interpreter lets both.
    """

    def __init__(self, pipe: socket.socket, orders: socket.socket, page: Arena) -> None:
        self._pipe = pipe
        self._orders = orders
        self._page = page.buffer
        self._speaking = threading.Lock()
        self._taking = threading.Lock()
        self._now = NO_JOB
        """The current job: only its messages are sent."""
        self._token = CancelToken()
        self._cancelled = NO_JOB, ""
        """The last job that was cancelled, and why: that may be heard of sooner than of the job itself."""
        self._busy = False
        self._surroundings = Surroundings()

    def run(self) -> None:
        threading.Thread(target=self._listen, name="pegboard-pipe", daemon=True).start()
        self._say(NO_JOB, READY)
        jobs = self._pipe.makefile("rb")
        with suppress(EOFError, OSError):  # the parent has closed it
            while True:
                frame = read_frame(jobs)
                self._busy = True
                self._work(frame, self._taken(frame.job))

    def _taken(self, job: bytes) -> CancelToken:
        """The token of a job that begins."""
        with self._taking:
            self._now, self._token = job, CancelToken()
            cancelled, reason = self._cancelled
        if cancelled == job:
            self._token.cancel(reason)
        return self._token

    def _listen(self) -> None:
        orders = self._orders.makefile("rb")
        while True:
            try:
                frame = read_frame(orders)
            except (EOFError, OSError):
                self._end()
            with self._taking:
                self._cancelled = frame.job, frame.content.decode()
                token = self._token if frame.job == self._now else None
            if token is not None:
                token.cancel(frame.content.decode())

    def _end(self) -> NoReturn:
        """The parent closed the pipe. It does so to idle children; a busy one has lost its parent and its caller."""
        if not self._busy:
            time.sleep(FAREWELL)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    def _say(self, job: bytes, kind: bytes, content: bytes = b"", *, last: bool = False) -> None:
        # A thread that a tool left behind must not speak into the next job, nor after its own has ended.
        with self._speaking, suppress(OSError):  # the parent has ended, and the listening thread knows
            if job != self._now:
                return
            if last:
                self._now = NO_JOB
            for part in parts(kind, job, content):
                self._pipe.sendall(part)

    def _work(self, frame: Frame, token: CancelToken) -> None:
        global _desk  # noqa: PLW0603 - what unpickling refers to
        stream = io.BytesIO(frame.content)
        call_id, name, heard, packs, carrier = pickle.load(stream)  # noqa: S301 - from the process that made this one

        def listen(chunk: Chunk) -> None:
            self._say(frame.job, CHUNK, fitting(reported(chunk), chunk.content))

        _desk = _Desk(Emitter(call_id, name, listen if heard else None), token)
        with within(carrier):
            kind, content = self._answer(frame.job, stream, _desk, packs)
        _flush()
        self._busy = False
        self._say(frame.job, kind, content, last=True)
        self._surroundings.restore()  # while the parent reads the answer

    def _answer(self, job: bytes, stream: io.BytesIO, desk: _Desk, packs: tuple[str, ...]) -> tuple[bytes, bytes]:
        try:
            function, args, kwargs = pickle.load(stream)  # noqa: S301 - as above
        except BaseException as error:  # noqa: BLE001 - importing the tool's module may raise anything
            return UNREADABLE, encoded(reason_of(error))
        self._surroundings.note()
        LAST.pack_into(self._page, 0, job, time.monotonic())

        def say(kind: bytes, content: bytes) -> None:
            self._say(job, kind, content)

        return performed(partial(function, *args, **kwargs), Answers(function, packs), desk.token, say, desk.collected)


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
