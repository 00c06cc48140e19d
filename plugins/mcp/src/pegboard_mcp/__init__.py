"""MCP both ways: the tools of MCP servers in a toolkit, and a toolkit as an MCP server."""

# Loading the plugin loads nothing of this: each name is imported on first use (PEP 562), and `mcp` itself
# by the first connection.

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import Command, Offer, hookimpl

if TYPE_CHECKING:
    from pegboard_mcp._auth.callers import Caller
    from pegboard_mcp._auth.oauth import OAuth
    from pegboard_mcp._client.server import McpServer
    from pegboard_mcp._server.questions import Answers
    from pegboard_mcp._server.resources import Resources
    from pegboard_mcp._server.serving import mcp_server, serve_mcp, serve_mcp_async
    from pegboard_mcp._settings import Settings, load_mcp_config, servers_named

__all__ = [
    "Answers",
    "Caller",
    "McpServer",
    "OAuth",
    "Resources",
    "Settings",
    "load_mcp_config",
    "mcp_server",
    "provide_commands",
    "provide_tools",
    "serve_mcp",
    "serve_mcp_async",
    "servers_named",
    "settings_type",
]

_HOMES = {
    "Answers": "_server.questions",
    "Caller": "_auth.callers",
    "McpServer": "_client.server",
    "OAuth": "_auth.oauth",
    "Resources": "_server.resources",
    "Settings": "_settings",
    "load_mcp_config": "_settings",
    "mcp_server": "_server.serving",
    "serve_mcp": "_server.serving",
    "serve_mcp_async": "_server.serving",
    "servers_named": "_settings",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


def _serve(arguments: list[str]) -> int:
    from pegboard_mcp._command.serve import run

    return run(arguments)


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    from pegboard_mcp._settings import Settings

    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Offer]:
    """The servers that the settings name. A program registers further servers itself."""
    from pegboard_mcp._settings import offers

    return list(offers(settings))


@hookimpl
def provide_commands() -> Iterable[Command]:
    """`pegboard serve`."""
    return [Command("serve", "Serve the board as an MCP server.", _serve)]
