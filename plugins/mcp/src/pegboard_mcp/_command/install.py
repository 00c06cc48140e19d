"""Installing: the entry of this server in the configuration of a client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pegboard import PegboardError
from pegboard.inspection import write_file
from pegboard_mcp._auth.guard import parse_address

__all__ = ["CLIENTS", "entry", "shown", "written"]

CLIENTS: Final = ("claude", "cursor", "vscode")
_CARRIED: Final = ("PEGBOARD_CONFIG", "PEGBOARD_PLUGINS")
"""Variables that say which packs and settings are used. Variables with secrets are not copied."""


def entry(client: str, arguments: list[str], *, http: str | None, imports_from: str | None) -> dict[str, Any]:
    """The entry by which a client starts or reaches the server. Raises `PegboardError` for a client that cannot."""
    if http is not None:
        if client == "claude":
            raise PegboardError("claude starts its servers itself; leave out --http")
        if parse_address(http)[1] == 0:
            raise PegboardError("port 0 is another one each time; name the one that is served")
        url = f"http://{http}/mcp"
        return {"type": "http", "url": url} if client == "vscode" else {"url": url}
    script = Path(sys.executable).with_name("pegboard.exe" if os.name == "nt" else "pegboard")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "pegboard_cli"]
    environment = {name: os.environ[name] for name in _CARRIED if name in os.environ}
    if imports_from is not None:
        environment["PYTHONPATH"] = imports_from
    kind = {"type": "stdio"} if client == "vscode" else {}
    found: dict[str, Any] = {**kind, "command": command[0], "args": [*command[1:], "serve", *arguments]}
    return {**found, "env": environment} if environment else found


def shown(client: str, name: str, value: Mapping[str, Any]) -> str:
    """The entry as JSON text, in the form of the client's file."""
    return json.dumps({_section(client): {name: value}}, indent=2, ensure_ascii=False)


def written(client: str, name: str, value: Mapping[str, Any]) -> Path:
    """Add the entry to the client's file, and return the path. All other entries stay.

    Raises `PegboardError` for a file that cannot be read; the file is not changed.
    """
    path = _file(client)
    content: Any = {}
    if path.exists():
        try:
            content = json.loads(path.read_text("utf-8") or "{}")
        except ValueError as error:
            raise PegboardError(f"{path} is no JSON, and is left as it is: {error}") from error
    section = content.setdefault(_section(client), {}) if isinstance(content, dict) else None
    if not isinstance(section, dict):
        raise PegboardError(f"{path} has no object {_section(client)!r}, and is left as it is")
    section[name] = value
    write_file(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n", "the entry")
    return path


def _section(client: str) -> str:
    return "servers" if client == "vscode" else "mcpServers"


def _file(client: str) -> Path:
    home = Path.home()
    if client == "cursor":
        return home / ".cursor" / "mcp.json"
    if client == "vscode":
        return Path.cwd() / ".vscode" / "mcp.json"
    if sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("APPDATA", home))
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))
    return base / "Claude" / "claude_desktop_config.json"
