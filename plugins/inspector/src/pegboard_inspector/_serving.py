"""Serving: the page on this machine, until a signal comes."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final

import uvicorn

from pegboard import PegboardError, Toolkit
from pegboard_inspector._desk import Desk
from pegboard_inspector._guard import Guard
from pegboard_inspector._routes import application

__all__ = ["serve", "serve_async"]

HOST: Final = "127.0.0.1"


def serve(toolkit: Toolkit | Callable[[], Toolkit], port: int, *, target: str | None = None) -> None:
    """Serve the page until a signal ends it. Raises `PegboardError` for a port that is taken.

    `toolkit` is one, or what makes one. `target` is how a command line names it, None for the installed board.
    """
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_async(toolkit, port, target=target))


async def serve_async(
    toolkit: Toolkit | Callable[[], Toolkit],
    port: int,
    *,
    target: str | None = None,
    announce: Callable[[str], object] = lambda url: print(url, flush=True),  # noqa: T201 - the address is the output
    ended: asyncio.Event | None = None,
) -> None:
    """`serve` for coroutines: `announce(url)` is told the address, and it ends when `ended` is set."""
    end = asyncio.Event() if ended is None else ended
    with closing(_bound(port)) as listening:
        desk = Desk(toolkit, target)
        guard = Guard(application(desk), listening.getsockname()[1])
        config = uvicorn.Config(guard, log_level="warning", timeout_graceful_shutdown=2, lifespan="off", ws="none")
        server = _Server(config)
        with _signals(end.set):
            served = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                announce(f"http://{HOST}:{listening.getsockname()[1]}/?token={guard.token}")
                await asyncio.wait([served, asyncio.create_task(end.wait())], return_when=asyncio.FIRST_COMPLETED)
            finally:
                desk.close()  # which ends the streams that would keep the server from ending
                server.should_exit = True
                await served


class _Server(uvicorn.Server):
    """Signals are ours: uvicorn would raise them again when it is done."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bound(port: int) -> socket.socket:
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise PegboardError(f"cannot serve at {HOST}:{port}: {getattr(error, 'strerror', None) or error}") from error
    # An answer in two parts would wait for the client's delayed acknowledgement, 40 ms; connections inherit this.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


@contextmanager
def _signals(stop: Callable[[], object]) -> Iterator[None]:
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
