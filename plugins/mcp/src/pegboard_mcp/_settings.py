"""Servers that the settings name: how each is reached, and the terms that its tools are registered under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import attrs

from pegboard import Locked, Offer, Secret, SettingsError

__all__ = ["Settings", "offers"]

_REACHED: Final = frozenset({"args", "auth", "command", "cwd", "env", "headers", "timeout", "transport", "type", "url"})
_HOW: Final = frozenset({"connect_timeout", "mode"})
_TERMS: Final = frozenset({"disable", "disabled", "enable", "group", "prefix", "presets", "rename", "secrets"})
_KEYS: Final = _REACHED | _HOW | _TERMS


@attrs.frozen
class Named:
    """One server of the settings, checked. What it is reached with may hold keys: its repr names the kind alone."""

    name: str
    options: Mapping[str, Any] = attrs.field(repr=False)

    def __repr__(self) -> str:
        kind = "a command" if "command" in self.options else "a URL" if "url" in self.options else "as in the file"
        return f"<{kind}{', disabled' if self.disabled else ''}>"

    @property
    def disabled(self) -> bool:
        """Whether it is left out."""
        return self.options.get("disabled") is True

    @property
    def is_complete(self) -> bool:
        """Whether it says how the server is reached."""
        return "command" in self.options or "url" in self.options

    def offer(self, entry: Any) -> Offer:
        """The server under its terms; `entry` says how it is reached. Raises `SettingsError` naming the key."""
        from pegboard_mcp._client.config import seconds_of, server_of, text_of

        where, options = f"servers.{self.name}", self.options
        how: dict[str, Any] = {}
        if "connect_timeout" in options:
            how["connect_timeout"] = seconds_of(where, "connect_timeout", options["connect_timeout"])
        if "mode" in options:
            how["mode"] = text_of(where, "mode", options["mode"])
        if isinstance(entry, Mapping):
            entry = {**entry, **{key: value for key, value in options.items() if key in _REACHED}}
        return Offer(server_of(where, self.name, entry, **how), **self._terms(where))

    def _terms(self, where: str) -> dict[str, Any]:
        from pegboard_mcp._client.config import texts_of

        options = self.options
        group = options.get("group", [])
        prefix = options.get("prefix", f"{self.name}__")
        if not isinstance(prefix, str):
            raise SettingsError(f"{where}.prefix must be a text")
        if not isinstance(options.get("disabled", False), bool):
            raise SettingsError(f"{where}.disabled must be true or false")
        rename = _table(f"{where}.rename", options.get("rename", {}))
        if not all(isinstance(each, str) for each in rename.values()):
            raise SettingsError(f"{where}.rename must be a table of texts")
        return {
            "enable": texts_of(where, "enable", options["enable"]) if "enable" in options else None,
            "disable": texts_of(where, "disable", options.get("disable", [])),
            "group": group if isinstance(group, str) else texts_of(where, "group", group),
            "prefix": prefix,
            "rename": rename,
            "presets": self._presets(where),
        }

    def _presets(self, where: str) -> dict[str, dict[str, Any]]:
        """By tool and parameter. What the settings preset no model overrides."""
        found: dict[str, dict[str, Any]] = {}
        for key, kind in (("presets", Locked), ("secrets", Secret)):
            for tool, values in _table(f"{where}.{key}", self.options.get(key, {})).items():
                for parameter, value in _table(f"{where}.{key}.{tool}", values).items():
                    found.setdefault(tool, {})[parameter] = kind(value)
        return found


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{where} must be a table")
    return value


def _named(servers: Mapping[str, Any]) -> dict[str, Named]:
    return {name: _checked(name, options) for name, options in sorted(servers.items())}


def _checked(name: str, options: Any) -> Named:
    where = f"servers.{name}"
    for key in _table(where, options):
        if key not in _KEYS:
            close = get_close_matches(key, sorted(_KEYS), 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"Known keys: {', '.join(sorted(_KEYS))}."
            raise SettingsError(f"{where}: unknown key {key!r}. {hint}")
    named = Named(name, options)
    # Made to be checked, and discarded: nothing is started by that.
    named.offer(options if named.is_complete else {"command": "checked when it is known"})
    return named


@attrs.frozen
class Settings:
    """The section `mcp` of the settings: servers whose tools every toolkit gets. Each option can be set by itself."""

    servers: dict[str, Any] = attrs.field(factory=dict, converter=_named)
    """By name: `command`, `args`, `env`, `cwd` or `url`, `type`, `headers`, and the terms of the registration."""
    config: str | None = None
    """An `mcpServers` file, whose servers are offered too; `servers` may say terms for them."""

    def __attrs_post_init__(self) -> None:
        self.entries()

    def entries(self) -> dict[str, Any]:
        """How each server is reached, by name. Raises `SettingsError` for one that is not configured."""
        from_file: Mapping[str, Any] = {}
        if self.config is not None:
            from pegboard_mcp._client.config import load_mcp_config, read_entries

            path = Path(self.config).expanduser()
            load_mcp_config(path)  # says what is wrong with an entry
            from_file = read_entries(path)
        for name, named in self.servers.items():
            if not named.is_complete and name not in from_file:
                raise SettingsError(
                    f'servers.{name} needs a "command" or a "url", or to be a server of the file that config names'
                )
        own = {name: named.options for name, named in self.servers.items() if named.is_complete}
        return {**from_file, **own}


def offers(settings: Settings) -> Iterator[Offer]:
    """The servers that are not disabled, under their terms, in the order of their names."""
    for name, entry in sorted(settings.entries().items()):
        named = settings.servers.get(name) or Named(name, {})
        if not named.disabled and not (isinstance(entry, Mapping) and entry.get("disabled") is True):
            yield named.offer(entry)
