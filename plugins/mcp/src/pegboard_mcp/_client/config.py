"""Configuration files: the `mcpServers` JSON that desktop clients and editors share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pegboard import SettingsError
from pegboard_mcp._client.server import McpServer

__all__ = ["load_mcp_config", "read_entries", "seconds_of", "server_of", "text_of", "texts_of"]

_KINDS: Final = {"http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http"}


def load_mcp_config(path: str | Path) -> dict[str, McpServer]:
    """The servers of an `mcpServers` file by name, those that are `disabled` left out. Nothing is connected yet.

    `${NAME}` and `${NAME:-default}` in commands, arguments, environments, URLs and headers are read from the
    environment when a server is connected. Raises `SettingsError` naming the file, the server and the key.
    """
    servers = read_entries(path)
    return {
        name: server_of(f"{path}: mcpServers.{name}", name, entry)
        for name, entry in servers.items()
        if not _flag(entry, "disabled")
    }


def read_entries(path: str | Path) -> Mapping[str, Any]:
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


def server_of(where: str, name: str, entry: Any, **options: Any) -> McpServer:
    """The server that an entry describes; `where` it stands is for errors. Raises `SettingsError` naming the key."""
    try:
        return _server_of(where, name, entry, **options)
    except ValueError as error:
        raise SettingsError(f"{where}: {error}") from None


def _server_of(where: str, name: str, entry: Any, **options: Any) -> McpServer:
    if not isinstance(entry, Mapping):
        raise SettingsError(f"{where} is no object")
    options["name"] = name
    if "timeout" in entry:
        options["call_timeout"] = seconds_of(where, "timeout", entry["timeout"])
    if "command" in entry:
        command, args = text_of(where, "command", entry["command"]), texts_of(where, "args", entry.get("args", []))
        env = _table(where, "env", entry.get("env"))
        cwd = None if entry.get("cwd") is None else text_of(where, "cwd", entry["cwd"])
        return McpServer.stdio(command, args, env=env, cwd=cwd, **options)
    if "url" not in entry:
        raise SettingsError(f'{where} needs a "command" or a "url"')
    url, headers = text_of(where, "url", entry["url"]), _table(where, "headers", entry.get("headers"))
    kind = entry.get("type", entry.get("transport", "http"))
    if kind == "sse":
        return McpServer.sse(url, headers=headers, **options)
    if kind not in _KINDS:
        raise SettingsError(f'{where}.type is {kind!r}; it can be "stdio", "http" or "sse"')
    if entry.get("auth") not in (None, "oauth"):
        raise SettingsError(f'{where}.auth is {entry["auth"]!r}; it can be "oauth"')
    return McpServer.http(url, headers=headers, auth=entry.get("auth"), **options)


def _flag(entry: Any, key: str) -> bool:
    return isinstance(entry, Mapping) and entry.get(key) is True


def text_of(where: str, key: str, value: Any) -> str:
    """Raises `SettingsError` for what is no text."""
    if not isinstance(value, str) or not value:
        raise SettingsError(f"{where}.{key} must be a text")
    return value


def texts_of(where: str, key: str, value: Any) -> list[str]:
    """Raises `SettingsError` for what is no list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SettingsError(f"{where}.{key} must be a list of texts")
    return value


def _table(where: str, key: str, value: Any) -> dict[str, str] | None:
    if value is not None and not (isinstance(value, dict) and all(isinstance(each, str) for each in value.values())):
        raise SettingsError(f"{where}.{key} must be an object of texts")
    return value


def seconds_of(where: str, key: str, value: Any) -> float:
    """Raises `SettingsError` for what is no number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise SettingsError(f"{where}.{key} must be a number of seconds above 0")
    return float(value)
