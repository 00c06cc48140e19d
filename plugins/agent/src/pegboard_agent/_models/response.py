"""What a server answers over HTTP, read within bounds: it may be hostile, or broken."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import httpx2

from pegboard_net import BodyError, body_of, pieces_of

__all__ = ["HEADERS", "LONGEST_LINE", "beginning", "lines", "whole"]

HEADERS: Final = {"Accept-Encoding": "identity"}
"""Compressed, a small body may be a large one: no response is taken that is."""
LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one event, or of a response that comes at once; a toolkit reads arguments of as many characters."""
LONGEST_STREAM: Final = 128 * 1024 * 1024
"""Bytes of a whole stream: some hundred for each token of the longest answers."""
LONGEST_ERROR: Final = 128 * 1024
"""More than is searched for the key: what ends here, maybe in the middle of it, is never shown."""


async def lines(response: httpx2.Response) -> AsyncGenerator[list[str], None]:
    """The lines of a stream of events, those that come at once together. Raises `BodyError`."""
    begun = bytearray()  # a line whose end has not come
    async with aclosing(pieces_of(response, LONGEST_STREAM)) as pieces:
        async for piece in pieces:
            ended, newline, rest = piece.rpartition(b"\n")
            if newline:
                # Streams of events are UTF-8, whatever the server says.
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
    """As much of an error's text as is ever shown, and more; what is encoded is not read."""
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
