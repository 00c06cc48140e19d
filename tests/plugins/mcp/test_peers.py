"""Real servers on the board, and a real client in front of it."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer
from tests.plugins.mcp import peers

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]


@contextmanager
def board_with(server: McpServer, left_out: tuple[str, ...] = (), **options: Any) -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server, **options)
        assert [problem.partition("' is left out: ")[0].rpartition("'")[2] for problem in toolkit.problems] == [
            *left_out
        ]
        yield toolkit


def node_server(package: str, *arguments: str) -> McpServer:
    script = peers.node_peer(package, "dist/index.js")
    return McpServer.stdio(peers.node(), [script, *arguments], name=package)


def test_time() -> None:
    with board_with(McpServer.stdio(peers.python_peer("mcp-server-time"))) as toolkit:
        result = toolkit.call_sync(
            "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        )
        assert result.status is Status.SUCCESS
        assert "21:00" in result.text


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("new", encoding="utf-8")
    server = McpServer.stdio(peers.python_peer("mcp-server-git"), ["--repository", str(tmp_path)])
    with board_with(server, presets={"git_status": {"repo_path": str(tmp_path)}}, enable=["git_status"]) as toolkit:
        assert toolkit["git_status"].parameters["properties"] == {}
        assert "new.txt" in toolkit.call_sync("git_status").text


def test_filesystem(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    with board_with(node_server("server-filesystem", str(tmp_path))) as toolkit:
        assert toolkit["read_text_file"].hints.read_only
        result = toolkit.call_sync("read_text_file", {"path": str(tmp_path / "a.txt")})
        assert (result.text, result.data) == ("hello", {"content": "hello"})
        assert toolkit.call_sync("read_text_file", {"path": "/etc/hostname"}).status is Status.ERROR


def test_memory() -> None:
    with board_with(node_server("server-memory"), prefix="memory__") as toolkit:
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
        assert toolkit.call_sync("memory__create_entities", {"entities": [entity]}).status is Status.SUCCESS
        assert toolkit.call_sync("memory__delete_entities", {"entityNames": ["Ada"]}).status is Status.SUCCESS


@contextmanager
def everything(transport: str) -> Iterator[McpServer]:
    script = peers.node_peer("server-everything", "dist/index.js")
    if transport == "stdio":
        yield McpServer.stdio(peers.node(), [script], name="everything")
        return
    import os
    import socket
    import time

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [peers.node(), script, transport],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        if transport == "sse":
            yield McpServer.sse(f"http://127.0.0.1:{port}/sse", name="everything")
        else:
            yield McpServer.http(f"http://127.0.0.1:{port}/mcp", name="everything")
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.parametrize("transport", ["stdio", "streamableHttp", "sse"])
def test_everything(transport: str) -> None:
    with everything(transport) as server, board_with(server, ("simulate-research-query",)) as toolkit:
        assert toolkit.call_sync("echo", {"message": "hello"}).text == "Echo: hello"
        image = toolkit.call_sync("get-tiny-image")
        assert [block.kind for block in image.content if block.kind == "image"] == ["image"]
        chunks: list[str] = []
        done = toolkit.call_sync(
            "trigger-long-running-operation",
            {"duration": 1, "steps": 2},
            on_chunk=lambda chunk: chunks.append(chunk.text),
        )
        assert (done.status, len(chunks)) == (Status.SUCCESS, 2)


def inspect(*arguments: str) -> Any:
    script = peers.node_peer(*peers.INSPECTOR)
    board = str(Path(__file__).with_name("noisy_board.py"))
    command = [peers.node(), script, *arguments, "--", sys.executable, board]
    run = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return json.loads(re.sub(r"^[^{]*", "", run.stdout))


def test_the_inspector_lists_and_calls() -> None:
    tools = inspect("--method", "tools/list")["tools"]
    assert [each["name"] for each in tools] == ["shout", "read_stdin", "hang", "crash", "add", "echo"]
    called = inspect("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=1", "b=2")
    assert called["structuredContent"] == {"result": 3}
