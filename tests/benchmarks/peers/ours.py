"""Pegboard through the same harness: one call, and a run of its agent."""

import inspect
import json
from collections.abc import AsyncIterator
from typing import Any

from pegboard import Tool, Toolkit
from pegboard_agent import Agent
from tests.benchmarks.peers.harness import Carry, Function, Path, main


def narrow(function: Function) -> Carry:
    """Validate the text and call the function."""
    plan = Tool.from_function(function).plan
    accept, invoke, loads = plan.accept, plan.invoke, json.loads
    if inspect.iscoroutinefunction(function):

        async def carry_async(texts: tuple[str, ...]) -> None:
            for text in texts:
                await invoke(accept(loads(text), text.count(":"), text), {})

        return carry_async

    def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            invoke(accept(loads(text), text.count(":"), text), {})

    return carry


def call(function: Function) -> Carry:
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


class Scripted:
    """A model that asks for the calls of these texts, and then says that it is done."""

    def __init__(self, name: str, texts: tuple[str, ...]) -> None:
        functions = [{"name": name, "arguments": text} for text in texts]
        self.calls = [{"id": f"call_{n}", "type": "function", "function": each} for n, each in enumerate(functions)]

    async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
        """Whole completions."""
        said = {"content": "done"} if len(messages) > 1 else {"content": None, "tool_calls": self.calls}
        yield {"choices": [{"message": said, "finish_reason": "stop"}]}


def agent(function: Function) -> Carry:
    """Run the agent."""
    toolkit = Toolkit()
    toolkit.register(function)

    async def carry(texts: tuple[str, ...]) -> None:
        await Agent("Assistant", Scripted(function.__name__, texts), toolkit).call("go")

    return carry


def schema(function: Function) -> Any:
    """The definition of the tool."""
    return Tool.from_function(function).schema()


if __name__ == "__main__":
    main(
        "pegboard",
        Path("Tool.plan: accept, then invoke", narrow),
        Path("Agent.call", agent, turns=True),
        schema,
        Path("Toolkit.call_sync, .call", call),
    )
