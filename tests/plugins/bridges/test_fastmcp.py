"""FastMCP: a client and a server in one process; the client is the agent, and its human answers questions."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable
from typing import Any

import pytest

pytest.importorskip("fastmcp")

from fastmcp import Client, FastMCP
from fastmcp.client.elicitation import ElicitResult
from fastmcp.tools import Tool

from pegboard import Session, ToolCall, Toolkit
from pegboard_bridges.fastmcp import from_fastmcp, to_fastmcp
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import board
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown, native_later, native_sum


class Stage(frameworks.Stage):
    framework = "fastmcp"
    distribution = "fastmcp"

    def run(
        self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True, mode: str = "auto"
    ) -> Run:
        progress: list[str] = []
        asked: list[str] = []

        async def hear(_: float, total: float | None, message: str | None) -> None:
            progress.append(message or "")

        async def decide(message: str, *_: Any) -> Any:
            asked.append(message.partition(" ")[0])
            return ElicitResult(action="accept", content={}) if approve else ElicitResult(action="decline")

        async def go() -> Run:
            server = FastMCP("board", providers=[self.outwards(source)])
            async with Client(server, elicitation_handler=decide, progress_handler=hear) as client:
                shown = tuple(Shown(t.name, t.description or "", t.input_schema) for t in await client.list_tools())
                answers = {
                    call.id: _answer(await client.call_tool_mcp(call.name, dict(call.arguments), progress_handler=hear))
                    for call in calls
                }
            return Run(shown, answers, tuple(progress), tuple(asked))

        return asyncio.run(go())

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [Tool.from_function(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_fastmcp(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_fastmcp(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        async def go() -> None:
            given: Any = {"tools": tools} if isinstance(tools, list) else {"providers": [tools]}
            async with Client(FastMCP("server", **given)) as client:
                for call in calls:
                    await client.call_tool_mcp(call.name, dict(call.arguments))

        asyncio.run(go())


def _answer(result: Any) -> Answer:
    text = "".join(block.text for block in result.content if block.type == "text")
    images = tuple(base64.b64decode(block.data) for block in result.content if block.type == "image")
    return Answer(text, images, result.is_error)


class TestFastmcp(FrameworkTests):
    stage = Stage()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_cannot_be_asked_reads_a_denial(mode: Any) -> None:
    async def go() -> Answer:
        async with Client(FastMCP("board", providers=[to_fastmcp(toolkit)]), mode=mode) as client:
            return _answer(await client.call_tool_mcp("wipe", {"disk": "a"}))

    with board() as toolkit:
        answer = asyncio.run(go())
    assert answer.is_error
    assert "wipe was not run: it needs approval, which cannot be given here" in answer.text


@pytest.mark.parametrize("wrap", [lambda server: server, Client])
def test_servers_and_clients_are_registered(wrap: Any) -> None:
    server = FastMCP("native", tools=[Tool.from_function(native_sum), Tool.from_function(native_later)])
    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(wrap(server))
        assert toolkit.call_sync("native_sum", {"first": 2, "second": 3}).text == "5"
        assert toolkit.call_sync("native_later", {"word": "rain"}).text == "later rain"


def test_progress_of_a_client_comes_in() -> None:
    with board() as toolkit, Toolkit(plugins=["bridges"]) as other:
        other.register(Client(FastMCP("board", providers=[to_fastmcp(toolkit)])))
        heard: list[str] = []
        assert (
            other.call_sync("count", {"upto": 2}, on_chunk=lambda chunk: heard.append(chunk.text)).text
            == "counted to 2"
        )
    assert heard == ["counted 1", "counted 2"]
