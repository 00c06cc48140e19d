"""DuckDB: one SELECT by its own parser, on a file opened read-only. It runs in a process with limits; see `answer`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Final

import duckdb

from pegboard_sql._listing import Columns, column, listing
from pegboard_sql._records import LOOK, VALUE
from pegboard_sql._values import Taken, bounded_text

__all__ = ["MEMORY", "answer"]

MEMORY: Final = 2 * 1024 * 1024 * 1024
"""Bytes of address space that a statement may take; DuckDB's threads reserve half of it."""
_SETTINGS: Final[dict[str, Any]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
    "python_enable_replacements": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "temp_directory": "",
    "max_temp_directory_size": "0KB",
    "threads": "2",
    "memory_limit": "512MB",
}
_ROWS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE_INTO"})
_DEFINITIONS: Final = frozenset({"CREATE", "ALTER", "DROP"})
_LEAVES: Final = frozenset(
    {"SEQ_SCAN", "INDEX_SCAN", "DUMMY_SCAN", "COLUMN_DATA_SCAN", "EMPTY_RESULT"}
    | {"RANGE", "GENERATE_SERIES", "REPEAT", "UNNEST", "JSON_EACH", "JSON_TREE"}
    | {"CTE_SCAN", "REC_CTE_SCAN", "REC_REC_CTE_SCAN", "DELIM_SCAN", "MERGE_ACTION_SOURCE"}
)
"""The ends of plans that read tables by name, or none; other functions that are tables read files or the catalog."""
_NUMBERS: Final = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|U?INTEGER")
_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^."\s]+)')
_FROM_TABLES: Final = (
    "SELECT schema_name, {0}_name, '{0}' FROM duckdb_{0}s() WHERE NOT internal AND database_name = current_database()"
)
_DEFINED: Final = """
SELECT schema_name, table_name, string_agg('"' || replace(column_name, '"', '""') || '" ' || data_type, ', ')
FROM (FROM duckdb_columns() ORDER BY column_index) WHERE database_name = current_database() AND NOT internal
AND table_oid IN (SELECT table_oid FROM duckdb_tables()) GROUP BY ALL
"""
_KEYS: Final = """
SELECT constraint_text FROM duckdb_constraints() WHERE database_name = current_database()
AND constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND schema_name = ? AND table_name = ?
"""
_VIEWS: Final = """
SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = current_database() AND NOT internal
"""
_COLUMNS: Final = """
SELECT c.column_name, c.data_type, c.is_nullable, coalesce(bool_or(k.constraint_type = 'PRIMARY KEY'), false),
    max(CASE WHEN k.constraint_type = 'FOREIGN KEY' THEN
        k.referenced_table || '(' || array_to_string(k.referenced_column_names, ', ') || ')' END),
    max(k.referenced_table)
FROM duckdb_columns() c LEFT JOIN duckdb_constraints() k ON k.database_name = c.database_name
    AND k.schema_name = c.schema_name AND k.table_name = c.table_name
    AND list_contains(k.constraint_column_names, c.column_name)
WHERE c.database_name = current_database() AND c.schema_name = ? AND c.table_name = ?
GROUP BY ALL ORDER BY min(c.column_index)
"""


class _RefusedError(Exception):
    """What is wrong with a statement, written for a model."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked: `act` is `schema`, `query`, `explain`, `execute` or `recover`.

    The answer has an `error` for what is refused, `late` for what was stopped after `seconds`.
    """
    writes = request["act"] in ("execute", "recover")
    try:
        with closing(duckdb.connect(request["path"], read_only=not writes, config=_SETTINGS)) as connection:
            timer = threading.Timer(request["seconds"], connection.interrupt)
            timer.daemon = True
            timer.start()
            return _ACTS[request["act"]](connection, request)
    except _RefusedError as error:
        return {"error": str(error)}
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.InterruptException:
        return {"late": True}
    except duckdb.Error as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        return {"error": f"DuckDB: {reason}. {LOOK}"}


def _one(connection: Any, text: str, kinds: frozenset[str], wanted: str) -> str:
    """The one statement in a text, if it is of such a kind. Raises `_RefusedError`."""
    statements = connection.extract_statements(text)
    if len(statements) != 1:
        raise _RefusedError("Only one statement can be sent at a time." if statements else f"Send {wanted}.")
    if statements[0].type.name not in kinds:
        raise _RefusedError(f"{statements[0].type.name} cannot be run: send {wanted}.")
    return str(statements[0].query).rstrip("; \t\r\n")


def _select(connection: Any, request: dict[str, Any]) -> str:
    text = _one(connection, request["text"], frozenset({"SELECT"}), "one SELECT, or another query")
    _check(connection, text, request["tables"])
    return text


def _plan(connection: Any, text: str, form: str) -> str:
    return str(connection.execute(f"EXPLAIN {form}{text}").fetchall()[0][1])


