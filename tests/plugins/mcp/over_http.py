"""A board over HTTP: in this process, for tests that look at its toolkit, or in one of its own."""

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from pegboard import Toolkit
from pegboard_mcp import serve_mcp_async
from tests.support.waiting import PATIENCE

__all__ = ["serving", "started"]


@asynccontextmanager
async def serving(toolkit: Toolkit, **options: Any) -> AsyncIterator[str]:
    """The URL of a server that ends with the context."""
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def heard(message: str) -> None:
        url = re.search(r"http://\S+/mcp", message)
        if url is not None and not found.done():
            found.set_result(url.group())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegboard_mcp._server.serving.say", heard)
        task = asyncio.create_task(serve_mcp_async(toolkit, http="127.0.0.1:0", **options))
        awaited: list[asyncio.Future[Any]] = [task, found]
        await asyncio.wait(awaited, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
    try:
        yield await found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process of a server and its URL, which it says on standard error; it is killed with the context."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        yield process, found.group()
    finally:
        process.kill()
        process.communicate()
