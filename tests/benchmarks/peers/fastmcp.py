"""fastmcp: a tool by itself, and what its server does for a call, without the protocol."""

import json
from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import Tool

from tests.benchmarks.peers.harness import Carry, Function, Path, main


def narrow(function: Function) -> Carry:
    """Run the tool."""
    tool = Tool.from_function(function)

    async def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            await tool.run(json.loads(text))

    return carry


def agent(function: Function) -> Carry:
    """Call the server."""
    server = FastMCP("server")
    server.add_tool(Tool.from_function(function))

    async def carry(texts: tuple[str, ...]) -> None:
        for text in texts:
            await server.call_tool(function.__name__, json.loads(text))

    return carry


def schema(function: Function) -> Any:
    """JSON Schema of the parameters."""
    return Tool.from_function(function).parameters


if __name__ == "__main__":
    main("fastmcp", Path("Tool.run", narrow), Path("FastMCP.call_tool", agent), schema)
