"""Other people's MCP servers and clients, and the public conformance suite."""

import functools
import shutil
from pathlib import Path

from tests.support.peers import environment, node, node_modules

__all__ = ["INSPECTOR", "beside_node_clients", "node", "node_peer", "python_client", "python_peer"]

PYTHON = ("mcp-server-git==2026.10.*", "mcp-server-time==2026.10.*")
CLIENTS = {
    "sdk1": ("mcp==1.30.*", "langchain-mcp-adapters==0.3.*"),
    "fastmcp": ("fastmcp==4.1.*", "pydantic-ai-slim[mcp]==2.68.*", "openai-agents==0.24.*"),
}
"""Environments of clients in Python, by the release of the SDK that they stand on."""
INSPECTOR = ("inspector", "clients/cli/build/index.js")
NODE_CLIENTS = ("@modelcontextprotocol/client@2.4.0", "@modelcontextprotocol/sdk@1.32.2")
NODE = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
)


@functools.cache
def python_peer(name: str) -> str:
    """The command of a peer in Python."""
    return str(environment("venv", "bin/mcp-server-time", *PYTHON) / "bin" / name)


@functools.cache
def node_peer(package: str, script: str) -> str:
    """The path of a peer's script."""
    modules = node_modules("node", "@modelcontextprotocol/inspector/clients", *NODE)
    return str(modules / "@modelcontextprotocol" / package / script)


@functools.cache
def python_client(name: str) -> str:
    """The interpreter of an environment with another release of the SDK, and what stands on it."""
    return str(environment(f"clients-{name}", "bin/mcp", *CLIENTS[name]) / "bin" / "python")


@functools.cache
def beside_node_clients(script: Path) -> str:
    """A script where Node finds the clients in TypeScript."""
    modules = node_modules("node-clients", "@modelcontextprotocol/client", *NODE_CLIENTS)
    return shutil.copy(str(script), str(modules.parent))
