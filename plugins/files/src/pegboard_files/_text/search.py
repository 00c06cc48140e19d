"""Searching: the files beneath a directory that match a glob, and their lines that hold a text."""

from __future__ import annotations

import codecs
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from attrs import define, field

from pegboard_files._directory.bytes import read_at
from pegboard_files._directory.folder import Folder, OpenFile
from pegboard_files._directory.names import Glob
from pegboard_files._directory.root import Root
from pegboard_files._errors import UnsuitableError, shown
from pegboard_files._text.views import decoded

__all__ = ["MAX_FILES", "MAX_MATCHES", "Budget", "Wanted", "files_beneath", "find", "glob_of", "search"]

MAX_FILES = 1000
MAX_MATCHES = 200
_PIECE = 1 << 20  # bytes of one search; a longer line is searched in pieces
_MAX_TEXT = 300  # characters of a line that are shown
_CHECKED = 8192  # bytes at the start of a file; with a NUL among them it is not text


@define
class Budget:
    """The time and the number of entries of a search; `spent` is why it ended early, and empty until then."""

    seconds: float = 20.0
    entries: int = 200_000
    spent: str = ""
    _end: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds

    def allows(self, entries: int = 0) -> bool:
        """Whether the search may go on after this many more entries."""
        self.entries -= entries
        if self.entries < 0:
            self.spent = self.spent or "there are too many files"
        elif time.monotonic() > self._end:
            self.spent = self.spent or f"it took more than {self.seconds:g} seconds"
        return not self.spent


class Wanted:
    """The wanted lines: those that hold a text, or match a regular expression. Raises UnsuitableError for a bad one.

    RE2 is loaded only when it is needed: an exact text is found without it.
    """

    def __init__(self, pattern: str, *, regex: bool, ignore_case: bool) -> None:
        if not pattern or "\n" in pattern:
            raise UnsuitableError("The pattern must be text of one line; it is searched for line by line.")
        self._text = pattern.encode(errors="replace")
        self._search = None
        self.piece = _PIECE
        if regex or ignore_case:
            from pegboard_schemas import PatternError, compiled_search

            try:
                self._search = compiled_search(pattern if regex else re.escape(pattern), ignore_case=ignore_case)
            except PatternError as error:
                raise UnsuitableError(f"The pattern {shown(pattern)} cannot be used: {error}.") from None
            self.piece = min(_PIECE, self._search.piece)

    def lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """The offsets at which the matching lines of a block begin and end."""
        if self._search is not None:
            yield from self._search.lines(block)
            return
        start = 0
        while (at := block.find(self._text, start)) >= 0:
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


def files_beneath(folder: Folder, budget: Budget, depth: int | None = None) -> Iterator[tuple[Folder, str]]:
    """The regular files in order of their paths: the open directory of each, and its name.

    Denied files, links, and directories deeper than the rules allow are left out.
    """
    depth = folder.rules.max_depth if depth is None else depth
    for name, is_folder in _members(folder, budget):
        if not budget.allows(1):
            return
        if not is_folder:
            yield folder, name
        elif depth > 1:
            # It may have been removed, or not be ours to read.
            with suppress(OSError), folder.folder(name) as inner:
                yield from files_beneath(inner, budget, depth - 1)


def _members(folder: Folder, budget: Budget) -> list[tuple[str, bool]]:
    """The names of files and directories, in order, and whether each is a directory."""
    found: list[tuple[str, bool]] = []
    for entry in folder.entries():
        if len(found) % 1000 == 999 and not budget.allows():
            break
        if len(found) > budget.entries:
            break
        with suppress(OSError):
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder or entry.is_file(follow_symlinks=False):
                found.append((entry.name, is_folder))
    return sorted(member for member in found if folder.rules.allow(folder.path_of(member[0])))


def find(folder: Folder, glob: Glob | None, budget: Budget) -> Iterator[str]:
    """The paths of files, relative to the base directory, whose path relative to `folder` matches the glob."""
    for inner, name in files_beneath(folder, budget):
        path = inner.path_of(name)
        if glob is None or glob.matches(_below(folder, path)):
            yield path


def search(root: Root, path: str, glob: Glob | None, wanted: Wanted, budget: Budget) -> Iterator[dict[str, Any]]:
    """The wanted lines, as `path`, `line` and `text`: of a file, or of all files in a directory.

    Raises OSError if the path is neither.
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
    """The wanted lines of one file."""
    if b"\0" in read_at(file.descriptor, _CHECKED, 0):
        return
    number, shown_last = 1, 0
    for block in _whole_lines(file.descriptor, wanted.piece):
        counted_to = 0
        for begin, end in wanted.lines(block):
            if not budget.allows():
                return
            number += block.count(b"\n", counted_to, begin)
            counted_to = begin
            if number > shown_last:  # a line that is longer than a block may match in several blocks
                shown_last = number
                text = _cut(decoded(block[begin : min(end, begin + 4 * _MAX_TEXT)]))
                yield {"path": shown(file.path), "line": number, "text": text}
        number += block.count(b"\n", counted_to)
        if not budget.allows():
            return


def _whole_lines(descriptor: int, piece: int) -> Iterator[bytes]:
    """A file in blocks of whole lines; a line that is longer than `piece` is cut.

    The byte order mark and the carriage returns before line feeds are removed: for a search they belong to no line.
    """
    at, size = 0, os.fstat(descriptor).st_size
    while at < size and (block := read_at(descriptor, min(piece, size - at), at)):
        whole = block.rfind(b"\n") + 1 or len(block)
        block = block[:whole] if at + len(block) < size else block  # its last line continues
        text = block if at else block.removeprefix(codecs.BOM_UTF8)
        at += len(block)
        yield text.replace(b"\r\n", b"\n").removesuffix(b"\r") if b"\r" in text else text


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def _below(folder: Folder, path: str) -> str:
    return path if folder.path == "." else path[len(folder.path) + 1 :]
