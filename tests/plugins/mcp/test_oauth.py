"""OAuth by one word, against an authorization server of the SDK's on this machine."""

import json
import secrets
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizeError,
    ProviderTokenVerifier,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl

from pegboard import Toolkit, tool
from pegboard_mcp import McpServer, mcp_server
from pegboard_mcp._auth.oauth import token_file
from tests.support.waiting import PATIENCE, begin, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


class Authority:
    """Gives access to what the user agrees to, who does so at once; or refuses with the code of an error."""

    def __init__(self) -> None:
        self.refuses_with: Any = None
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, Any] = {}
        self.tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
        if self.refuses_with is not None:
            raise AuthorizeError(self.refuses_with)
        code = secrets.token_hex(8)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=[],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> Any:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: Any) -> OAuthToken:
        token = secrets.token_hex(8)
        self.tokens[token] = AccessToken(token=token, client_id=client.client_id, scopes=[])
        return OAuthToken(access_token=token, expires_in=3600)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> None:
        return None

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def guarded(authority: Any) -> Iterator[str]:
    @tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with Toolkit(plugins=()) as toolkit, socket.create_server(("127.0.0.1", 0)) as listening:
        toolkit.register(add)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(base),
            resource_server_url=AnyHttpUrl(f"{base}/mcp"),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            validate_token_resource=False,
        )
        app = mcp_server(toolkit).streamable_http_app(
            auth=settings, auth_server_provider=authority, token_verifier=ProviderTokenVerifier(authority)
        )
        # Another loop than asyncio's would become the policy of all tests after this one, in older releases.
        config = uvicorn.Config(app, log_level="warning", lifespan="on", ws="none", loop="asyncio")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert eventually(lambda: server.started)
            yield f"{base}/mcp"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


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


def test_a_human_is_asked_once(guarded: str, opened: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # the second one finds the tokens of the first
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.http(guarded, auth="oauth"))
            assert toolkit.problems == []
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
    assert len(opened) == 1
    kept = token_file(guarded)
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
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
    assert len(opened) == 2
    assert [record for record in caplog.records if record.name.startswith(("mcp.client", "httpx2"))] == []
    assert "Traceback" not in capfd.readouterr().err


def test_a_port_that_is_taken_is_named(guarded: str, authority: Authority, opened: list[str]) -> None:
    """The client stays registered with its port, also where another program uses it when the user is asked again."""
    server = McpServer.http(guarded, auth="oauth", name="far")
    server.refresh()
    server.close()
    authority.tokens.clear()
    client = json.loads(token_file(guarded).read_text("utf-8"))["client"]
    port = urlsplit(client["redirect_uris"][0]).port
    with socket.create_server(("127.0.0.1", port or 0)):
        server.refresh()
    assert f"port {port} of this machine" in server.problems[0]
    assert "try again" in server.problems[0]
    server.refresh()
    assert server.problems == []
    assert len(opened) == 2
    server.close()


PROGRAM = """
import sys, webbrowser, httpx2
from pegboard import Toolkit
from pegboard_mcp import McpServer

webbrowser.open = lambda address: httpx2.get(address, follow_redirects=True).status_code == 200
sys.stdin.readline()
with Toolkit(plugins=()) as toolkit:
    toolkit.register(McpServer.http(sys.argv[1], auth="oauth"))
    print(toolkit.problems, toolkit.call_sync("add", {"a": 1, "b": 2}).data)
"""


def test_four_programs_begin_at_once(guarded: str, opened: list[str]) -> None:
    programs = [started(PROGRAM, guarded) for _ in range(4)]
    said = [each.result() for each in [begin(partial(ended, each)) for each in programs]]
    assert said == ["[] 3\n"] * 4
    assert consistent(token_file(guarded))
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(McpServer.http(guarded, auth="oauth"))
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
    assert opened == []  # by this program, which finds what the others have got


def test_four_toolkits_of_a_program_begin_at_once(guarded: str, opened: list[str]) -> None:
    with ThreadPoolExecutor(4) as pool, ExitStack() as stack:
        toolkits = [stack.enter_context(Toolkit(plugins=())) for _ in range(4)]
        for done in [pool.submit(each.register, McpServer.http(guarded, auth="oauth")) for each in toolkits]:
            done.result(PATIENCE)
        assert [toolkit.problems for toolkit in toolkits] == [[]] * 4
        assert [toolkit.call_sync("add", {"a": 1, "b": 2}).data for toolkit in toolkits] == [3] * 4
    assert stat.S_IMODE(token_file(guarded).stat().st_mode) == 0o600


WRITER = """
import asyncio, sys
from pathlib import Path
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pegboard_mcp._auth.oauth import _TokenFile

path, name = Path(sys.argv[1]), sys.argv[2]

async def main():
    for number in range(100):
        kept = _TokenFile(path)
        own = f"{name}-{number}"
        address = f"http://127.0.0.1:{1 + number}/callback"
        await kept.set_client_info(OAuthClientInformationFull(client_id=own, redirect_uris=[address]))
        await kept.set_tokens(OAuthToken(access_token=f"{own} {'x' * 10_000}"))
        found = _TokenFile(path)
        client, tokens = await found.get_client_info(), await found.get_tokens()
        assert client is not None
        assert tokens is None or tokens.access_token.split()[0] == client.client_id, (client.client_id, tokens)

sys.stdin.readline()
asyncio.run(main())
print("done")
"""


def test_programs_that_write_at_once_keep_what_belongs_together(tmp_path: Path) -> None:
    path = tmp_path / "state" / "far.json"
    programs = [started(WRITER, str(path), f"p{number}") for number in range(4)]
    said = [begin(partial(ended, each)) for each in programs]
    while not all(each.done() for each in said):
        assert consistent(path)
    assert [each.result() for each in said] == ["done\n"] * 4
    assert sorted(each.name for each in path.parent.iterdir()) == ["far.json"]


def started(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A program that has loaded what it needs, and waits to go on."""
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(program: subprocess.Popen[str]) -> str:
    """What a program prints from now on."""
    out, err = program.communicate("go\n", timeout=PATIENCE)
    assert program.returncode == 0, err
    return out


def consistent(path: Path) -> bool:
    """Whether a token file is whole, and holds no tokens without the client that they were given to."""
    if not path.exists():
        return True
    content = json.loads(path.read_text("utf-8"))
    return set(content) == {"client", "tokens"}
