"""The same tool, served by us or by the SDK alone: `ours|bare stdio|http`. Run as a script."""

import asyncio
import socket
import sys

from mcp.server import MCPServer

from pegboard import Toolkit, tool
from pegboard_mcp import serve_mcp


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def ours(how: str) -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(tool(read_only=True)(add))
        serve_mcp(toolkit, http=None if how == "stdio" else "127.0.0.1:0")


def bare(how: str) -> None:
    import uvicorn

    server = MCPServer("bare")
    server.tool()(add)
    if how == "stdio":
        server.run()
        return
    # With its protocol named, so that asyncio sends answers at once.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    sys.stderr.write(f"serving http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    {"ours": ours, "bare": bare}[sys.argv[1]](sys.argv[2])
