"""Progress: how far a tool has come reaches its listener, as a chunk with numbers and a text, wherever it runs."""

import asyncio
from typing import Any

import pytest

from pegboard import Chunk, Emitter, ToolCall, Toolkit, ToolResult


def work(n: int, emitter: Emitter) -> str:
    """Work."""
    for done in range(1, n + 1):
        emitter.progress(done, n, f"part {done}")
    emitter.progress(n + 0.5)
    emitter.emit("nearly")
    return "done"


WANTED = [((1, 2), "part 1"), ((2, 2), "part 2"), ((2.5, None), ""), (None, "nearly")]


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_reaches_a_listener(on_a_loop: bool) -> None:
    chunks: list[Chunk] = []
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(work)
        if on_a_loop:
            result = asyncio.run(toolkit.call("work", {"n": 2}, on_chunk=chunks.append))
        else:
            result = toolkit.call_sync("work", {"n": 2}, on_chunk=chunks.append)
    assert [(chunk.progress, chunk.text) for chunk in chunks] == WANTED
    assert (chunks[0].progress and (chunks[0].progress.done, chunks[0].progress.total)) == (1, 2)
    assert result.text == "done"  # never the model


def test_streams() -> None:
    async def main(toolkit: Toolkit) -> list[Any]:
        return [event async for event in toolkit.stream([("work", {"n": 2})])]

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(work)
        *chunks, result = asyncio.run(main(toolkit))
    assert [(chunk.progress, chunk.text) for chunk in chunks] == WANTED
    assert isinstance(result, ToolResult)


def test_without_a_listener() -> None:
    toolkit = Toolkit(plugins=())
    toolkit.register(work)
    assert toolkit.call_sync("work", {"n": 2}).text == "done"
    ToolCall("1", "by_hand", {}).emitter.progress(1, 2)
