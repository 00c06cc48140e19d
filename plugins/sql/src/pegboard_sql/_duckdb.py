"""DuckDB: one SELECT by its own parser, on a file opened read-only. It runs in a process with limits; see `answer`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Final

import duckdb

from pegboard import ToolError
from pegboard_sql._listing import Columns, listing
from pegboard_sql._records import LOOK, VALUE
from pegboard_sql._values import Taken, bounded_text, quoted

__all__ = ["KIND", "MEMORY", "answer"]

KIND: Final = "DuckDB"
# Bytes of address space that a statement may take; DuckDB's threads reserve half of it.
MEMORY: Final = 2 * 1024 * 1024 * 1024
_OFF: Final = (
    "enable_external_access python_enable_replacements autoload_known_extensions autoinstall_known_extensions "
    "allow_community_extensions allow_persistent_secrets"
)
_LIMITS: Final = {"temp_directory": "", "max_temp_directory_size": "0KB", "threads": "2", "memory_limit": "512MB"}
_SETTINGS: Final[dict[str, Any]] = {**dict.fromkeys(_OFF.split(), "false"), **_LIMITS, "lock_configuration": "true"}
_ROWS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE_INTO"})
_DEFINITIONS: Final = frozenset({"CREATE", "ALTER", "DROP"})
# The ends of plans that read tables by name, or none; other functions that are tables read files or the catalog.
_LEAVES: Final = frozenset(
    {"SEQ_SCAN", "INDEX_SCAN", "DUMMY_SCAN", "COLUMN_DATA_SCAN", "EMPTY_RESULT"}
    | {"RANGE", "GENERATE_SERIES", "REPEAT", "UNNEST", "JSON_EACH", "JSON_TREE"}
    | {"CTE_SCAN", "REC_CTE_SCAN", "REC_REC_CTE_SCAN", "DELIM_SCAN", "MERGE_ACTION_SOURCE"}
)
# The types whose values travel as they are; all others as text.
_PLAIN: Final = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|BOOLEAN|FLOAT|DOUBLE")
_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
_TABLES: Final = """
SELECT schema_name, table_name, 'table', NULL FROM duckdb_tables() WHERE NOT internal UNION ALL
SELECT schema_name, view_name, 'view', sql FROM duckdb_views() WHERE NOT internal"""
_HERE: Final = "WHERE database_name = current_database() AND schema_name = ? AND table_name = ?"
_COLUMNS: Final = f"SELECT column_name, data_type, is_nullable FROM duckdb_columns() {_HERE} ORDER BY column_index"  # noqa: S608
_KEYS: Final = f"""
SELECT constraint_type, constraint_column_names, constraint_text, referenced_table, referenced_column_names
FROM duckdb_constraints() {_HERE}"""  # noqa: S608 - nothing of a model


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What `Engine.ask` asks of a database. There is nothing to `recover`: the log counts as far as it was committed.

    Raises `ToolError` for what is refused, TimeoutError for what was stopped after `seconds`.
    """
    mode: Any = {"read_only": request["act"] != "execute", "config": _SETTINGS}
    try:
        with closing(duckdb.connect(request["path"], **mode)) as connection:
            threading.Timer(request["seconds"], connection.interrupt).start()  # it ends with the process
            return _ACTS[request["act"]](connection, request)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.InterruptException:
        raise TimeoutError from None
    except duckdb.Error as error:
        raise ToolError(f"DuckDB: {str(error).strip().partition(chr(10))[0].rstrip('.')}. {LOOK}") from None


def _one(connection: Any, request: dict[str, Any], kinds: frozenset[str], wanted: str) -> tuple[str, str]:
    """The one statement of a request and its kind. Raises what `_check` does, and `ToolError` for others."""
    statements = connection.extract_statements(request["text"])
    if len(statements) != 1:
        raise ToolError("Only one statement can be sent at a time." if statements else f"Send {wanted}.")
    text, kind = str(statements[0].query).rstrip("; \t\r\n"), statements[0].type.name
    if kind not in kinds:
        raise ToolError(f"{kind} cannot be run: send {wanted}.")
    if request["tables"] is not None:
        _check(connection, text, set(map(_name, request["tables"])))
    return text, kind


def _select(connection: Any, request: dict[str, Any]) -> str:
    return _one(connection, request, frozenset({"SELECT"}), "one SELECT")[0]


def _plan(connection: Any, text: str) -> str:
    return str(connection.execute(f"EXPLAIN {text}").fetchall()[0][1])


def _check(connection: Any, text: str, allowed: set[tuple[str, ...]]) -> None:
    """Raises `ToolError`, or `duckdb.Error`, for a statement that reads or changes anything but some tables.

    It has to be understood where nothing but these tables exists: that covers what a plan does not show. The plan
    covers what means something else here, such as macros.
    """
    with closing(duckdb.connect(config=_SETTINGS)) as empty:
        _copy(connection, empty, allowed)
        _plan(empty, text)
    for kind, table in _operators(json.loads(_plan(connection, f"(FORMAT JSON) {text}"))):
        if kind not in _LEAVES if table is None else _name(table) not in allowed:
            raise ToolError(f"This reads something else than the tables that are here. {LOOK}")


