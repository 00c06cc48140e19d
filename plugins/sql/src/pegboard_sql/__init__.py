"""Databases for models, read-only by the engine: SQLite, DuckDB and PostgreSQL."""

# Each name is imported on first use (PEP 562), drivers by the first call.

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import NotOffered, hookimpl

if TYPE_CHECKING:
    from pegboard_sql._database import Database
    from pegboard_sql._databases import Databases
    from pegboard_sql._records import Executed, Rows, Schema
    from pegboard_sql._settings import Settings

__all__ = ["Database", "Databases", "Executed", "Rows", "Schema", "Settings", "provide_tools", "settings_type"]

_TOOLS = ("sql_schema", "sql_query", "sql_explain")
_HOMES = {"Database": "_database", "Databases": "_databases", "Settings": "_settings"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, '_records')}")
    found = globals()[name] = getattr(home, name)
    return found


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    from pegboard_sql._settings import Settings

    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Any]:
    """The tools for the configured databases; none where there are none."""
    if not settings.databases:  # nothing is loaded for tools that are not there
        return [NotOffered(_TOOLS, "no database is configured", "set sql.databases")]
    from pegboard_sql._databases import Databases

    databases = Databases(*settings.databases.values(), timeout=settings.timeout)
    if databases.tools():
        return [databases]
    missing = "; ".join(databases.problems)
    return [databases, NotOffered(_TOOLS, "the driver of no configured database is installed", missing)]
