"""APIs that the settings name: where each is described and reached, and how its tools are registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import attrs

from pegboard import Locked, NotOffered, Offer, Secret, SettingsError

__all__ = ["Settings", "offers"]

_TEXTS: Final = ("base_url", "document", "password", "token", "api_key", "username", "prefix")
_LISTS: Final = ("disable", "enable", "group", "methods", "operations", "paths", "slashes", "tags")
_TABLES: Final = ("credentials", "headers", "presets", "rename", "secrets")
_FLAGS: Final = ("disabled", "output_schemas", "send_always")
_NUMBERS: Final = ("max_bytes", "max_schema", "timeout")
_KEYS: Final = frozenset({*_TEXTS, *_LISTS, *_TABLES, *_FLAGS, *_NUMBERS, "exclude"})


@attrs.frozen
class Named:
    """One API of the settings, checked. What it is reached with may be secret: its repr names nothing."""

    name: str
    given: Mapping[str, Any] = attrs.field(repr=False)

    def __repr__(self) -> str:
        return "<disabled>" if self.given.get("disabled") else "<a document>"

    @property
    def prefix(self) -> str:
        """What its tools' names begin with."""
        return str(self.given.get("prefix", f"{self.name}__"))

    def api(self) -> Any:
        """The API. Raises ValueError for a base URL or a credential that is none."""
        from pegboard_openapi._source import OpenApi

        given = self.given
        same = ("base_url", "credentials", "exclude", "headers", "methods", "operations", "paths", "slashes", "tags")
        options = {key: given[key] for key in (*same, "output_schemas", "send_always", *_NUMBERS) if key in given}
        # An empty one is none: a variable that is set to nothing.
        options |= {key: given[key] for key in ("api_key", "token") if given.get(key)}
        if given.get("password"):
            options["basic"] = (given.get("username", ""), given["password"])
        api = OpenApi(given["document"], name=self.name, **options)
        api.has_secrets = api.has_secrets or bool(given.get("secrets"))
        return api

    def offers(self) -> Iterator[Any]:
        """The operations to register, and why further ones are not offered."""
        api, given = self.api(), self.given
        api.tells_missing = False  # what follows the offer does
        terms = {key: given[key] for key in ("disable", "enable", "group", "rename") if key in given}
        yield Offer(api, prefix=self.prefix, presets=self._presets(), **terms)
        api.tools()
        for reason, names in api.lacking().items():
            yield NotOffered(
                [f"{self.prefix}{name}" for name in names], f"{reason}, set it in openapi.apis.{self.name}"
            )

    def _presets(self) -> dict[str, dict[str, Any]]:
        """Presets by tool and parameter. A model cannot override what the settings preset."""
        found: dict[str, dict[str, Any]] = {}
        for key, kind in (("presets", Locked), ("secrets", Secret)):
            for tool, values in self.given.get(key, {}).items():
                for parameter, value in values.items():
                    found.setdefault(tool, {})[parameter] = kind(value)
        return found


def _named(apis: Mapping[str, Any]) -> dict[str, Named]:
    return {name: _checked(name, given) for name, given in sorted(apis.items())}


def _checked(name: str, given: Any) -> Named:
    where = f"apis.{name}"
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where} must be a table")
    for key, value in given.items():
        if key not in _KEYS:
            close = get_close_matches(key, sorted(_KEYS), 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"Known keys: {', '.join(sorted(_KEYS))}."
            raise SettingsError(f"{where}: unknown key {key!r}. {hint}")
        if not _fits(key, value):
            raise SettingsError(f"{where}.{key} must be {_wanted(key)}")
    if "document" not in given:
        raise SettingsError(f'{where} needs a "document", a path or a URL')
    named = Named(name, given)
    try:
        named.api()
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None
    return named


def _fits(key: str, value: Any) -> bool:
    if key in _LISTS:
        return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))
    if key == "exclude":
        return all(_fits("tags", each) for each in (value.values() if isinstance(value, Mapping) else (value,)))
    if key in _TABLES:
        nested = key in ("presets", "secrets")
        return isinstance(value, Mapping) and all(
            isinstance(each, Mapping if nested else str) for each in value.values()
        )
    if key in _NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return isinstance(value, bool if key in _FLAGS else str)


def _wanted(key: str) -> str:
    kinds = {
        _LISTS: "a text or a list of texts",
        _TABLES: "a table",
        _NUMBERS: "a number above 0",
        _FLAGS: "true or false",
        ("exclude",): "a text, a list of texts, or a table of those",
    }
    return next((words for keys, words in kinds.items() if key in keys), "a text")


@attrs.frozen
class Settings:
    """The section `openapi` of the settings: APIs whose operations every toolkit gets.

    Args:
        apis: By name of the API: the parameters of `OpenApi` (`document`, `base_url`, credentials, what is selected)
            and the terms of the registration.
    """

    apis: dict[str, Any] = attrs.field(factory=dict, converter=_named)


def offers(settings: Settings) -> Iterator[Any]:
    """What the APIs that are not disabled offer, in the order of their names."""
    for named in settings.apis.values():
        if not named.given.get("disabled"):
            yield from named.offers()
