"""Servers over stdin and stdout: what is read and written, and what becomes of the process."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Status, Toolkit
from pegboard_mcp import McpServer
from pegboard_mcp._wire.direct import Direct
from pegboard_mcp._wire.pipes import _Process
from pegboard_mcp._wire.unrequested import Tail
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("nothing_left")

BEGIN = '''
import json, os, sys, time

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}

def line(request, result):
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})

def answer_to(request):
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
        write(junk.join(answer_to(each).encode().replace(b"?", b"\xff") + b"\r\n" for each in waiting))
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
        toolkit.register(server("for request in requests():\n    write(answer_to(request) + '\\n')\n    os._exit(0)"))
        assert toolkit.call_sync("echo", {"text": "last words"}).text == "last words"


@pytest.mark.slow
def test_a_server_that_closes_its_stdin_is_started_again() -> None:
    script = """
for request in requests():
    os.close(0)
    request["params"]["arguments"]["text"] = str(os.getpid())
    write(answer_to(request) + '\\n')
    time.sleep(600)
"""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script))
        results = [toolkit.call_sync("echo", {"text": "x"}) for _ in range(4)]
        assert {result.status for result in results} == {Status.SUCCESS}  # what cannot be sent goes to another one
        assert len({result.text for result in results}) == 4


def test_an_answer_that_is_no_message_is_shown() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("for request in requests():\n    write('Warning: wet paint\\n')", call_timeout=0.5))
        result = toolkit.call_sync("echo", {"text": ""})
        assert result.status is Status.TIMEOUT
        assert result.error is not None
        assert result.error.details["stderr"] == "(on stdout, not a message) Warning: wet paint"


def test_a_line_has_an_end() -> None:
    script = """
for request in requests():
    if request["params"]["arguments"]["text"] == "long":
        write(answer_to(request)[:-1] + " " * 2_000_000 + "}\\n")
    else:
        write(answer_to(request) + "\\n")
"""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script, call_timeout=0.5, max_message=100_000))
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
        toolkit.register(server("for request in requests():\n    write(answer_to(request) + '\\n')"))
        assert toolkit.call_sync("echo", {"text": "\ud800"}).is_error
        assert toolkit.call_sync("echo", {"text": "still here"}).text == "still here"


def test_the_environment_is_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_SECRET", "s3cret")
    script = """
for request in requests():
    seen = [os.environ.get("A"), os.environ.get("PEGBOARD_SECRET")]
    request["params"]["arguments"]["text"] = os.getcwd() + repr(seen)
    write(answer_to(request) + "\\n")
"""
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server(script, env={"A": "1"}, cwd=str(tmp_path)))
        assert toolkit.call_sync("echo", {"text": ""}).text == f"{tmp_path}['1', None]"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="asyncio asks no policy for a child watcher any more")
def test_a_policy_without_child_watcher_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise NotImplementedError  # as the policy of uvloop does

    monkeypatch.setattr(asyncio.get_event_loop_policy(), "get_child_watcher", none)
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server("time.sleep(9)"))
        (problem,) = toolkit.problems
        assert "the event loop policy of this program" in problem
        assert "uvloop.run" in problem


def test_a_process_that_ended_unseen_leaves_nothing_open() -> None:
    tail = Tail()

    async def main() -> None:
        def process() -> Any:
            return _Process(tail, Direct(lambda: None), 1_000)

        start = asyncio.get_running_loop().subprocess_exec
        transport, _ = await start(process, sys.executable, "-c", "exit(1)", stderr=None)
        await until(transport.is_closing, 20)  # or else it complains when it is collected

    asyncio.run(main())
    tail.close()
