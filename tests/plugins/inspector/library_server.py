"""An MCP server with everything: `python library_server.py` serves over stdin and stdout, `... http` over HTTP."""

import asyncio
import socket
import sys
import warnings
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("library")


@server.tool()
async def lend(book: str, context: Context) -> str:
    """Lend a book."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logging is to leave the protocol
        await context.debug(f"looking for {book}")
        await context.error(f"{book} is lent", logger_name="shelf")
    sys.stderr.write(f"lent {book}\n")
    sys.stderr.flush()
    return f"{book} is yours"


@server.resource("book://dune", name="dune", title="Dune", description="A book about <b>sand</b>.")
def dune() -> str:
    return "A beginning is a very delicate time."


@server.resource("book://cover", name="cover", mime_type="image/png")
def cover() -> bytes:
    return bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf00000301010018dd8db0"
        "0000000049454e44ae426082"
    )


@server.resource("book://missing", name="missing")
def missing() -> str:
    raise ValueError("it was never returned")


@server.resource("shelf://{number}", name="shelf", description="A shelf by its number.")
def shelf(number: str) -> str:
    return f"Shelf {number} is full."


@server.prompt(title="Recommend a book")
def recommend(topic: str, mood: str = "calm") -> list[Any]:
    """Ask for a book."""
    return [f"Which book about {topic} fits a {mood} evening?"]


def http() -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    sys.stderr.write("the library opens\n")
    sys.stderr.flush()
    http() if sys.argv[1:] else server.run()
