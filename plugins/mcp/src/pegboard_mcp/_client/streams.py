"""Streams that are overheard: what is read from a server is looked at, and the end of it is noticed at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, final

__all__ = ["overheard"]


@asynccontextmanager
async def overheard(
    transport: AbstractAsyncContextManager[Any], heard: Callable[[Any], Any], ended: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The transport's streams. Every message is read as `heard(message)`; `ended()` is called after the last one.

    So a server that dies between two calls is noticed before the next one is sent.
    """
    async with transport as (read, write):
        yield _Overheard(read, heard, ended), write


@final
class _Overheard:
    """A stream to read from, with everything that it is besides."""

    def __init__(self, stream: Any, heard: Callable[[Any], Any], ended: Callable[[], None]) -> None:
        self._stream = stream
        self._heard = heard
        self._ended = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Overheard:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._heard(await self._stream.__anext__())
        except BaseException:  # whatever ends the reading ends the connection
            self._ended()
            raise

    async def receive(self) -> Any:
        try:
            return self._heard(await self._stream.receive())
        except BaseException:
            self._ended()
            raise

    async def __aenter__(self) -> _Overheard:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        self._ended()
        return await self._stream.__aexit__(*failure)
