"""Serving by a process of its own: over stdio and over HTTP, until the client goes or a signal comes."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pegboard import ExecutionPolicy, PegboardError, Status, Toolkit
from pegboard_mcp import McpServer, serve_mcp
from pegboard_mcp._guard import check_address, is_loopback, parse_address

both_eras = pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
SCRIPT = str(Path(__file__).with_name("noisy_board.py"))


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SCRIPT, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


@contextmanager
def over_http(**environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = start("127.0.0.1:0", **environment)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        yield process, found.group()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("nothing_left")
class TestStdio:
    @both_eras
    def test_tools_that_misbehave_do_not_hurt_the_protocol(self, mode: str) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.stdio(sys.executable, [SCRIPT], mode=mode))
            assert toolkit.call_sync("shout", {"text": '{"jsonrpc": "2.0"}'}).text == '{"jsonrpc": "2.0"}'
            assert toolkit.call_sync("read_stdin").text == ""
            assert "crashed" in toolkit.call_sync("crash").text
            hung = toolkit.call_sync("hang", policy=ExecutionPolicy(timeout=0.2))
            assert hung.status is Status.TIMEOUT
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3

    @pytest.mark.parametrize(
        "how",
        [
            pytest.param(signal.SIGTERM, id="SIGTERM"),
            pytest.param(signal.SIGINT, id="SIGINT", marks=pytest.mark.slow),
            pytest.param(None, id="EOF", marks=pytest.mark.slow),
        ],
    )
    def test_ends_cleanly(self, how: signal.Signals | None) -> None:
        process = start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert '"id":1' in process.stdout.readline()
        if how is not None:
            process.send_signal(how)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, out, err) == (0, "", "served\n")


class TestHttp:
    @pytest.mark.usefixtures("nothing_left")
    @both_eras
    def test_serves_both_eras(self, mode: str) -> None:
        with over_http() as (process, url), Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.http(url, mode=mode))
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
            assert toolkit.call_sync("echo", {"text": "x" * 3_000_000}).text == "x" * 3_000_000
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).status is Status.ERROR
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).status is Status.ERROR

    def test_asks_for_the_token(self) -> None:
        with over_http(TOKEN="s3cret") as (_, url), Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.http(url, name="bare"), prefix="bare_")
            toolkit.register(McpServer.http(url, headers={"Authorization": "Bearer s3creT"}, name="false"), prefix="f_")
            toolkit.register(McpServer.http(url, headers={"Authorization": "Bearer s3cret"}, name="good"), prefix="g_")
            assert [bool(source.tools) for source in toolkit.sources] == [False, False, True]
            assert "401" in toolkit.sources[0].problems[0]
            assert toolkit.call_sync("g_add", {"a": 1, "b": 2}).data == 3

    @pytest.mark.parametrize(
        ("header", "value"), [("Host", "evil.example"), ("Origin", "http://evil.example")], ids=["host", "origin"]
    )
    def test_refuses_pages_of_others(self, header: str, value: str) -> None:
        import httpx2

        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        with over_http() as (_, url):
            assert httpx2.post(url, json=message, headers={**accept, header: value}).status_code in (403, 421)

    @pytest.mark.parametrize("token", [None, "", "  "])
    def test_refuses_an_address_that_others_reach(self, token: str | None) -> None:
        with pytest.raises(PegboardError, match="can be reached from other machines"):
            serve_mcp(Toolkit(plugins=()), http="0.0.0.0:0", token=token)

    def test_says_that_an_address_is_taken(self) -> None:
        with over_http() as (_, url), pytest.raises(PegboardError, match=r"cannot serve at 127\.0\.0\.1"):
            serve_mcp(Toolkit(plugins=()), http=url.removeprefix("http://").removesuffix("/mcp"))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.1.1", "localhost.example.com", "")),
    ],
)
def test_knows_its_own_addresses(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    check_address(host, "token")


def test_reads_addresses() -> None:
    assert parse_address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert parse_address("[::1]:0") == ("::1", 0)
    for wrong in ("127.0.0.1", ":80", "host:", "host:x", "host:70000"):
        with pytest.raises(PegboardError, match="write HOST:PORT"):
            parse_address(wrong)


class TestCommand:
    def test_serves_what_is_installed(self, tmp_path: Path) -> None:
        (tmp_path / "mcp.json").write_text(
            f'{{"mcpServers": {{"far": {{"command": "{sys.executable}", "args": ["{SCRIPT}"]}}}}}}', encoding="utf-8"
        )
        code = "from pegboard_mcp._command import run; import sys; sys.exit(run(sys.argv[1:]))"
        command = ["-c", code, "--mcp", str(tmp_path / "mcp.json"), "--tools", "far__add"]
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.stdio(sys.executable, command, env={"PEGBOARD_PLUGINS": ""}))
            assert [tool.name for tool in toolkit.tools] == ["far__add"]
            assert toolkit.call_sync("far__add", {"a": 1, "b": 2}).data == 3

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--tools", "nothing"], "nothing"),
            (["--http", "0.0.0.0:0"], "can be reached from other machines"),
            (["--http", "127.0.0.1:0", "--stdio"], "exclude each other"),
            (["--mcp", "none.json"], "none.json cannot be read"),
        ],
    )
    def test_says_what_it_cannot_serve(
        self, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pegboard_mcp._command import run

        monkeypatch.setenv("PEGBOARD_PLUGINS", "")
        monkeypatch.delenv("PEGBOARD_MCP_TOKEN", raising=False)
        assert run(arguments) == 1
        out, err = capfd.readouterr()
        assert (out, message in err) == ("", True)
