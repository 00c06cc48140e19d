"""Servers that a person names in one text: by a command, a URL or an `mcpServers` file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePath
from typing import Final

from pegboard import PegboardError
from pegboard_mcp._client.server import McpServer
from pegboard_mcp._settings import load_mcp_config

__all__ = ["servers_named"]

_RUNNERS: Final = frozenset({"bunx", "node", "npx", "python", "python3", "uvx"})


def servers_named(target: str) -> dict[str, McpServer]:
    """The servers that `target` names, by their names; nothing is connected yet.

    It is a URL (`https://host/mcp`), a file of the form `mcpServers`, or a command with its arguments, written as for a
    shell (`"npx -y some-server"`). Raises `PegboardError` for what is none of these.
    """
    try:
        if target.lower().startswith(("http://", "https://")):
            server = McpServer.http(target)
        elif target.endswith(".json") and " " not in target:
            return load_mcp_config(Path(target).expanduser())
        else:
            command, *arguments = shlex.split(target)
            server = McpServer.stdio(command, arguments, name=_name(command, arguments))
    except ValueError:  # it may hold a password
        raise PegboardError("an MCP server is named by COMMAND ..., by URL, or by a FILE.json of mcpServers") from None
    return {server.name: server}


def _name(command: str, arguments: list[str]) -> str:
    """What a server is called: its command, or what that runs."""
    own = PurePath(command).name
    what = next((each for each in arguments if not each.startswith("-")), "") if own in _RUNNERS else ""
    # `some-server` of `npx -y @scope/some-server@1.2`.
    found = PurePath(what).name.partition("@")[0].removesuffix(".py").removesuffix(".js")
    return found if re.fullmatch(r"[\w.-]+", found) else own
