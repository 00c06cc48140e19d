"""SQLite: statements that its authorizer lets pass. It runs in a process with limits; see `answer`."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any, Final
from urllib.parse import quote

from pegboard import ToolError
from pegboard_sql._listing import Columns, listing
from pegboard_sql._records import LOOK
from pegboard_sql._values import Taken, bounded_text, quoted

__all__ = ["KIND", "MEMORY", "answer"]

# Bytes that a statement may take.
KIND: Final = "SQLite"
MEMORY: Final = 256 * 1024 * 1024
LONGEST_VALUE: Final = 16 * 1024 * 1024
_LIMITS: Final = {"LENGTH": LONGEST_VALUE, "SQL_LENGTH": 100_000, "LIKE_PATTERN_LENGTH": 100, "EXPR_DEPTH": 200} | {
    "COMPOUND_SELECT": 50,
    "COLUMN": 500,
    "ATTACHED": 0,
}
# Instructions of its machine between two looks at the time.
_STEPS: Final = 10_000
# Functions that are tables. Like other virtual tables they have to be touched before there is an authorizer.
_FUNCTIONS: Final = ("json_each", "json_tree", "pragma_table_info", "pragma_table_xinfo", "pragma_foreign_key_list")
_TYPES: Final = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}
_NOT_CALLED: Final = frozenset({"load_extension", "fts3_tokenizer"})
_READING: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})
_ROWS: Final = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_DEFINING: Final = re.compile(r"SQLITE_((CREATE|DROP)_(TABLE|INDEX|VIEW|TRIGGER)|ALTER_TABLE|ANALYZE|REINDEX)")
_DEFINITIONS: Final = frozenset(getattr(sqlite3, name) for name in dir(sqlite3) if _DEFINING.fullmatch(name))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What `Engine.ask` asks of a database; `recover`, too.

    Raises `ToolError` for what the engine refuses, TimeoutError for what was stopped after `seconds`.
    """
    tables, writes = request["tables"], request["act"] in ("execute", "recover")
    rules = _Rules(None if tables is None else {name.lower() for name in tables}, request["act"] == "execute")
    deadline = time.monotonic() + request["seconds"]
    where = f"file:{quote(request['path'])}?mode={'rw' if writes else 'ro'}"
    wait = min(5.0, request["seconds"])  # for another process to end its writing
    try:
        with closing(sqlite3.connect(where, uri=True, timeout=wait, isolation_level=None)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            for limit, value in _LIMITS.items():
                connection.setlimit(getattr(sqlite3, f"SQLITE_LIMIT_{limit}"), value)
            connection.set_progress_handler(lambda: time.monotonic() >= deadline, _STEPS)
            connection.execute(f"PRAGMA {'foreign_keys' if writes else 'query_only'}=on")
            return _ACTS[request["act"]](connection, request, rules)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        if time.monotonic() >= deadline:
            raise TimeoutError from None
        raise ToolError(rules.refusal or _message(error)) from None


def _message(error: Exception) -> str:
    if "one statement" in str(error):
        return "Only one statement can be sent at a time."
    if "too big" in str(error):
        return f"A value is larger than {LONGEST_VALUE >> 20} MiB. Leave its column out, or shorten what is built."
    return f"SQLite: {error}. {LOOK}"


class _Rules:
    """What statements may do. `refusal` says what was refused last, in a sentence for a model."""

    def __init__(self, tables: set[str] | None, writes: bool) -> None:
        self._tables = tables
        self._writes = writes
        self._known: set[str] = set()
        self.refusal = ""

    def guard(self, connection: sqlite3.Connection) -> None:
        """Let the connection do what is allowed from now on, and nothing else."""
        listed = connection.execute("PRAGMA table_list").fetchall()
        names = [name for _, name, kind, *_ in listed if kind == "virtual"]
        for name in (*_FUNCTIONS, *names):
            with suppress(sqlite3.Error):
                connection.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 0")  # noqa: S608 - quoted
        if self._tables is not None:
            modules = connection.execute("PRAGMA module_list").fetchall()
            self._known = {name.lower() for name in (*(row[1] for row in listed), *(row[0] for row in modules))}
            prefixes = tuple(f"{name.lower()}_" for name in names if name.lower() in self._tables)
            shadows = {row[1].lower() for row in listed if row[2] == "shadow"}
            self._tables |= {*_FUNCTIONS[:2], *(name for name in shadows if name.startswith(prefixes))}
        connection.set_authorizer(self)

    def __call__(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        """The answer to the authorizer's question."""
        allows = action in _READING or self._allows(action, first or "", second or "")
        return sqlite3.SQLITE_OK if allows else sqlite3.SQLITE_DENY

    def _allows(self, action: int, first: str, second: str) -> bool:
        if action == sqlite3.SQLITE_FUNCTION:
            return second.lower() not in _NOT_CALLED or self._refuse(f"The function {second} cannot be called.")
        if action == sqlite3.SQLITE_PRAGMA:
            reads = f"pragma_{first.lower()}" in _FUNCTIONS and self.opens(second)
            return reads or first.lower() == "data_version" or self._refuse("PRAGMA cannot be used. " + LOOK)
        if action == sqlite3.SQLITE_READ or (self._writes and action in _ROWS):
            # What is read without a column, as by count(*), may be a common table expression.
            is_none = not second and not first.lower().startswith("sqlite_") and first.lower() not in self._known
            what = "The catalog cannot be used." if first.startswith("sqlite_") else f"There is no table {first} here."
            return is_none or self.opens(first) or self._refuse(f"{what} {LOOK}")
        if self._writes:
            defines = self._tables is None and action in _DEFINITIONS
            return defines or self._refuse("This cannot be run: send one INSERT, UPDATE or DELETE, and no BEGIN.")
        return self._refuse("Only queries can be run: send one SELECT, WITH or VALUES.")

    def opens(self, table: str) -> bool:
        """Whether a table may be read."""
        return self._tables is None or table.lower() in self._tables

    def _refuse(self, sentence: str) -> bool:
        self.refusal = sentence
        return False


def query(connection: sqlite3.Connection, request: dict[str, Any], rules: _Rules) -> dict[str, Any]:
    rules.guard(connection)
    cursor = connection.execute(request["text"])
    if cursor.description is None:
        raise ToolError("There is no statement: send one SELECT.")
    columns = [column[0] for column in cursor.description]
    types: list[str] = [""] * len(columns)
    taken = Taken(request["max_rows"])
    for row in cursor:
        if not taken.take(row):
            break
        # Columns of a query have no types in SQLite: the first value that is not null has one.
        types = [known or _TYPES.get(type(value), "") for known, value in zip(types, row, strict=True)]
    return taken.answer(columns, [known or "NULL" for known in types])


def explain(connection: sqlite3.Connection, request: dict[str, Any], rules: _Rules) -> dict[str, Any]:
    rules.guard(connection)
    lines = [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {request['text']}")]
    return {"plan": bounded_text("\n".join(lines))}


def execute(connection: sqlite3.Connection, request: dict[str, Any], rules: _Rules) -> dict[str, Any]:
    connection.execute("BEGIN IMMEDIATE")
    rules.guard(connection)
    cursor = connection.execute(request["text"])
    for _ in cursor:  # of RETURNING
        pass
    if cursor.rowcount < 0 and cursor.description is not None:
        raise ToolError("This statement changes nothing: send queries to sql_query.")
    connection.set_authorizer(None)
    connection.set_progress_handler(None, 0)  # what is done in time is kept
    connection.execute("COMMIT")
    return {"rows": None if cursor.rowcount < 0 else cursor.rowcount}


def schema(connection: sqlite3.Connection, request: dict[str, Any], rules: _Rules) -> dict[str, Any]:
    found = connection.execute("PRAGMA table_list").fetchall()
    kinds = {
        name: "table" if kind == "virtual" else kind
        for schema, name, kind, *_ in found
        if schema == "main" and kind != "shadow" and not name.startswith("sqlite_") and rules.opens(name)
    }

    def described(names: Sequence[str]) -> Columns:
        return {name: _columns(connection, name, rules) for name in names}

    return listing(kinds, request["table"], described)


def _columns(connection: sqlite3.Connection, table: str, rules: _Rules) -> list[list[Any]]:
    keys = connection.execute(f"PRAGMA foreign_key_list({quoted(table)})").fetchall()
    targets = {start: f"{other}({end or ''})" for _, _, other, start, end, *_ in keys if rules.opens(other)}
    try:
        found = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    except sqlite3.Error:  # a view of what is not there any more
        return []
    return [
        [name, kind, not required and not key, bool(key), targets.get(name)]
        for _, name, kind, required, _, key, hidden in found
        if hidden != 1
    ]


# A writer that reads, as for `recover`, rolls back what a process that was ended has left; a reader cannot.
_ACTS: Final = {act.__name__: act for act in (schema, query, explain, execute)} | {"recover": schema}
