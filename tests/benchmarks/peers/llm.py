"""llm: a response that executes a tool call, and a chain of a conversation with a scripted model."""

import inspect
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import llm

from tests.benchmarks.peers.harness import Carry, Function, Path, main


class Scripted(llm.Model):
    """Asks for calls, then stops."""

    model_id = "scripted"
    supports_tools = True
    texts: tuple[str, ...] = ()

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any = None) -> Iterator[str]:
        """Say the next turn."""
        yield said(prompt, response, self.texts)


class AsyncScripted(llm.AsyncModel):
    """The same for asynchronous tools."""

    model_id = "scripted"
    supports_tools = True
    texts: tuple[str, ...] = ()

    async def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any = None) -> AsyncIterator[str]:
        """Say the next turn."""
        yield said(prompt, response, self.texts)


def said(prompt: Any, response: Any, texts: tuple[str, ...]) -> str:
    """Ask for the calls if none has been made."""
    if not prompt.tool_results:
        for n, text in enumerate(texts):
            response.add_tool_call(llm.ToolCall(prompt.tools[0].name, json.loads(text), f"call_{n}"))
    return "done"


async def narrow(function: Function) -> Carry:
    """Execute a call with the tools of a response."""
    tool = llm.Tool.function(function)
    if inspect.iscoroutinefunction(function):
        later = AsyncScripted().prompt("go", tools=[tool])
        await later.text()

        async def carry_async(texts: tuple[str, ...]) -> None:
            for text in texts:
                await later.execute_tool_call(llm.ToolCall(tool.name, json.loads(text), "call"))

        return carry_async
    response = Scripted().prompt("go", tools=[tool])
    response.text()

    def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            response.execute_tool_call(llm.ToolCall(tool.name, json.loads(text), "call"))

    return carry


def agent(function: Function) -> Carry:
    """Run a chain."""
    tool = llm.Tool.function(function)

    async def carry_async(texts: tuple[str, ...]) -> None:
        model = AsyncScripted()
        model.texts = texts
        await model.chain("go", tools=[tool]).text()

    def carry(texts: tuple[str, ...]) -> None:
        model = Scripted()
        model.texts = texts
        model.chain("go", tools=[tool]).text()

    return carry_async if inspect.iscoroutinefunction(function) else carry


def schema(function: Function) -> Any:
    """JSON Schema of the parameters."""
    return llm.Tool.function(function).input_schema


if __name__ == "__main__":
    main("llm", Path("Response.execute_tool_call", narrow), Path("Model.chain", agent, turns=True), schema)
