"""Serving by a process of its own: over stdio and over HTTP, until the client goes or a signal comes."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import ExecutionPolicy, PegboardError, Status, Toolkit, tool
from pegboard_mcp import McpServer, serve_mcp
from pegboard_mcp._auth.guard import check_address, is_loopback, parse_address
from pegboard_mcp._server.serving import bound
from tests.plugins.mcp.over_http import started
from tests.support.waiting import PATIENCE
from tests.support.warm import warm_python

both_eras = pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
PING = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
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
def over_http(python: str = sys.executable, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [python, SCRIPT, "127.0.0.1:0"]
    with started(command, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as found:
        yield found


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address of a server that several tests may ask, for none of them changes it."""
    with over_http(warm_python()) as (_, url):
        yield url


def test_what_is_sent_over_http_does_not_wait_for_more() -> None:
    """An answer in two parts would wait 40 ms for the client's delayed acknowledgement."""
    with bound("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.usefixtures("nothing_left")
class TestStdio:
    @both_eras
    def test_tools_that_misbehave_do_not_hurt_the_protocol(self, mode: str) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.stdio(warm_python(), [SCRIPT], mode=mode))
            assert toolkit.call_sync("shout", {"text": '{"jsonrpc": "2.0"}'}).text == '{"jsonrpc": "2.0"}'
            assert toolkit.call_sync("read_stdin").text == ""
            assert "crashed" in toolkit.call_sync("crash").text
            blocked = toolkit.call_sync("hang", policy=ExecutionPolicy(timeout=0.2))
            assert blocked.status is Status.TIMEOUT
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
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (0, "", "served\n")


