"""MCP both ways: the tools of MCP servers on the board, and the board as an MCP server.

Importing this loads nothing of `mcp`; the first connection does.
"""

from __future__ import annotations

from collections.abc import Iterable

from pegboard import Command, hookimpl
from pegboard_mcp._command import run
from pegboard_mcp._config import load_mcp_config
from pegboard_mcp._server import McpServer
from pegboard_mcp._serving import mcp_server, serve_mcp, serve_mcp_async

__all__ = ["McpServer", "load_mcp_config", "mcp_server", "provide_commands", "serve_mcp", "serve_mcp_async"]


@hookimpl
def provide_commands() -> Iterable[Command]:
    """`pegboard serve`."""
    return [Command("serve", "Serve the board as an MCP server.", run)]
