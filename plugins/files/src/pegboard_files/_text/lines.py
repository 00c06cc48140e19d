"""Lines of a file: reading a requested range, and no more of the file than that needs.

Lines are counted from 1, and only a line feed ends a line, so that numbers are the same as in every program that counts
line feeds. A carriage return belongs to its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from attrs import frozen

from pegboard_files._directory.bytes import BLOCK, blocks, read_at, read_span
from pegboard_files._errors import ChangedError, RangeError, UnsuitableError, counted

__all__ = ["Excerpt", "LineIndex", "Range", "parse_range", "read_excerpt"]

_MAX_LINES = 500_000  # of one view; with its number an empty line is far longer than without
_MAX_SCAN = 1 << 30  # bytes that are searched for line ends; they take about a second
_PAIR = re.compile(r"(-?[0-9]{1,15})\s*[,\uff0c]\s*(-?[0-9]{1,15})")


@frozen
class Range:
    """First and last line, both included; negative ones count from the end."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first},{self.last}"

    def within(self, total: int) -> Range:
        """The range in a file of `total` lines, counted from 1. Raises RangeError if the file has none of them."""
        first, last = (number if number > 0 else total + 1 + number for number in (self.first, self.last))
        first, last = max(first, 1), min(last, total)
        if first > last:
            raise RangeError(f"Lines {self} do not exist: the file has {counted(total, 'line')}.")
        return Range(first, last)


@frozen
class Excerpt:
    """Lines of a file: `content` holds whole lines with their ends.

    `first` is the number of the first line, negative if lines were counted from the end; `total` is None if the rest of
    the file was not counted.
    """

    content: bytes
    first: int
    total: int | None

    @property
    def lines(self) -> list[bytes]:
        """The lines without their line feeds."""
        return _split(self.content)


def parse_range(ranges: str | Sequence[int] | None) -> Range | None:
    """Read "1,100", "[1,100]" or [1, 100]; None for all lines. Raises RangeError with the form of a range."""
    if ranges is None or (isinstance(ranges, str) and not ranges.strip()):
        return None
    numbers = _numbers(ranges)
    if len(numbers) != 2:
        raise RangeError(f'ranges must be "first,last", such as "1,100" or "-50,-1", not {str(ranges)[:60]!r}.')
    first, last = numbers
    if first == 0 or last == 0:
        raise RangeError("Lines are counted from 1, or from -1 backwards; there is no line 0.")
    if (first > 0) == (last > 0) and first > last:
        raise RangeError(f'The range is reversed: use "{last},{first}".')
    return Range(first, last)


def _numbers(ranges: str | Sequence[int]) -> list[int]:
    if not isinstance(ranges, str):
        return [number for number in ranges if type(number) is int]
    text = ranges.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1].strip()
    pair = _PAIR.fullmatch(text)
    return [int(pair[1]), int(pair[2])] if pair else []


def read_excerpt(descriptor: int, wanted: Range | None, limit: int) -> Excerpt:
    """Read the wanted lines of a regular file; None for all lines.

    Files of up to `limit` bytes are read whole. Of larger ones only the wanted lines are kept. The part after them, or
    before lines counted from the end, is not read at all. Raises RangeError if more than `limit` bytes are wanted or
    the lines do not exist.
    """
    size = os.fstat(descriptor).st_size
    if size <= limit:
        # One byte more than the limit shows a file that grows at the same time.
        content = read_span(descriptor, 0, limit + 1)
        if len(content) <= limit:
            return _of_content(content, wanted)
        size = max(os.fstat(descriptor).st_size, len(content))
    if wanted is None:
        raise RangeError(
            f"The file has {size:,} bytes; without ranges only files of up to {limit:,} bytes are shown. "
            'Ask for lines: "1,100" for the first 100, "-100,-1" for the last 100.'
        )
    return _of_large_file(descriptor, size, wanted, limit)


def _of_content(content: bytes, wanted: Range | None) -> Excerpt:
    lines = _split(content)
    total = len(lines)
    if not total:
        return Excerpt(content, 1, total)
    found = Range(1, total) if wanted is None else wanted.within(total)
    _check_count(found.last - found.first + 1)
    start = sum(map(len, lines[: found.first - 1])) + found.first - 1
    chosen = lines[found.first - 1 : found.last]
    return Excerpt(content[start : start + sum(map(len, chosen)) + len(chosen)], found.first, total)


