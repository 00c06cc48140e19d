"""Resources and prompts of a server: for programs, and as tools."""

import asyncio
import json
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from pegboard import FileBlock, Status, TextBlock, Toolkit
from pegboard_mcp import McpServer

pytestmark = [pytest.mark.usefixtures("nothing_left"), pytest.mark.parametrize("mode", ["auto", "legacy"])]


def library() -> Server[Any]:
    async def resources(context: Any, parameters: Any) -> types.ListResourcesResult:
        page = getattr(parameters, "cursor", None) or "0"
        found = types.Resource(uri=f"x://{page}", name=f"the {page}", mime_type="text/plain")
        return types.ListResourcesResult(resources=[found], next_cursor="1" if page == "0" else None)

    async def read(context: Any, parameters: Any) -> types.ReadResourceResult:
        if parameters.uri == "x://2":
            raise ValueError("there is none")
        text = types.TextResourceContents(uri=parameters.uri, text="words")
        blob = types.BlobResourceContents(uri="x://b", blob="AAE=", mime_type="application/x-b")
        return types.ReadResourceResult(contents=[text, blob])

    async def prompts(context: Any, parameters: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet")])

    async def prompt(context: Any, parameters: Any) -> types.GetPromptResult:
        said = types.TextContent(text=f"hello {parameters.arguments['name']}")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])

    async def tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    return Server(
        "library",
        version="1",
        on_list_tools=tools,
        on_list_resources=resources,
        on_read_resource=read,
        on_list_prompts=prompts,
        on_get_prompt=prompt,
    )


CONTENT = (TextBlock("words"), FileBlock(data="AAE=", media_type="application/x-b", name="x://b"))


def test_a_program_reads_them(mode: str) -> None:
    async def main() -> None:
        server = McpServer.in_process(library(), mode=mode)
        try:
            assert [each.uri for each in await server.list_resources()] == ["x://0", "x://1"]
            assert await server.read_resource("x://0") == CONTENT
            assert [each.name for each in await server.list_prompts()] == ["greet"]
            prompt = await server.get_prompt("greet", {"name": "Ada"})
            assert prompt.messages[0].content.text == "hello Ada"
        finally:
            server.close()

    asyncio.run(main())


def test_a_model_reads_them_by_tools(mode: str) -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(library(), mode=mode, resources="tools"), prefix="library__")
        assert toolkit.problems == []
        listed = json.loads(toolkit.call_sync("library__list_resources").text)
        assert listed[0] == {"name": "the 0", "uri": "x://0", "mimeType": "text/plain"}
        assert toolkit.call_sync("library__read_resource", {"uri": "x://0"}).content == CONTENT
        refused = toolkit.call_sync("library__read_resource", {"uri": "x://2"})
        assert refused.status is Status.ERROR
        assert "the server refused" in refused.text
