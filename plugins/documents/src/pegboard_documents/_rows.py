"""Rows of tables within bounds: what is read of them, and how long it may be."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from attrs import define

from pegboard import ToolError

__all__ = ["MOST_TEXT", "Cell", "Tables", "even", "filled", "markdown", "shortened", "within"]

Cell: TypeAlias = str | int | float | bool | None

MOST_CHARACTERS: Final = 100_000
"""Characters of all tables of one call."""
MOST_CELLS: Final = 100_000
"""Cells of one table, empty ones included."""
MOST_TABLES: Final = 1_000
MOST_TEXT: Final = 20_000_000
"""Characters of a whole text."""
LONGEST_CELL: Final = 2_000
LONGEST_NAME: Final = 500


def shortened(text: Any, most: int = LONGEST_NAME) -> str | None:
    """A text in one piece, or as much of it as is shown and how much more there is; None for none."""
    found = str(text).strip() if text is not None else ""
    return (found if len(found) <= most else f"{found[:most]}... ({len(found) - most:,} more)") or None


def cell(value: Any) -> Cell:
    """A value as data: dates and the like as text, a very long text shortened."""
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dt.date | dt.time):
        return value.isoformat().removesuffix("T00:00:00")
    return shortened(value, LONGEST_CELL)


def filled(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The rows that have a value."""
    return (row for row in rows if any(row) or any(value not in (None, "") for value in row))


def even(rows: Iterable[Sequence[Any]]) -> list[list[Cell]]:
    """The values of rows of one length, without the columns that are empty in all of them."""
    kept = [{at: value for at, each in enumerate(row) if (value := cell(each)) is not None} for row in rows]
    used = sorted(set().union(*kept))
    return [[row.get(at) for at in used] for row in kept]


@define
class Tables:
    """The tables of one answer: `most` rows of each, and so many characters together."""

    most: int
    room: int = MOST_CHARACTERS

    def table(self, rows: Iterable[Sequence[Any]], **place: Any) -> dict[str, Any]:
        """A table of what fits, with the number of all its rows."""
        kept: list[Sequence[Any]] = []
        total, fits = 0, True
        for row in filled(rows):
            total += 1
            if fits and len(kept) < self.most:
                length = sum(min(len(str(value)), LONGEST_CELL) + 3 for value in row if value is not None)
                fits = length <= self.room
                if fits:
                    self.room -= length
                    kept.append(row)
        found = even(kept)
        most = MOST_CELLS // max(len(found[0]), 1) if found else 0
        return {"page": None, "sheet": None, **place, "rows": found[:most], "total_rows": total}

    def all(self, tables: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The answer. Raises `ToolError` for more tables than one may have."""
        found = []
        for each in tables:
            if each["total_rows"] or each["sheet"] is not None:
                found.append(each)
            if len(found) > MOST_TABLES:
                raise ToolError(f"it has more than {MOST_TABLES:,} tables: read it with document_read")
        return {"tables": found}


def markdown(rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """The lines of a table in Markdown; the first row is its head."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(map(_written, row))} |"
        if number == 0:
            yield f"|{' --- |' * len(row)}"


def _written(value: Cell) -> str:
    return "" if value is None else " ".join(str(value).replace("|", "\\|").split())


def within(pieces: Iterable[str]) -> str:
    """The pieces, a line each. Raises `ToolError` for more characters than a text may have."""
    kept, length = [], 0
    for piece in pieces:
        kept.append(piece)
        length += len(piece) + 1
        if length > MOST_TEXT:
            raise ToolError(f"its text has more than {MOST_TEXT:,} characters")
    return "\n".join(kept)
