"""The tables of a schema, as far as there is room: with their columns, by their names, or counted."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from pegboard import ToolError
from pegboard_sql._records import LOOK

__all__ = ["Columns", "listing"]

# The columns of tables by the table's name, each as the fields of `Column`, in their order.
Columns: TypeAlias = dict[str, list[list[Any]]]
MOST_TABLES: Final = 40
MOST_COLUMNS: Final = 600
MOST_NAMES: Final = 500


def listing(kinds: dict[str, str], table: str | None, describe: Callable[[Sequence[str]], Columns]) -> dict[str, Any]:
    """One table, or all of `kinds`, which says by name what each is: `tables` and the further fields of `Schema`.

    Raises `ToolError` for a table that is none of them.
    """
    names = sorted(kinds)
    if table is not None:
        names = [name for name in names if name == table] or [name for name in names if name.lower() == table.lower()]
        if not names:
            near = get_close_matches(table, kinds, n=3)
            raise ToolError(f"There is no table {table} here. {f'Did you mean {near[0]}?' if near else LOOK}")
    described = describe(names[:MOST_TABLES])
    tables: list[list[Any]] = []
    room = MOST_COLUMNS
    for name in names[:MOST_TABLES]:
        room -= len(described[name])
        if tables and room < 0:
            break
        tables.append([name, kinds[name], described[name]])
    others = names[len(tables) :]
    return {"tables": tables, "more": others[:MOST_NAMES], "omitted": max(0, len(others) - MOST_NAMES)}
