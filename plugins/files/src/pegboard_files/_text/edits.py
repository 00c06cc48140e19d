"""Edits as bytes: the spans of a file that are replaced. Every byte outside them stays.

An edit decodes nothing: bytes that are not UTF-8, byte order marks and the ends of unchanged lines are copied.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from itertools import islice

from attrs import frozen

from pegboard_files._directory.bytes import blocks, find_all, read_at
from pegboard_files._errors import RangeError, counted
from pegboard_files._text.lines import LineIndex, Range

__all__ = ["Splice", "insert_line", "replace_lines", "replace_text", "spliced"]

_MAX_REPLACED = 100_000


@frozen
class Splice:
    """The bytes from `start` to `end` become `content`."""

    start: int
    end: int
    content: bytes


def spliced(descriptor: int, size: int, splices: Iterable[Splice]) -> Iterator[bytes]:
    """The whole new content, in blocks; `splices` are in order and do not overlap."""
    at = 0
    for splice in splices:
        yield from blocks(descriptor, at, splice.start)
        yield splice.content
        at = splice.end
    yield from blocks(descriptor, at, size)


def replace_lines(descriptor: int, wanted: Range, content: bytes) -> list[Splice]:
    """Replace lines. The new ones get the line end of the first replaced line; an empty content removes the lines.

    The end of the last line stays as it is: a line feed, or the end of the file. Raises RangeError if one of the lines
    does not exist.
    """
    index = LineIndex(descriptor, os.fstat(descriptor).st_size)
    total = index.count()
    first, last = (number if number > 0 else total + 1 + number for number in (wanted.first, wanted.last))
    if not 1 <= first <= last <= total:
        raise RangeError(f"Lines {wanted} are not all there: the file has {counted(total, 'line')}. Nothing changed.")
    start = _behind_mark(descriptor) if first == 1 else index.start_of(first)
    end = index.end_of(last)
    if not content:
        return [Splice(start, end, b"")]
    ending = _ending(descriptor, index.end_of(first)) or _ending(descriptor, start) or b"\n"
    return [Splice(start, end - len(_ending(descriptor, end)), _lined(content, ending))]


def insert_line(descriptor: int, number: int, content: bytes) -> list[Splice]:
    """Insert `content` as line `number`; the present line comes after it.

    Raises RangeError for a number that is neither that of a line nor the next one.
    """
    size = os.fstat(descriptor).st_size
    index = LineIndex(descriptor, size)
    total = index.count()
    if not 1 <= number <= total + 1:
        raise RangeError(
            f"Line {number} does not exist: the file has {counted(total, 'line')}, so line_number is 1 to {total + 1}. "
            "Nothing changed."
        )
    if not size:
        return [Splice(0, 0, content)]
    if number <= total:
        start = _behind_mark(descriptor) if number == 1 else index.start_of(number)
        ending = _ending(descriptor, index.end_of(number)) or _ending(descriptor, start) or b"\n"
        return [Splice(start, start, _lined(content, ending) + ending)]
    ending = _ending(descriptor, size)
    if ending:
        return [Splice(size, size, _lined(content, ending) + ending)]
    ending = _ending(descriptor, index.start_of(total)) or b"\n"
    return [Splice(size, size, ending + _lined(content, ending))]


def replace_text(descriptor: int, old: bytes, new: bytes, expected: int) -> list[Splice]:
    """Replace each occurrence of `old` by `new`. A line break in them is a line end of the file, LF or CRLF.

    Raises RangeError if there are more or fewer occurrences than expected.
    """
    plain = old.replace(b"\r\n", b"\n")
    spellings = dict.fromkeys([old, plain.replace(b"\n", b"\r\n"), plain])
    found, spelling = next(filter(lambda each: each[0], ((_offsets(descriptor, s), s) for s in spellings)), ([], old))
    if len(found) != expected:
        raise RangeError(_miscounted(descriptor, found, expected))
    if b"\n" in new:
        index = LineIndex(descriptor, os.fstat(descriptor).st_size)
        number = index.line_of(found[0])
        ending = _ending(descriptor, index.end_of(number)) or _ending(descriptor, index.start_of(number))
        new = _with_ends(new, ending) if ending else new
    return [Splice(start, start + len(spelling), new) for start in found]


def _offsets(descriptor: int, wanted: bytes) -> list[int]:
    return list(islice(find_all(descriptor, wanted), _MAX_REPLACED))


def _miscounted(descriptor: int, found: list[int], expected: int) -> str:
    if not found:
        return (
            "The text to replace was not found. Nothing changed. It must be exactly the text of the file, spaces "
            "included and without line numbers: view the lines again."
        )
    index = LineIndex(descriptor, os.fstat(descriptor).st_size)
    lines = dict.fromkeys(index.line_of(start) for start in found[:10])
    where = f"{'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))}"
    more = " and more" if len(found) > 10 else ""
    return (
        f"The text to replace was found {counted(len(found), 'time')}, not {expected}: in {where}{more}. Nothing "
        "changed. Give more of the text around it, or the right expected_count."
    )


def _behind_mark(descriptor: int) -> int:
    return 3 if read_at(descriptor, 3, 0) == codecs.BOM_UTF8 else 0


def _ending(descriptor: int, end: int) -> bytes:
    """The line end before the offset `end`; empty at the start of the file and after a last line without one."""
    tail = read_at(descriptor, 2, end - 2) if end >= 2 else read_at(descriptor, end, 0)
    return b"\r\n" if tail == b"\r\n" else b"\n" if tail[-1:] == b"\n" else b""


def _with_ends(content: bytes, ending: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").replace(b"\n", ending)


def _lined(content: bytes, ending: bytes) -> bytes:
    """Content as lines, without the end of the last one: a line feed at its end begins no further line."""
    return _with_ends(content.removesuffix(b"\r\n" if content.endswith(b"\r\n") else b"\n"), ending)
