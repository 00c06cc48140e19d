"""Requests over HTTP by the newer protocol: each is posted from its caller's own loop, and read there."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from mcp.client import streamable_http

from pegboard import Status, Toolkit, ToolResult
from pegboard_mcp import McpServer
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("nothing_left")

VERSION = "2026-07-28"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
CACHED = {"ttlMs": 0, "cacheScope": "private"}
STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


class Server(ThreadingHTTPServer):
    """A server of the newer protocol with the tool `echo`; `answers` are of its calls, by their text."""

    daemon_threads = True
    request_queue_size = 50

    def __init__(self, schema: dict[str, Any], moved: bool) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tool = {"name": "echo", "description": "Echo.", "inputSchema": schema}
        self.moved = moved
        self.ports: list[int] = []
        self.headers: list[dict[str, str]] = []
        self.left = threading.Event()
        self.begun = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.moved and self.path == "/mcp":
            self.send(307, {"location": "/mcp/"})
            return
        match request["method"]:
            case "server/discover":
                info = {
                    "capabilities": {"tools": {}},
                    "supportedVersions": [VERSION],
                    "ttlMs": 0,
                    "cacheScope": "private",
                }
                self.answer(
                    request, {**info, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}}
                )
            case "tools/list":
                self.answer(request, {"tools": [self.server.tool], "ttlMs": 0, "cacheScope": "private"})
            case "tools/call":
                self.server.ports.append(self.client_address[1])
                self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.call(request, request["params"]["arguments"]["text"])

    def call(self, request: dict[str, Any], text: str) -> None:
        echo = {"content": [{"type": "text", "text": text}]}
        match text:
            case "streamed":
                told = {"level": "info", "data": "it begins"}
                self.send(200, STREAM, event("notifications/message", told) + answer_event(request, echo))
            case "slow":
                self.server.begun.set()
                time.sleep(0.1)
                self.answer(request, echo)
            case "gone":
                self.close_connection = True
            case "for ever":
                self.rfile.read(1)  # it ends when the client does
                self.server.left.set()
                self.close_connection = True
            case _ if text in FIXED:
                self.send(*FIXED[text])
            case _:
                self.answer(request, echo)

    def answer(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        whole = {"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **result}}
        self.send(200, JSON, json.dumps(whole).encode())

    def send(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def event(method: str, params: dict[str, Any]) -> bytes:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params})}\n\n".encode()


def answer_event(request: dict[str, Any], result: dict[str, Any]) -> bytes:
    whole = {"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **result}}
    return f"data: {json.dumps(whole)}\n\n".encode()


ERROR = {"jsonrpc": "2.0", "id": None, "error": {"code": -32050, "message": "the disk is full"}}
FIXED: dict[str, tuple[int, dict[str, str], bytes]] = {
    "broken": (200, STREAM, event("notifications/message", {"level": "info", "data": "it broke off"})),
    "no json": (200, JSON, b"<html>"),
    "no type": (200, {"content-type": "text/plain"}, b"hello"),
    "accepted": (202, {}, b""),
    "error": (400, JSON, json.dumps(ERROR).encode()),
    "failed": (500, {"content-type": "text/html"}, b"<h1>Oh</h1>"),
}


@contextmanager
def running(schema: dict[str, Any] = TEXT, moved: bool = False) -> Iterator[tuple[Server, Toolkit, McpServer]]:
    with Server(schema, moved) as server, Toolkit(plugins=()) as toolkit:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            far = McpServer.http(server.url, name="s")
            toolkit.register(far)
            yield server, toolkit, far
            toolkit.close()
        finally:
            server.shutdown()
            thread.join()


async def echoed(toolkit: Toolkit, *texts: str) -> list[ToolResult]:
    return await asyncio.gather(*(toolkit.call("echo", {"text": text}) for text in texts))


def test_loops_one_after_the_other_and_at_once() -> None:
    """A loop that ends closes its connections; ResourceWarning is an error here."""
    texts = [str(number) for number in range(8)]

    def on_a_loop() -> list[str]:
        return [result.text for result in asyncio.run(echoed(toolkit, *texts))]

    with running() as (_, toolkit, _), ThreadPoolExecutor(3) as threads:
        assert [on_a_loop() for _ in range(3)] == [texts] * 3
        assert [each.result(60) for each in [threads.submit(on_a_loop) for _ in range(3)]] == [texts] * 3
        assert toolkit.call_sync("echo", {"text": "by the way"}).text == "by the way"


def test_a_toolkit_that_is_closed_on_a_loop_closes_its_connections_there() -> None:
    async def main() -> list[str]:
        with running() as (_, toolkit, _):
            first = [result.text for result in await echoed(toolkit, "1", "2")]
        await asyncio.sleep(0.05)
        return first

    assert asyncio.run(main()) == ["1", "2"]


@pytest.mark.slow
def test_more_calls_than_connections_wait_for_one() -> None:
    with running() as (server, toolkit, _):
        results = asyncio.run(echoed(toolkit, *["slow"] * 130))
    assert {result.text for result in results} == {"slow"}
    assert len(set(server.ports)) <= 100


def test_a_connection_is_used_again() -> None:
    async def main() -> None:
        for _ in range(5):
            await echoed(toolkit, "x")

    with running() as (server, toolkit, _):
        asyncio.run(main())
    assert len(server.ports) == 5
    assert len(set(server.ports)) == 1


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("broken", "connection_lost", "the connection to the MCP server 's' ended during the call"),
        ("gone", "connection_lost", "the connection to the MCP server 's' ended during the call"),
        ("no json", "protocol", "Failed to parse the response"),
        ("no type", "protocol", "Unexpected content type: text/plain"),
        ("accepted", "protocol", "it answered a request with status 202"),
        ("error", "protocol", "the disk is full"),
        ("failed", "protocol", "Server returned an error response"),
    ],
)
def test_what_is_no_answer_is_an_error_and_the_next_call_works(text: str, kind: str, why: str) -> None:
    with running() as (_, toolkit, far):
        failed, fine = asyncio.run(echoed(toolkit, text, "fine"))
        assert toolkit.call_sync("echo", {"text": "later"}).text == "later"
        log = [line.text for line in far.log() if line.source == "log"]
    assert failed.error is not None
    assert (failed.status, failed.error.kind) == (Status.ERROR, kind)
    assert why in failed.text
    assert fine.text == "fine"
    assert log == (["it broke off"] if text == "broken" else [])


def test_what_is_logged_before_an_answer_is_kept() -> None:
    with running() as (_, toolkit, far):
        (result,) = asyncio.run(echoed(toolkit, "streamed"))
        assert result.text == "streamed"
        assert [(line.text, line.level) for line in far.log() if line.source == "log"] == [("it begins", "info")]


def test_who_is_cancelled_closes_the_response() -> None:
    async def main() -> None:
        call = asyncio.ensure_future(toolkit.call("echo", {"text": "for ever"}))
        await until(lambda: server.headers)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(server.left.is_set)

    with running() as (server, toolkit, _):
        asyncio.run(main())


@pytest.mark.skipif(
    not hasattr(streamable_http, "redirect_location"), reason="this release of the SDK follows no redirects of a POST"
)
def test_a_server_that_has_moved_is_asked_where_it_is() -> None:
    with running(moved=True) as (_, toolkit, _):
        assert [result.text for result in asyncio.run(echoed(toolkit, "1", "2"))] == ["1", "2"]


def test_arguments_that_go_into_headers_do() -> None:
    schema = {**TEXT, "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}
    with running(schema) as (server, toolkit, _):
        assert [result.text for result in asyncio.run(echoed(toolkit, "1"))] == ["1"]
    assert server.headers[0]["mcp-param-text"] == "1"
    assert server.headers[0]["mcp-name"] == "echo"


def test_a_call_is_answered_though_later_ones_go_another_way() -> None:
    """Since a tool with arguments in headers came meanwhile."""
    with running() as (server, toolkit, far), ThreadPoolExecutor(1) as thread:
        toolkit.call_sync("echo", {"text": "1"})
        call = thread.submit(lambda: asyncio.run(echoed(toolkit, "slow")))
        assert server.begun.wait(60)
        server.tool["inputSchema"] = {**TEXT, "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}
        far.refresh()
        assert [result.text for result in call.result(60)] == ["slow"]
        assert toolkit.call_sync("echo", {"text": "2"}).text == "2"
    assert "mcp-param-text" not in server.headers[0]
    assert server.headers[-1]["mcp-param-text"] == "2"
