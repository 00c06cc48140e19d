"""Bounds: what servers send has an end, and so have their processes."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer
from tests.plugins.mcp.over_http import started
from tests.plugins.mcp.test_pipes import BEGIN, server
from tests.support.thinning import first
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

MEGABYTE = 1024 * 1024
BODIES: dict[str, tuple[str, bytes, bytes]] = {
    "JSON": ("application/json", b"[", b"1," * 30_000),
    "text": ("text/plain", b"", b"x" * 60_000),
    "an event": ("text/event-stream", b"data: ", b"x" * 60_000),
    "lines of an event": ("text/event-stream", b"", b"data: x\n" * 8_000),
}
EVENTS: dict[str, tuple[str, bytes, bytes]] = {
    "empty events": ("text/event-stream", b"", b": x\n\n" * 8_000),
    "messages": (
        "text/event-stream",
        b"",
        b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}\n\n'
        * 1_000,
    ),
}


class Endless:
    """Answers every request with a body that never ends; `sent` bytes of it so far."""

    def __init__(self, kind: str, begin: bytes, more: bytes, encoding: str) -> None:
        self.sent = 0
        self._head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{encoding}\r\n".encode() + begin
        self._more = more
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=(self._socket.accept()[0],), daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        with suppress(OSError), peer:
            peer.settimeout(30.0)
            peer.recv(65_536)
            peer.sendall(self._head)
            while True:
                peer.sendall(self._more)
                self.sent += len(self._more)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def endless(body: str, encoding: str = "") -> Iterator[Endless]:
    kind, begin, more = (BODIES | EVENTS)[body]
    web = Endless(kind, begin, more, encoding)
    try:
        yield web
    finally:
        web.close()


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", ["http", pytest.param("sse", marks=pytest.mark.slow)])
def test_a_body_without_end(kind: str, body: str) -> None:
    with endless(body) as web, Toolkit(plugins=()) as toolkit:
        make: Any = getattr(McpServer, kind)
        patience = 60.0 if kind == "http" else 6.0  # the other's client waits on for its first event
        toolkit.register(make(f"http://{web.host}/mcp", mode="legacy", connect_timeout=patience, max_message=MEGABYTE))
        assert toolkit.tools == []
        (problem,) = toolkit.problems
        assert "cannot be reached" in problem
        assert eventually(lambda: not _grows(web))
        assert web.sent < 40 * MEGABYTE  # what the system's buffers hold, and every attempt


@pytest.mark.parametrize(
    ("kind", "body", "patience"),
    [
        ("http", "empty events", 60.0),
        ("http", "messages", 60.0),
        ("sse", "empty events", 6.0),  # whose client waits on for its first event
    ],
)
@pytest.mark.slow
def test_small_events_without_end(kind: str, body: str, patience: float) -> None:
    with endless(body) as web, Toolkit(plugins=()) as toolkit:
        make: Any = getattr(McpServer, kind)
        toolkit.register(make(f"http://{web.host}/mcp", mode="legacy", connect_timeout=patience))
        (problem,) = toolkit.problems
        assert "a flood: more than 20,000 unrequested messages" in problem
        assert eventually(lambda: not _grows(web))


FLOODS = {
    "junk": '"x"',
    "answers": 'json.dumps({"jsonrpc": "2.0", "id": 99, "result": {}})',
    "progress": (
        'json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", '
        '"params": {"progressToken": 0, "progress": 1}})'
    ),
}
FLOODING = """
more = (FLOOD + "\\n") * 1000
for request in requests():
    while request["params"]["arguments"]["text"] == "flood":
        write(more)
    write(answer_to(request) + "\\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize("flood", FLOODS)
def test_lines_without_end(flood: str) -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(FLOODING.replace("FLOOD", FLOODS[flood]), call_timeout=60.0))
        result = toolkit.call_sync("echo", {"text": "flood"})
        assert (result.status, result.error and result.error.kind) == (Status.ERROR, "connection_lost")
        assert result.error is not None
        assert "a flood: more than 20,000 unrequested messages" in result.error.details["stderr"]
        assert toolkit.call_sync("echo", {"text": "short"}).text == "short"


@pytest.mark.parametrize("kind", first(1, ["stdio", "http"]))
@pytest.mark.slow
def test_a_flood_is_a_problem_until_the_tools_are_fetched_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard_mcp._wire.unrequested.AT_ONCE", 1_000)
    monkeypatch.setattr("pegboard_mcp._wire.unrequested.A_SECOND", 0)
    with Toolkit(plugins=()) as toolkit, flooding(kind) as server:
        toolkit.register(server)
        assert toolkit.call_sync("echo", {"text": "short"}).text == "short"
        assert toolkit.problems == []
        assert toolkit.call_sync("echo", {"text": "flood"}).is_error
        (problem,) = toolkit.problems
        assert "it was not listened to any longer: a flood: more than" in problem
        assert toolkit.call_sync("echo", {"text": "short"}).text == "short"
        assert toolkit.problems == [problem]
        server.refresh()
        assert toolkit.problems == []


