"""The section `sql` of the settings."""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from pegboard import SettingsError

__all__ = ["TIMEOUT", "Settings"]

TIMEOUT: Final = 30.0


def _database(name: str, given: Any) -> Any:
    from pegboard_sql._database import Database

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
    """The section `sql` of the settings. Raises ValueError or `SettingsError` for an invalid value.

    Args:
        timeout: Seconds that a call may take; 30 by default.
        databases: By name: a URL, or a mapping with `url`, `tables` and `write`. They are secret.
    """

    timeout: float = attrs.field(default=TIMEOUT, validator=attrs.validators.gt(0))
    databases: dict[str, Any] = attrs.field(factory=dict, converter=_databases, repr=False, metadata={"secret": True})