def _check(connection: Any, text: str, tables: list[str] | None) -> None:
    """Raises `_RefusedError`, or `duckdb.Error`, for a statement that reads or changes anything but some tables.

    It has to be understood where nothing but these tables exists: that covers what a plan does not show. The plan
    covers what means something else there, such as macros.
    """
    if tables is None:
        return
    allowed = {_name(table) for table in tables}
    with closing(duckdb.connect(config=_SETTINGS)) as empty:
        _copy(connection, empty, allowed)
        _plan(empty, text, "")
    for kind, info in _operators(json.loads(_plan(connection, text, "(FORMAT JSON) "))):
        table = info.get("Table")
        if (kind not in _LEAVES) if table is None else (_name(str(table)) not in allowed):
            raise _RefusedError(f"This reads something else than the tables that are here. {LOOK}")


def _copy(connection: Any, empty: Any, allowed: set[tuple[str, str]]) -> None:
    """Make some tables anew, without rows; then the views that are among them, if they can be made of these tables."""
    for schema, name, columns in connection.execute(_DEFINED).fetchall():
        if (schema.lower(), name.lower()) in allowed:
            empty.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
            keys = connection.execute(_KEYS, [schema, name]).fetchall()
            parts = ", ".join([columns, *(key for (key,) in keys)])
            empty.execute(f"CREATE TABLE {_quoted(schema)}.{_quoted(name)} ({parts})")
    views = [
        sql for schema, name, sql in connection.execute(_VIEWS).fetchall() if (schema.lower(), name.lower()) in allowed
    ]
    for sql in views * len(views):  # of each other, in any order
        with suppress(duckdb.Error):
            empty.execute(sql)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _operators(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of a plan that end it, name a table, or are functions of the rows of another."""
    for node in nodes:
        info = node.get("extra_info")
        found, name = info if isinstance(info, dict) else {}, node["name"].strip()
        if name == "INOUT_FUNCTION":
            yield str(found.get("Name")).upper(), {}
        elif not node.get("children") or "Table" in found:
            yield name, found
        yield from _operators(node.get("children") or [])


def _name(text: str) -> tuple[str, str]:
    """The schema and the name of a table, with or without a database, a schema, quotes."""
    parts, at = [], 0
    while match := _PART.match(text, at):
        parts.append((match[2] or match[1].replace('""', '"')).lower())
        at = match.end() + 1
        if text[match.end() : at] != ".":
            break
    return ("main", *parts)[-2], parts[-1]


def _query(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    text = _select(connection, request)
    relation = connection.sql(text)  # it is bound, and not run
    columns, types = list(relation.columns), [str(each) for each in relation.types]
    names = [f"c{number}" for number in range(len(columns))]
    bounded = ", ".join(
        name if _is_plain(kind) else f"left(CAST({name} AS VARCHAR), {VALUE + 1})"
        for name, kind in zip(names, types, strict=True)
    )
    # A line break ends a comment of the query; DuckDB keeps the order of what is below.
    most = request["max_rows"] + 1
    wrapped = f"SELECT {bounded} FROM (\n{text}\n) q({', '.join(names)}) LIMIT {most:d}"  # noqa: S608 - one SELECT
    cursor = connection.execute(wrapped)
    taken = Taken(request["max_rows"])
    while (row := cursor.fetchone()) is not None and taken.take(row):
        pass
    return taken.answer(columns, types)


def _is_plain(kind: str) -> bool:
    return kind in ("BOOLEAN", "FLOAT", "DOUBLE") or _NUMBERS.fullmatch(kind) is not None


def _explain(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    return {"plan": bounded_text(_plan(connection, _select(connection, request), ""))}


def _execute(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    tables = request["tables"]
    kinds = _ROWS if tables is not None else _ROWS | _DEFINITIONS
    text = _one(connection, request["text"], kinds, "one INSERT, UPDATE or DELETE")
    kind = connection.extract_statements(text)[0].type.name
    _check(connection, text, tables)
    connection.execute("BEGIN")
    cursor = connection.execute(text)
    rows = cursor.fetchall() if kind in _ROWS else []
    connection.execute("COMMIT")
    if kind not in _ROWS:
        return {"rows": None}
    counted = [each[0] for each in cursor.description or ()] == ["Count"]
    return {"rows": rows[0][0] if counted else len(rows)}


def _schema(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    tables = request["tables"]
    allowed = None if tables is None else {_name(table) for table in tables}
    found = connection.execute(f"{_FROM_TABLES.format('table')} UNION ALL {_FROM_TABLES.format('view')}").fetchall()
    kinds, places = {}, {}
    for schema, name, kind in found:
        if allowed is None or (schema.lower(), name.lower()) in allowed:
            shown = name if schema == "main" else f"{schema}.{name}"
            kinds[shown], places[shown] = kind, [schema, name]

    def described(names: Sequence[str]) -> Columns:
        return {name: _columns(connection, places[name], allowed) for name in names}

    return listing(kinds, request["table"], described)


def _columns(connection: Any, place: list[str], allowed: set[tuple[str, str]] | None) -> list[dict[str, Any]]:
    return [
        column(
            name,
            kind,
            nullable=nullable,
            primary_key=key,
            references=target if allowed is None or ("main", str(other).lower()) in allowed else None,
        )
        for name, kind, nullable, key, target, other in connection.execute(_COLUMNS, place).fetchall()
    ]


_ACTS: Final[dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]]] = {
    "schema": _schema,
    "query": _query,
    "explain": _explain,
    "execute": _execute,
    "recover": lambda *_: {},  # what was not committed is not in the log
}
