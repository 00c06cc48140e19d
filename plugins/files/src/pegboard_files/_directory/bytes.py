"""Reading an open file by offset, in blocks: no file is held in memory as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b

__all__ = ["BLOCK", "blocks", "find_all", "read_at", "read_span", "version_of"]

BLOCK = 1 << 18  # bytes


if hasattr(os, "pread"):
    read_at = os.pread
else:  # Windows

    def read_at(fd: int, length: int, offset: int, /) -> bytes:
        """Up to `length` bytes at `offset`; empty after the end."""
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)


def blocks(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` to `end`, fewer at the end of the file."""
    while start < end and (block := read_at(descriptor, min(end - start, BLOCK), start)):
        yield block
        start += len(block)


def read_span(descriptor: int, start: int, length: int) -> bytes:
    """Up to `length` bytes, fewer at the end of the file."""
    return b"".join(blocks(descriptor, start, start + length))


def find_all(descriptor: int, wanted: bytes) -> Iterator[int]:
    """The offsets of `wanted`, without those that overlap with an earlier one."""
    at, carried = 0, b""
    while block := read_at(descriptor, max(BLOCK, len(wanted)), at):
        text = carried + block
        start, base, behind = 0, at - len(carried), 0
        while (found := text.find(wanted, start)) >= 0:
            yield base + found
            start = behind = found + len(wanted)
        at += len(block)
        carried = text[max(behind, len(text) - len(wanted) + 1) :]


def version_of(descriptor: int, limit: int) -> str:
    """Eight digits that change with the file: of its content, or of size and time if it is larger than `limit`."""
    status = os.fstat(descriptor)
    digest = blake2b(digest_size=4)
    if status.st_size <= limit:
        for block in blocks(descriptor, 0, limit):
            digest.update(block)
    else:
        digest.update(f"{status.st_ino} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()
