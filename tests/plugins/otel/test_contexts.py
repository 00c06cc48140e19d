"""A span's context goes wherever its tool runs, and what is called from there is below it."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import ReadableSpan

from pegboard import Toolkit
from tests.plugins.otel import laborers
from tests.plugins.otel.conftest import Collected

Board = Callable[..., Toolkit]


def ids(span: ReadableSpan) -> tuple[str, str]:
    """The ids of a span's trace and of the span, as they are written."""
    assert span.context is not None
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


FAR = """
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("far")

@server.tool()
def told(ctx: Context) -> str:
    return ctx.request_context.meta["traceparent"]

server.run()
"""


class TestBackends:
    @pytest.mark.parametrize("name", ["coroutine", "inline", "process", "thread"])
    @pytest.mark.parametrize("run", [asyncio.run, None])
    def test_the_span_of_the_call_is_the_current_one(
        self, board: Board, collected: Collected, name: str, run: Any
    ) -> None:
        if name == "process":
            pytest.importorskip("pegboard_process")
        plugins = ("process",) if name == "process" else ()
        toolkit = board(getattr(laborers, name), plugins=plugins)
        token = attach(baggage.set_baggage("user", "ann"))
        try:
            results = [run(toolkit.call(name)) if run else toolkit.call_sync(name) for _ in range(2)]
        finally:
            detach(token)
        traced = [(result.data["trace"], result.data["span"]) for result in results]
        assert traced == [ids(span) for span in collected.spans]
        assert [result.data["user"] for result in results] == ["ann", "ann"]

    def test_nothing_stays_in_the_process(self, board: Board, collected: Collected) -> None:
        pytest.importorskip("pegboard_process")
        toolkit = board(laborers.process, plugins=("process",))
        token = attach(baggage.set_baggage("user", "ann"))
        try:
            assert toolkit.call_sync("process").data["user"] == "ann"
        finally:
            detach(token)
        assert "user" not in toolkit.call_sync("process").data


class TestMcp:
    @pytest.fixture(autouse=True)
    def traced_sdk(self, collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("pegboard_mcp")
        import mcp.shared._otel

        # The SDK keeps the first provider that it finds.
        monkeypatch.setattr(mcp.shared._otel, "_tracer", trace.get_tracer("mcp-python-sdk"))

    def test_from_board_to_board(self, board: Board, collected: Collected) -> None:
        from pegboard_mcp import McpServer, mcp_server

        far = board(laborers.thread)
        near = board(McpServer.in_process(mcp_server(far, all_tools=True)))
        with trace.get_tracer("test").start_as_current_span("caller"):
            traced = near.call_sync("thread").data
        spans = {ids(span)[1]: span for span in collected.spans}
        chain, at = [], traced["span"]
        while at in spans:
            chain.append(spans[at].name)
            parent = spans[at].parent
            at = "" if parent is None else f"{parent.span_id:016x}"
        assert len({ids(span)[0] for span in collected.spans} & {traced["trace"]}) == 1
        # The server's span, ours; between them are those of the SDK, of the client and of the server.
        assert (chain[0], chain[-2:]) == ("execute_tool thread", ["execute_tool thread", "caller"])
        assert [name for name in chain if name.startswith("tools/call")] == ["tools/call thread"] * (len(chain) - 3)
        assert len(chain) > 3

    @pytest.mark.slow
    def test_to_a_server_of_the_sdk_over_stdio(self, board: Board, collected: Collected) -> None:
        from pegboard_mcp import McpServer

        near = board(McpServer.stdio(sys.executable, ["-c", FAR]))
        with trace.get_tracer("test").start_as_current_span("caller"):
            told = near.call_sync("told").text
        sent, called, caller = collected.spans[-3:]  # the first ones are of the connection
        names = [span.name for span in (sent, called, caller)]
        assert names == ["MCP send tools/call told", "execute_tool told", "caller"]
        assert tuple(told.split("-")[1:3]) == ids(sent)
        assert [f"{span.parent.span_id:016x}" for span in (sent, called) if span.parent] == [
            ids(called)[1],
            ids(caller)[1],
        ]

    def test_from_the_meta_of_a_request(self, board: Board, collected: Collected) -> None:
        from mcp import Client

        from pegboard_mcp import mcp_server

        remote: Any = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}

        async def ask() -> Any:
            async with Client(mcp_server(board(laborers.thread), all_tools=True)) as client:
                return await client.call_tool("thread", {}, meta=remote)

        answer = asyncio.run(ask())
        assert json.loads(answer.content[0].text)["trace"] == "4bf92f3577b34da6a3ce929d0e0e4736"


class TestAgents:
    def test_what_a_sub_agent_calls_is_below_its_call(self, board: Board, collected: Collected) -> None:
        pytest.importorskip("pegboard_agent")
        from pegboard_agent import Agent, OpenAIChat
        from pegboard_testing import ScriptedServer

        script: Any = ("helper", {"message": "go"}), ("thread", {}), "done", "done"
        with ScriptedServer(*script) as server:
            model = OpenAIChat("scripted", base_url=server.url, api_key="")
            helper = Agent("helper", model, board(laborers.thread))
            desk = Agent("desk", model, board(helper.as_tool(name="helper", description="Help.")))
            assert desk.call_sync("go").text == "done"
        inner, outer = collected.spans
        assert (inner.name, outer.name) == ("execute_tool thread", "execute_tool helper")
        assert inner.parent is not None
        assert f"{inner.parent.span_id:016x}" == ids(outer)[1]
        named = [(span.attributes or {}).get("gen_ai.agent.name") for span in (inner, outer)]
        assert named == ["helper", "desk"]


def test_log_lines_are_within_the_span(board: Board, collected: Collected) -> None:
    seen: list[tuple[str, str]] = []

    class Seeing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            context = trace.get_current_span().get_span_context()
            seen.append((f"{context.trace_id:032x}", f"{context.span_id:016x}"))

    log, handler = logging.getLogger("pegboard"), Seeing()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        toolkit = board(laborers.inline)
        toolkit.call_sync("inline")
        asyncio.run(toolkit.call("inline"))
        toolkit.call_sync("made_up")
        toolkit.prepare("made_up")
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    assert seen == [ids(span) for span in collected.spans]
    assert len(seen) == 4
