"""What a server does in weeks, in a minute: twenty thousand calls of forty clients who come and go."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.plugins.mcp.over_http import started

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc"),
]

CLIENTS, VISITS, CALLS = 40, 20, 25
GROWTH = 5.0
"""Megabytes."""
ACCEPT = {"Accept": "application/json, text/event-stream"}
OLD, NEW = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
PROGRAM = """
from pegboard import Suspend, Toolkit, tool
from pegboard_mcp import serve_mcp

@tool
def add(a: int, b: int) -> int:
    "Add."
    return a + b

@tool
def ask() -> str:
    "Ask."
    raise Suspend("Who are you? " + "x" * 10_000)

with Toolkit(plugins=()) as toolkit:
    toolkit.register(add, ask)
    toolkit.register_meta_tool()
    serve_mcp(toolkit, http="127.0.0.1:0", all_tools=True)
"""


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    with started([sys.executable, "-c", PROGRAM]) as found:
        yield found


def megabytes(process: subprocess.Popen[str]) -> float:
    """What of the memory is the process's own."""
    resident, shared = Path(f"/proc/{process.pid}/statm").read_text("ascii").split()[1:3]
    return (int(resident) - int(shared)) * 4096 / 2**20


def threads(process: subprocess.Popen[str]) -> int:
    return len(list(Path(f"/proc/{process.pid}/task").iterdir()))


class Visit:
    """One client's time at the server, from coming to going."""

    def __init__(self, http: httpx2.AsyncClient, url: str, version: str) -> None:
        self._http, self._url, self._version = http, url, version
        self._headers = {**ACCEPT, "MCP-Protocol-Version": version}

    async def __aenter__(self) -> "Visit":
        if self._version == OLD:
            client = {"clientInfo": {"name": "weeks", "version": "1"}, "capabilities": {}}
            response = await self._post("initialize", {"protocolVersion": OLD, **client})
            self._headers["Mcp-Session-Id"] = response.headers["mcp-session-id"]
            body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await self._http.post(self._url, json=body, headers=self._headers)
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self._version == OLD:
            await self._http.delete(self._url, headers=self._headers)

    async def send(self, method: str, **parameters: Any) -> Any:
        """The result of a request."""
        response = await self._post(method, parameters)
        text = response.text
        if response.headers["content-type"].startswith("text/event-stream"):
            text = next(line[5:] for line in text.splitlines() if line.startswith("data:"))
        return json.loads(text)["result"]

    async def _post(self, method: str, parameters: dict[str, Any]) -> httpx2.Response:
        headers = dict(self._headers)
        if self._version == NEW:
            said = {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {"elicitation": {"form": {}}}}
            parameters = {**parameters, "_meta": said}
            headers["Mcp-Method"] = method
            if "name" in parameters:
                headers["Mcp-Name"] = parameters["name"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        response = await self._http.post(self._url, json=body, headers=headers)
        assert response.status_code == 200, response.text
        return response


async def visits(url: str, number: int, answered: list[int], first: int, last: int) -> None:
    """A client who comes several times, in both eras, and leaves a question unanswered each time."""
    for visit in range(first, last):
        async with (
            httpx2.AsyncClient(timeout=60.0) as http,
            Visit(http, url, OLD if (visit + number) % 2 else NEW) as client,
        ):
            listed = await client.send("tools/list")
            assert len(listed["tools"]) == 3
            await client.send("tools/call", name="ask", arguments={})
            for call in range(CALLS - 2):
                result = await client.send("tools/call", name="add", arguments={"a": number, "b": call})
                assert result["structuredContent"] in (number + call, {"result": number + call})
                answered.append(call)


def test_memory_stays_and_no_answer_is_lost(server: tuple[subprocess.Popen[str], str]) -> None:
    process, url = server
    answered: list[int] = []

    async def all_at_once(first: int, last: int) -> None:
        async with asyncio.TaskGroup() as together:
            for number in range(CLIENTS):
                together.create_task(visits(url, number, answered, first, last))

    warm = VISITS // 4
    asyncio.run(all_at_once(0, warm))
    before, then = megabytes(process), threads(process)
    asyncio.run(all_at_once(warm, VISITS))
    after, now = megabytes(process), threads(process)
    assert len(answered) == CLIENTS * VISITS * (CALLS - 2)
    assert after - before < GROWTH, f"from {before:.1f} to {after:.1f} MB"
    assert now <= max(then, 64 + 8)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
