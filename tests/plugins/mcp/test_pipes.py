"""Servers over stdin and stdout: what is read and written, and what becomes of the process."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Status, Toolkit
from pegboard_mcp import McpServer, _pipes

pytestmark = pytest.mark.usefixtures("nothing_left")

BEGIN = '''
import json, os, sys, time

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}

def line(request, result):
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})

def said(request):
    return line(request, {"content": [{"type": "text", "text": request["params"]["arguments"]["text"][:99]}]})

def write(text):
    sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode())
    sys.stdout.buffer.flush()

def requests():
    """Those of tools; the rest is answered."""
    for sent in sys.stdin:
        request = json.loads(sent)
        method = request["method"]
        if method == "initialize":
            info = {"name": "s", "version": "1"}
            known = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            write(line(request, known) + "\\n")
        elif method == "tools/list":
            write(line(request, {"tools": [{"name": "echo", "inputSchema": TEXT}]}) + "\\n")
        elif method == "tools/call":
            yield request
        elif "id" in request:
            write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}))
            write("\\n")
'''


def server(script: str, **options: Any) -> McpServer:
    return McpServer.stdio(sys.executable, ["-c", BEGIN + script], name="s", mode="legacy", **options)


def test_one_read_holds_many_messages_and_much_that_is_none() -> None:
    script = r"""
waiting = []
for request in requests():
    waiting.append(request)
    if len(waiting) == 20:
        junk = b"\n\r\n{}\n[]\nnull\n\xff\xfe\n" + b"x" * 100_000 + b"\n"
        write(junk.join(said(each).encode().replace(b"?", b"\xff") + b"\r\n" for each in waiting))
        waiting.clear()
"""

    async def texts() -> list[str]:
        async with Toolkit(plugins=()) as toolkit:
            s = server(script)
            await s.connect()
            toolkit.register(s)
            calls = [("echo", {"text": f"{number}?"}) for number in range(20)]
            return [result.text for result in await toolkit.call_many(calls)]

    # A byte that is no UTF-8 costs a character, and not the message.
    assert asyncio.run(texts()) == [f"{number}�" for number in range(20)]


def test_an_answer_counts_though_the_server_is_gone() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("for request in requests():\n    write(said(request) + '\\n')\n    os._exit(0)"))
        assert toolkit.call_sync("echo", {"text": "last words"}).text == "last words"


@pytest.mark.slow
def test_a_server_that_closes_its_stdin_is_started_again() -> None:
    script = "for request in requests():\n    os.close(0)\n    write(said(request) + '\\n')\n    time.sleep(600)"
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script))
        results = [toolkit.call_sync("echo", {"text": "x"}) for _ in range(4)]
        kinds = [result.error.kind if result.error else "" for result in results]
        assert kinds[0] == ""
        assert "connection_lost" in kinds  # nothing that was sent is sent again
        assert kinds.count("") == 2


def test_an_answer_that_is_no_message_is_shown() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("for request in requests():\n    write('Warning: wet paint\\n')", call_timeout=0.5))
        result = toolkit.call_sync("echo", {"text": ""})
        assert result.status is Status.TIMEOUT
        assert result.error is not None
        assert result.error.details["stderr"] == "(on stdout, not a message) Warning: wet paint"


def test_a_line_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pipes, "LONGEST", 100_000)
    script = """
for request in requests():
    if request["params"]["arguments"]["text"] == "long":
        write(said(request)[:-1] + " " * 2_000_000 + "}\\n")
    else:
        write(said(request) + "\\n")
"""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script, call_timeout=0.5))
        assert toolkit.call_sync("echo", {"text": "long"}).status is Status.TIMEOUT
        assert toolkit.call_sync("echo", {"text": "short"}).text == "short"


@pytest.mark.slow
def test_a_server_that_does_not_read_ends_in_timeouts() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("for request in requests():\n    time.sleep(600)", call_timeout=0.3))
        policy = ExecutionPolicy(timeout=1.0)
        large = {"text": "x" * 300_000}
        results = [toolkit.call_sync("echo", large, policy=policy) for _ in range(3)]
        assert {result.status for result in results} == {Status.TIMEOUT}


def test_text_that_cannot_be_written_fails_alone() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("for request in requests():\n    write(said(request) + '\\n')"))
        assert toolkit.call_sync("echo", {"text": "\ud800"}).is_error
        assert toolkit.call_sync("echo", {"text": "still here"}).text == "still here"


def test_the_environment_is_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_SECRET", "s3cret")
    script = """
for request in requests():
    seen = [os.environ.get("A"), os.environ.get("PEGBOARD_SECRET")]
    request["params"]["arguments"]["text"] = os.getcwd() + repr(seen)
    write(said(request) + "\\n")
"""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script, env={"A": "1"}, cwd=str(tmp_path)))
        assert toolkit.call_sync("echo", {"text": ""}).text == f"{tmp_path}['1', None]"
