"""Streams: tools that yield. Each yield is a chunk; the result is the returned value, else what was yielded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any

from pegboard._base.effects import cancellation
from pegboard._model.call import CancelToken, Emitter
from pegboard._model.content import Block, TextBlock

__all__ = ["drain", "drain_async", "joined"]


def drain(
    stream: Generator[Any, Any, Any], emitter: Emitter, token: CancelToken, yielded: list[Any] | None = None
) -> Any:
    """Draw a generator to its end, or until it is asked to stop; its return value, or what it yielded.

    What it yields is added to `yielded`, for whoever wants to know how far it came.
    """
    yielded = [] if yielded is None else yielded
    while True:
        if token.cancelled:
            stream.close()
            raise cancellation(token.reason)
        try:
            item = next(stream)
        except StopIteration as stop:
            return joined(yielded) if stop.value is None else stop.value
        yielded.append(item)
        if emitter.heard:
            emitter.emit(_chunk(item))


async def drain_async(stream: AsyncGenerator[Any, Any], emitter: Emitter, yielded: list[Any] | None = None) -> Any:
    """Draw an async generator to its end; what it yielded, as above. It is not drawn on while nobody takes that."""
    yielded = [] if yielded is None else yielded
    try:
        async for item in stream:
            yielded.append(item)
            if emitter.heard:
                emitter.emit(_chunk(item))
                await emitter.drain()
    finally:
        await stream.aclose()
    return joined(yielded)


def _chunk(item: Any) -> str | Block:
    return item if isinstance(item, str | Block) else _text(item)


def _text(item: Any) -> str:
    from pegboard._base.jsonable import dump_json, jsonable

    return dump_json(jsonable(item))


def joined(yielded: list[Any]) -> Any:
    """Texts joined, blocks appended; anything else stays a list."""
    if not yielded:
        return None
    if all(isinstance(item, str) for item in yielded):
        return "".join(yielded)
    if not all(isinstance(item, str | Block) for item in yielded):
        return yielded
    text = "".join(item for item in yielded if isinstance(item, str))
    blocks = [item for item in yielded if isinstance(item, Block)]
    return [TextBlock(text), *blocks] if text else blocks


def shown(value: Any) -> tuple[Block, ...]:
    """What was yielded, joined, as blocks for the model."""
    if isinstance(value, list) and all(isinstance(item, Block) for item in value):
        return tuple(value)
    return (TextBlock(value if isinstance(value, str) else _text(value)),)
