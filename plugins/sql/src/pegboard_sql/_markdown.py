"""Tables in Markdown."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

__all__ = ["markdown_table"]

_BREAKS: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], most: int) -> tuple[str, int]:
    """A table, of rows with `most` characters together at most, and the number of its rows.

    Null, true and false are written as in SQL; a cell is one line, in which `|` is escaped.
    """
    lines = [_line(columns), _line(["---"] * len(columns))]
    size = 0
    for row in rows:
        line = _line(row)
        size += len(line) + 1
        if size > most and len(lines) > 2:
            break
        lines.append(line)
    return "\n".join(lines), len(lines) - 2


def _line(row: Iterable[Any]) -> str:
    return f"| {' | '.join(map(_cell, row))} |"


def _cell(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    return _BREAKS.sub("<br>", str(value).replace("|", "\\|"))
