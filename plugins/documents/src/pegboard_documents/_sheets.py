"""Excel workbooks, row by row with openpyxl. It runs in a process with limits, and is imported there alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

from openpyxl import load_workbook

from pegboard import ToolError
from pegboard_documents._archives import Archive
from pegboard_documents._rows import LONGEST_NAME, Tables, even, filled, markdown, within

__all__ = ["read"]

MOST_SHEETS: Final = 500
MOST_NAMED: Final = 20


def read(given: dict[str, Any]) -> dict[str, Any]:
    """The text, the tables or what is known of a workbook. Raises `ToolError`."""
    archive = Archive(given["content"])
    if "xl/workbook.xml" not in archive:
        raise ToolError("it is no Excel workbook: xl/workbook.xml is missing in its archive")
    # Cells are what was computed when the workbook was saved. Charts have no cells.
    sheets = load_workbook(io.BytesIO(given["content"]), read_only=True, data_only=True).worksheets
    names = [sheet.title[:LONGEST_NAME] for sheet in sheets]
    if len(sheets) > MOST_SHEETS:
        raise ToolError(f"it has {len(sheets):,} sheets, and at most {MOST_SHEETS} are read")
    if given["job"] == "info":
        return {"sheets": names, **archive.about()}
    if given["job"] == "tables":
        tables = Tables(given["max_rows"])
        return tables.all(tables.table(_rows(s), sheet=n) for n, s in _chosen(names, sheets, given["sheet"]))
    if given["pages"]:
        raise ToolError(f"it has {len(names)} sheets and no pages: leave pages out, or name a sheet in document_tables")
    text = within(line for name, sheet in zip(names, sheets, strict=True) for line in _lines(name, sheet))
    return {"text": text.strip(), "title": archive.about()["title"]}


def _chosen(names: list[str], sheets: list[Any], wanted: str | None) -> list[tuple[str, Any]]:
    found = [(name, sheet) for name, sheet in zip(names, sheets, strict=True) if wanted in (None, name)]
    if not found:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        raise ToolError(f"it has no such sheet. Its sheets: {', '.join(map(repr, names[:MOST_NAMED]))}{more}")
    return found


def _rows(sheet: Any) -> Iterator[Any]:
    sheet.reset_dimensions()  # a sheet may declare fewer rows than it has, and the others would be missing
    yield from sheet.iter_rows(values_only=True)


def _lines(name: str, sheet: Any) -> Iterator[str]:
    """The name of a sheet, and its rows as a table."""
    yield f"## {name}\n"
    yield from markdown(even(filled(_rows(sheet))))
    yield ""
