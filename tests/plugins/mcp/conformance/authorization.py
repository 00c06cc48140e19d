"""A human who agrees to everything: the OAuth half of the suite's client, with the SDK's own provider."""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

CALLBACK = "http://localhost:3000/callback"
METADATA = "https://conformance-test.local/client-metadata.json"


class Memory:
    """Keeps tokens, and what the client is registered as, as long as the process lives."""

    def __init__(self) -> None:
        context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        if "client_id" in context:  # registered before, by a human
            self.client = OAuthClientInformationFull(
                client_id=context["client_id"],
                client_secret=context.get("client_secret"),
                redirect_uris=[AnyUrl(CALLBACK)],
                token_endpoint_auth_method="client_secret_basic",
            )

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def agreeing(url: str) -> Any:
    """What `McpServer.http(url, auth=...)` takes."""
    answers: list[dict[str, list[str]]] = []

    async def visit(address: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(address, follow_redirects=False)
        answers.append(parse_qs(urlsplit(answer.headers["location"]).query))

    async def returned() -> AuthorizationCodeResult:
        said = answers.pop()
        return AuthorizationCodeResult(**{name: said[name][0] for name in ("code", "state", "iss") if name in said})

    metadata = OAuthClientMetadata(client_name="pegboard", redirect_uris=[AnyUrl(CALLBACK)])
    return OAuthClientProvider(url, metadata, Memory(), visit, returned, client_metadata_url=METADATA)
