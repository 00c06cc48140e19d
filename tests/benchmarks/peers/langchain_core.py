"""langchain-core: a tool invoked with arguments, and with a tool call as the tool nodes of its agents do."""

import inspect
import json
from typing import Any

from langchain_core.tools import StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from tests.benchmarks.peers.harness import Carry, Function, Path, main


def made(function: Function) -> StructuredTool:
    """The tool of a function."""
    made = tool(function)
    assert isinstance(made, StructuredTool)
    return made


def invoked(function: Function, read: Any) -> Carry:
    """Invoke the tool with what `read` makes of a text, asynchronously if the function is asynchronous."""
    tool = made(function)

    def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            tool.invoke(read(text))

    async def carry_async(texts: tuple[str, ...]) -> None:
        for text in texts:
            await tool.ainvoke(read(text))

    return carry_async if inspect.iscoroutinefunction(function) else carry


def narrow(function: Function) -> Carry:
    """Invoke the tool with arguments."""
    return invoked(function, json.loads)


def agent(function: Function) -> Carry:
    """Invoke the tool with a tool call, which gives a ToolMessage."""
    name = function.__name__
    return invoked(function, lambda text: {"type": "tool_call", "id": "1", "name": name, "args": json.loads(text)})


def schema(function: Function) -> Any:
    """What a chat model is given of a tool."""
    return convert_to_openai_tool(made(function))


if __name__ == "__main__":
    main("langchain-core", Path("tool.invoke(arguments)", narrow), Path("tool.invoke(tool call)", agent), schema)
