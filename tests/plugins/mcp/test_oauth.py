"""OAuth by one word, against an authorization server of the SDK's on this machine."""

import asyncio
import json
import logging
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.client.auth import oauth2

from pegboard import SettingsError, Toolkit
from pegboard_mcp import McpServer, OAuth
from pegboard_mcp._auth.oauth import TokenFile, token_file
from tests.plugins.mcp.authority import Authority, guarded_board
from tests.support.secrets import leaked
from tests.support.waiting import PATIENCE, begin, eventually
from tests.support.warm import warm_python

pytestmark = pytest.mark.usefixtures("nothing_left")

both_eras = pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def guarded(authority: Authority) -> Iterator[str]:
    with guarded_board(authority) as url:
        yield url


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that the browser has opened; token files are in a folder of the test's own."""
    addresses: list[str] = []

    def browser(address: str) -> bool:
        addresses.append(address)
        return httpx2.get(address, follow_redirects=True).status_code == 200

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", browser)
    return addresses


@contextmanager
def board_of(url: str, **options: Any) -> Iterator[Toolkit]:
    """A toolkit with the tools of the guarded server, which is reached."""
    options.setdefault("auth", "oauth")
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.http(url, name="far", **options))
        assert toolkit.problems == []
        yield toolkit


def add(toolkit: Toolkit) -> Any:
    return toolkit.call_sync("add", {"a": 1, "b": 2}).data


def change(url: str, **members: Any) -> None:
    """Change what is kept for a server."""
    path = token_file(url)
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **members}), "utf-8")


