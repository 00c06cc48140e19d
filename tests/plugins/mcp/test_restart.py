"""A server over HTTP that is started anew: it knows nothing of the sessions before."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pegboard import Status, Toolkit
from pegboard_mcp import McpServer

pytestmark = pytest.mark.usefixtures("nothing_left")

SCRIPT = str(Path(__file__).with_name("noisy_board.py"))


@contextmanager
def served(port: int) -> Iterator[str]:
    command = [sys.executable, SCRIPT, f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        try:
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None
            yield found.group()
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_is_used_again_and_no_call_is_repeated(mode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Toolkit(plugins=()) as toolkit:
        with served(port) as url:
            toolkit.register(McpServer.http(url, mode=mode, connect_timeout=60.0, call_timeout=60.0))
            assert toolkit.call_sync("echo", {"text": "before"}).text == "before"
        with served(port):
            first, second = (toolkit.call_sync("echo", {"text": "after"}) for _ in range(2))
        assert second.text == "after"
        assert first.status in (Status.SUCCESS, Status.ERROR)
        if mode == "legacy":
            assert "has forgotten this session" in first.text
