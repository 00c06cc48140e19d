"""Calls the cases with a client in Python: `CLIENT MODE TARGET...`, cases on stdin and answers on stdout, as JSON.

Each client stands in an environment of its own, so its modules are loaded by name: they are not there, or other
releases, where types are checked.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, TypeAlias

Call: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Any]]
Opened: TypeAlias = AsyncIterator[tuple[list[Any], Call]]


def filled(schema: dict[str, Any]) -> dict[str, str]:
    """What a human says to a form."""
    return dict.fromkeys(schema.get("properties", {}), "Ada")


@asynccontextmanager
async def sdk1(mode: str, *target: str) -> Opened:
    mcp, types = import_module("mcp"), import_module("mcp.types")

    async def answer(context: Any, parameters: Any) -> Any:
        return types.ElicitResult(action="accept", content=filled(parameters.requestedSchema))

    opened: Any
    if target[0].startswith("http"):
        opened = import_module("mcp.client.streamable_http").streamablehttp_client(target[0])
    else:
        opened = mcp.stdio_client(mcp.StdioServerParameters(command=target[0], args=list(target[1:])))
    async with opened as streams, mcp.ClientSession(*streams[:2], elicitation_callback=answer) as client:
        await client.initialize()
        yield (await client.list_tools()).tools, client.call_tool


@asynccontextmanager
async def sdk2(mode: str, *target: str) -> Opened:
    mcp, types = import_module("mcp"), import_module("mcp_types")

    async def answer(context: Any, parameters: Any) -> Any:
        return types.ElicitResult(action="accept", content=filled(parameters.requested_schema))

    opened: Any
    if target[0].startswith("http"):
        http = import_module("mcp.client.streamable_http")
        opened = http.streamable_http_client(target[0], max_sse_event_size=None)
    else:
        opened = mcp.stdio_client(mcp.StdioServerParameters(command=target[0], args=list(target[1:])))
    async with mcp.Client(opened, mode=mode, elicitation_callback=answer) as client:
        yield (await client.list_tools()).tools, client.call_tool


def fastmcp_client(mode: str, *target: str) -> Any:
    transports = import_module("fastmcp.client.transports")

    async def answer(message: str, response_type: Any, parameters: Any, context: Any) -> Any:
        return filled(parameters.requested_schema)

    opened: Any
    if target[0].startswith("http"):
        opened = transports.StreamableHttpTransport(target[0])
    else:
        opened = transports.StdioTransport(target[0], list(target[1:]))
    return import_module("fastmcp").Client(opened, mode=mode, elicitation_handler=answer)


@asynccontextmanager
async def fastmcp(mode: str, *target: str) -> Opened:
    async with fastmcp_client(mode, *target) as client:

        async def call(name: str, arguments: dict[str, Any]) -> Any:
            return await client.call_tool(name, arguments, raise_on_error=False)

        yield await client.list_tools(), call


# Of a framework counts what its client reads, and that nothing is raised when it makes something of it for the model.


class Heard:
    """Wraps a way to call tools: `last` is what the client read."""

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call
        self.last: Any = None

    async def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.last = await self._call(*arguments, **options)
        return self.last


@asynccontextmanager
async def pydantic_ai(mode: str, *target: str) -> Opened:
    retry = import_module("pydantic_ai").ModelRetry
    client = fastmcp_client(mode, *target)
    toolset = import_module("pydantic_ai.mcp").MCPToolset(client)
    client.call_tool = heard = Heard(client.call_tool)

    async def call(name: str, arguments: dict[str, Any]) -> Any:
        heard.last = None
        try:
            await toolset.direct_call_tool(name, arguments)
        except retry:  # so a model is told of an error
            if heard.last is None or not heard.last.is_error:
                raise
        return heard.last

    async with toolset:
        yield await toolset.list_tools(), call


@asynccontextmanager
async def openai_agents(mode: str, *target: str) -> Opened:
    agents, servers = import_module("agents"), import_module("agents.mcp")
    options: dict[str, Any] = {"use_structured_content": True, "client_session_timeout_seconds": 60}
    if target[0].startswith("http"):
        server = servers.MCPServerStreamableHttp({"url": target[0]}, **options)
    else:
        server = servers.MCPServerStdio({"command": target[0], "args": list(target[1:])}, **options)
    async with server:
        tools = {tool.name: tool for tool in await server.list_tools()}
        server.call_tool = heard = Heard(server.call_tool)

        async def call(name: str, arguments: dict[str, Any]) -> Any:
            context = agents.RunContextWrapper(None)
            await servers.MCPUtil.invoke_mcp_tool(server, tools[name], context, json.dumps(arguments))
            return heard.last

        yield list(tools.values()), call


@asynccontextmanager
async def langchain(mode: str, *target: str) -> Opened:
    client = import_module("langchain_mcp_adapters.client")
    types = import_module("mcp.types")
    heard: list[Any] = []

    async def answer(context: Any, parameters: Any, more: Any) -> Any:
        return types.ElicitResult(action="accept", content=filled(parameters.requestedSchema))

    async def hear(request: Any, handler: Any) -> Any:
        heard.append(await handler(request))
        return heard[-1]

    reached: dict[str, Any] = {"transport": "stdio", "command": target[0], "args": list(target[1:])}
    if target[0].startswith("http"):
        reached = {"transport": "streamable_http", "url": target[0]}
    callbacks = import_module("langchain_mcp_adapters.callbacks").Callbacks(on_elicitation=answer)
    async with client.MultiServerMCPClient({"board": reached}, callbacks=callbacks).session("board") as session:
        load = import_module("langchain_mcp_adapters.tools").load_mcp_tools
        tools = {tool.name: tool for tool in await load(session, tool_interceptors=[hear], callbacks=callbacks)}

        async def call(name: str, arguments: dict[str, Any]) -> Any:
            await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
            return heard[-1]

        yield (await session.list_tools()).tools, call


def plain(value: Any) -> Any:
    """A result or a tool as it came over the wire."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    content = [plain(each) for each in value.content]
    return {"content": content, "structuredContent": value.structured_content, "isError": value.is_error}


async def main(client: str, mode: str, *target: str) -> None:
    cases, found = json.load(sys.stdin), {}
    async with globals()[client](mode, *target) as (tools, call):
        for name, arguments in cases.items():
            try:
                found[name] = plain(await call(name, arguments))
            except Exception as error:  # noqa: BLE001 - what a client raises is what is asked for
                found[name] = {"raised": f"{type(error).__name__}: {error}"}
        listed = list(map(plain, tools))
    print(json.dumps({"tools": listed, "results": found}))


asyncio.run(main(*sys.argv[1:]))
