"""Settings: servers, also those of `mcpServers` files, how their tools are registered, and what is served besides."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

import attrs

from pegboard import Locked, Offer, PegboardError, Secret, SettingsError

if TYPE_CHECKING:
    from pegboard_mcp._client.server import McpServer

__all__ = ["Settings", "load_mcp_config", "offers", "servers_named"]

_REACHED: Final = frozenset(
    {"args", "auth", "command", "cwd", "env", "headers", "scopes", "timeout", "transport", "type", "url"}
)
_HOW: Final = frozenset({"connect_timeout", "mode"})
_TERMS: Final = frozenset({"disable", "disabled", "enable", "group", "prefix", "presets", "rename", "secrets"})
_KEYS: Final = _REACHED | _HOW | _TERMS
_HOLDS: Final = ("text", "path", "function")
"""What a resource may be."""
_RUNNERS: Final = frozenset({"bunx", "node", "npx", "python", "python3", "uvx"})
"""Commands that run a server of another name."""
_KINDS: Final = {"http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http"}


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
        """Whether its tools are not offered."""
        return self.options.get("disabled") is True

    @property
    def is_complete(self) -> bool:
        """Whether it says how the server is reached."""
        return "command" in self.options or "url" in self.options

    def offer(self, entry: Any) -> Offer:
        """The server under its terms; `entry` says how it is reached. Raises `SettingsError` naming the key."""
        where, options = f"servers.{self.name}", self.options
        how: dict[str, Any] = {}
        if "connect_timeout" in options:
            how["connect_timeout"] = _seconds_of(where, "connect_timeout", options["connect_timeout"])
        if "mode" in options:
            how["mode"] = _text_of(where, "mode", options["mode"])
        if isinstance(entry, Mapping):
            entry = {**entry, **{key: value for key, value in options.items() if key in _REACHED}}
        return Offer(_server_of(where, self.name, entry, **how), **self._terms(where))

    def _terms(self, where: str) -> dict[str, Any]:
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
            "enable": _texts_of(where, "enable", options["enable"]) if "enable" in options else None,
            "disable": _texts_of(where, "disable", options.get("disable", [])),
            "group": group if isinstance(group, str) else _texts_of(where, "group", group),
            "prefix": prefix,
            "rename": rename,
            "presets": self._presets(where),
        }

    def _presets(self, where: str) -> dict[str, dict[str, Any]]:
        """Presets by tool and parameter. A model cannot override what the settings preset."""
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


def _resources(resources: Mapping[str, Any]) -> dict[str, Any]:
    for uri, entry in resources.items():
        where = f"resources.{uri}"
        for key, value in _table(where, entry).items():
            if key not in (*_HOLDS, "media_type", "meta"):
                raise SettingsError(f"{where}: unknown key {key!r}. Known keys: {', '.join(_HOLDS)}, media_type, meta.")
            _table(f"{where}.meta", value) if key == "meta" else _text_of(where, key, value)
        if len([key for key in _HOLDS if key in entry]) != 1:
            raise SettingsError(f"{where} needs one of these: {', '.join(_HOLDS)}")
    return dict(resources)


@attrs.frozen
class Settings:
    """The section `mcp` of the settings: servers whose tools every toolkit gets, and what is served beside tools.

    Args:
        servers: By name: `command`, `args`, `env`, `cwd` or `url`, `type`, `headers`, as in an `mcpServers` file, and
            the terms of the registration.
        config: Path of an `mcpServers` file, whose servers are offered too; `servers` may say terms for them. None for
            none.
        resources: What `pegboard serve` lets clients read, by URI: `text`, `path` or `function`, and `media_type` and
            `meta`.
        prompts: Functions that are prompts of `pegboard serve`, as `MODULE:NAME`.
    """

    servers: dict[str, Any] = attrs.field(factory=dict, converter=_named)
    config: str | None = None
    resources: dict[str, Any] = attrs.field(factory=dict, converter=_resources)
    prompts: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.entries()

    def entries(self) -> dict[str, Any]:
        """How each server is reached, by name. Raises `SettingsError` for one that is not configured."""
        from_file: Mapping[str, Any] = {}
        if self.config is not None:
            path = Path(self.config).expanduser()
            load_mcp_config(path)  # says what is wrong with an entry
            from_file = _read_entries(path)
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


def load_mcp_config(path: str | Path) -> dict[str, McpServer]:
    """The servers of an `mcpServers` file by name, those that are `disabled` left out. Nothing is connected yet.

    `${NAME}` and `${NAME:-default}` in commands, arguments, environments, URLs and headers are read from the
    environment when a server is connected. Raises `SettingsError` naming the file, the server and the key.

    Args:
        path: The file.
    """
    servers = _read_entries(path)
    return {
        name: _server_of(f"{path}: mcpServers.{name}", name, entry)
        for name, entry in servers.items()
        if not _flag(entry, "disabled")
    }


def servers_named(target: str) -> dict[str, McpServer]:
    """Find the servers that a text names, by their names; nothing is connected yet.

    Raises `PegboardError` for a text that names none.

    Args:
        target: A URL (`https://host/mcp`), a file of the form `mcpServers`, or a command with its arguments, written as
            for a shell (`"npx -y some-server"`).
    """
    from pegboard_mcp._client.server import McpServer

    try:
        if target.lower().startswith(("http://", "https://")):
            server = McpServer.http(target)
        elif target.endswith(".json") and " " not in target:
            return load_mcp_config(Path(target).expanduser())
        else:
            command, *arguments = shlex.split(target)
            server = McpServer.stdio(command, arguments, name=_called(command, arguments))
    except ValueError:  # it may hold a password
        raise PegboardError("an MCP server is named by COMMAND ..., by URL, or by a FILE.json of mcpServers") from None
    return {server.name: server}


def _called(command: str, arguments: list[str]) -> str:
    """What a server is called: its command, or what that runs."""
    own = PurePath(command).name
    what = next((each for each in arguments if not each.startswith("-")), "") if own in _RUNNERS else ""
    # `some-server` of `npx -y @scope/some-server@1.2`.
    found = PurePath(what).name.partition("@")[0].removesuffix(".py").removesuffix(".js")
    return found if re.fullmatch(r"[\w.-]+", found) else own


def _read_entries(path: str | Path) -> Mapping[str, Any]:
    """The servers of a file as they stand there. Raises `SettingsError` for a file that has none."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path} is no JSON: {error}") from error
    servers = content.get("mcpServers") if isinstance(content, Mapping) else None
    if not isinstance(servers, Mapping):
        raise SettingsError(f'{path} has no "mcpServers" object')
    return servers