class TestConsent:
    def test_a_human_is_asked_once(self, guarded: str, opened: list[str], capfd: pytest.CaptureFixture[str]) -> None:
        for _ in range(2):  # the second one finds the tokens of the first
            with board_of(guarded) as toolkit:
                assert add(toolkit) == 3
        assert len(opened) == 1
        for kept in token_file(guarded).parent.iterdir():
            assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert opened[0] in capfd.readouterr().err

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("access_denied", "the user said no: access_denied"),
            pytest.param("invalid_scope", "the authorization server refused: invalid_scope", marks=pytest.mark.slow),
        ],
    )
    def test_a_refusal_says_whose_it_is(
        self,
        code: str,
        message: str,
        guarded: str,
        authority: Authority,
        opened: list[str],
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        authority.refuses_with = code
        with Toolkit(plugins=()) as toolkit:
            server = McpServer.http(guarded, auth="oauth", name="far")
            toolkit.register(server)
            assert toolkit.problems == [f"the MCP server 'far' cannot be reached: {message}"]
            authority.refuses_with = None
            server.refresh()
            assert eventually(lambda: "add" in toolkit)
            assert add(toolkit) == 3
        assert len(opened) == 2
        assert [record for record in caplog.records if record.name.startswith(("mcp.client", "httpx2"))] == []
        assert "Traceback" not in capfd.readouterr().err

    def test_a_client_whose_port_is_taken_is_registered_anew(
        self, guarded: str, authority: Authority, opened: list[str]
    ) -> None:
        with board_of(guarded):
            pass
        authority.tokens.clear()
        authority.refresh_tokens.clear()
        client = json.loads(token_file(guarded).read_text("utf-8"))["client"]
        port = urlsplit(client["redirect_uris"][0]).port
        with socket.create_server(("127.0.0.1", port or 0)), board_of(guarded) as toolkit:
            assert add(toolkit) == 3
        assert len(opened) == len(authority.clients) == 2

    def test_scopes_are_asked_for(self, guarded: str, authority: Authority, opened: list[str]) -> None:
        with board_of(guarded, scopes=["pay"]) as toolkit:
            assert toolkit.call_sync("pay", {"amount": 5}).data == 5
        with board_of(guarded, auth=OAuth(scopes="refund")) as toolkit:  # the user was not asked for this one yet
            assert toolkit.call_sync("refund", {"amount": 5}).data == -5
        with board_of(guarded, auth=OAuth(scopes="refund"), scopes="pay") as toolkit:
            assert add(toolkit) == 3
        assert list(map(sorted, authority.asked)) == [["basic", "pay"], ["basic", "pay", "refund"]]

    def test_scopes_in_the_settings(self, guarded: str, authority: Authority, opened: list[str]) -> None:
        import pegboard_mcp

        servers = {"far": {"url": guarded, "auth": "oauth", "scopes": ["pay"]}}
        with Toolkit(plugins=[pegboard_mcp], settings={"mcp": {"servers": servers}}) as toolkit:
            assert toolkit.problems == []
        assert list(map(sorted, authority.asked)) == [["basic", "pay"]]

    @pytest.mark.parametrize("entry", [{"scopes": 7, "auth": "oauth"}, {"scopes": ["pay"]}])
    def test_settings_that_make_no_sense(self, entry: dict[str, Any]) -> None:
        from pegboard_mcp import Settings

        with pytest.raises(SettingsError, match="scopes"):
            Settings(servers={"far": {"url": "https://example.com/mcp", **entry}})

    def test_options_that_make_no_sense(self) -> None:
        with pytest.raises(ValueError, match='say auth="oauth"'):
            McpServer.http("https://example.com/mcp", scopes=["pay"])
        with pytest.raises(ValueError, match="open must be a function"):
            OAuth(open="firefox")


class TestRefresh:
    @both_eras
    def test_a_token_that_has_ended(self, mode: str, guarded: str, authority: Authority, opened: list[str]) -> None:
        with board_of(guarded, mode=mode):
            pass
        authority.tokens.clear()
        change(guarded, expires_at=time.time() - 1)
        with board_of(guarded, mode=mode) as toolkit:
            assert add(toolkit) == 3
        assert (len(opened), authority.refreshed) == (1, 1)

    def test_a_token_that_the_server_knows_no_more(self, guarded: str, authority: Authority, opened: list[str]) -> None:
        with board_of(guarded) as toolkit:
            for count in range(1, 4):
                authority.tokens.clear()
                assert add(toolkit) == 3
                assert authority.refreshed == count
        assert len(opened) == 1
        assert authority.used_again == 0

    def test_the_end_is_kept_as_a_time(self, guarded: str, authority: Authority, opened: list[str]) -> None:
        began = time.time()
        with board_of(guarded):
            pass
        kept = json.loads(token_file(guarded).read_text("utf-8"))
        assert began + 3590 < kept["expires_at"] < time.time() + 3610
        assert kept["token_endpoint"] == f"{guarded.removesuffix('/mcp')}/token"

    def test_a_refresh_token_that_was_revoked(self, guarded: str, authority: Authority, opened: list[str]) -> None:
        with board_of(guarded) as toolkit:
            authority.tokens.clear()
            authority.refresh_tokens.clear()
            with ThreadPoolExecutor(5) as pool:
                assert list(pool.map(add, [toolkit] * 5)) == [3] * 5
        assert len(opened) == 2

    @pytest.mark.parametrize("ends", ["connection", "call"])
    def test_what_is_cancelled_keeps_its_new_tokens(
        self, ends: str, guarded: str, authority: Authority, opened: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The old refresh token is good no more: tokens that are not kept would cost another consent."""
        begun, exchange = threading.Event(), authority.exchange_refresh_token

        async def slow(*arguments: Any) -> Any:
            answer = await exchange(*arguments)
            begun.set()
            await asyncio.sleep(0.3)
            return answer

        async def main(toolkit: Toolkit, server: McpServer) -> None:
            call = asyncio.create_task(toolkit.call("add", {"a": 1, "b": 2}))
            assert await asyncio.to_thread(begun.wait, PATIENCE)
            if ends == "call":
                call.cancel()
            else:
                await asyncio.to_thread(server.close)
            await asyncio.wait({call})
            assert (await toolkit.call("add", {"a": 1, "b": 2})).data == 3

        with Toolkit(plugins=()) as toolkit:
            server = McpServer.http(guarded, auth="oauth", name="far")
            toolkit.register(server)
            authority.tokens.clear()
            monkeypatch.setattr(authority, "exchange_refresh_token", slow)
            asyncio.run(main(toolkit, server))
        assert (len(opened), authority.used_again) == (1, 0)

    def test_two_connections_refresh_at_once(self, guarded: str, authority: Authority, opened: list[str]) -> None:
        with board_of(guarded) as one, board_of(guarded) as other, ThreadPoolExecutor(2) as pool:
            for count in range(1, 4):
                authority.tokens.clear()
                assert list(pool.map(add, [one, other] * 2)) == [3] * 4
                assert (authority.refreshed, authority.used_again) == (count, 0)
        assert len(opened) == 1

    def test_a_broken_authorization_server_asks_no_user(
        self, guarded: str, authority: Authority, opened: list[str]
    ) -> None:
        with board_of(guarded) as toolkit:
            authority.tokens.clear()
            authority.is_broken = True
            message = toolkit.call_sync("add", {"a": 1, "b": 2}).text
            assert "the token could not be refreshed: HTTP 503; try again later" in message
            authority.is_broken = False
            assert add(toolkit) == 3
        assert len(opened) == 1

    def test_a_token_endpoint_that_cannot_be_reached_asks_no_user(
        self, guarded: str, authority: Authority, opened: list[str]
    ) -> None:
        with board_of(guarded) as toolkit:
            change(guarded, token_endpoint="http://127.0.0.1:1/token")
            authority.tokens.clear()
            message = toolkit.call_sync("add", {"a": 1, "b": 2}).text
            assert "there is no access to the MCP server 'far': the token could not be refreshed" in message
            change(guarded, token_endpoint=f"{guarded.removesuffix('/mcp')}/token")
            assert add(toolkit) == 3
        assert len(opened) == 1

    @pytest.mark.parametrize("content", ["", "[]", '{"client": 7, "tokens": {"x": 1}, "expires_at": "soon"}'])
    def test_a_broken_file(self, content: str, guarded: str, opened: list[str]) -> None:
        token_file(guarded).parent.mkdir(parents=True)
        token_file(guarded).write_text(content, "utf-8")
        with board_of(guarded) as toolkit:
            assert add(toolkit) == 3
        assert len(opened) == 1


@both_eras
class TestStepUp:
    def test_a_tool_that_needs_more(self, mode: str, guarded: str, authority: Authority, opened: list[str]) -> None:
        with board_of(guarded, mode=mode) as toolkit:
            assert add(toolkit) == 3
            assert toolkit.call_sync("pay", {"amount": 5}).data == 5
            assert toolkit.call_sync("pay", {"amount": 6}).data == 6
            assert toolkit.call_sync("refund", {"amount": 7}).data == -7
        assert list(map(sorted, authority.asked)) == [["basic"], ["basic", "pay"], ["basic", "pay", "refund"]]
        assert len(opened) == 3

    def test_many_calls_open_one_window(self, mode: str, guarded: str, authority: Authority, opened: list[str]) -> None:
        def pay(toolkit: Toolkit) -> Any:
            return toolkit.call_sync("pay", {"amount": 5}).data

        with board_of(guarded, mode=mode) as one, board_of(guarded, mode=mode) as other, ThreadPoolExecutor(8) as pool:
            assert list(pool.map(pay, [one, other] * 4)) == [5] * 8
        assert list(map(sorted, authority.asked)) == [["basic"], ["basic", "pay"]]

    def test_the_user_may_refuse(self, mode: str, guarded: str, authority: Authority, opened: list[str]) -> None:
        with board_of(guarded, mode=mode) as toolkit:
            authority.refuses_with = "access_denied"
            result = toolkit.call_sync("pay", {"amount": 5})
            assert result.is_error
            assert "there is no access to the MCP server 'far': the user said no: access_denied" in result.text
            assert add(toolkit) == 3  # by the same connection
            authority.refuses_with = None
            assert toolkit.call_sync("pay", {"amount": 5}).data == 5
        assert len(opened) == 3

    @pytest.mark.skipif(not hasattr(oauth2, "waiting_on_a_person"), reason="this release of the SDK stops no clock")
    @pytest.mark.slow
    def test_the_time_of_the_user_is_not_the_call_s(self, mode: str, guarded: str, opened: list[str]) -> None:
        def slow(url: str) -> None:
            time.sleep(2.5)
            httpx2.get(url, follow_redirects=True)

        options: dict[str, Any] = {"mode": mode, "call_timeout": 2, "auth": OAuth(open=slow)}
        with board_of(guarded, mode=mode), board_of(guarded, **options) as toolkit:
            assert toolkit.call_sync("pay", {"amount": 5}).data == 5

    def test_a_user_who_grants_less_is_asked_once(
        self, mode: str, guarded: str, authority: Authority, opened: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        issued = authority._issued
        monkeypatch.setattr(authority, "_issued", lambda client, scopes: issued(client, ["basic"]))
        with board_of(guarded, mode=mode) as toolkit:
            assert "pay needs the scope 'pay'" in toolkit.call_sync("pay", {"amount": 5}).text
        assert len(opened) == 2


def failing(url: str) -> None:
    raise RuntimeError(url)


class TestOpen:
    """`open=` for machines that the user's browser does not reach."""

    @staticmethod
    def address(url: str) -> str:
        """Where a browser elsewhere was sent to, which it does not reach."""
        return str(httpx2.get(url).headers["location"])

    def test_a_function(self, guarded: str, opened: list[str], capfd: pytest.CaptureFixture[str]) -> None:
        with board_of(guarded, auth=OAuth(open=lambda url: f" {self.address(url)}\n")) as toolkit:
            assert add(toolkit) == 3
        assert opened == []
        assert "http" not in capfd.readouterr().err

    def test_an_async_function(self, guarded: str, opened: list[str]) -> None:
        async def show(url: str) -> str:
            return await asyncio.to_thread(self.address, url)

        with board_of(guarded, auth=OAuth(open=show)) as toolkit:
            assert add(toolkit) == 3

    def test_one_that_returns_nothing(self, guarded: str, opened: list[str]) -> None:
        def show(url: str) -> None:
            httpx2.get(url, follow_redirects=True)

        with board_of(guarded, auth=OAuth(open=show)) as toolkit:
            assert add(toolkit) == 3

    @pytest.mark.parametrize(
        ("show", "message"),
        [
            (failing, "the function open= of OAuth failed with RuntimeError"),
            (lambda url: "hello", "returned a text without code= and error="),
            (lambda url: "http://x/?error=access_denied", "the user said no: access_denied"),
        ],
    )
    def test_one_that_gives_no_access(
        self, show: Callable[[str], Any], message: str, guarded: str, opened: list[str]
    ) -> None:
        server = McpServer.http(guarded, auth=OAuth(open=show))
        server.refresh()
        assert message in server.problems[0]
        server.close()

    @pytest.mark.slow
    def test_a_user_who_does_nothing(self, guarded: str, opened: list[str]) -> None:
        server = McpServer.http(guarded, auth=OAuth(open=lambda url: None), connect_timeout=5)
        server.refresh()
        assert "the user did not answer within 4.5 seconds" in server.problems[0]
        server.close()


PROGRAM = """
import sys, webbrowser, httpx2, mcp
from pegboard import Toolkit
from pegboard_mcp import McpServer

windows = []

def browse(address):
    windows.append(address)
    return httpx2.get(address, follow_redirects=True).status_code == 200

webbrowser.open = browse
print("ready", flush=True)
sys.stdin.readline()
with Toolkit(plugins=()) as toolkit:
    toolkit.register(McpServer.http(sys.argv[1], auth="oauth", name="far"))
    print(toolkit.problems, [toolkit.call_sync("add", {"a": 1, "b": 2}).data for _ in range(int(sys.argv[2]))])
"""
several = pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])


