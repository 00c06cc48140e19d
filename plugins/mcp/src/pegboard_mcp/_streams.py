"""Streams that say when they end: a server that dies between two calls is noticed before the next one is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, final

__all__ = ["noticing_the_end"]


@asynccontextmanager
async def noticing_the_end(
    transport: AbstractAsyncContextManager[Any], ended: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The transport's streams; `ended` is called when nothing more can be read."""
    async with transport as (read, write):
        yield _Noticing(read, ended), write


@final
class _Noticing:
    """A stream to read from, with everything that it is besides."""

    def __init__(self, stream: Any, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._ended = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Noticing:
        return self

    async def __anext__(self) -> Any:
        return await self._next(self._stream.__anext__)

    async def receive(self) -> Any:
        return await self._next(self._stream.receive)

    async def _next(self, read: Callable[[], Any]) -> Any:
        try:
            return await read()
        except BaseException:  # whatever ends the reading ends the connection
            self._ended()
            raise

    async def __aenter__(self) -> _Noticing:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        self._ended()
        return await self._stream.__aexit__(*failure)
