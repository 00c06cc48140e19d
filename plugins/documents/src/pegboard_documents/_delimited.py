"""CSV: its rows, whatever separates the values. It runs in a process with limits."""

from __future__ import annotations

import csv
import io
from typing import Any, Final

from pegboard_documents._rows import MOST_TEXT, Tables

__all__ = ["read"]

DELIMITERS: Final = ",;\t|"
_SAMPLE: Final = 20_000


def read(given: dict[str, Any]) -> dict[str, Any]:
    """The rows, as the one table of the document."""
    text: str = given["text"]
    csv.field_size_limit(MOST_TEXT)
    tables = Tables(given["max_rows"])
    return tables.all([tables.table(csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text[:_SAMPLE])))])


def _delimiter(sample: str) -> str:
    """What separates the values; a comma where that cannot be told, as in a file of one column."""
    try:
        return csv.Sniffer().sniff(sample, DELIMITERS).delimiter
    except csv.Error:
        return ","
