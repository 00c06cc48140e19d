"""What the tools return: records for programs, and how a model reads them."""

import functools
from collections.abc import Callable
from typing import Any, Final, ParamSpec, Self, TypeVar

import attrs
from attrs import frozen

from pegboard import ToolError, ToolResult
from pegboard_documents._rows import Cell, markdown

__all__ = ["MOST_ROWS", "DocumentInfo", "DocumentTable", "DocumentText", "as_written", "tables_written", "text_written"]

P = ParamSpec("P")
T = TypeVar("T")

MOST_ROWS: Final = 1_000
"""Rows of a table that a call may ask for."""


@frozen
class DocumentText:
    """A part of a text.

    Args:
        text: The part.
        start: Number of characters before it.
        total_chars: Number of characters of the whole text.
        next_start: Where the next part begins; null at the end.
    """

    text: str
    start: int
    total_chars: int
    next_start: int | None

    @classmethod
    def part(cls, text: str, start: int, most: int) -> Self:
        """Take the part from `start` on. It ends at the end of a line, if there is one in its last fifth.

        Raises `ToolError` for a start beyond the end.

        Args:
            text: The whole text.
            start: How many characters to skip.
            most: How many characters to take at most.
        """
        total = len(text)
        if start > 0 and start >= total:
            raise ToolError(f"start={start} is beyond the end: its text has {total:,} characters")
        end = min(start + most, total)
        if end < total and (line := text.rfind("\n", start + most * 4 // 5, end)) > start:
            end = line + 1
        return cls(text[start:end], start, total, None if end == total else end)


@frozen
class DocumentInfo:
    """What is known of a document. A number or list is null for kinds that have no such parts.

    Args:
        kind: Kind of the document, such as pdf.
        pages: Number of pages.
        sheets: Names of the sheets.
        slides: Number of slides.
        title: Title.
        author: Author.
        encrypted: Whether it is encrypted.
    """

    kind: str
    pages: int | None
    sheets: list[str] | None
    slides: int | None
    title: str | None
    author: str | None
    encrypted: bool


@frozen
class DocumentTable:
    """A table of a page (or slide) or a sheet.

    Args:
        page: Number of the page or slide.
        sheet: Name of the sheet.
        rows: Rows that are not empty.
        total_rows: Number of rows of the whole table.
        truncated: Whether there are more rows.
    """

    page: int | None
    sheet: str | None
    rows: list[list[Cell]]
    total_rows: int
    truncated: bool


def as_written(write: Callable[[T], str]) -> Callable[[Callable[P, T]], Callable[P, ToolResult]]:
    """Let a tool show the model what `write` makes of its records; these are the data, which the annotation promises.

    The records are of attrs, one or a list.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, ToolResult]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
            found = function(*args, **kwargs)
            return ToolResult(content=write(found), data=_data(found), value=found)

        return run

    return decorated


def _data(found: Any) -> Any:
    return [_data(each) for each in found] if isinstance(found, list) else attrs.asdict(found)


def text_written(part: DocumentText) -> str:
    """The text, and how to go on."""
    if not part.total_chars:
        return "(the document is empty)"
    if part.next_start is None:
        return part.text
    shown = f"characters {part.start:,} to {part.next_start:,} of {part.total_chars:,}"
    return f"{part.text}\n[{shown}; go on with start={part.next_start}]"


def tables_written(tables: list[DocumentTable]) -> str:
    """The tables in Markdown, each with its place, its size and how to see more."""
    if not tables:
        return "No tables were found. document_read has the text."
    return "\n\n".join("\n".join([_head(each), *markdown(each.rows), *_more(each)]) for each in tables)


def _head(table: DocumentTable) -> str:
    place = "Table" if table.page is None and table.sheet is None else ""
    place = place or (f"Page {table.page}" if table.page is not None else f"Sheet {table.sheet}")
    return f"{place}, {table.total_rows:,} {'row' if table.total_rows == 1 else 'rows'}:"


def _more(table: DocumentTable) -> list[str]:
    if not table.truncated:
        return []
    shown = f"{len(table.rows):,} of {table.total_rows:,} rows"
    more = f"name one page or sheet, or send max_rows up to {MOST_ROWS:,}; document_read has the whole text"
    return [f"[{shown}; for more {more}]"]