def _server_of(where: str, name: str, entry: Any, **options: Any) -> McpServer:
    """The server that an entry describes; `where` it stands is for errors. Raises `SettingsError` naming the key."""
    try:
        return _made(where, name, entry, **options)
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None


def _made(where: str, name: str, entry: Any, **options: Any) -> McpServer:
    from pegboard_mcp._client.server import McpServer

    if not isinstance(entry, Mapping):
        raise SettingsError(f"{where} is no object")
    options["name"] = name
    if "timeout" in entry:
        options["call_timeout"] = _seconds_of(where, "timeout", entry["timeout"])
    if "command" in entry:
        command, args = _text_of(where, "command", entry["command"]), _texts_of(where, "args", entry.get("args", []))
        env = _texts_by_name(where, "env", entry.get("env"))
        cwd = None if entry.get("cwd") is None else _text_of(where, "cwd", entry["cwd"])
        return McpServer.stdio(command, args, env=env, cwd=cwd, **options)
    if "url" not in entry:
        raise SettingsError(f'{where} needs a "command" or a "url"')
    url, headers = _text_of(where, "url", entry["url"]), _texts_by_name(where, "headers", entry.get("headers"))
    kind = entry.get("type", entry.get("transport", "http"))
    if kind == "sse":
        return McpServer.sse(url, headers=headers, **options)
    if kind not in _KINDS:
        raise SettingsError(f'{where}.type is {kind!r}; it can be "stdio", "http" or "sse"')
    if entry.get("auth") not in (None, "oauth"):
        raise SettingsError(f'{where}.auth is {entry["auth"]!r}; it can be "oauth"')
    scopes = entry.get("scopes", [])
    scopes = scopes if isinstance(scopes, str) else _texts_of(where, "scopes", scopes)
    return McpServer.http(url, headers=headers, auth=entry.get("auth"), scopes=scopes, **options)


def _flag(entry: Any, key: str) -> bool:
    return isinstance(entry, Mapping) and entry.get(key) is True


def _text_of(where: str, key: str, value: Any) -> str:
    """Raises `SettingsError` for what is no text."""
    if not isinstance(value, str) or not value:
        raise SettingsError(f"{where}.{key} must be a text")
    return value


def _texts_of(where: str, key: str, value: Any) -> list[str]:
    """Raises `SettingsError` for what is no list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SettingsError(f"{where}.{key} must be a list of texts")
    return value


def _texts_by_name(where: str, key: str, value: Any) -> dict[str, str] | None:
    if value is not None and not (isinstance(value, dict) and all(isinstance(each, str) for each in value.values())):
        raise SettingsError(f"{where}.{key} must be an object of texts")
    return value


def _seconds_of(where: str, key: str, value: Any) -> float:
    """Raises `SettingsError` for what is no number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise SettingsError(f"{where}.{key} must be a number of seconds above 0")
    return float(value)