def _copy(connection: Any, empty: Any, allowed: set[tuple[str, ...]]) -> None:
    """Make some tables anew, without rows; then the views that are among them, if they can be made of these tables."""
    tables, views = [], []
    for schema, name, kind, sql in connection.execute(_TABLES).fetchall():
        if (schema.lower(), name.lower()) not in allowed:
            continue
        tables.append(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        if kind == "view":
            views.append(sql)
            continue
        columns = connection.execute(_COLUMNS, [schema, name]).fetchall()
        parts = [f"{quoted(column)} {type_}" for column, type_, _ in columns]
        keys = connection.execute(_KEYS, [schema, name]).fetchall()
        parts += [text for kind, _, text, *_ in keys if kind in ("PRIMARY KEY", "UNIQUE")]
        tables.append(f"CREATE TABLE {quoted(schema)}.{quoted(name)} ({', '.join(parts)})")
    for sql in tables + views * len(views):  # views of each other, in any order
        with suppress(duckdb.Error):
            empty.execute(sql)


def _operators(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, str | None]]:
    """Those of a plan that end it, read a table, which is named, or are functions of the rows of another."""
    for node in nodes:
        info = node.get("extra_info")
        found, name = info if isinstance(info, dict) else {}, node["name"].strip()
        if name == "INOUT_FUNCTION":
            yield str(found.get("Name")).upper(), None
        elif not node.get("children") or "Table" in found:
            yield name, found.get("Table")
        yield from _operators(node.get("children") or [])


def _name(text: str) -> tuple[str, ...]:
    """The schema and the name of a table, with or without a database, a schema, quotes."""
    parts = [(quoted.replace('""', '"') or plain).lower() for quoted, plain in _PART.findall(text)]
    return ("main", *parts)[-2:]


def query(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    text = _select(connection, request)
    relation = connection.sql(text)  # it is bound, and not run
    types = [str(each) for each in relation.types]
    names = [f"c{number}" for number in range(len(types))]
    bounded = ", ".join(
        name if _PLAIN.fullmatch(kind) else f"left(CAST({name} AS VARCHAR), {VALUE + 1})"
        for name, kind in zip(names, types, strict=True)
    )
    # A line break ends a comment of the query; DuckDB keeps the order of what is below.
    inner = f"(\n{text}\n) q({', '.join(names)})"
    cursor = connection.execute(f"SELECT {bounded} FROM {inner} LIMIT {request['max_rows'] + 1:d}")  # noqa: S608 - one
    taken = Taken(request["max_rows"])
    while (row := cursor.fetchone()) is not None and taken.take(row):
        pass
    return taken.answer(list(relation.columns), types)


def explain(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    return {"plan": bounded_text(_plan(connection, _select(connection, request)))}


def execute(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    kinds = _ROWS if request["tables"] is not None else _ROWS | _DEFINITIONS
    text, kind = _one(connection, request, kinds, "one INSERT, UPDATE or DELETE")
    connection.execute("BEGIN")
    cursor = connection.execute(text)
    counted = [each[0] for each in cursor.description or ()] == ["Count"]  # and not what RETURNING gives
    rows = cursor.fetchall() if kind in _ROWS else []
    connection.execute("COMMIT")
    if kind not in _ROWS:
        return {"rows": None}
    return {"rows": rows[0][0] if counted else len(rows)}


def schema(connection: Any, request: dict[str, Any]) -> dict[str, Any]:
    allowed = None if request["tables"] is None else set(map(_name, request["tables"]))
    kinds, places = {}, {}
    for schema, name, kind, _ in connection.execute(_TABLES).fetchall():
        if allowed is None or (schema.lower(), name.lower()) in allowed:
            shown = name if schema == "main" else f"{schema}.{name}"
            kinds[shown], places[shown] = kind, [schema, name]

    def described(names: Sequence[str]) -> Columns:
        return {name: _columns(connection, places[name], allowed) for name in names}

    return listing(kinds, request["table"], described)


def _columns(connection: Any, place: list[str], allowed: set[tuple[str, ...]] | None) -> list[list[Any]]:
    keys: set[str] = set()
    targets: dict[str, str] = {}
    for kind, columns, _, table, others in connection.execute(_KEYS, place).fetchall():
        if kind == "PRIMARY KEY":
            keys |= set(columns)
        elif kind == "FOREIGN KEY" and (allowed is None or (place[0].lower(), table.lower()) in allowed):
            targets |= {start: f"{table}({end})" for start, end in zip(columns, others, strict=True)}
    found = connection.execute(_COLUMNS, place).fetchall()
    return [[name, kind, nullable, name in keys, targets.get(name)] for name, kind, nullable in found]


# By the name of the request.
_ACTS: Final = {act.__name__: act for act in (schema, query, explain, execute)} | {"recover": schema}
