"""The server's standard streams: what they are connected to, and how much goes through them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import pytest

from pegboard import Toolkit
from pegboard_mcp import McpServer
from tests.support.waiting import eventually, within
from tests.support.warm import warm_python

PROGRAM = """
import subprocess, sys
from pegboard import Toolkit, tool
from pegboard_mcp import serve_mcp

@tool(read_only=True)
def echo(text: str, times: int = 1) -> str:
    "Say it again."
    print("stray", flush=True)
    subprocess.run([sys.executable, "-c", "print('of a child', len(open(0).read()))"], check=True)
    return text * times

@tool(read_only=True)
def quick(text: str, times: int = 1) -> str:
    "Say it again."
    return text * times

with Toolkit(plugins=()) as toolkit:
    toolkit.register(echo, quick)
    serve_mcp(toolkit)
"""
ARGUMENTS = ["-c", PROGRAM]
CLIENT = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
HELLO: Final[list[dict[str, Any]]] = [
    {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", **CLIENT}},
    {"method": "notifications/initialized"},
]


def lines(*messages: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps({"jsonrpc": "2.0", **each}).encode() for each in messages)


def call(number: int, name: str = "quick", **arguments: Any) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def texts(output: IO[bytes], count: int) -> Iterator[tuple[int, str]]:
    """The numbers and texts of the answers to calls, as many as there are to come."""
    while count:
        answer = json.loads(output.readline())
        if answer.get("id"):
            count -= 1
            yield answer["id"], answer["result"]["content"][0]["text"]


@pytest.mark.slow
def test_large_messages_go_both_ways() -> None:
    text = "ü" * 1_500_000
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.stdio(warm_python(), ARGUMENTS))
        assert within(lambda: toolkit.call_sync("quick", {"text": text})).text == text


def test_what_tools_and_their_processes_print_is_no_message() -> None:
    with Toolkit(plugins=()) as toolkit:
        server = McpServer.stdio(warm_python(), ARGUMENTS)
        toolkit.register(server)
        assert within(lambda: toolkit.call_sync("echo", {"text": "hello"})).text == "hello"
        assert eventually(lambda: "stray" in server.stderr())  # which comes by another pipe than the answer
        assert eventually(lambda: "of a child 0" in server.stderr())


@pytest.mark.parametrize("end", [b"\n", *(pytest.param(end, marks=pytest.mark.slow) for end in (b"\r\n", b""))])
def test_a_file_is_read_to_its_end(tmp_path: Path, end: bytes) -> None:
    (tmp_path / "in.jsonl").write_bytes(lines(*HELLO, call(1, text="a"), {"id": 2, "method": "ping"}) + end)
    with (tmp_path / "in.jsonl").open("rb") as given:
        ran = subprocess.run([warm_python(), *ARGUMENTS], stdin=given, capture_output=True, timeout=60, check=True)
    answers = {each["id"]: each for each in map(json.loads, ran.stdout.splitlines())}
    # The end of the input ends what is under way.
    assert answers[0]["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("streams", ["pipes", pytest.param("sockets", marks=pytest.mark.slow)])
def test_a_client_that_reads_late_loses_nothing(streams: str) -> None:
    """What does not fit into the pipe waits, and so does nothing else."""
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        output = theirs.fileno() if streams == "sockets" else subprocess.PIPE
        process = subprocess.Popen([warm_python(), *ARGUMENTS], stdin=subprocess.PIPE, stdout=output)
        theirs.close()
        try:
            assert process.stdin is not None
            answers = ours.makefile("rb") if streams == "sockets" else process.stdout
            assert answers is not None
            process.stdin.write(lines(*HELLO, *(call(n, text=f"{n} ", times=10_000) for n in range(1, 41))) + b"\n")
            process.stdin.flush()
            with answers:
                found = within(lambda: dict(texts(answers, 40)))
            assert found == {n: f"{n} " * 10_000 for n in range(1, 41)}
        finally:
            process.kill()
            process.communicate()
