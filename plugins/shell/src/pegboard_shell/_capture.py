"""Capture: the head and the tail of an output of any length, in bounded memory."""

from __future__ import annotations

from typing import final

__all__ = ["Capture"]


@final
class Capture:
    """Keeps `limit` bytes of what it is fed: the first two thirds and the last third of them."""

    def __init__(self, limit: int) -> None:
        self._tail_limit = limit // 3
        self._head_limit = limit - self._tail_limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take in what came next."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._tail_limit:  # not each time: moving the tail costs as much as it is long
            del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def cut(self) -> int:
        """How many bytes are not kept."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def text(self) -> str:
        """What is kept, as text; bytes that are no UTF-8 become U+FFFD, and what was cut is counted between."""
        tail = self._tail[max(0, len(self._tail) - self._tail_limit) :]
        if not self.cut:
            return (self._head + tail).decode("utf-8", "replace")
        head, tail = _without_half_a_character(self._head), tail[:3].lstrip(_CONTINUATION) + tail[3:]
        kept = len(head) + len(tail)
        between = f"\n[... {self.total - kept} of {self.total} bytes cut here ...]\n"
        return head.decode("utf-8", "replace") + between + tail.decode("utf-8", "replace")


_CONTINUATION = bytes(range(0x80, 0xC0))


def _without_half_a_character(data: bytearray) -> bytearray:
    for length in (1, 2, 3):
        lead = data[-length] if length <= len(data) else 0
        if lead >= 0xC0:
            complete = length >= (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)
            return data if complete else data[:-length]
        if lead < 0x80:
            break
    return data
