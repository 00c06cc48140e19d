"""What the tools return: records, and how a model reads each of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeAlias

import attrs
from attrs import frozen

from pegboard import ToolResult
from pegboard_sql._markdown import markdown_table

__all__ = ["LOOK", "VALUE", "Cell", "Column", "Executed", "Rows", "Schema", "Table", "as_written"]

Cell: TypeAlias = str | int | float | bool | None
# Characters of a value that are given; bytes count two each.
VALUE: Final = 2_000
LOOK: Final = "sql_schema shows the tables and columns."
# Characters of the rows that a model reads.
MOST_TEXT: Final = 50_000

P = ParamSpec("P")


def as_written(function: Callable[P, Any]) -> Callable[P, ToolResult | str]:
    """Let a tool show the model its record as `written`; the record is the data, which the annotation promises."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> ToolResult | str:
        record = function(*args, **kwargs)
        if isinstance(record, str):
            return record
        return ToolResult(content=record.written(), data=attrs.asdict(record), value=record)

    return run


@frozen
class Rows:
    """The answer to a query. A value that is no number, boolean or null is text.

    Args:
        columns: Names of the columns.
        types: Names of the engine's types.
        rows: The rows.
        truncated: Whether there are more rows.
        clipped: Number of values that were shortened.
    """

    columns: list[str]
    types: list[str]
    rows: list[list[Cell]]
    truncated: bool
    clipped: int

    def written(self) -> str:
        """A table in Markdown; then what was cut, and how to go on."""
        table, shown = markdown_table(self.columns, self.rows, MOST_TEXT)
        if (more := len(table) - 2 * MOST_TEXT) > 0:  # of a single row
            table = f"{table[:-more]}\n[{more:,} characters more: select fewer columns]"
        text = f"{table}\n\n{shown:,} {'row' if shown == 1 else 'rows'}"
        if shown < len(self.rows) or self.truncated:
            text += f" of more. Go on with ORDER BY ... OFFSET {shown}, or ask for less."
        if self.clipped:
            what = "1 value is" if self.clipped == 1 else f"{self.clipped:,} values are"
            text += f"\n{what} shortened to {VALUE:,} characters: go on with substr(column, {VALUE + 1}, {VALUE})."
        return text


@frozen
class Column:
    """A column. `references` is the column that it refers to by a key, such as `customers(id)`."""

    name: str
    type: str
    nullable: bool
    primary_key: bool
    references: str | None = None

    def written(self) -> str:
        """As a model reads it."""
        mark = " primary key" if self.primary_key else "" if self.nullable else " not null"
        target = f" -> {self.references}" if self.references else ""
        return f"{self.name} {self.type}".rstrip() + mark + target


@frozen
class Table:
    """A table or a view."""

    name: str
    kind: str
    columns: list[Column]

    def written(self) -> str:
        """As a model reads it, on one line."""
        kind = "" if self.kind == "table" else f" [{self.kind}]"
        return f"{self.name}{kind} ({', '.join(column.written() for column in self.columns)})"


@frozen
class Schema:
    """Tables of a database.

    Args:
        database: Name of the database.
        engine: Name of its engine.
        tables: The tables.
        more: Tables whose columns are not listed.
        omitted: Number of tables that are not even named.
    """

    database: str
    engine: str
    tables: list[Table]
    more: list[str]
    omitted: int

    def written(self) -> str:
        """A line for each table."""
        lines = [f"{self.database} ({self.engine})", *(table.written() for table in self.tables)]
        if self.more:
            lines += [f"Without their columns (send table=...): {', '.join(self.more)}"]
        if self.omitted:
            lines += [f"{self.omitted:,} more are not named here: query the catalog of the database for them."]
        return "\n".join(lines) if self.tables else f"{lines[0]}: no tables"


@frozen
class Executed:
    """What a statement did.

    Args:
        rows: Number of rows that it changed; null where it is not about rows.
    """

    rows: int | None

    def written(self) -> str:
        """In a sentence."""
        return "Done." if self.rows is None else f"{self.rows:,} {'row' if self.rows == 1 else 'rows'} changed."
