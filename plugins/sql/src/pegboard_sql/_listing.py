"""The tables of a schema, as far as there is room: with their columns, by their names, or counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from pegboard_sql._records import LOOK

__all__ = ["Columns", "column", "listing"]

Columns: TypeAlias = dict[str, list[dict[str, Any]]]
"""The columns of tables by the table's name, each as the fields of `Column`."""
MOST_TABLES: Final = 40
MOST_COLUMNS: Final = 600
MOST_NAMES: Final = 500


def column(name: str, kind: str, *, nullable: Any, primary_key: Any, references: str | None = None) -> dict[str, Any]:
    """The fields of `Column`."""
    flags = {"nullable": bool(nullable), "primary_key": bool(primary_key)}
    return {"name": name, "type": kind, **flags, "references": references}


def listing(kinds: dict[str, str], table: str | None, describe: Callable[[Sequence[str]], Columns]) -> dict[str, Any]:
    """The answer to `schema`: of one table, or of all of `kinds`, which are by name what each is."""
    names = sorted(kinds)
    if table is not None:
        names = [name for name in names if name == table] or [name for name in names if name.lower() == table.lower()]
        if not names:
            near = get_close_matches(table, kinds, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else LOOK
            return {"error": f"There is no table {table} here. {hint}"}
    described = describe(names[:MOST_TABLES])
    tables, count = [], 0
    for name in names[:MOST_TABLES]:
        columns = described.get(name, [])
        count += len(columns)
        if tables and count > MOST_COLUMNS:
            break
        tables.append({"name": name, "kind": kinds[name], "columns": columns})
    others = names[len(tables) :]
    return {"tables": tables, "more": others[:MOST_NAMES], "omitted": max(0, len(others) - MOST_NAMES)}
