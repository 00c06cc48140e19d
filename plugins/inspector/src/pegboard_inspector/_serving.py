"""Serving: the page on this machine, until a signal comes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from types import FrameType
from typing import Final

import uvicorn

from pegboard import PegboardError, Toolkit
from pegboard_inspector._desk import Desk
from pegboard_inspector._guard import Guard
from pegboard_inspector._routes import application

__all__ = ["serve", "serve_async"]

HOST: Final = "127.0.0.1"


def serve(
    toolkit: Toolkit | Callable[[], Toolkit], port: int, *, target: str | None = None, title: str | None = None
) -> None:
    """Serve the page until a signal ends it. Raises `PegboardError` for a port that is taken.

    `toolkit` is one, or what makes one. `target` is how a command line names it, None for the installed board; `title`
    is what the page calls one that no command line names.
    """
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_async(toolkit, port, target=target, title=title))


async def serve_async(
    toolkit: Toolkit | Callable[[], Toolkit],
    port: int,
    *,
    target: str | None = None,
    title: str | None = None,
    announce: Callable[[str], object] = lambda url: print(url, flush=True),  # noqa: T201 - the address is the output
    ended: asyncio.Event | None = None,
) -> None:
    """`serve` for coroutines: `announce(url)` is told the address, and it ends when `ended` is set."""
    end = asyncio.Event() if ended is None else ended
    with closing(_bound(port)) as listening:
        desk = Desk(toolkit, target, title)
        guard = Guard(application(desk), listening.getsockname()[1])
        config = uvicorn.Config(guard, log_level="warning", timeout_graceful_shutdown=2, lifespan="off", ws="none")
        server = _Server(config, end)
        with server.capture_signals():  # here too, for the address is announced before it serves
            served = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                announce(f"http://{HOST}:{listening.getsockname()[1]}/?token={guard.token}")
                await asyncio.wait([served, asyncio.create_task(end.wait())], return_when=asyncio.FIRST_COMPLETED)
            finally:
                desk.close()  # which ends the streams that would keep the server from ending
                server.should_exit = True
                await served


class _Server(uvicorn.Server):
    """A server whose signals set `end`; uvicorn's own would raise them again when it is done."""

    def __init__(self, config: uvicorn.Config, end: asyncio.Event) -> None:
        super().__init__(config)
        self._end = partial(asyncio.get_running_loop().call_soon_threadsafe, end.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._end()  # the handler may have interrupted the loop itself


def _bound(port: int) -> socket.socket:
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise PegboardError(f"cannot serve at {HOST}:{port}: {getattr(error, 'strerror', None) or error}") from error
    # An answer in two parts would wait for the client's delayed acknowledgement, 40 ms; connections inherit this.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
