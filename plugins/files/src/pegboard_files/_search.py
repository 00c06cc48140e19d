"""Searching: which files a pattern means, and which lines hold a text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pegboard_files._bytes import BLOCK, read_at
from pegboard_files._errors import UnsuitableError
from pegboard_files._folder import Folder, OpenFile
from pegboard_files._messages import shown
from pegboard_files._names import Glob
from pegboard_files._patterns import Pattern
from pegboard_files._root import Root
from pegboard_files._views import decoded
from pegboard_files._walking import Budget, files_beneath

__all__ = ["MAX_FILES", "MAX_MATCHES", "Wanted", "find", "glob_of", "search"]

MAX_FILES = 1000
MAX_MATCHES = 200
_MAX_LINE = 10_000  # bytes of a line that are searched
_MAX_TEXT = 300  # characters of a line that are shown
_CHECKED = 8192  # bytes at the start of a file in which a NUL tells that it is no text


class Wanted:
    """What a line must hold: a text, or what a regular expression means. Raises UnsuitableError for none."""

    def __init__(self, pattern: str, *, regex: bool, ignore_case: bool) -> None:
        if not pattern or "\n" in pattern:
            raise UnsuitableError("The pattern must be text of one line; it is searched for line by line.")
        self._pattern = Pattern(pattern if regex else re.escape(pattern), ignore_case=ignore_case)
        # A line without this text cannot match; most files have no such line.
        self.literal = (pattern if not regex and not ignore_case else self._pattern.literal).encode(errors="replace")
        self._exact = not regex and not ignore_case

    def is_in(self, line: bytes) -> bool:
        """Whether a line holds it."""
        return self._exact or self._pattern.found_in(line[:_MAX_LINE].decode(errors="surrogateescape"))

    def candidates(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Where the lines of a block begin and end that may hold it."""
        start = 0
        while start < len(block):
            at = block.find(self.literal, start)
            if at < 0:
                return
            begin = block.rfind(b"\n", start, at) + 1 or start
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            yield begin, end
            start = end + 1


def glob_of(pattern: str | None) -> Glob | None:
    """The glob that a model wrote. Raises UnsuitableError."""
    if not pattern:
        return None
    try:
        return Glob.of(pattern)
    except ValueError as error:
        raise UnsuitableError(f"The glob cannot be used: {error}.") from None


def find(folder: Folder, glob: Glob | None, budget: Budget) -> Iterator[str]:
    """The paths beneath the base directory of files whose path from `folder` on fits the glob."""
    for inner, name in files_beneath(folder, budget):
        path = inner.path_of(name)
        if glob is None or glob.matches(_below(folder, path)):
            yield path


def search(root: Root, path: str, glob: Glob | None, wanted: Wanted, budget: Budget) -> Iterator[dict[str, Any]]:
    """The lines that hold what is wanted, as `path`, `line` and `text`: of a file, or of all files in a directory.

    Raises OSError for a path that is neither.
    """
    try:
        with root.file(path) as file:
            yield from _matches(file, wanted, budget)
            return
    except IsADirectoryError:
        pass
    with root.folder(path) as folder:
        for inner, name in files_beneath(folder, budget):
            if glob is None or glob.matches(_below(folder, inner.path_of(name))):
                # It may have been removed, or not be ours to read.
                with suppress(OSError), inner.file(name) as file:
                    yield from _matches(file, wanted, budget)


def _matches(file: OpenFile, wanted: Wanted, budget: Budget) -> Iterator[dict[str, Any]]:
    """The lines of one file that hold what is wanted."""
    if b"\0" in read_at(file.descriptor, _CHECKED, 0):
        return
    number = 1
    for block in _whole_lines(file.descriptor):
        counted_to = 0
        for begin, end in wanted.candidates(block):
            if not budget.allows():
                return
            line = block[begin:end].removesuffix(b"\r")
            if wanted.is_in(line):
                number += block.count(b"\n", counted_to, begin)
                counted_to = begin
                yield {"path": shown(file.path), "line": number, "text": _cut(decoded(line[: 4 * _MAX_TEXT]))}
        number += block.count(b"\n", counted_to)
        if not budget.allows():
            return


def _whole_lines(descriptor: int) -> Iterator[bytes]:
    """A file in blocks that end where a line does; lines that are longer than a block are cut."""
    at, size = 0, os.fstat(descriptor).st_size
    while at < size and (block := read_at(descriptor, BLOCK, at)):
        whole = block.rfind(b"\n") + 1 or len(block)
        block = block[:whole] if at + len(block) < size else block  # its last line goes on
        yield block
        at += len(block)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def _below(folder: Folder, path: str) -> str:
    return path if folder.path == "." else path[len(folder.path) + 1 :]
