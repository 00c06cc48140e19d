"""The pipe between a toolkit's process and that of its tools: frames that say which job they are about.

The child's end waits; the parent's never does, for a child may stop in the middle of a frame.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import BinaryIO, Final, NamedTuple, final

__all__ = [
    "BEGUN",
    "CANCEL",
    "CHUNK",
    "ITEM",
    "JOB",
    "LAST",
    "NO_JOB",
    "RAISED",
    "READY",
    "RETURNED",
    "STUCK",
    "UNREADABLE",
    "Frame",
    "NearEnd",
    "UnexpectedFrameError",
    "parts",
    "read_frame",
]

# What a frame is. To the child:
JOB: Final = b"j"
"""A pickled header (call id, tool name, whether chunks are wanted, packs, a trace's carrier), and the pickled job."""
CANCEL: Final = b"c"
"""The reason, as UTF-8."""
# To the parent, all of it data (see `_data`) or nothing:
READY: Final = b"r"
"""The child waits for its first job."""
BEGUN: Final = b"b"
"""The function is about to be called: its time runs from here."""
CHUNK: Final = b"p"
"""What the tool emits."""
ITEM: Final = b"i"
"""What the tool yields."""
RETURNED: Final = b"v"
"""The value, which for a generator is what it returned, and what was logged and attached."""
RAISED: Final = b"x"
"""What `raised_answer` has of the exception, and logs and attachments as above."""
STUCK: Final = b"s"
"""A returned or yielded value has no form as data, or is too large: a text, the name of its class, the reason."""
UNREADABLE: Final = b"l"
"""The job cannot be read here: the reason."""

_ANSWERS: Final = frozenset((RETURNED, RAISED, STUCK, UNREADABLE))
_KINDS: Final = frozenset((READY, BEGUN, CHUNK, ITEM, RETURNED, RAISED, STUCK, UNREADABLE))
# The kind, the id of the job, the size of what follows.
_HEAD: Final = struct.Struct("!c8sQ")
LAST: Final = struct.Struct("!8sd")
"""What parent and child share: the job whose function was called last, and when, by the clock of this machine.

No thread has to wake for that.
"""
NO_JOB: Final = bytes(8)
MAX_CONTENT: Final = 1 << 30
"""Bytes of one frame of a child, at most."""
_PIECE: Final = 1 << 20
_ROOM: Final = 1 << 16
"""Bytes that are read at once: for more the system is asked for memory each time."""


class UnexpectedFrameError(Exception):
    """The pipe had something that is no frame of a child."""


class Frame(NamedTuple):
    """One message in the pipe."""

    kind: bytes
    job: bytes
    content: bytes


def parts(kind: bytes, job: bytes, content: bytes) -> tuple[bytes, ...]:
    """A frame as what to send, in one piece where copying is cheaper than sending twice."""
    head = _HEAD.pack(kind, job, len(content))
    return (head + content,) if len(content) < _PIECE else (head, content)


def read_frame(end: BinaryIO) -> Frame:
    """The next frame, for a reader that may block: the child. Raises EOFError when the parent has closed the pipe."""
    kind, job, size = _HEAD.unpack(_read(end, _HEAD.size))
    return Frame(kind, job, _read(end, size))


def _read(end: BinaryIO, size: int) -> bytes:
    content = end.read(size)
    if len(content) < size:
        raise EOFError
    return content


@final
class NearEnd:
    """The parent's end. Nothing here waits; one thread at a time sends and reads."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._heard = bytearray()
        self._unsent: list[memoryview] = []

    def fileno(self) -> int:
        """For selectors."""
        return self._end.fileno()

    def put(self, contents: Iterable[bytes]) -> None:
        """Take something to send: `flush` sends it."""
        self._unsent.extend(map(memoryview, contents))

    def flush(self) -> bool:
        """Send what fits in; whether that was all. Frames for a child that has died are dropped."""
        while self._unsent:
            try:
                sent = self._end.send(self._unsent[0])
            except BlockingIOError:
                return False
            except OSError:
                self._unsent.clear()
                return True
            unsent = self._unsent[0][sent:]
            self._unsent[:1] = [unsent] if unsent else []
        return True

    def fill(self) -> bool:
        """Read what has come; whether anything had. Raises EOFError when nothing will any more."""
        try:
            piece = self._end.recv(_ROOM)
        except BlockingIOError:
            return False
        except ConnectionError:
            raise EOFError from None
        if not piece:
            raise EOFError
        self._heard += piece
        return True

    def take(self) -> Frame | None:
        """The next whole frame that has come. Raises `UnexpectedFrameError`."""
        if len(self._heard) < _HEAD.size:
            return None
        kind, job, size = _HEAD.unpack_from(self._heard)
        if kind not in _KINDS or size > MAX_CONTENT:
            raise UnexpectedFrameError
        end = _HEAD.size + size
        if len(self._heard) < end:
            return None
        content = bytes(memoryview(self._heard)[_HEAD.size : end])
        del self._heard[:end]
        return Frame(kind, job, content)

    def has_answer(self) -> bool:
        """Whether the next frame ends a job, and is there as a whole: to read it takes no time."""
        try:
            self.fill()
        except EOFError:
            return False
        if len(self._heard) < _HEAD.size:
            return False
        kind, _, size = _HEAD.unpack_from(self._heard)
        return kind in _ANSWERS and size <= len(self._heard) - _HEAD.size

    def is_quiet(self) -> bool:
        """Whether all frames that arrived have been taken."""
        try:
            return not self._heard and not self.fill()
        except EOFError:
            return False

    def close(self) -> None:
        """Close this end of the pipe."""
        self._end.close()
