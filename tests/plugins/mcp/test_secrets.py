"""Secrets of a server: nothing that is said about it shows how it is reached, whatever the server quotes."""

import json
import logging
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from pegboard import ApprovalRequest, Status, Toolkit
from pegboard_mcp import McpServer
from tests.plugins.mcp.test_pipes import BEGIN
from tests.support.secrets import FORMS, SECRET, leaked
from tests.support.thinning import first

pytestmark = pytest.mark.usefixtures("nothing_left")

ASCII = "s3cr3t/+&\"'\\key"
"""What a header and a URL can hold."""


class _Refusing(BaseHTTPRequestHandler):
    """Answers every request with an error that quotes all of it."""

    status = 401

    def _refuse(self) -> None:
        body = json.dumps({"url": self.path, "headers": dict(self.headers)}).encode()
        self.send_response(self.status, f"no {quote(ASCII)} please")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _refuse

    def log_message(self, *said: Any) -> None: ...


@contextmanager
def refusing(code: int) -> Iterator[str]:
    """The address of a server that refuses everything."""
    web = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Refusing,), {"status": code}))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{web.server_address[1]}"
    finally:
        web.shutdown()
        web.server_close()


LOGIN: Any = httpx2.BasicAuth("ann", ASCII)
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "password": (f"http://ann:{quote(ASCII, safe='')}@HOST/mcp", {}),
    "token for a user": (f"http://{quote(ASCII, safe='')}@HOST/mcp", {}),
    "query": (f"http://HOST/mcp?token={quote(ASCII, safe='')}", {}),
    "bare query": (f"http://HOST/mcp?{quote(ASCII, safe='')}", {}),
    "variable in the path": ("http://HOST/${PEGBOARD_TEST_TOKEN}/mcp", {}),
    "header": ("http://HOST/mcp", {"headers": {"X-Key": ASCII}}),
    "Bearer": ("http://HOST/mcp", {"headers": {"Authorization": f"Bearer {ASCII}"}}),
    "Basic": (
        "http://HOST/mcp",
        {"headers": {"Authorization": "Basic " + b64encode(f"ann:{ASCII}".encode()).decode()}},
    ),
    "auth": ("http://HOST/mcp", {"auth": LOGIN}),
}


