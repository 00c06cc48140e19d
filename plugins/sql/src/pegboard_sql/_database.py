"""A database: what its URL names, and what of it tools may use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import attrs

from pegboard import Secret
from pegboard_sql._engine import Engine, InProcess

__all__ = ["Database"]

_KINDS: Final = {"sqlite": "sqlite", "duckdb": "duckdb", "postgresql": "postgresql", "postgres": "postgresql"}
# The module that an engine needs, and the extra that brings it.
_DRIVERS: Final = {"duckdb": ("duckdb", "duckdb"), "postgresql": ("psycopg", "postgres")}
_FORMS: Final = "sqlite:////absolute/path, duckdb:////absolute/path or postgresql://user:password@host/database"


def _revealed(url: Any) -> str:
    return str(url.value if isinstance(url, Secret) else url)


def _names(tables: Iterable[str] | None) -> tuple[str, ...] | None:
    names = None if tables is None else tuple(tables)
    if isinstance(tables, str) or not all(isinstance(name, str) for name in names or ()):
        raise ValueError('tables takes a list of names, such as ["customer"]')
    return names


@attrs.frozen
class Database:
    """A database for `Databases`.

    Raises ValueError for an invalid URL, name or tables; the URL is in no message.

    Args:
        url: `sqlite:////absolute/path`, `duckdb:////absolute/path` or `postgresql://user:password@host/database`. With
            three slashes the path of a file is relative to the current directory. It is secret.
        name: How models call it. Empty: the name of its engine.
        tables: All that can be read (a view needs those below it too). None for all that the engine allows.
        write: Whether there is `sql_execute` for it.
    """

    url: str = attrs.field(repr=False, converter=_revealed)
    name: str = attrs.field(default="", kw_only=True)
    tables: tuple[str, ...] | None = attrs.field(default=None, converter=_names, kw_only=True)
    write: bool = attrs.field(default=False, validator=attrs.validators.instance_of(bool), kw_only=True)

    def __attrs_post_init__(self) -> None:
        kind, path = self._place
        if kind is None or (kind != "postgresql" and not path.strip("/")):
            raise ValueError(f"the URL of a database is {_FORMS}; this one is none of them")
        object.__setattr__(self, "name", self.name or kind)
        if re.fullmatch(r"[\w.-]{1,64}", self.name) is None:
            raise ValueError(f"the name of a database is up to 64 letters, digits, _, . and -, not {self.name!r}")

    @property
    def missing(self) -> str:
        """What has to be installed for it; empty where nothing has to."""
        module, extra = _DRIVERS.get(self._place[0] or "", ("", ""))
        if not module or find_spec(module) is not None:
            return ""
        return f'the database {self.name} needs {module}: pip install "pegboard-sql[{extra}]"'

    @property
    def _place(self) -> tuple[str | None, str]:
        scheme, _, rest = self.url.partition("://")
        return _KINDS.get(scheme), rest.removeprefix("/")

    def engine(self) -> Engine:
        """What answers for it."""
        kind, path = self._place
        if kind == "postgresql":
            from pegboard_sql._postgres import Postgres

            return Postgres(self.url, self.tables)
        return InProcess(import_module(f"pegboard_sql._{kind}"), Path(path).absolute(), self.tables)
