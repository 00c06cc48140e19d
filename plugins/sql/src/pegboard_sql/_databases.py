"""Databases as a source of tools: `toolkit.register(Databases(Database("sqlite:///shop.db")))`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, TypeAlias, final

from pegboard import CancelToken, Param, ToolError, tool
from pegboard_sql._database import Database
from pegboard_sql._engine import Engine, Run
from pegboard_sql._records import Column, Executed, Rows, Schema, Table, as_written
from pegboard_sql._settings import TIMEOUT
from pegboard_sql._values import MOST_ROWS

__all__ = ["Databases"]

# Characters of a statement.
MOST_SQL: Final = 50_000

Most: TypeAlias = Annotated[int, Param(ge=1, le=MOST_ROWS)]
Name: TypeAlias = Annotated[str | None, Param("Which database, if there are several")]


@final
class Databases:
    """Tools for some databases: `sql_schema`, `sql_query`, `sql_explain`, and `sql_execute` where one has `write`.

    A database whose driver is not installed is left out, see `problems`. Raises ValueError without a database, for two
    of one name, and for a timeout that is not above 0.

    Args:
        databases: The databases.
        timeout: Seconds that a call may take; 30 by default.
    """

    name = "sql"

    def __init__(self, *databases: Database, timeout: float = TIMEOUT) -> None:
        if not databases:
            raise ValueError('Databases(...) takes databases, such as Database("sqlite:////srv/shop.db")')
        names = [database.name for database in databases]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two databases are named {twice[0]!r}; tell them apart by Database(..., name=...)")
        if not timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
        self._timeout = timeout
        self._databases = {database.name: database for database in databases if not database.missing}
        self.problems: Sequence[str] = [database.missing for database in databases if database.missing]

    def __repr__(self) -> str:
        return f"Databases({', '.join(map(repr, self._databases.values()))})"

    # A source of tools -------------------------------------------------------------------------------------------

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Never call `changed()`: the databases stay the same."""
        return lambda: None

    def tools(self) -> list[Any]:
        """The tools; none where no database can be used."""
        if not self._databases:
            return []
        several = f" Databases: {', '.join(self._databases)}." if len(self._databases) > 1 else ""
        read: Any = {"read_only": True, "open_world": False}
        write: Any = {"destructive": True, "idempotent": False, "open_world": False, "requires_approval": True}
        # Marks are set on what `as_written` makes: on a method itself they would be those of its class.
        tools: list[Any] = [tool(**read)(as_written(each)) for each in (self.sql_query, self.sql_explain)]
        about = f"Show the tables and columns of a database.{several}"
        tools.insert(0, tool(description=about, **read)(as_written(self.sql_schema)))
        if writable := [name for name, database in self._databases.items() if database.write]:
            about = f"Change data: run one statement in one transaction. Only in {', '.join(writable)}."
            tools.append(tool(description=about, **write)(as_written(self.sql_execute)))
        return tools

    # What models call --------------------------------------------------------------------------------------------

    def sql_schema(self, cancel: CancelToken, table: str | None = None, database: Name = None) -> Schema:
        """Show the tables and columns of a database.

        Args:
            cancel: Ends the call early.
            table: This one alone.
            database: Name of the database, where there are several.
        """
        name, engine = self._engine(database)
        found = engine.ask(Run(self._timeout, cancel), act="schema", table=table)
        tables = [Table(each, kind, [Column(*one) for one in columns]) for each, kind, columns in found.pop("tables")]
        return Schema(name, engine.kind, tables, **found)

    def sql_query(self, cancel: CancelToken, query: str, max_rows: Most = 100, database: Name = None) -> Rows:
        """Run one query in the SQL of the database, read-only.

        Args:
            cancel: Ends the call early.
            query: One SELECT, WITH ... SELECT or VALUES.
            max_rows: Rows at most.
            database: Name of the database, where there are several.
        """
        engine = self._engine(database)[1]
        return Rows(**engine.ask(Run(self._timeout, cancel), act="query", text=_checked(query), max_rows=max_rows))

    def sql_explain(self, cancel: CancelToken, query: str, database: Name = None) -> str:
        """Show how the database would run a query, without running it.

        Args:
            cancel: Ends the call early.
            query: The query.
            database: Name of the database, where there are several.
        """
        return str(
            self._engine(database)[1].ask(Run(self._timeout, cancel), act="explain", text=_checked(query))["plan"]
        )

    def sql_execute(self, cancel: CancelToken, statement: str, database: Name = None) -> Executed:
        """Change data: run one statement in one transaction.

        Args:
            cancel: Ends the call early.
            statement: One INSERT, UPDATE, DELETE or the like.
            database: Name of the database, where there are several.
        """
        name, engine = self._engine(database)
        if not self._databases[name].write:
            raise ToolError(f"The database {name} is read-only.")
        return Executed(engine.ask(Run(self._timeout, cancel), act="execute", text=_checked(statement))["rows"])

    def _engine(self, name: str | None) -> tuple[str, Engine]:
        """A database by its name, or the only one. Raises `ToolError`, which names all."""
        if name is None and len(self._databases) == 1:
            name = next(iter(self._databases))
        if name not in self._databases:
            what = "Say which database" if name is None else "There is no database of this name"
            raise ToolError(f"{what}: send database={' or '.join(map(repr, self._databases))}.")
        return name, self._databases[name].engine()


def _checked(text: str) -> str:
    """A statement that drivers can take. Raises `ToolError`."""
    if "\0" in text or not text.strip():
        raise ToolError("The statement is empty, or has a null character (U+0000): send one without.")
    if len(text) > MOST_SQL:
        raise ToolError(f"The statement has {len(text):,} characters; at most {MOST_SQL:,} can be sent.")
    return text
