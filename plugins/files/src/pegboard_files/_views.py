"""What the model sees of files and directories."""

from __future__ import annotations

import codecs
import heapq
import os
import re
import stat
from collections.abc import Iterator

from pegboard import ToolError
from pegboard_files._lines import Excerpt
from pegboard_files._messages import shown

__all__ = ["MAX_ENTRIES", "render_excerpt", "render_listing"]

MAX_ENTRIES = 1000
_UNDECODABLE = re.compile("[\udc80-\udcff]")


def render_excerpt(name: str, excerpt: Excerpt, head: bytes) -> str:
    """A header that says which lines of how many, then each line behind its number and a colon.

    `head` are the first three bytes of the file. Raises ToolError for what is no text in UTF-8.
    """
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise ToolError(f"{name} is text in UTF-16; only UTF-8 can be shown.")
    if b"\0" in excerpt.content:
        raise ToolError(f"{name} looks like a binary file: it holds NUL bytes. Only text can be shown.")
    lines = excerpt.lines
    if not lines:
        return f"{name}: the file is empty (0 lines)."
    notes: list[str] = []
    if excerpt.first == 1 and head == codecs.BOM_UTF8:
        lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
        notes.append("the byte order mark at the start is not shown")
    text, damaged = _decoded(lines, excerpt.first)
    if damaged:
        notes.append(f"bytes that are not UTF-8 are shown as <FF>: {damaged}")
    return "\n".join([f"{name}: {'; '.join([_which_lines(excerpt, len(lines)), *notes])}", text])


def _decoded(lines: list[bytes], first: int) -> tuple[str, int]:
    """Numbered lines, and how many bytes of them are no UTF-8."""
    numbered = (f"{number}: {line.decode('utf-8', 'surrogateescape')}" for number, line in enumerate(lines, first))
    return _UNDECODABLE.subn(lambda found: f"<{ord(found[0]) - 0xDC00:02X}>", "\n".join(numbered))


def _which_lines(excerpt: Excerpt, count: int) -> str:
    first, last = excerpt.first, excerpt.first + count - 1
    lines = f"line {first}" if count == 1 else f"lines {first} to {last}" if first < 0 else f"lines {first}-{last}"
    if excerpt.total is not None:
        return f"{lines} of {excerpt.total}"
    return f"{lines}, counted from the end" if first < 0 else f"{lines} of a large file that was not counted to the end"


def render_listing(name: str, descriptor: int) -> str:
    """The entries of an open directory in order of their names, with a note where some are left out."""
    total = 0

    def counted() -> Iterator[os.DirEntry[str]]:
        nonlocal total
        with os.scandir(descriptor) as entries:
            for entry in entries:
                total += 1
                yield entry

    # A directory may hold millions of entries; only the first ones are kept.
    first = heapq.nsmallest(MAX_ENTRIES, counted(), key=lambda entry: entry.name)
    header = f"{name}: {total:,} {'entry' if total == 1 else 'entries'}"
    left_out = [f"... and {total - len(first):,} more"] if total > len(first) else []
    return "\n".join([header, *map(_described, first), *left_out])


def _described(entry: os.DirEntry[str]) -> str:
    name = shown(entry.name, limit=255)
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return f"{name} (gone)"  # removed since the directory was read
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return f"{name}/"
    if stat.S_ISREG(mode):
        return f"{name} ({status.st_size:,} bytes)"
    # Where a link leads is not said: it may be a path of the host.
    return f"{name} ({'symbolic link' if stat.S_ISLNK(mode) else 'not a regular file'})"