class TestHttp:
    @pytest.mark.usefixtures("nothing_left")
    @both_eras
    @pytest.mark.slow
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
        with over_http(warm_python(), TOKEN="s3cret") as (_, url), Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.http(url, name="bare"), prefix="bare_")
            toolkit.register(McpServer.http(url, headers={"Authorization": "Bearer s3creT"}, name="false"), prefix="f_")
            toolkit.register(McpServer.http(url, headers={"Authorization": "Bearer s3cret"}, name="good"), prefix="g_")
            assert [bool(source.tools) for source in toolkit.sources] == [False, False, True]
            assert "401" in toolkit.sources[0].problems[0]
            assert toolkit.call_sync("g_add", {"a": 1, "b": 2}).data == 3

    @pytest.mark.parametrize(
        ("header", "value"), [("Host", "evil.example"), ("Origin", "http://evil.example")], ids=["host", "origin"]
    )
    def test_refuses_pages_of_others(self, served: str, header: str, value: str) -> None:
        import httpx2

        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        assert httpx2.post(served, json=message, headers={**accept, header: value}).status_code in (403, 421)

    @pytest.mark.slow
    def test_an_idle_connection_outlives_the_pools_of_clients(self, served: str) -> None:
        """A client that reuses one at the moment when the server closes it loses its request."""
        connection = http.client.HTTPConnection(served.removeprefix("http://").removesuffix("/mcp"))
        with closing(connection):
            connection.connect()
            first = connection.sock
            for pause in (0, 6):  # the pools of httpx keep one for five seconds
                time.sleep(pause)
                connection.request("POST", "/mcp", PING, ACCEPTED)
                connection.getresponse().read()
                assert connection.sock is first

    @pytest.mark.slow
    def test_the_sdk_s_client_reuses_a_connection_that_was_idle(self, served: str) -> None:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        async def main() -> tuple[list[Any], Any]:
            used: list[Any] = []

            async def note(response: Any) -> None:
                used.append(response.extensions["network_stream"].get_extra_info("client_addr"))

            web = httpx2.AsyncClient(limits=httpx2.Limits(keepalive_expiry=60.0), event_hooks={"response": [note]})
            async with web, Client(streamable_http_client(served, http_client=web)) as client:
                await client.list_tools()
                await asyncio.sleep(6)
                before = list(used)
                await client.list_tools(cache_mode="bypass")
                return before, used[-1]

        before, last = asyncio.run(main())
        assert last in before

    @pytest.mark.parametrize("mode", ["2026-07-28", pytest.param("legacy", marks=pytest.mark.slow)])
    def test_a_client_that_leaves_in_the_middle_of_a_request_costs_one_line(self, mode: str) -> None:
        with over_http() as (process, url):
            assert process.stderr is not None
            host, _, port = url.removeprefix("http://").removesuffix("/mcp").partition(":")
            version = f"Mcp-Protocol-Version: {mode}\r\n" * (mode != "legacy")
            head = "".join(f"{name}: {value}\r\n" for name, value in {**ACCEPTED, "Content-Length": "1000"}.items())
            with socket.create_connection((host, int(port))) as leaving:
                leaving.sendall(f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\n{head}{version}\r\n{{".encode())
                time.sleep(0.2)
            said = process.stderr.readline()
            assert "a client left before its request was complete" in said
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=PATIENCE)[1] == "served\n"

    @pytest.mark.parametrize("token", [None, "", "  "])
    def test_refuses_an_address_that_others_reach(self, token: str | None) -> None:
        with pytest.raises(PegboardError, match="can be reached from other machines"):
            serve_mcp(Toolkit(plugins=()), http="0.0.0.0:0", token=token)

    def test_says_that_an_address_is_taken(self, served: str) -> None:
        with pytest.raises(PegboardError, match=r"cannot serve at 127\.0\.0\.1"):
            serve_mcp(Toolkit(plugins=()), http=served.removeprefix("http://").removesuffix("/mcp"))


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
    @pytest.mark.slow
    def test_serves_what_is_installed(self, tmp_path: Path) -> None:
        far = {"command": sys.executable, "args": [SCRIPT]}
        shelf = {"command": sys.executable, "args": ["-m", "tests.plugins.mcp.library_board"]}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"far": far, "shelf": shelf}}), encoding="utf-8")
        code = "from pegboard_mcp._command.serve import run; import sys; sys.exit(run(sys.argv[1:]))"
        command = ["-c", code, "--mcp", str(tmp_path / "mcp.json"), "--tools", "far__add"]
        with Toolkit(plugins=()) as toolkit:
            server = McpServer.stdio(sys.executable, command, env={"PEGBOARD_PLUGINS": ""})
            toolkit.register(server)
            assert [tool.name for tool in toolkit.tools] == ["far__add"]
            assert toolkit.call_sync("far__add", {"a": 1, "b": 2}).data == 3
            prompts = asyncio.run(server.list_prompts())
            assert [each.name for each in prompts] == ["shelf__review", "shelf__talk", "shelf__named"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--tools", "nothing"], "nothing"),
            (["--http", "0.0.0.0:0"], "can be reached from other machines"),
            (["--http", "127.0.0.1:0", "--stdio"], "exclude each other"),
            (["--mcp", "none.json"], "none.json cannot be read"),
            (["nowhere"], "write MODULE:NAME or FILE.py"),
            (["nowhere:toolkit"], "ModuleNotFoundError"),
            (["nowhere.py"], "FileNotFoundError"),
            (["json:loads"], "TypeError"),
            (["json:JSONDecoder"], "is of type JSONDecoder; name a Toolkit"),
            (["x:y", "--config", "z"], "--config is for the installed board"),
            (["--install", "claude", "--http", "127.0.0.1:1"], "leave out --http"),
        ],
    )
    def test_says_what_it_cannot_serve(
        self, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pegboard_mcp._command.serve import run

        monkeypatch.setenv("PEGBOARD_PLUGINS", "")
        monkeypatch.delenv("PEGBOARD_MCP_TOKEN", raising=False)
        assert run(arguments) == 1
        out, err = capfd.readouterr()
        assert (out, message in err) == ("", True)

    @pytest.mark.parametrize(
        "target",
        [
            "PROGRAM",
            *(pytest.param(each, marks=pytest.mark.slow) for each in ("PROGRAM:made", "program_of_the_test:toolkit")),
        ],
    )
    def test_serves_a_program(self, tmp_path: Path, target: str) -> None:
        (tmp_path / "program_of_the_test.py").write_text(PROGRAM, encoding="utf-8")
        target = target.replace("PROGRAM", str(tmp_path / "program_of_the_test.py"))
        code = "from pegboard_mcp._command.serve import run; import sys; sys.exit(run(sys.argv[1:]))"
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.stdio(warm_python(), ["-c", code, target], cwd=str(tmp_path)))
            assert [tool.name for tool in toolkit.tools] == ["double"]
            assert toolkit.call_sync("double", {"number": 2}).data == 4

    def test_says_why_nothing_is_served(self, capfd: pytest.CaptureFixture[str]) -> None:
        from pegboard_mcp import mcp_server

        with Toolkit(plugins=()) as toolkit:
            mcp_server(toolkit)
            toolkit.register(lambda: 1, name="one", description="One.")
            mcp_server(toolkit)
            mcp_server(toolkit, all_tools=True)
        said = capfd.readouterr().err.splitlines()
        assert len(said) == 2
        assert "the board offers no tools" in said[0]
        assert "none of the 1 tools says read_only=True" in said[1]

    @pytest.mark.slow
    def test_names_what_it_leaves_out(self, tmp_path: Path) -> None:
        pytest.importorskip("pegboard_cli", reason="pegboard-cli has the command")
        (tmp_path / "board.py").write_text(PROGRAM + MORE, encoding="utf-8")
        for option, lines in ((), ["2 of 3 tools left out", "refund, wipe;", "--all"]), (("--all",), []):
            said = subprocess.run(
                [sys.executable, "-m", "pegboard_cli", "serve", str(tmp_path / "board.py"), *option],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=True,
                timeout=PATIENCE,
            )
            assert said.stdout == ""
            assert bool(said.stderr) == bool(lines)
            assert [line for line in lines if line not in said.stderr] == []

    def test_what_is_left_out_is_named_up_to_a_limit(self, capfd: pytest.CaptureFixture[str]) -> None:
        from pegboard_mcp import mcp_server

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(tool(name="looks", description="One.", read_only=True)(lambda: 1))
            for number in range(30):
                toolkit.register(lambda: 1, name=f"acts{number}", description="One.")
            mcp_server(toolkit)
            mcp_server(toolkit, tools=["looks"])
        (line,) = capfd.readouterr().err.splitlines()
        assert "30 of 31 tools left out" in line
        assert "acts19 and 10 more;" in line


