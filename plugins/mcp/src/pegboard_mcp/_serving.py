"""Serving: a toolkit over stdio or HTTP, until the client goes or a signal comes."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from pegboard import PegboardError, Toolkit
from pegboard_mcp._board_server import BoardServer
from pegboard_mcp._guard import Bearer, check_address, parse_address, security
from pegboard_mcp._say import say
from pegboard_mcp._selection import select
from pegboard_mcp._stdin import endable_stdin

__all__ = ["mcp_server", "serve_mcp", "serve_mcp_async"]


def mcp_server(
    toolkit: Toolkit,
    *,
    tools: Iterable[str] | None = None,
    groups: Iterable[str] | None = None,
    all_tools: bool = False,
    name: str = "pegboard",
    instructions: str | None = None,
) -> Any:
    """The SDK's low-level server over a toolkit, for transports and tests of one's own; options as in `serve_mcp`."""
    return BoardServer(select(toolkit, tools, groups, all_tools), name=name, instructions=instructions).server


def serve_mcp(
    toolkit: Toolkit,
    *,
    http: str | None = None,
    tools: Iterable[str] | None = None,
    groups: Iterable[str] | None = None,
    all_tools: bool = False,
    token: str | None = None,
    name: str = "pegboard",
    instructions: str | None = None,
) -> None:
    """Serve the toolkit's tools over stdin and stdout, or at `http="HOST:PORT"`, until the client or a signal ends it.

    Served are the tools that say `read_only=True`; or `tools` by name or pattern and those of `groups`; or with
    `all_tools` all that are offered. `token` is what clients must send as a bearer token over HTTP; without one only
    this machine's own addresses are served. Raises `PegboardError` for an address that is refused or taken, and
    `UnknownNameError` for a tool or a group that is not there.
    """
    asyncio.run(
        serve_mcp_async(
            toolkit,
            http=http,
            tools=tools,
            groups=groups,
            all_tools=all_tools,
            token=token,
            name=name,
            instructions=instructions,
        )
    )


async def serve_mcp_async(
    toolkit: Toolkit,
    *,
    http: str | None = None,
    tools: Iterable[str] | None = None,
    groups: Iterable[str] | None = None,
    all_tools: bool = False,
    token: str | None = None,
    name: str = "pegboard",
    instructions: str | None = None,
) -> None:
    """`serve_mcp` for coroutines; cancelling it ends the server."""
    token = (token or "").strip()  # of blanks alone it would look like one, and be none
    address = None if http is None else parse_address(http)
    if address is not None:
        check_address(address[0], token)
    board = BoardServer(select(toolkit, tools, groups, all_tools), name=name, instructions=instructions)
    async with board.watching():
        if address is None:
            await _serve_stdio(board)
        else:
            await _serve_http(board, *address, token)


async def _serve_stdio(board: BoardServer) -> None:
    from mcp.server.stdio import stdio_server

    with endable_stdin() as end:
        async with _signals(end), stdio_server() as (read, write):
            await board.run(read, write)


async def _serve_http(board: BoardServer, host: str, port: int, token: str | None) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        """Signals are ours: uvicorn would raise them again when it is done."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    listening = _bound(host, port)
    actual = listening.getsockname()[1]
    app: Any = board.server.streamable_http_app(host=host, transport_security=security(host, actual))
    if token:
        app = Bearer(app, token)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2, lifespan="on", ws="none")
    server = Server(config)
    shown = f"[{host}]" if ":" in host else host
    say(f"serving MCP at http://{shown}:{actual}/mcp")

    def stop() -> None:
        server.should_exit = True

    async with _signals(stop):
        await server.serve(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise PegboardError(f"cannot serve at {host}:{port}: {error.strerror or error}") from error


@asynccontextmanager
async def _signals(stop: Callable[[], Any]) -> AsyncIterator[None]:
    """`stop()` on SIGINT and SIGTERM, where signals can be had: in the main thread of a POSIX system."""
    loop = asyncio.get_running_loop()
    caught = []
    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(each, stop)
            caught.append(each)
    try:
        yield
    finally:
        for each in caught:
            loop.remove_signal_handler(each)
