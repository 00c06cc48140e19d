"""Views: the text that the model reads about files and directories."""

from __future__ import annotations

import codecs
import heapq
import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from pegboard_files._directory.bytes import read_span
from pegboard_files._directory.folder import Folder
from pegboard_files._errors import UnsuitableError, counted, shown
from pegboard_files._text.lines import Excerpt, LineIndex

__all__ = ["MAX_ENTRIES", "decoded", "listing", "render_excerpt", "render_listing", "snippet"]

MAX_ENTRIES = 1000
_UNDECODABLE = re.compile("[\udc80-\udcff]")
_AROUND = 3  # lines before and after a change
_MAX_CHANGED = 20  # lines of a change that are shown
_MAX_SHOWN = 4000  # bytes of a snippet


def render_excerpt(name: str, excerpt: Excerpt, head: bytes, version: str | None = None) -> str:
    """A header with the numbers of the lines, then each line after its number and a colon.

    `head` are the first three bytes of the file. Raises UnsuitableError for binary data and UTF-16.
    """
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise UnsuitableError(f"{name} is text in UTF-16; only UTF-8 can be shown.")
    if b"\0" in excerpt.content:
        raise UnsuitableError(f"{name} looks like a binary file: it holds NUL bytes. Only text can be shown.")
    lines = excerpt.lines
    marked = [] if version is None else [f"version {version}"]
    if not lines:
        return "; ".join([f"{name}: the file is empty (0 lines)", *marked]) + "."
    notes: list[str] = []
    if excerpt.first == 1 and head == codecs.BOM_UTF8:
        lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
        notes.append("the byte order mark at the start is not shown")
    returns = sum(line.endswith(b"\r") for line in lines)
    if returns:
        lines = [line.removesuffix(b"\r") for line in lines]
        notes.append("CRLF ends them" if returns == len(lines) else f"CRLF ends {counted(returns, 'line')} of them")
    text, damaged = _numbered(lines, excerpt.first)
    if damaged:
        notes.append(f"bytes that are not UTF-8 are shown as <FF>: {damaged}")
    return "\n".join([f"{name}: {'; '.join([_which_lines(excerpt, len(lines)), *notes, *marked])}", text])


def snippet(descriptor: int, first: int, count: int) -> str:
    """The lines around `count` changed ones, with numbers; of a long change only the beginning."""
    index = LineIndex(descriptor, os.fstat(descriptor).st_size)
    total = index.count()
    start = max(1, min(first, total) - _AROUND)
    last = min(total, first + min(count, _MAX_CHANGED) - 1 + _AROUND)
    if not total or start > last:
        return "The file is empty now."
    begin = index.start_of(start)
    end = min(index.skip(begin, last - start + 1)[0], begin + _MAX_SHOWN)
    lines = Excerpt(read_span(descriptor, begin, end - begin), start, total).lines
    if start == 1:
        lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
    text, _ = _numbered([line.removesuffix(b"\r") for line in lines], start)
    left_out = total - (start + len(lines) - 1)
    return f"{text}\n... {counted(left_out, 'more line')}" if left_out else text


def decoded(line: bytes) -> str:
    """A line as text; bytes that are not UTF-8 are shown as <FF>."""
    return _marked(line.decode("utf-8", "surrogateescape"))[0]


def _marked(text: str) -> tuple[str, int]:
    return _UNDECODABLE.subn(lambda found: f"<{ord(found[0]) - 0xDC00:02X}>", text)


def _numbered(lines: list[bytes], first: int) -> tuple[str, int]:
    """Numbered lines, and the number of bytes in them that are not UTF-8."""
    numbered = (f"{number}: {line.decode('utf-8', 'surrogateescape')}" for number, line in enumerate(lines, first))
    return _marked("\n".join(numbered))


def _which_lines(excerpt: Excerpt, count: int) -> str:
    first, last = excerpt.first, excerpt.first + count - 1
    lines = f"line {first}" if count == 1 else f"lines {first} to {last}" if first < 0 else f"lines {first}-{last}"
    if excerpt.total is not None:
        return f"{lines} of {excerpt.total}"
    return f"{lines}, counted from the end" if first < 0 else f"{lines} of a large file that was not counted to the end"


def listing(folder: Folder) -> tuple[list[dict[str, Any]], int]:
    """The first entries of an open directory in order of their names, as data, and the number of all entries."""
    total = 0

    def all_entries() -> Iterator[os.DirEntry[str]]:
        nonlocal total
        for entry in folder.entries():
            total += 1
            yield entry

    # A directory may hold millions of entries; only the first ones are kept.
    first = heapq.nsmallest(MAX_ENTRIES, all_entries(), key=lambda entry: entry.name)
    return [_entry(folder, entry) for entry in first], total


def _entry(folder: Folder, entry: os.DirEntry[str]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": shown(entry.name, limit=255)}
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return {**described, "type": "gone"}  # removed since the directory was read
    mode = status.st_mode
    # The target of a link is not shown: it may be a path of the host.
    kinds = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "symbolic link"}
    described["type"] = kinds.get(stat.S_IFMT(mode), "not a regular file")
    if stat.S_ISREG(mode):
        described["size"] = status.st_size
    if not folder.rules.allow(folder.path_of(entry.name)):
        described["denied"] = True
    return described


def render_listing(name: str, entries: list[dict[str, Any]], total: int) -> str:
    """A header with the number of entries, a line for each entry, and a note if some are left out."""
    left_out = [f"... and {total - len(entries):,} more"] if total > len(entries) else []
    return "\n".join([f"{name}: {counted(total, 'entry', 'entries')}", *map(_described, entries), *left_out])


def _described(entry: dict[str, Any]) -> str:
    kind, about = entry["type"], []
    if kind not in ("directory", "file"):
        about.append(kind)
    if "size" in entry:
        about.append(f"{entry['size']:,} bytes")
    if "denied" in entry:
        about.append("denied")
    name = f"{entry['name']}/" if kind == "directory" else entry["name"]
    return f"{name} ({', '.join(about)})" if about else str(name)
