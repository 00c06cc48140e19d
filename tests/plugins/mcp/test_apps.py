"""MCP Apps: what tools say to hosts, the pages that they name, and tools that no model is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client import advertise
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server import Server
from mcp.server.apps import Apps, client_supports_apps
from mcp.server.mcpserver import Context, MCPServer

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer, mcp_server
from tests.plugins.mcp import library_board
from tests.plugins.mcp.library_board import CLOCK, PAGE
from tests.plugins.mcp.over_http import serving
from tests.support.thinning import first
from tests.support.warm import warm_python

pytestmark = pytest.mark.usefixtures("nothing_left")
both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])

UI = "io.modelcontextprotocol/ui"
MIME = "text/html;profile=mcp-app"
HOST = [advertise(UI, {"mimeTypes": [MIME]})]
MODEL_AND_APP = {"ui": {"resourceUri": "ui://upstream/app.html"}}
APP_ALONE = {"ui": {"resourceUri": "ui://upstream/app.html", "visibility": ["app"]}}


def upstream(html: str = "<p>upstream</p>") -> MCPServer:
    """Somebody's server with a page, made with the SDK's own extension."""
    apps = Apps()

    @apps.tool(resource_uri="ui://upstream/app.html", description="Whether the client shows pages")
    def shows_pages(ctx: Context) -> str:
        return str(client_supports_apps(ctx))

    @apps.tool(resource_uri="ui://upstream/app.html", description="For the page", visibility=["app"])
    def refresh() -> str:
        return "again"

    apps.add_html_resource("ui://upstream/app.html", html, prefers_border=True)
    server = MCPServer("upstream", extensions=[apps])
    server.resource("secret://other", name="other")(lambda: "not for the client")
    return server


@asynccontextmanager
async def proxied(mode: Any, *servers: MCPServer) -> AsyncIterator[tuple[Toolkit, Any]]:
    """A toolkit with servers behind it, and a client in front of it."""
    with Toolkit(plugins=()) as toolkit:
        for number, each in enumerate(servers):
            remote = McpServer.in_process(each, mode=mode)
            await remote.connect()
            toolkit.register(remote, prefix=f"s{number}_" if number else "")
        async with Client(mcp_server(toolkit, all_tools=True), mode=mode, extensions=HOST) as client:
            yield toolkit, client


@both_eras
def test_what_a_remote_tool_says_is_kept_and_given_on(mode: str) -> None:
    async def main() -> None:
        async with proxied(mode, upstream()) as (toolkit, client):
            assert toolkit.problems == []
            assert toolkit["shows_pages"].meta == MODEL_AND_APP
            assert toolkit["refresh"].meta == APP_ALONE
            assert [tool.name for tool in toolkit.tools] == ["shows_pages"]
            assert [tool.name for tool in toolkit.app_tools] == ["refresh"]
            listed = {each.name: each.meta for each in (await client.list_tools()).tools}
            assert listed == {"shows_pages": MODEL_AND_APP, "refresh": APP_ALONE}
            # The declaration reaches the server behind, also by direct calls and in the older protocol.
            assert (await toolkit.call("shows_pages")).text == "True"
            assert (await client.call_tool("refresh", {})).content[0].text == "again"

    asyncio.run(main())


@both_eras
def test_pages_are_read_at_the_server_that_names_them(mode: str) -> None:
    async def main() -> None:
        async with proxied(mode, upstream(), upstream("<p>second</p>")) as (_, client):
            [page] = (await client.read_resource("ui://upstream/app.html")).contents
            assert (page.text, page.mime_type) == ("<p>upstream</p>", MIME)
            for uri in ("ui://upstream/other.html", "secret://other"):  # named by no tool
                with pytest.raises(MCPError, match="no resource"):
                    await client.read_resource(uri)

    asyncio.run(main())


@both_eras
@pytest.mark.parametrize("how", first(1, ["stdio", "http"]))
def test_pages_of_the_board_itself(how: str, mode: Any, tmp_path: Path) -> None:
    async def read(client: Client) -> None:
        tools = {each.name: each.meta or {} for each in (await client.list_tools()).tools}
        assert tools["now"] == {"ui": {"resourceUri": CLOCK}, "example/kept": [1, None, {"a": "b"}]}
        assert tools["refresh"]["ui"]["visibility"] == ["app"]
        [page] = (await client.read_resource(tools["now"]["ui"]["resourceUri"])).contents
        assert (page.text, page.mime_type) == (PAGE, MIME)  # type: ignore[union-attr]
        answer: Any = await client.call_tool("refresh", {})
        assert answer.content[0].text == "12:01"
        if mode == "auto":  # the SDK has no extensions in an answer of the older protocol
            assert client.server_capabilities.extensions == {UI: {"mimeTypes": [MIME]}}

    async def main() -> None:
        if how == "stdio":
            command = StdioServerParameters(command=warm_python(), args=["-m", "tests.plugins.mcp.library_board"])
            async with Client(stdio_client(command), mode=mode, extensions=HOST) as client:
                await read(client)
            return
        with library_board.board() as toolkit:
            async with (
                serving(toolkit, resources=library_board.sources(tmp_path)) as url,
                Client(url, mode=mode, extensions=HOST) as client,
            ):
                await read(client)

    asyncio.run(main())


def test_a_board_without_pages_does_not_declare_them() -> None:
    async def main() -> None:
        with Toolkit(plugins=()) as toolkit:
            async with Client(mcp_server(toolkit)) as client:
                assert UI not in (client.server_capabilities.extensions or {})

    asyncio.run(main())


def test_a_page_that_is_missing_is_told_when_it_is_served(capfd: pytest.CaptureFixture[str]) -> None:
    with library_board.board() as toolkit:
        mcp_server(toolkit)
        assert f"now names the page {CLOCK}, which no resource is; give it by resources=" in capfd.readouterr().err
        mcp_server(toolkit, resources={CLOCK: PAGE})
        assert capfd.readouterr().err == ""


def test_a_page_needs_the_scopes_of_its_tool() -> None:
    async def main() -> None:
        with Toolkit(plugins=()) as toolkit:
            remote = McpServer.in_process(upstream())
            await remote.connect()
            toolkit.register(remote)
            server = mcp_server(toolkit, all_tools=True, scopes={"*": "pages"})
            async with Client(server) as client:
                with pytest.raises(MCPError, match="no resource"):
                    await client.read_resource("ui://upstream/app.html")

    asyncio.run(main())


def test_a_page_that_its_server_does_not_give_is_an_error() -> None:
    async def fails(context: Any, parameters: Any) -> types.ReadResourceResult:
        raise MCPError(types.INTERNAL_ERROR, "out of paper")

    async def tools(context: Any, parameters: Any) -> types.ListToolsResult:
        meta = {"ui": {"resourceUri": "ui://upstream/app.html"}}
        tool = types.Tool(name="paint", description="d", input_schema={"type": "object"}, _meta=meta)
        return types.ListToolsResult(tools=[tool])

    async def main() -> None:
        server: Server[Any] = Server("s", on_list_tools=tools, on_read_resource=fails)
        with Toolkit(plugins=()) as toolkit:
            remote = McpServer.in_process(server)
            await remote.connect()
            toolkit.register(remote)
            async with Client(mcp_server(toolkit, all_tools=True)) as client:
                with pytest.raises(MCPError, match=r"ui://upstream/app\.html cannot be read: MCPError: out of paper"):
                    await client.read_resource("ui://upstream/app.html")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("meta", "listed"),
    [
        ({"ui": {"visibility": ["model"]}}, True),
        ({"ui": {"visibility": ["app", "model"]}}, True),
        ({"ui": {"visibility": []}}, False),
        ({"ui": {"visibility": ["app"]}}, False),
        ({"ui": {"visibility": "app"}}, True),
        ({"ui": "app"}, True),
        ({"ui": None}, True),
        ({"n": float("nan")}, True),
        ({}, True),
    ],
)
def test_visibility_as_servers_write_it(meta: dict[str, Any], listed: bool) -> None:
    async def tools(context: Any, parameters: Any) -> types.ListToolsResult:
        tool = types.Tool(name="paint", description="d", input_schema={"type": "object"}, _meta=meta)
        return types.ListToolsResult(tools=[tool])

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(Server("s", on_list_tools=tools)))
        assert toolkit.problems == []
        assert [tool.name for tool in toolkit.tools] == (["paint"] if listed else [])
        assert "paint" in toolkit
        json.dumps(toolkit["paint"].meta, allow_nan=False)


def test_a_changed_visibility_is_followed() -> None:
    pytest.importorskip("pegboard_dialects")
    meta: dict[str, Any] = {}

    async def tools(context: Any, parameters: Any) -> types.ListToolsResult:
        tool = types.Tool(name="paint", description="d", input_schema={"type": "object"}, _meta=dict(meta))
        return types.ListToolsResult(tools=[tool])

    with Toolkit(plugins=["dialects"]) as toolkit:
        remote = McpServer.in_process(Server("s", on_list_tools=tools))
        toolkit.register(remote)
        chat = toolkit.dialect("openai")
        assert len(chat.request()["tools"]) == 1
        meta["ui"] = {"visibility": ["app"]}
        remote.refresh()
        assert "tools" not in chat.request()
        call = {"id": "1", "type": "function", "function": {"name": "paint", "arguments": "{}"}}
        [result] = toolkit.call_many_sync(chat.calls({"role": "assistant", "tool_calls": [call]}))
        assert result.status is Status.NOT_FOUND
