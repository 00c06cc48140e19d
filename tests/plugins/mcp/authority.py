"""An authorization server on this machine, in one application with a board whose calls need its tokens."""

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizeError,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl
from starlette.responses import PlainTextResponse

from pegboard import Toolkit, tool
from pegboard_mcp import mcp_server
from tests.support.waiting import PATIENCE, eventually

__all__ = ["Authority", "guarded_board"]


class Authority:
    """Gives access to what the user agrees to, who does so at once; or refuses with the code of an error.

    A refresh token is good for one use, and every token that was ever given is in `given`.
    """

    def __init__(self) -> None:
        self.refuses_with: Any = None
        self.lasts = 3600
        self.is_broken = False
        self.asked: list[list[str]] = []
        """The scopes of each consent that was asked for."""
        self.refreshed = 0
        self.used_again = 0
        """How often a refresh token was used that had been used before."""
        self.given: list[str] = []
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, Any] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refresh_tokens: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
        self.asked.append(list(params.scopes or ()))
        if self.refuses_with is not None:
            raise AuthorizeError(self.refuses_with)
        code = secrets.token_hex(8)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
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
        return self._issued(client.client_id, code.scopes)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        known = self.refresh_tokens.get(refresh_token)
        self.used_again += known is None and refresh_token in self.given
        return known

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refresh_tokens[refresh_token.token]
        self.refreshed += 1
        return self._issued(client.client_id, scopes)

    def _issued(self, client_id: str, scopes: list[str]) -> OAuthToken:
        token, refresh = secrets.token_hex(16), secrets.token_hex(16)
        ends = int(time.time()) + self.lasts
        self.tokens[token] = AccessToken(token=token, client_id=client_id, scopes=scopes, expires_at=ends)
        self.refresh_tokens[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        self.given += token, refresh
        return OAuthToken(access_token=token, refresh_token=refresh, expires_in=self.lasts, scope=" ".join(scopes))

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)


@contextmanager
def guarded_board(authority: Any) -> Iterator[str]:
    """The URL of a board with `add`, and with `pay` and `refund`, which need the scopes of their names."""

    @tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool
    def pay(amount: int) -> int:
        """Pay."""
        return amount

    @tool
    def refund(amount: int) -> int:
        """Pay back."""
        return -amount

    with Toolkit(plugins=()) as toolkit, socket.create_server(("127.0.0.1", 0)) as listening:
        toolkit.register(add, pay, refund)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(base),
            resource_server_url=AnyHttpUrl(f"{base}/mcp"),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            required_scopes=["basic"],
            validate_token_resource=False,
        )
        app = mcp_server(toolkit, all_tools=True, scopes={"pay": "pay", "refund": "refund"}).streamable_http_app(
            auth=settings, auth_server_provider=authority, token_verifier=ProviderTokenVerifier(authority)
        )

        async def served(scope: Any, receive: Any, send: Any) -> None:
            if authority.is_broken and scope.get("path") == "/token":
                await PlainTextResponse("broken", 503)(scope, receive, send)
            else:
                await app(scope, receive, send)

        # Another loop than asyncio's would become the policy of all tests after this one, in older releases.
        config = uvicorn.Config(served, log_level="critical", lifespan="on", ws="none", loop="asyncio")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert eventually(lambda: server.started)
            yield f"{base}/mcp"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