@pytest.mark.parametrize("code", [401, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", first(3, WAYS))
@pytest.mark.parametrize("kind", [pytest.param("http", marks=pytest.mark.slow), "sse"])
def test_an_address_that_refuses(
    kind: str, way: str, code: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_TEST_TOKEN", quote(ASCII, safe=""))
    url, options = WAYS[way]
    with refusing(code) as host, caplog.at_level(logging.DEBUG), Toolkit(plugins=()) as toolkit:
        make: Callable[..., McpServer] = getattr(McpServer, kind)
        server = make(url.replace("HOST", host), mode="legacy", connect_timeout=60.0, **options)
        toolkit.register(server)
        shown = f"{toolkit.problems} {server.problems} {toolkit.sources} {server!r} {server.transport!r}"
        shown += f" {server.stderr()} {caplog.text}"
    assert str(code) in shown
    assert leaked(shown, ASCII) == []


def server(script: str, **options: Any) -> McpServer:
    return McpServer.stdio(sys.executable, ["-c", BEGIN + script], name="s", mode="legacy", **options)


FAIL = """
import base64
key, form = os.environ["KEY"], os.environ["FORM"]
"""
QUOTING: dict[str, str] = {
    "an error": "write(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'error': {'code': -1, 'message': form}}))",
    "a failed call": "write(line(request, {'isError': True, 'content': [{'type': 'text', 'text': form}]}))",
    "its link": "write(line(request, {'isError': True, 'content': [{'type': 'resource_link', 'uri': 'https://a/', "
    "'name': form, 'description': form}]}))",
    "its data": "write(line(request, {'isError': True, 'content': [], 'structuredContent': {'a': [form]}}))",
    "its metadata": "write(line(request, {'isError': True, 'content': [], '_meta': {'a': {'b': form}}}))",
    "an answer that does not fit": "write(line(request, {'content': [{'type': 'text', 'text': form}], "
    "'structuredContent': {'n': form}}))",
    "its stderr": "sys.stderr.write(form + '\\n'); sys.stderr.flush(); os._exit(1)",
    "the end of its stderr": "sys.stderr.write('x' * 9_000 + form + 'y' * (1_000 - len(form) // 2) + '\\n'); "
    "sys.stderr.flush(); os._exit(1)",
    "its stdout": "write(form + '\\n'); os._exit(1)",
}


@pytest.mark.slow
@pytest.mark.parametrize("channel", QUOTING)
def test_a_server_that_quotes_its_key(channel: str, caplog: pytest.LogCaptureFixture) -> None:
    script = BEGIN.replace('"inputSchema": TEXT', '"inputSchema": TEXT, "outputSchema": STRICT')
    script = script.replace("TEXT =", 'STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}}\nTEXT =')
    script += "forms = json.loads(os.environ['FORMS'])\nfor request in requests():\n"
    script += f"    form = forms[request['params']['arguments']['text']]\n    {QUOTING[channel]}\n    write('\\n')\n"
    forms = {name: write(SECRET) for name, write in FORMS.items()}
    env = {"KEY": SECRET, "FORMS": json.dumps(forms), "DEBUG": "1"}
    quoting = McpServer.stdio(sys.executable, ["-c", script], name="s", mode="legacy", env=env)
    with Toolkit(plugins=()) as toolkit, caplog.at_level(logging.DEBUG):
        toolkit.register(quoting)
        for form in FORMS:
            result = toolkit.call_sync("echo", {"text": form})
            assert result.status is Status.ERROR
            error = result.error
            shown = f"{result.to_dict()} {result!r} {error and (error.message, error.details)} {quoting.problems}"
            assert (form, leaked(shown)) == (form, [])
            quoting.refresh()
        assert leaked(caplog.text) == []


LISTS: dict[str, str] = {
    "the name of a tool": '{"name": KEY, "inputSchema": {"type": "array"}}',
    "what is no tool": '{"name": KEY}',
    "a schema": '{"name": "a", "inputSchema": {"type": "object", "properties": {"a": {"type": KEY}}}}',
    "an output schema": '{"name": "a", "inputSchema": TEXT, "outputSchema": {"type": "object", "required": KEY}}',
}


@pytest.mark.parametrize("channel", LISTS)
def test_a_list_that_quotes_the_key(channel: str) -> None:
    script = BEGIN.replace('{"name": "echo", "inputSchema": TEXT}', LISTS[channel])
    script = script.replace("TEXT =", "KEY = os.environ['KEY']\nTEXT =") + "list(requests())\n"
    with Toolkit(plugins=()) as toolkit:
        listing = McpServer.stdio(sys.executable, ["-c", script], name="s", mode="legacy", env={"KEY": SECRET})
        toolkit.register(listing)
        assert toolkit.problems
        assert leaked(f"{toolkit.problems} {listing.problems} {toolkit.sources}") == []


def test_progress_and_questions_that_quote_the_key() -> None:
    script = """
for request in requests():
    token = request["params"].get("_meta", {}).get("progressToken", 0)
    told = {"progressToken": token, "progress": 1, "message": os.environ["KEY"]}
    write(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": told}) + "\\n")
    form = {"type": "object", "properties": {}}
    asked = {"message": f"May I use {os.environ['KEY']}?", "requestedSchema": form}
    write(json.dumps({"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": asked}) + "\\n")
    sys.stdin.readline()
    write(answer_to(request) + "\\n")
"""
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    chunks: list[str] = []
    with Toolkit(plugins=(), approver=approver) as toolkit:
        toolkit.register(server(script, env={"KEY": SECRET}))
        toolkit.call_sync("echo", {"text": "a"}, on_chunk=lambda chunk: chunks.append(chunk.text))
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script, env={"KEY": SECRET}))
        suspended = toolkit.call_sync("echo", {"text": "a"})
    assert suspended.status is Status.SUSPENDED
    assert [chunks, [request.reason for request in asked]] == [["***"], ["May I use ***?"]]
    assert leaked(f"{suspended!r} {suspended.to_dict()}") == []


def test_arguments_read_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_TEST_TOKEN", SECRET)
    away = McpServer.stdio(
        sys.executable, ["-c", "import sys; sys.exit(' '.join(sys.argv))", "--token=${PEGBOARD_TEST_TOKEN}"], name="s"
    )
    away.refresh()
    assert "--token=***" in away.problems[0]
    assert leaked(f"{away.problems} {away.transport!r}") == []
    away.close()


def test_short_values_are_no_secrets_but_a_short_password_is_one() -> None:
    numbers = McpServer.stdio("python", env={"DEBUG": "1", "MODE": "dev", "EMPTY": ""})
    assert numbers.redact("1 dev") == "1 dev"
    assert McpServer.http("https://ann:abc@example.com/mcp?v=2").redact("anything") == "***"


def test_the_url_that_is_asked_has_no_login() -> None:
    from pegboard_mcp._client.secrets import without_login

    assert without_login("https://a%40b:c%2Fd@example.com:1/x?y=z") == ("https://example.com:1/x?y=z", ("a@b", "c/d"))
    assert without_login("https://example.com/x") == ("https://example.com/x", None)