class TestPrograms:
    @several
    def test_one_window_for_all(self, count: int, guarded: str, authority: Authority, opened: list[str]) -> None:
        programs = started(PROGRAM, [(guarded, "1")] * count)
        assert [each.result() for each in programs] == ["[] [3]\n"] * count
        assert len(authority.asked) == len(authority.clients) == 1
        assert consistent(token_file(guarded))
        with board_of(guarded) as toolkit:
            assert add(toolkit) == 3
        assert opened == []  # by this program, which finds what the others have got

    @pytest.mark.slow
    def test_one_refusal_for_all(self, guarded: str, authority: Authority, opened: list[str]) -> None:
        """Those that wait have the same answer, and open no window of their own."""
        authority.refuses_with = "access_denied"
        servers = [McpServer.http(guarded, auth="oauth", name="far") for _ in range(4)]
        with lock_held(guarded) as release, ThreadPoolExecutor(4) as pool:
            done = [pool.submit(each.refresh) for each in servers]
            assert eventually(lambda: all("401" in each.stderr() for each in servers))
            release()
            for each in done:
                each.result(PATIENCE)
        assert [server.problems for server in servers] == [
            ["the MCP server 'far' cannot be reached: the user said no: access_denied"]
        ] * 4
        assert len(opened) == 1
        for server in servers:
            server.close()

    @pytest.mark.slow
    def test_refresh_tokens_that_rotate_are_used_once(
        self, guarded: str, authority: Authority, opened: list[str]
    ) -> None:
        authority.lasts = 2
        programs = started(PROGRAM, [(guarded, "200")] * 4)
        assert [each.result() for each in programs] == [f"[] {[3] * 200}\n"] * 4
        assert authority.refreshed > 0
        assert authority.used_again == 0
        assert len(authority.asked) == 1

    def test_toolkits_of_a_program_begin_at_once(self, guarded: str, opened: list[str]) -> None:
        with ThreadPoolExecutor(4) as pool, ExitStack() as stack:
            toolkits = [stack.enter_context(Toolkit(plugins=())) for _ in range(4)]
            for done in [pool.submit(each.register, McpServer.http(guarded, auth="oauth")) for each in toolkits]:
                done.result(PATIENCE)
            assert [toolkit.problems for toolkit in toolkits] == [[]] * 4
            assert [add(toolkit) for toolkit in toolkits] == [3] * 4
        assert len(opened) == 1

    @pytest.mark.slow
    def test_waiting_for_another_program_ends(self, guarded: str, opened: list[str]) -> None:
        server = McpServer.http(guarded, auth="oauth", name="far", connect_timeout=5)
        with lock_held(guarded):
            server.refresh()
        assert (
            f"process {os.getpid()} has been asking the user for access to the same server for 4.5 seconds; answer in "
            "the browser window that it opened, or end that process, and try again"
        ) in server.problems[0]
        assert opened == []
        server.refresh()
        assert server.problems == []
        server.close()


