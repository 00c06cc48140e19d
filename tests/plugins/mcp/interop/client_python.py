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
Opened: TypeAlias = AsyncIterator[tuple[list[Any], Call, Call]]
METHOD = "$method"
"""In the arguments of a case that calls no tool: the request that it sends."""


def requests(read: Callable[[Any], Awaitable[Any]], prompt: Callable[[str, dict[str, str]], Awaitable[Any]]) -> Call:
    """Sends the requests about resources and prompts."""

    async def request(method: str, parameters: dict[str, Any]) -> Any:
        if method == "resources/read":
            return await read(parameters["uri"])
        return await prompt(parameters["name"], parameters["arguments"])

    return request


def by_session(session: Any) -> Call:
    """Those of a session of release 1 of the SDK, whose URIs are objects."""
    url = import_module("pydantic").AnyUrl
    return requests(lambda uri: session.read_resource(url(uri)), session.get_prompt)


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    """What a human says to a form."""
    said = {"string": "Ada", "integer": 2, "boolean": False}
    members = schema.get("properties", {}).items()
    return {name: member["enum"][0] if "enum" in member else said[member["type"]] for name, member in members}


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
        yield (await client.list_tools()).tools, client.call_tool, by_session(client)


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
        yield (await client.list_tools()).tools, client.call_tool, requests(client.read_resource, client.get_prompt)


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

        yield await client.list_tools(), call, requests(client.read_resource_mcp, client.get_prompt_mcp)


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

    async def read(uri: str) -> Any:
        await toolset.read_resource(uri)
        return await client.read_resource_mcp(uri)

    async def prompt(name: str, arguments: dict[str, str]) -> Any:
        await toolset.get_prompt(name, arguments)
        return await client.get_prompt_mcp(name, arguments)

    async with toolset:
        yield await toolset.list_tools(), call, requests(read, prompt)


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

        yield list(tools.values()), call, requests(server.read_resource, server.get_prompt)


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

        own = by_session(session)

        async def read(uri: str) -> Any:
            await import_module("langchain_mcp_adapters.resources").get_mcp_resource(session, uri)
            return await own("resources/read", {"uri": uri})

        async def prompt(name: str, arguments: dict[str, str]) -> Any:
            load_prompt = import_module("langchain_mcp_adapters.prompts").load_mcp_prompt
            await load_prompt(session, name, arguments=arguments)
            return await own("prompts/get", {"name": name, "arguments": arguments})

        yield (await session.list_tools()).tools, call, requests(read, prompt)


def plain(value: Any) -> Any:
    """A result or a tool as it came over the wire."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    content = [plain(each) for each in value.content]
    return {"content": content, "structuredContent": value.structured_content, "isError": value.is_error}


async def main(client: str, mode: str, *target: str) -> None:
    cases, found = json.load(sys.stdin), {}
    async with globals()[client](mode, *target) as (tools, call, request):
        for name, arguments in cases.items():
            method = arguments.pop(METHOD, None)
            try:
                found[name] = plain(await (request(method, arguments) if method else call(name, arguments)))
            except Exception as error:  # noqa: BLE001 - what a client raises is what is asked for
                found[name] = {"raised": f"{type(error).__name__}: {error}"}
        listed = list(map(plain, tools))
    print(json.dumps({"tools": listed, "results": found}))


asyncio.run(main(*sys.argv[1:]))
