"""Pipes: a server's process, and the messages that go over its stdin and stdout.

The SDK's own way passes every message on through streams that hold none, which takes several turns of the loop for
each. Here what one read brings is handed over at once, and what is sent within one turn is one write. On Windows the
SDK's way is used: it knows there how to end a process together with its children.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast, final

from pegboard_mcp._tail import Tail

__all__ = ["piped"]

PATIENCE: Final = 2.0
"""Seconds that a process has to end, after its stdin was closed and again after each signal."""
LONGEST: Final = 256 * 1024 * 1024
"""Bytes of a line; one that grows beyond it is dropped."""
QUOTED: Final = 200
"""Characters of a line that is no message."""
IN_A_ROW: Final = 50
"""Messages that are handed over before the loop gets its turn: a flood of them is worked off as it comes."""


@asynccontextmanager
async def piped(
    command: str, args: Sequence[str], *, env: Mapping[str, str], cwd: str | None, tail: Tail
) -> AsyncIterator[tuple[_Inbox, _Outbox]]:
    """Start a process that leads a group of its own, and end it: its streams, as the SDK reads and writes messages.

    `tail` gets what it writes to stderr, and the beginning of each line on its stdout that is no message.
    Raises `OSError` for a command that cannot be started, `ValueError` for one that holds a null character.
    """
    import anyio

    options: dict[str, Any] = {"env": env, "cwd": cwd, "stderr": tail.file, "start_new_session": True}
    start = asyncio.get_running_loop().subprocess_exec
    _, process = await start(lambda: _Process(tail.note), command, *args, **options)
    try:
        yield process.inbox, process.outbox
    finally:
        with anyio.CancelScope(shield=True):  # a process that is left behind is worse than a wait that has an end
            await process.end()


@final
class _Process(asyncio.SubprocessProtocol):
    """What the loop tells about the process."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.inbox = _Inbox(note)
        self.outbox: _Outbox
        self._exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        stdin = self._transport.get_pipe_transport(0)
        self.outbox = _Outbox(cast("asyncio.WriteTransport", stdin), self.inbox)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.inbox.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self.outbox.room.set()
        # Where nothing was lost with stdin, answers may still be on their way; the end of stdout comes after them.
        if fd == 1 or exc is not None:
            self.inbox.end()

    def pause_writing(self) -> None:
        self.outbox.room.clear()

    def resume_writing(self) -> None:
        self.outbox.room.set()

    def process_exited(self) -> None:
        if not self._exited.done():
            self._exited.set_result(None)

    async def end(self) -> None:
        """Close stdin, and send signals to the whole group if that does not help; at most three times `PATIENCE`."""
        self.outbox.close()
        for each in (signal.SIGTERM, signal.SIGKILL, None):
            await asyncio.wait({self._exited}, timeout=PATIENCE)
            if self._exited.done() or each is None:
                break
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), each)
        self.outbox.abort()
        self._transport.close()


@final
class _Inbox:
    """The messages of the process, to one reader; a line that is no message is noted, and counts for nothing.

    Nobody is asked to write slower: the SDK's reader takes all that is there in its next turn, whatever becomes of it.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        self._parse = jsonrpc_message_adapter.validate_json
        self._message = SessionMessage
        self._note = note
        self._begun: list[bytes] = []
        self._held = 0
        self._arrived: deque[Any] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._in_a_row = 0

    def feed(self, data: bytes) -> None:
        """Take what was read: lines, the last one unfinished."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = self._whole(lines[0])
            for line in lines:
                self._take(line.decode("utf-8", "replace"))
        if rest and self._held < LONGEST:
            self._begun.append(rest)
            self._held += len(rest)
        if self._arrived:
            self._wake()

    def _whole(self, end: bytes) -> bytes:
        """The line that ends so; nothing if it is too long."""
        line = b"".join([*self._begun, end]) if self._held < LONGEST else b""
        if not line and self._begun:
            self._note(f"(on stdout, longer than {LONGEST:,} bytes)")
        self._begun.clear()
        self._held = 0
        return line

    def _take(self, line: str) -> None:
        try:
            message = self._parse(line, by_name=False)
        except ValueError:
            if line.strip():
                self._note(f"(on stdout, not a message) {line[:QUOTED].strip()}")
        else:
            self._arrived.append(self._message(message))

    def end(self) -> None:
        """Nothing more will come; what is there already can still be read."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> Any:
        """The next message. Raises `anyio.EndOfStream` after the last one."""
        self._in_a_row += 1
        if self._in_a_row > IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)
        while not self._arrived:
            if self._ended:
                from anyio import EndOfStream

                raise EndOfStream
            self._in_a_row = 0
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._arrived.popleft()

    def __aiter__(self) -> _Inbox:
        return self

    async def __anext__(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Read no more. What the process still writes is read and dropped, so that it is not stuck with it."""
        self.end()
        self._arrived.clear()

    async def __aenter__(self) -> _Inbox:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()


@final
class _Outbox:
    """The messages to the process."""

    def __init__(self, pipe: asyncio.WriteTransport, inbox: _Inbox) -> None:
        self.room = asyncio.Event()
        """Whether the process reads as fast as messages are sent, nearly."""
        self.room.set()
        self._pipe = pipe
        self._inbox = inbox
        self._lines: list[str] = []

    async def send(self, item: Any, /) -> None:
        """Send a message; waits while the pipe is full. Raises `anyio.BrokenResourceError` once it is closed."""
        if self._pipe.is_closing():
            from anyio import BrokenResourceError

            self._inbox.end()  # the process may live on, but nobody can reach it
            raise BrokenResourceError
        self._lines.append(item.message.model_dump_json(by_alias=True, exclude_unset=True))
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_soon(self._flush)
        if not self.room.is_set():
            await self.room.wait()

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if self._pipe.is_closing():
            self._inbox.end()
        elif lines:
            self._pipe.write("\n".join([*lines, ""]).encode())

    def close(self) -> None:
        """Close the pipe, after what was sent."""
        self._flush()
        self._pipe.close()

    def abort(self) -> None:
        """Close the pipe at once, if there is something that nobody reads any more."""
        if self._pipe.get_write_buffer_size():
            self._pipe.abort()

    async def aclose(self) -> None:
        """Send no more."""
        self.close()

    async def __aenter__(self) -> _Outbox:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()
