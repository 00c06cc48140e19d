"""Servers that do not say when their tools change: fetched again when the program says so, or now and then."""

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from pegboard import ApprovalRequest, Status, Toolkit, UnknownNameError, tool
from pegboard_mcp import McpServer
from tests.plugins.mcp.over_http import serving
from tests.support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


def silent(names: list[str]) -> Server[Any]:
    async def listed(context: Any, parameters: Any) -> types.ListToolsResult:
        tools = [types.Tool(name=name, description="Do.", input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=tools)

    return Server("silent", version="1", on_list_tools=listed)


def test_refresh_fetches_the_tools_again() -> None:
    names = ["first"]
    server = McpServer.in_process(silent(names))
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        names[:] = ["second"]
        assert "second" not in toolkit
        server.refresh()
        assert [each.name for each in toolkit.tools] == ["second"]


def test_a_server_that_announces_nothing_is_asked_now_and_then() -> None:
    names = ["first"]
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.in_process(silent(names), poll=0.05))
        names.append("second")
        assert eventually(lambda: "second" in toolkit)


def test_a_server_is_taken_off() -> None:
    server = McpServer.in_process(silent(["first", "second"]))
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(lambda: 1, name="own", description="Own.")
        toolkit.register(server, prefix="far__")
        toolkit.unregister(server, "own")
        assert (toolkit.tools, toolkit.sources) == ([], [])
        assert "closed" in repr(server)
        with pytest.raises(UnknownNameError):
            toolkit.unregister(server)


def test_the_tools_of_a_server_may_be_found_instead_of_listed() -> None:
    with Toolkit(plugins=(), defer_threshold=1) as toolkit:
        toolkit.register(McpServer.in_process(silent(["first", "second"])), defer=True)
        assert [each.name for each in toolkit.tools] == ["search_tools"]
        toolkit.search("first")
        assert "first" in [each.name for each in toolkit.tools]


def test_a_call_over_http_may_take_as_long_as_it_does() -> None:
    @tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    def call(url: str) -> Any:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.http(url, call_timeout=None))
            return toolkit.call_sync("add", {"a": 1, "b": 2}).data

    async def main() -> Any:
        async with serving(far) as url:
            return await asyncio.wait_for(asyncio.to_thread(call, url), PATIENCE)

    with Toolkit(plugins=()) as far:
        far.register(add)
        assert asyncio.run(main()) == 3


def test_a_tool_that_its_server_makes_destructive_asks_again() -> None:
    destructive = [False]

    async def listed(context: Any, parameters: Any) -> types.ListToolsResult:
        hints = types.ToolAnnotations(destructive_hint=destructive[0])
        send = types.Tool(name="send", description="Send.", input_schema={"type": "object"}, annotations=hints)
        return types.ListToolsResult(tools=[send])

    async def called(context: Any, parameters: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="sent")])

    reasons: list[str] = []

    def approver(request: ApprovalRequest) -> bool:
        reasons.append(request.reason)
        return False

    server = McpServer.in_process(Server("turning", version="1", on_list_tools=listed, on_call_tool=called))
    with Toolkit(plugins=(), approver=approver) as toolkit:
        toolkit.register(server)
        toolkit.set_permission("send", "always")
        assert (toolkit.call_sync("send").text, reasons) == ("sent", [])
        destructive[0] = True
        server.refresh()
        assert toolkit.call_sync("send").status is Status.DENIED
        assert reasons == ["send has changed since it was allowed"]
        assert "'send' asks again" in toolkit.problems[0]
        destructive[0] = False
        server.refresh()
        assert (toolkit.call_sync("send").text, toolkit.problems, len(reasons)) == ("sent", [], 1)
