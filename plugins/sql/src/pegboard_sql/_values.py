"""Rows within bounds, as plain data: what an engine gives, shortened and counted."""

import math
from collections.abc import Iterable
from typing import Any, Final, final

from pegboard_sql._records import VALUE, Cell

__all__ = ["MOST_ROWS", "Taken", "bounded_text", "quoted"]

MOST_ROWS: Final = 10_000
# Characters of all rows of an answer.
MOST_CHARS: Final = 2_000_000
MOST_PLAN: Final = 20_000


@final
class Taken:
    """The rows of an answer so far: `max_rows` at most."""

    def __init__(self, max_rows: int) -> None:
        self._most = max_rows
        self._size = self._clipped = 0
        self._truncated = False
        self.rows: list[list[Cell]] = []

    def take(self, row: Iterable[Any]) -> bool:
        """Take a row; false if there was no room for it, and what follows is not needed."""
        if len(self.rows) >= self._most or self._size > MOST_CHARS:
            self._truncated = True
            return False
        self.rows.append([self._cell(value) for value in row])
        return True

    def _cell(self, value: Any) -> Cell:
        if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            self._size += 8
            return value
        if isinstance(value, bytes):
            text, is_long = f"0x{value[: VALUE // 2].hex()}", len(value) > VALUE // 2
        else:
            text, is_long = str(value)[:VALUE], len(str(value)) > VALUE
        self._clipped += is_long
        self._size += len(text)
        return text

    def answer(self, columns: list[str], types: list[str]) -> dict[str, Any]:
        """The fields of `Rows`."""
        cuts = {"truncated": self._truncated, "clipped": self._clipped}
        return {"columns": columns, "types": types, "rows": self.rows, **cuts}


def bounded_text(text: str) -> str:
    """A plan, with what is cut counted."""
    if len(text) <= MOST_PLAN:
        return text
    return f"{text[:MOST_PLAN]}\n[{len(text) - MOST_PLAN:,} characters more; explain a part of the query]"


def quoted(name: str) -> str:
    """A name as it can stand in a statement."""
    return '"' + name.replace('"', '""') + '"'
