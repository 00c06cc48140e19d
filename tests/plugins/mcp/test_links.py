"""Resource links of served tools: what a tool gave out can be read, by whom it was given, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from pegboard import LinkBlock, Toolkit, tool
from pegboard_mcp import Caller, McpServer, mcp_server
from tests.plugins.mcp.over_http import serving
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("nothing_left")
both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])
SECRET = "hunter2-is-long"


@tool
def report(number: int) -> LinkBlock:
    """Write a report."""
    return LinkBlock(f"report://{number}", f"Report {number}", None, "text/plain")


def read_report(uri: str, caller: Caller) -> str | bytes | None:
    known: dict[str, str | bytes] = {"report://1": "all is well", "report://2": b"\x00\x01"}
    return known.get(uri)


def far_server() -> Server[Any]:
    """It gives out one of its two resources, and one that it cannot read."""

    async def tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="find", input_schema={"type": "object"})])

    async def call(context: Any, parameters: Any) -> types.CallToolResult:
        names = ("found", "broken")
        return types.CallToolResult(content=[types.ResourceLink(uri=f"far://{name}", name=name) for name in names])

    async def read(context: Any, parameters: Any) -> types.ReadResourceResult:
        if parameters.uri == "far://broken":
            raise MCPError(code=-32000, message=f"the key {SECRET} has ended")
        text = types.TextResourceContents(uri=parameters.uri, text=f"the text of {parameters.uri}")
        return types.ReadResourceResult(contents=[text])

    return Server("far", version="1", on_list_tools=tools, on_call_tool=call, on_read_resource=read)


async def text_of(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


async def refused(client: Client, uri: str) -> MCPError:
    with pytest.raises(MCPError) as raised:
        await client.read_resource(uri)
    return raised.value


def run(scenario: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))


@both_eras
class TestLinksOfFarServers:
    def test_what_it_gave_out_is_read_there_and_nothing_else(self, mode: str) -> None:
        async def scenario() -> None:
            async with Toolkit(plugins=()) as toolkit:
                toolkit.register(McpServer.in_process(far_server()))
                async with Client(mcp_server(toolkit, all_tools=True), mode=mode) as client:
                    await refused(client, "far://found")  # no caller was given it yet
                    await client.call_tool("find", {})
                    assert await text_of(client, "far://found") == "the text of far://found"
                    assert "no resource" in str(await refused(client, "far://other"))
                    listed = (await client.list_resources()).resources
                    assert [each.uri for each in listed] == ["far://found", "far://broken"]

        run(scenario)

    def test_why_it_cannot_be_read_shows_no_secret(self, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_mcp._client.server.secrets_of", lambda transport: (SECRET,))

        async def scenario() -> None:
            async with Toolkit(plugins=()) as toolkit:
                toolkit.register(McpServer.in_process(far_server()))
                async with Client(mcp_server(toolkit, all_tools=True), mode=mode) as client:
                    await client.call_tool("find", {})
                    said = str(await refused(client, "far://broken"))
                    assert "has ended" in said
                    assert SECRET not in said

        run(scenario)

    def test_a_tool_that_is_gone_takes_its_links_along(self, mode: str) -> None:
        async def scenario() -> None:
            far = McpServer.in_process(far_server())
            async with Toolkit(plugins=()) as toolkit:
                toolkit.register(far)
                async with Client(mcp_server(toolkit, all_tools=True), mode=mode) as client:
                    await client.call_tool("find", {})
                    await asyncio.to_thread(toolkit.unregister, far)
                    assert "no resource" in str(await refused(client, "far://found"))
                    assert (await client.list_resources()).resources == []

        run(scenario)


@both_eras
class TestLinksOfTheProgram:
    def test_the_program_says_what_they_lead_to(self, mode: str) -> None:
        async def scenario() -> None:
            async with near(mode, read_link=read_report) as client:
                await refused(client, "report://1")
                for number in (1, 2, 3):
                    await client.call_tool("report", {"number": number})
                assert await text_of(client, "report://1") == "all is well"
                (content,) = (await client.read_resource("report://2")).contents
                assert isinstance(content, types.BlobResourceContents)
                assert (content.blob, content.mime_type) == ("AAE=", "text/plain")
                await refused(client, "report://3")  # the program knows of none

        run(scenario)

    def test_without_a_reader_there_is_nothing_to_read(self, mode: str) -> None:
        async def scenario() -> None:
            async with near(mode) as client:
                await client.call_tool("report", {"number": 1})
                error = await refused(client, "report://1")
                assert error.code == (-32602 if mode == "auto" else -32002)
                assert error.data == {"uri": "report://1"}
                assert (await client.list_resources()).resources == []

        run(scenario)

    def test_the_reader_may_be_async_and_may_fail(self, mode: str) -> None:
        async def read(uri: str, caller: Caller) -> str:
            if uri == "report://2":
                raise ValueError("it was dropped")
            return "later"

        async def scenario() -> None:
            async with near(mode, read_link=read) as client:
                for number in (1, 2):
                    await client.call_tool("report", {"number": number})
                assert await text_of(client, "report://1") == "later"
                assert "it was dropped" in str(await refused(client, "report://2"))

        run(scenario)

    def test_the_oldest_are_forgotten(self, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_mcp._server.links.MOST", 3)

        async def scenario() -> None:
            async with near(mode, read_link=lambda uri, caller: uri) as client:
                for number in (1, 2, 1, 3, 4):
                    await client.call_tool("report", {"number": number})
                listed = [each.uri for each in (await client.list_resources()).resources]
                assert listed == ["report://1", "report://3", "report://4"]
                await refused(client, "report://2")

        run(scenario)

    def test_no_news_of_them_is_promised(self, mode: str) -> None:
        async def scenario() -> None:
            async with near(mode) as client:
                declared = client.server_capabilities.resources
                assert declared is not None
                assert not declared.subscribe
                assert not declared.list_changed

        run(scenario)


@asynccontextmanager
async def near(mode: str, **options: Any) -> AsyncIterator[Client]:
    async with Toolkit(plugins=()) as toolkit:
        toolkit.register(report)
        async with Client(mcp_server(toolkit, all_tools=True, **options), mode=mode) as client:
            yield client


class TestWhoMayRead:
    @asynccontextmanager
    async def served(self, **options: Any) -> AsyncIterator[str]:
        async with Toolkit(plugins=()) as toolkit:
            toolkit.register(report)
            async with serving(toolkit, all_tools=True, read_link=read_report, **options) as url:
                yield url

    def test_a_connection_of_the_older_protocol_reads_what_it_was_given(self) -> None:
        async def scenario() -> None:
            async with self.served() as url, Client(url, mode="legacy") as one, Client(url, mode="legacy") as other:
                await one.call_tool("report", {"number": 1})
                assert await text_of(one, "report://1") == "all is well"
                await refused(other, "report://1")

        run(scenario)

    def test_a_caller_reads_what_he_was_given_while_he_may_call_the_tool(self) -> None:
        def verify(token: str) -> Caller | None:
            return Caller(token[:3], scopes=["reports"] if token.endswith("+") else [])

        async def scenario() -> None:
            async with (
                self.served(verify_token=verify, scopes={"report": "reports"}) as url,
                caller(url, "ada+") as ada,
                caller(url, "bob+") as bob,
                caller(url, "ada") as less,
            ):
                await ada.call_tool("report", {"number": 1})
                assert await text_of(ada, "report://1") == "all is well"
                await refused(bob, "report://1")
                await refused(less, "report://1")

        run(scenario)

    def test_an_unidentified_caller_reads_for_half_an_hour(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def scenario() -> None:
            async with self.served() as url, Client(url) as client:
                await client.call_tool("report", {"number": 1})
                assert await text_of(client, "report://1") == "all is well"
                monkeypatch.setattr("pegboard_mcp._server.links.LIFETIME", -1.0)
                await refused(client, "report://1")

        run(scenario)


@asynccontextmanager
async def caller(url: str, token: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client
