"""Numbers of pages, as a model names them: `3`, `2-4`, `1,5-`."""

from __future__ import annotations

import re
from typing import Final

from pegboard import ToolError

__all__ = ["page_numbers", "page_of"]

_RANGE: Final = re.compile(r"([0-9]{1,9})(?:(-)([0-9]{1,9})?)?")


def page_numbers(text: str, count: int, what: str = "page") -> list[int]:
    """The numbers, each once, in the order of the document, of a document with so many pages or slides.

    Raises `ToolError` for a text that names none, and for numbers beyond the end.
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ToolError(f'pages={text[:100]!r} names no {what}s: send "3", "2-4" or "1,5-"; it has {count}')
        first = page_of(int(match[1]), count, what)
        last = first if not match[2] else page_of(int(match[3]), count, what) if match[3] else count
        if last < first:
            raise ToolError(f'pages={text[:100]!r} goes backwards: send "{last}-{first}"')
        found.update(range(first, last + 1))
    return sorted(found)


def page_of(number: int, count: int, what: str = "page") -> int:
    """The number, if there is such a page. Raises `ToolError`."""
    if not 1 <= number <= count:
        raise ToolError(f"there is no {what} {number}: it has {count} {what if count == 1 else what + 's'}")
    return number
