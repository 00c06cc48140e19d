"""How far a reader has to walk: the files of the pack that run for one call, on whichever thread."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import pegboard_mcp
from pegboard import Toolkit, tool
from pegboard_mcp import McpServer
from tests.plugins.mcp.over_http import serving, started
from tests.plugins.mcp.test_callers import client
from tests.support.warm import warm_python

SOURCE: Final = str(Path(pegboard_mcp.__file__).parent) + "/"
HERE: Final = Path(__file__).parent
MOST: Final = 12


@pytest.fixture(name="entered")
def files_entered() -> Iterator[list[str]]:
    """The files of the pack that were entered, on this thread and on those that begin during the test."""
    entered: list[str] = []

    def enter(frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(SOURCE) and path not in entered:
            entered.append(path)

    before = sys.getprofile(), threading.getprofile()
    threading.setprofile(enter)
    sys.setprofile(enter)
    yield entered
    sys.setprofile(before[0])
    threading.setprofile(before[1])


def assert_short(entered: list[str]) -> None:
    files = [path.removeprefix(SOURCE) for path in entered]
    assert 0 < len(files) <= MOST, files


@pytest.mark.usefixtures("nothing_left")
class TestAToolOfAServerIsCalled:
    def call(self, entered: list[str], server: McpServer, name: str, arguments: dict[str, Any]) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(server)
            assert not toolkit.call_sync(name, arguments).is_error  # loads what is loaded at first use
            entered.clear()
            assert not toolkit.call_sync(name, arguments).is_error
            assert_short(entered)

    def test_over_stdio(self, entered: list[str]) -> None:
        server = McpServer.stdio(sys.executable, [HERE / "bad_server.py", "good"], mode="legacy")
        self.call(entered, server, "echo", {"text": "hello"})

    def test_over_http(self, entered: list[str]) -> None:
        with started([warm_python(), str(HERE / "both_servers.py"), "ours", "http"]) as (_, url):
            self.call(entered, McpServer.http(url), "add", {"a": 1, "b": 2})


@tool(read_only=True)
async def add(a: int, b: int) -> int:
    """Add two numbers, away from the loop of the protocol."""
    return a + b


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_board_answers_a_call(entered: list[str], mode: Any) -> None:
    async def call() -> None:
        async with serving(toolkit, token="s3cret") as url, client(url, mode, "s3cret") as opened:
            await opened.call_tool("add", {"a": 1, "b": 2})
            entered.clear()
            answer = await opened.call_tool("add", {"a": 1, "b": 2})
            assert not answer.is_error
            assert_short(entered)

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(add)
        asyncio.run(call())