def _of_large_file(descriptor: int, size: int, wanted: Range, limit: int) -> Excerpt:
    file = LineIndex(descriptor, size)
    if wanted.first < 0 < wanted.last:
        wanted = wanted.within(file.count())
    start = file.start_of(wanted.first)
    # Lines between two positive numbers are searched for from the first of them.
    end = file.end_of(wanted.last) if wanted.last < 0 else file.skip(start, wanted.last - wanted.first + 1)[0]
    if end <= start:
        raise RangeError(f"Lines {wanted} do not exist: the file is shorter, or the range is reversed.")
    if end - start > limit:
        raise RangeError(
            f"Lines {wanted} have {end - start:,} bytes; at most {limit:,} are shown. Ask for fewer lines."
        )
    excerpt = Excerpt(read_span(descriptor, start, end - start), wanted.first, None)
    _check_count(excerpt.content.count(b"\n"))
    if wanted.first > 0:
        last = wanted.first + len(excerpt.lines) - 1
        return Excerpt(excerpt.content, wanted.first, last if end == size else None)
    return excerpt if start else Excerpt(excerpt.content, 1, None)


def _check_count(lines: int) -> None:
    if lines > _MAX_LINES:
        raise RangeError(f"These are {lines:,} lines; at most {_MAX_LINES:,} are shown. Ask for fewer lines.")


@frozen
class LineIndex:
    """The positions of lines in a file that is not read whole. Blocks are read by offset, so threads may share it."""

    descriptor: int
    size: int

    def count(self) -> int:
        """The number of lines."""
        if not self.size:
            return 0
        _, missing = self.skip(0, self.size)
        return self.size - missing + self._has_open_end()

    def start_of(self, line: int) -> int:
        """The offset of a line; 0 for lines before the first. Raises RangeError for lines after the last."""
        if line < 0:
            return self._back(-line)
        start, missing = self.skip(0, line - 1)
        if start < self.size:
            return start
        total = line - 1 - missing + (self._has_open_end() if missing else 0)
        raise RangeError(f"Line {line} does not exist: the file has {counted(total, 'line')}.")

    def end_of(self, line: int) -> int:
        """The offset after a line and its line feed."""
        if line > 0:
            return self.skip(0, line)[0]
        return self.size if line == -1 else self._back(-line - 1)

    def line_of(self, offset: int) -> int:
        """The number of the line that holds the byte at `offset`."""
        return 1 + sum(block.count(b"\n") for block in blocks(self.descriptor, 0, offset))

    def skip(self, start: int, line_feeds: int) -> tuple[int, int]:
        """The offset after the given number of line feeds, or the file's end and how many are missing."""
        at = start
        while line_feeds and at < self.size:
            self._check_scanned(at - start)
            block = self._block(at, BLOCK)
            found = block.count(b"\n")
            if found >= line_feeds:
                return at + _behind(block, line_feeds), 0
            line_feeds -= found
            at += len(block)
        return at, line_feeds

    def _back(self, lines: int) -> int:
        """The offset at which the given number of last lines start."""
        end = self.size if self._has_open_end() else self.size - 1
        at = end
        while at > 0:
            self._check_scanned(end - at)
            start = max(at - BLOCK, 0)
            block = self._block(start, at - start)
            found = block.count(b"\n")
            if found >= lines:
                return start + _behind(block, found - lines + 1)
            lines -= found
            at = start
        return 0

    def _has_open_end(self) -> bool:
        """Whether the last line has no line feed."""
        return self._block(self.size - 1, 1) != b"\n"

    def _block(self, start: int, length: int) -> bytes:
        block = read_at(self.descriptor, min(length, self.size - start), start)
        if not block:
            raise ChangedError("The file became shorter while it was read. Try again.")
        return block

    def _check_scanned(self, scanned: int) -> None:
        if scanned > _MAX_SCAN:
            raise UnsuitableError(
                f"These lines are more than {_MAX_SCAN:,} bytes away. Count from the file's nearer end: "
                "positive numbers from the start, negative ones from the end."
            )


def _behind(block: bytes, line_feeds: int) -> int:
    """The offset after the given number of line feeds, which the block holds."""
    at = 0
    for _ in range(line_feeds):
        at = block.index(b"\n", at) + 1
    return at


def _split(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()  # no line begins after the last line feed
    return lines