WRITER = """
import sys
from pathlib import Path
from pegboard_mcp._auth.oauth import TokenFile

print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    file, own = TokenFile(Path(sys.argv[1])), f"{sys.argv[2]}-{number}"
    file.replace({"client": own, "tokens": own + "x" * 10_000})
    found = file.read()
    assert found["tokens"].rstrip("x") == found["client"], found
print("done")
"""


@pytest.mark.slow
def test_programs_that_write_at_once_keep_what_belongs_together(tmp_path: Path) -> None:
    path = tmp_path / "state" / "far.json"
    programs = started(WRITER, [(str(path), f"p{number}") for number in range(4)])
    while not all(each.done() for each in programs):
        assert consistent(path)
    assert [each.result() for each in programs] == ["done\n"] * 4
    assert sorted(each.name for each in path.parent.iterdir()) == ["far.json"]


def test_no_token_is_shown(
    guarded: str,
    authority: Authority,
    opened: list[str],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    server = McpServer.http(guarded, auth=OAuth(scopes="pay"), name="far")
    texts: list[str] = []
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        authority.tokens.clear()
        assert add(toolkit) == 3
        authority.refuses_with = "access_denied"
        authority.tokens.clear()
        authority.refresh_tokens.clear()
        texts += toolkit.call_sync("add", {"a": 1, "b": 2}).text, repr(server), repr(server.transport), server.stderr()
        texts += map(repr, server.problems)
    # The address of the page that asks is shown: it has a state, and no token.
    texts += caplog.text, *capfd.readouterr()
    assert authority.refreshed == 1
    assert len(authority.given) == 4
    for secret in authority.given:
        assert leaked("\n".join(texts), secret) == []
        assert secret in server.transport.authorizations  # type: ignore[attr-defined]


@contextmanager
def lock_held(url: str) -> Iterator[Callable[[], None]]:
    """The lock of a server's token file, held until what is yielded is called."""
    from contextlib import nullcontext

    path = token_file(url)
    taken, release = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with TokenFile(path).alone(PATIENCE, PATIENCE, nullcontext):
            taken.set()
            await release.wait()

    loop = asyncio.new_event_loop()
    running = begin(partial(loop.run_until_complete, hold()))
    assert eventually(taken.is_set)
    try:
        yield lambda: (loop.call_soon_threadsafe(release.set), running.result(PATIENCE))[1]
    finally:
        if not running.done():
            loop.call_soon_threadsafe(release.set)
        running.result(PATIENCE)
        loop.close()


def started(script: str, arguments: Sequence[tuple[str, ...]]) -> list[Future[str]]:
    """What programs print that begin at once, after each has loaded what it needs."""
    pipe = subprocess.PIPE
    programs = [
        subprocess.Popen([warm_python(), "-c", script, *each], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for each in arguments
    ]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    return [begin(partial(ended, program)) for program in programs]


def ended(program: subprocess.Popen[str]) -> str:
    """What a program prints from now on."""
    out, err = program.communicate("go\n", timeout=2 * PATIENCE)
    assert program.returncode == 0, err
    return out


def consistent(path: Path) -> bool:
    """Whether a token file is whole, and holds no tokens without the client that they were given to."""
    if not path.exists():
        return True
    content = json.loads(path.read_text("utf-8"))
    return set(content) >= {"client", "tokens"}
