"""Reading the HTTP response of a server within bounds: the server may be hostile, or broken."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import httpx2

from pegboard_net import BodyError, body_of, pieces_of

__all__ = ["HEADERS", "LONGEST_LINE", "beginning", "lines", "whole"]

HEADERS: Final = {"Accept-Encoding": "identity"}
"""No compressed response is read: a small body could become a large one."""
LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one event, or of a response that comes at once; a toolkit reads as many characters of arguments."""
LONGEST_STREAM: Final = 128 * 1024 * 1024
"""Bytes of a whole stream: some hundred bytes for each token of the longest answers."""
LONGEST_ERROR: Final = 128 * 1024
"""Bytes of an error, more than are searched for the key: the end, which may cut the key, is never shown."""


async def lines(response: httpx2.Response) -> AsyncGenerator[list[str], None]:
    """The lines of a stream of events, in batches as they come. Raises `BodyError`."""
    begun = bytearray()  # a line whose end has not come
    async with aclosing(pieces_of(response, LONGEST_STREAM)) as pieces:
        async for piece in pieces:
            ended, newline, rest = piece.rpartition(b"\n")
            if newline:
                # Streams of events are UTF-8, whatever the header is.
                yield (bytes(begun) + ended).decode("utf-8", "replace").split("\n")
                begun.clear()
            begun += rest
            if len(begun) > LONGEST_LINE:
                raise BodyError(f"a line of more than {LONGEST_LINE:,} bytes")
    if begun:
        yield [begun.decode("utf-8", "replace")]


async def whole(response: httpx2.Response) -> str:
    """The text of a response that comes at once. Raises `BodyError`."""
    return (await body_of(response, LONGEST_LINE)).decode("utf-8", "replace")


async def beginning(response: httpx2.Response) -> str:
    """The beginning of an error's text, longer than the part that is shown; an encoded body is not read."""
    text = bytearray()
    try:
        async with aclosing(pieces_of(response, LONGEST_STREAM)) as pieces:
            async for piece in pieces:
                text += piece
                if len(text) >= LONGEST_ERROR:
                    break
    except BodyError as error:
        return f"(the server sent {error})"
    return text[:LONGEST_ERROR].decode("utf-8", "replace")
