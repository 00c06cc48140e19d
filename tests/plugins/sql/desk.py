"""Databases of a small shop, and a toolkit with the tools for some of them."""

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pegboard import Toolkit, ToolResult
from pegboard_sql import Database, Databases

__all__ = ["SHOP", "ask", "board", "duckdb_shop", "files", "rows", "sqlite_shop", "timed"]

SHOP = """
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE sale(id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer(id), amount DOUBLE PRECISION);
CREATE TABLE secret(k TEXT);
CREATE INDEX ix ON sale(customer);
CREATE VIEW v AS SELECT k FROM secret;
CREATE VIEW big AS SELECT name FROM customer;
INSERT INTO customer VALUES (1, 'Ada'), (2, 'Bo');
INSERT INTO sale VALUES (1, 1, 2.5), (2, 1, NULL), (3, 2, 4.0);
INSERT INTO secret VALUES ('hidden-words');
"""
"""In the SQL of all three engines."""


def sqlite_shop(path: Path, more: str = "") -> str:
    """Make the shop in a file of SQLite; its URL."""
    with sqlite3.connect(path) as connection:
        connection.executescript(SHOP + more)
    connection.close()
    return f"sqlite:///{path}"


def duckdb_shop(path: Path, more: str = "") -> str:
    """Make the shop in a file of DuckDB; its URL."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute(SHOP + more)
    return f"duckdb:///{path}"


@contextmanager
def board(
    *databases: Database, timeout: float = 5.0, approver: Callable[[Any], Any] | None = None
) -> Iterator[Toolkit]:
    """A toolkit with the tools for some databases."""
    with Toolkit(plugins=["dataclasses"], approver=approver) as toolkit:
        toolkit.register(Databases(*databases, timeout=timeout))
        assert toolkit.problems == []
        yield toolkit


def ask(toolkit: Toolkit, query: str, **arguments: Any) -> ToolResult:
    """Run a query."""
    return toolkit.call_sync("sql_query", {"query": query, **arguments})


def rows(toolkit: Toolkit, query: str, **arguments: Any) -> list[list[Any]]:
    """The rows of a query that works."""
    result = ask(toolkit, query, **arguments)
    assert result.status == "success", result.text
    found: list[list[Any]] = result.data["rows"]
    return found


def timed(toolkit: Toolkit, query: str, **arguments: Any) -> tuple[ToolResult, float]:
    """The result of a query, and the seconds that it took."""
    start = time.monotonic()
    return ask(toolkit, query, **arguments), time.monotonic() - start


def files(*folders: Path) -> dict[str, str]:
    """What is in some folders: a digest of each file by its path."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for folder in folders
        for path in sorted(folder.rglob("*"))
    }