PROGRAM = """
from __future__ import annotations
from pegboard import Toolkit, tool

toolkit = Toolkit(plugins=())


@toolkit.register
@tool(read_only=True)
def double(number: int) -> int:
    \"\"\"Twice the number.\"\"\"
    return 2 * number


def made() -> Toolkit:
    return toolkit
"""
MORE = """

@toolkit.register
@tool
def refund(order: int) -> str:
    \"\"\"Pay back.\"\"\"
    return f"paid back {order}"


@toolkit.register
@tool(destructive=True)
def wipe() -> str:
    \"\"\"Remove everything.\"\"\"
    return "removed"
"""


class TestInstall:
    def run(self, *arguments: str) -> int:
        from pegboard_mcp._command.serve import run

        return run(list(arguments))

    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
        monkeypatch.delenv("PEGBOARD_CONFIG", raising=False)
        monkeypatch.setenv("PEGBOARD_PLUGINS", "files")

    def test_a_file_that_cannot_be_served_is_not_installed(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "notes.py").write_text("nothing = 1", encoding="utf-8")
        (tmp_path / "board.py").write_text(PROGRAM, encoding="utf-8")
        (tmp_path / "far.json").write_text("[]", encoding="utf-8")
        for arguments, message in (
            (["notes.py"], "has no attribute 'toolkit'"),
            (["none.py"], "FileNotFoundError"),
            (["no_such_module:toolkit"], "ModuleNotFoundError"),
            (["board.py:double"], "name a Toolkit"),
            (["board.py", "--tools", "triple"], "triple"),
            (["--mcp", "far.json"], "mcpServers"),
            (["--token-file", "none.txt", "--http", "127.0.0.1:8000"], "none.txt"),
        ):
            for write in ([], ["--write"]):
                assert self.run(*arguments, "--install", "cursor", *write) == 1
                out, err = capfd.readouterr()
                assert (out, message in err) == ("", True), err
        assert not (tmp_path / "home" / ".cursor").exists()

    def test_prints_what_starts_it_from_anywhere(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "board.py").write_text(PROGRAM, encoding="utf-8")
        (tmp_path / "far.json").write_text('{"mcpServers": {}}', encoding="utf-8")
        assert self.run("board.py:made", "--all", "--mcp=far.json", "--install", "claude", "--name", "mine") == 0
        entry = json.loads(capsys.readouterr().out)["mcpServers"]["mine"]
        assert Path(entry["command"]).is_absolute()
        arguments = [f"{tmp_path}/board.py:made", "--all", f"--mcp={tmp_path}/far.json", "--name", "mine"]
        assert entry["args"][entry["args"].index("serve") + 1 :] == arguments
        assert entry["env"] == {"PEGBOARD_PLUGINS": "files"}

    def test_a_module_is_found_from_anywhere(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "program_to_install.py").write_text(PROGRAM, encoding="utf-8")
        assert self.run("program_to_install:toolkit", "--install=vscode") == 0
        entry = json.loads(capsys.readouterr().out)["servers"]["pegboard"]
        assert (entry["type"], entry["env"]["PYTHONPATH"]) == ("stdio", str(tmp_path))

    def test_writes_it_beside_what_is_there(self, tmp_path: Path) -> None:
        path = tmp_path / "home" / ".cursor" / "mcp.json"
        path.parent.mkdir(parents=True)
        path.write_text('{"mcpServers": {"other": {"command": "x"}}, "theme": "dark"}', encoding="utf-8")
        assert self.run("--http", "127.0.0.1:8000", "--install", "cursor", "--write") == 0
        written = json.loads(path.read_text("utf-8"))
        assert written["theme"] == "dark"
        assert written["mcpServers"] == {"other": {"command": "x"}, "pegboard": {"url": "http://127.0.0.1:8000/mcp"}}

    def test_leaves_what_it_cannot_read(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / ".vscode" / "mcp.json"
        path.parent.mkdir()
        for content in ("// a comment", '{"servers": []}'):
            path.write_text(content, encoding="utf-8")
            assert self.run("--install", "vscode", "--write") == 1
            assert "is left as it is" in capsys.readouterr().err
            assert path.read_text("utf-8") == content
