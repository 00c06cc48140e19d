"""Pipes: a server's process, and the messages that go over its stdin and stdout.

The SDK's own way passes every message on through streams that hold none, which takes several turns of the loop for
each. Here what one read brings is handed over at once, and what is sent within one turn is one write. On Windows the
SDK's way is used: it knows there how to end a process together with its children.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast, final

from pegboard_mcp._wire.direct import Direct
from pegboard_mcp._wire.reasons import UnreachableError, not_started
from pegboard_mcp._wire.unrequested import Meter, Tail

__all__ = ["piped"]

PATIENCE: Final = 2.0
"""Seconds that a process has to end, after its stdin was closed and again after each signal."""
QUOTED: Final = 200
"""Characters of a line that is no message."""
IN_A_ROW: Final = 50
"""Messages that are handed over before the loop gets its turn: a flood of them is worked off as it comes."""

NO_WATCHER: Final = (
    "the event loop policy of this program, such as uvloop's, has no child watcher, without which asyncio starts no"
    " process; choose the loop where it is run instead: uvloop.run(main()), or asyncio.Runner(loop_factory=...)"
)


@asynccontextmanager
async def piped(
    command: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    tail: Tail,
    direct: Direct,
    longest: int,
) -> AsyncIterator[tuple[_Inbox, _Outbox]]:
    """Start a process that leads a group of its own, and end it: its streams, as the SDK reads and writes messages.

    `tail` gets what it writes to stderr, and the beginning of each line on its stdout that is no message. A line of
    more than `longest` bytes is dropped, and a flood of lines ends what is read. `direct` sends over it as well.
    Raises `UnreachableError` for a command that cannot be started, also where the program's event loop policy starts no
    processes, and `ValueError` for one that holds a null character.
    """
    import anyio

    options: dict[str, Any] = {"env": env, "cwd": cwd, "stderr": tail.file, "start_new_session": True}
    start = asyncio.get_running_loop().subprocess_exec
    try:
        _, process = await start(lambda: _Process(tail, direct, longest), command, *args, **options)
    except NotImplementedError as error:  # asyncio asks the policy, whichever loop this is, before Python 3.14
        raise UnreachableError(NO_WATCHER) from error
    except OSError as error:
        raise not_started(error, command) from error
    try:
        yield process.inbox, process.outbox
    finally:
        process.inbox.end()
        with anyio.CancelScope(shield=True):  # a process that is left behind is worse than a wait that has an end
            await process.end()


@final
class _Process(asyncio.SubprocessProtocol):
    """What the loop tells about the process."""

    def __init__(self, tail: Tail, direct: Direct, longest: int) -> None:
        self._direct = direct
        self.inbox = _Inbox(tail, direct, longest)
        self.outbox: _Outbox
        self._exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        stdin = self._transport.get_pipe_transport(0)
        self.outbox = _Outbox(cast("asyncio.WriteTransport", stdin), self.inbox)
        self._direct.open(self.outbox.post)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.inbox.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self.outbox.room.set()
            self.outbox.shut()
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

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended, and its pipes have: the loop may do so now, before the code that started it has looked."""
        self._transport.close()

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

    There is no back pressure: the SDK's reader takes all that is there in its next turn, whatever becomes of it.
    A flood ends the reading.
    """

    def __init__(self, tail: Tail, direct: Direct, longest: int) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        self._parse = jsonrpc_message_adapter.validate_json
        self._message = SessionMessage
        self._tail = tail
        self._direct = direct
        self._longest = longest
        self._begun: list[bytes] = []
        self._held = 0
        self._arrived: deque[Any] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._in_a_row = 0
        self._meter = Meter()
        self._flooded = False
        self.expect = self._meter.expect

    def feed(self, data: bytes) -> None:
        """Take what was read: lines, the last one unfinished."""
        if self._flooded:
            return
        *lines, rest = data.split(b"\n")
        if not self._meter.takes(len(lines)):
            self._flooded = True
            self._tail.flood()
            self.end()
            return
        if lines:
            lines[0] = self._whole(lines[0])
            for line in lines:
                self._take(line.decode("utf-8", "replace"))
        if rest and self._held < self._longest:
            self._begun.append(rest)
            self._held += len(rest)
        self._direct.wake()
        if self._arrived:
            self._wake()

    def _whole(self, end: bytes) -> bytes:
        """The line that ends so; nothing if it is too long."""
        line = b"".join([*self._begun, end]) if self._held < self._longest else b""
        if not line and self._begun:
            self._tail.note(f"(on stdout, longer than {self._longest:,} bytes)")
        self._begun.clear()
        self._held = 0
        return line

    def _take(self, line: str) -> None:
        try:
            message = self._parse(line, by_name=False)
        except ValueError:
            if line.strip():
                self._tail.note(f"(on stdout, not a message) {line[:QUOTED].strip()}")
            return
        if not self._direct.takes(message):
            self._arrived.append(self._message(message))

    def end(self) -> None:
        """Nothing more will come; what is there already can still be read."""
        self._ended = True
        self._direct.end()
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
    """The messages to the process: those of the SDK, and lines from any thread."""

    def __init__(self, pipe: asyncio.WriteTransport, inbox: _Inbox) -> None:
        self.room = asyncio.Event()
        """Whether the process reads as fast as messages are sent, nearly."""
        self.room.set()
        self._pipe = pipe
        self._inbox = inbox
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        # One of our own, which is not closed while a thread writes: its number could be another file's by then.
        self._descriptor = os.dup(pipe.get_extra_info("pipe").fileno())
        self._is_shut = False
        self._behind: list[bytes] = []
        self._due = False

    async def send(self, item: Any, /) -> None:
        """Send a message; waits while the pipe is full. Raises `anyio.BrokenResourceError` once it is closed."""
        if self._pipe.is_closing():
            from anyio import BrokenResourceError

            self._inbox.end()  # the process may live on, but it cannot be reached
            raise BrokenResourceError
        self._inbox.expect(1)
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        with self._lock:
            self._later(f"{line}\n".encode(), self._loop.call_soon)
        if not self.room.is_set():
            await self.room.wait()

    def post(self, lines: bytes) -> None:
        """Send lines at once, from any thread, or when there is room. Raises `UnreachableError` after the end."""
        with self._lock:
            if self._is_shut or self._pipe.is_closing():
                raise UnreachableError("the connection has ended")
            self._inbox.expect(lines.count(b"\n"))
            if not self._behind and not self._pipe.get_write_buffer_size():
                try:
                    lines = lines[os.write(self._descriptor, lines) :]
                except BlockingIOError:
                    pass
                except OSError as error:  # the process reads no more
                    raise UnreachableError("the connection has ended") from error
            if lines:
                self._later(lines, self._loop.call_soon_threadsafe)

    def _later(self, lines: bytes, soon: Callable[..., Any]) -> None:
        self._behind.append(lines)
        if not self._due:
            self._due = True
            soon(self._flush)

    def _flush(self) -> None:
        with self._lock:
            lines, self._behind, self._due = self._behind, [], False
            if lines and not self._pipe.is_closing():
                self._pipe.write(b"".join(lines))
        if self._pipe.is_closing():
            self._inbox.end()

    def close(self) -> None:
        """Close the pipe, after what was sent."""
        self._flush()
        self._pipe.close()
        self.shut()

    def shut(self) -> None:
        """Nothing more can be sent from other threads."""
        with self._lock:
            if not self._is_shut:
                self._is_shut = True
                os.close(self._descriptor)

    def abort(self) -> None:
        """Close the pipe at once, if it holds data that is no longer read."""
        if self._pipe.get_write_buffer_size():
            self._pipe.abort()

    async def aclose(self) -> None:
        """Send no more."""
        self.close()

    async def __aenter__(self) -> _Outbox:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()
