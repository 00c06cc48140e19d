"""Pegboard through the same harness: one call, and a batch as an agent hands one over."""

import inspect
from typing import Any

from pegboard import Tool, Toolkit
from tests.benchmarks.peers.harness import Carry, Function, Path, main


def narrow(function: Function) -> Carry:
    """Call the tool, from synchronous code if it is synchronous."""
    toolkit = Toolkit()
    toolkit.register(function)
    name = function.__name__
    if inspect.iscoroutinefunction(function):

        async def carry_async(texts: tuple[str, ...]) -> None:
            for text in texts:
                await toolkit.call(name, text)

        return carry_async

    def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            toolkit.call_sync(name, text)

    return carry


def agent(function: Function) -> Carry:
    """Carry out a batch."""
    toolkit = Toolkit()
    toolkit.register(function)
    name = function.__name__

    async def carry(texts: tuple[str, ...]) -> None:
        await toolkit.call_many([(name, text) for text in texts])

    return carry


def schema(function: Function) -> Any:
    """The definition of the tool."""
    return Tool.from_function(function).schema()


if __name__ == "__main__":
    main("pegboard", Path("Toolkit.call_sync, .call", narrow), Path("Toolkit.call_many", agent, turns=True), schema)