@contextmanager
def flooding(kind: str) -> Iterator[McpServer]:
    """A server whose tool sends progress without end where it is asked for a "flood"."""
    if kind == "stdio":
        yield server(FLOODING.replace("FLOOD", FLOODS["progress"]), call_timeout=60.0)
        return
    command = [sys.executable, str(Path(__file__).with_name("flooding_server.py"))]
    with started(command) as (_, url):
        yield McpServer.http(url, mode="legacy")


def test_many_answers_are_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard_mcp._wire.unrequested.AT_ONCE", 20)
    monkeypatch.setattr("pegboard_mcp._wire.unrequested.A_SECOND", 0)
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("for request in requests():\n    write(answer_to(request) + '\\n')"))
        assert {toolkit.call_sync("echo", {"text": "x"}).text for _ in range(60)} == {"x"}


@pytest.mark.slow
def test_closing_ends_a_flood() -> None:
    """Neither the process, nor a thread, nor a connection is left; the fixture counts."""
    with endless("empty events") as web:
        toolkit = Toolkit(plugins=())
        toolkit.register(server(FLOODING.replace("FLOOD", FLOODS["progress"]), call_timeout=60.0))
        away: Any = McpServer.http(f"http://{web.host}/mcp", mode="legacy", connect_timeout=60.0)
        threading.Thread(target=toolkit.register, args=(away,), name="away", daemon=True).start()
        threading.Thread(target=toolkit.call_sync, args=("echo", {"text": "flood"}), daemon=True).start()
        assert eventually(lambda: web.sent > 0 and toolkit.stats["running"] > 0)
        toolkit.close()
        away.close()
        assert eventually(lambda: not _grows(web))


def _grows(web: Endless) -> bool:
    before = web.sent
    time.sleep(0.1)
    return web.sent > before


def test_a_compressed_body_is_not_read() -> None:
    with endless("JSON", "Content-Encoding: gzip\r\n") as web, Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.http(f"http://{web.host}/mcp", mode="legacy", connect_timeout=60.0))
        assert "not asked for" in toolkit.problems[0]


@pytest.mark.slow
def test_a_list_of_a_hundred_thousand_tools() -> None:
    script = BEGIN.replace(
        '{"tools": [{"name": "echo", "inputSchema": TEXT}]}',
        '{"tools": [{"name": f"t{n}", "inputSchema": TEXT} for n in range(100_000)]}',
    )
    many = McpServer.stdio(sys.executable, ["-c", script + "list(requests())"], name="s", mode="legacy", max_tools=50)
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(many)
        assert len(toolkit.tools) == 50
        assert toolkit.problems == [
            "the MCP server 's': it lists more than 50 tools; the first ones count (max_tools= takes more)"
        ]


def test_a_list_without_end_stops_where_enough_is_known() -> None:
    script = BEGIN.replace(
        'write(line(request, {"tools": [{"name": "echo", "inputSchema": TEXT}]}) + "\\n")',
        'at = int(request.get("params", {}).get("cursor", 0)); tools = [{"name": f"t{at + n}", "inputSchema": TEXT} '
        'for n in range(100)]; sys.stderr.write("p\\n"); sys.stderr.flush(); '
        'write(line(request, {"tools": tools, "nextCursor": str(at + 100)}) + "\\n")',
    )
    many = McpServer.stdio(sys.executable, ["-c", script + "list(requests())"], name="s", mode="legacy", max_tools=150)
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(many)
        assert len(toolkit.tools) == 150
        assert many.stderr().count("p") == 2


@pytest.mark.slow
def test_an_answer_that_is_too_long_is_that_calls_problem() -> None:
    script = """
for request in requests():
    if request["params"]["arguments"]["text"] == "long":
        write(line(request, {"content": [{"type": "text", "text": "x" * 3_000_000}]}) + "\\n")
    else:
        write(answer_to(request) + "\\n")
"""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script, call_timeout=1.0, max_message=MEGABYTE))
        long = toolkit.call_sync("echo", {"text": "long"})
        assert long.status is Status.TIMEOUT
        assert long.error is not None
        assert "longer than 1,048,576 bytes" in long.error.details["stderr"]
        assert toolkit.call_sync("echo", {"text": "short"}).text == "short"
