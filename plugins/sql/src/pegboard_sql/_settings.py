"""The section `sql` of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from pegboard import NotOffered, SettingsError
from pegboard_sql._database import Database
from pegboard_sql._databases import TIMEOUT, Databases

__all__ = ["Settings", "offers"]

_KEYS: Final[dict[str, tuple[type, str]]] = {
    "url": (str, "a text"),
    "tables": (list, "a list of texts"),
    "write": (bool, "true or false"),
}
_TOOLS: Final = ("sql_schema", "sql_query", "sql_explain")


def _databases(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _database(name, each) for name, each in sorted(given.items())}


def _database(name: str, given: Any) -> Database:
    where = f"databases.{name}"
    if isinstance(given, Database):
        return given
    terms: Any = {"url": given} if isinstance(given, str) else given
    if not isinstance(terms, Mapping) or "url" not in terms:
        raise SettingsError(f"{where} must be a URL, or a table with url, tables and write")
    for key, value in terms.items():
        if key not in _KEYS:
            raise SettingsError(f"{where}: unknown key {key!r}; known are {', '.join(_KEYS)}")
        kind, wanted = _KEYS[key]
        if not isinstance(value, kind) or (kind is list and not all(isinstance(each, str) for each in value)):
            raise SettingsError(f"{where}.{key} must be {wanted}")
    try:
        return Database(**terms, name=name)
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None


def _above_zero(settings: Any, attribute: Any, given: float) -> None:
    if not given > 0:
        raise ValueError(f"{attribute.name} is a number above 0, not {given!r}")


@attrs.frozen(kw_only=True)
class Settings:
    """What can be set. Raises ValueError or `SettingsError` for a value that is none."""

    timeout: float = attrs.field(default=TIMEOUT, validator=_above_zero)
    """Seconds that a call may take."""
    databases: dict[str, Any] = attrs.field(factory=dict, converter=_databases, repr=False, metadata={"secret": True})
    """By name: a URL, or a table with `url`, `tables` and `write`."""


def offers(settings: Settings) -> Iterator[Any]:
    """The tools for the databases of the settings, or why there are none."""
    if not settings.databases:
        yield NotOffered(_TOOLS, "no database is configured", "set sql.databases")
        return
    databases = Databases(*settings.databases.values(), timeout=settings.timeout)
    yield databases
    if not databases.tools():
        yield NotOffered(_TOOLS, "no driver for the configured databases is installed", "; ".join(databases.problems))
