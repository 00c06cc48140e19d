"""OAuth by one word, against an authorization server of the SDK's on this machine."""

import secrets
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    ProviderTokenVerifier,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl

from pegboard import Toolkit, tool
from pegboard_mcp import McpServer, mcp_server
from pegboard_mcp._oauth import token_file
from tests.support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


class Authority:
    """Lets everybody in whom the human agrees to, which he does at once."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, Any] = {}
        self.tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
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
def guarded() -> Iterator[str]:
    @tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    authority: Any = Authority()
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


def test_a_human_is_asked_once(
    guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def browser(address: str) -> bool:
        opened.append(address)
        return httpx2.get(address, follow_redirects=True).status_code == 200

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", browser)
    for _ in range(2):  # the second one finds the tokens of the first
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(McpServer.http(guarded, auth="oauth"))
            assert toolkit.problems == []
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
    assert len(opened) == 1
    kept = token_file(guarded)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert opened[0] in capfd.readouterr().err
