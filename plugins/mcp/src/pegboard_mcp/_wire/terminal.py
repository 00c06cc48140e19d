"""The standard streams of this process: stdout may carry the protocol, so that messages go to stderr."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import final

from pegboard.inspection import spelled_out

__all__ = ["Input", "Output", "diverted", "say", "stray_output_to_stderr"]


def say(message: str) -> None:
    """Write a line to stderr, with control characters spelled out."""
    sys.stderr.write(f"{spelled_out(message)}\n")
    sys.stderr.flush()


@contextmanager
def diverted() -> Iterator[tuple[Input, Output]]:
    """The stdin and stdout of this process for the protocol alone; others read nothing meanwhile, and write to stderr.

    They are read and written on the running loop: a thread for each would be woken for every message, and with it the
    loop.
    """
    with stray_output_to_stderr() as real_output:
        real_input = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        lines = Input(real_input)
        try:
            yield lines, Output(real_output)
        finally:
            lines.end()
            os.dup2(real_input, 0)  # and stays open: a thread may wait for it still


@final
class Input:
    """The lines that come in at a descriptor, until its end or `end()`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[bytes | None] = self._loop.create_future()
        self._ended = False

    def end(self) -> None:
        """No more is read."""
        self._ended = True
        self._give(b"")

    async def __aiter__(self) -> AsyncIterator[str]:
        """Each line as text. What comes is only read when the lines before it have been taken."""
        rest = bytearray()
        while chunk := await self._chunk():
            rest += chunk
            if b"\n" in chunk:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
        if rest:
            yield rest.decode("utf-8", "replace")

    async def _chunk(self) -> bytes:
        """What has come, or nothing at the end."""
        if self._ended:
            return b""
        self._waiting = self._loop.create_future()
        try:
            self._loop.add_reader(self._descriptor, self._give, None)
        except PermissionError:  # a file, which is always ready
            return self._read()
        except NotImplementedError:  # Windows
            threading.Thread(target=self._read_there, name="pegboard-mcp-stdin", daemon=True).start()
            return await self._waiting or b""
        try:
            given = await self._waiting
        finally:
            self._loop.remove_reader(self._descriptor)
        return self._read() if given is None else given

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, 65_536)
        except OSError:  # the process that wrote there has ended
            return b""

    def _read_there(self) -> None:
        chunk = self._read()
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._give, chunk)

    def _give(self, chunk: bytes | None) -> None:
        """A chunk, or None where one can be read."""
        if not self._waiting.done():
            self._waiting.set_result(chunk)


@final
class Output:
    """Writes texts to a descriptor: at once as far as its reader has room for them, and the rest in a thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending: list[str] = []
        mode = os.fstat(descriptor).st_mode
        self._ready = _ready(descriptor) if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None

    async def write(self, text: str) -> None:
        """Add a text to what is written next."""
        self._pending.append(text)

    async def flush(self) -> None:
        """Write it."""
        from anyio import to_thread

        data = memoryview("".join(self._pending).encode())
        self._pending.clear()
        while data and self._ready is not None and self._ready():
            data = data[os.write(self._descriptor, data[: select.PIPE_BUF]) :]
        if data:
            await to_thread.run_sync(self._write, data)

    def _write(self, data: memoryview) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


def _ready(descriptor: int) -> Callable[[], object] | None:
    """Says whether `PIPE_BUF` bytes can be written at once, where the system can say that."""
    if not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return partial(poll.poll, 0)


@contextmanager
def stray_output_to_stderr() -> Iterator[int]:
    """Send what is printed to stderr: stdout carries the protocol. Yields the descriptor that stdout is meanwhile."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield kept
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
