"""The section `sql` of the settings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from pegboard import NotOffered, SettingsError
from pegboard_sql._database import Database
from pegboard_sql._databases import TIMEOUT, Databases

__all__ = ["Settings", "offers"]

_TOOLS: Final = ("sql_schema", "sql_query", "sql_explain")


def _database(name: str, given: Any) -> Database:
    terms = given if isinstance(given, Mapping) else {"url": given}
    if "url" not in terms or not terms.keys() <= {"url", "tables", "write"}:
        raise SettingsError(f"databases.{name} must be a URL, or a table with url, and perhaps tables and write")
    try:
        return Database(**terms, name=name)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"databases.{name}: {error}") from None


def _databases(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _database(name, each) for name, each in sorted(given.items())}


@attrs.frozen(kw_only=True)
class Settings:
    """What can be set. Raises ValueError or `SettingsError` for a value that is none."""

    timeout: float = attrs.field(default=TIMEOUT, validator=attrs.validators.gt(0))
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
        yield NotOffered(_TOOLS, "the driver of no configured database is installed", "; ".join(databases.problems))
