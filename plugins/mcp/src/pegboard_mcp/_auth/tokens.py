"""Tokens: who a bearer token stands for, asked of the program, in the terms of the SDK's own guards."""

from __future__ import annotations

import asyncio
import hmac
import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, final

from pegboard import PegboardError
from pegboard_mcp._auth.callers import Caller

__all__ = ["VerifyToken", "answered", "guards"]

Verdict: TypeAlias = "Caller | str | bool | None"
VerifyToken: TypeAlias = Callable[[str], "Verdict | Awaitable[Verdict]"]


def guards(
    token: str, verify: VerifyToken | None, issuer: str | None, resource: str, scopes: tuple[str, ...]
) -> Mapping[str, Any]:
    """What the SDK's application wants for requests that need a token; nothing where none is needed.

    Raises `PegboardError` where scopes or a place to get tokens are said, and nothing would ask for a token.
    """
    if not token and verify is None:
        if issuer or scopes:
            what = "authorization_server" if issuer else "required_scopes"
            raise PegboardError(f"{what}= wants callers to have a token: give token= or verify_token=")
        return {}
    from mcp.server.auth.settings import AuthSettings

    # Where no issuer is named there is no metadata to be found, and its address stands for nothing.
    settings = AuthSettings(
        issuer_url=issuer or resource,  # type: ignore[arg-type]  # pydantic reads the URLs
        resource_server_url=resource if issuer else None,  # type: ignore[arg-type]
        required_scopes=list(scopes),
        validate_token_resource=False,  # the audience of a token is the verifier's affair
    )
    return {"auth": settings, "token_verifier": _Verifier(token, verify)}


@final
class _Verifier:
    """Asks the program, after its own one token."""

    def __init__(self, token: str, verify: VerifyToken | None) -> None:
        self._token = token.encode()
        self._verify = verify

    async def verify_token(self, token: str) -> Any:
        """An `AccessToken` of the SDK; None for an unknown token."""
        given = token.strip()
        verdict: Verdict = bool(self._token) and hmac.compare_digest(given.encode(), self._token)
        if not verdict and self._verify is not None:
            verdict = await answered(self._verify, given)
        if not verdict:
            return None
        caller = verdict if isinstance(verdict, Caller) else Caller(verdict if isinstance(verdict, str) else None)
        return _verified()(
            token=given,
            client_id=caller.client or caller.subject or "token",
            scopes=list(caller.scopes),
            subject=caller.subject,
            claims=dict(caller.claims),
            caller=caller,
        )


async def answered(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the program gives; one that is not async may block, as it may have to ask another machine."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    answer = await asyncio.to_thread(function, *arguments)
    return await answer if inspect.isawaitable(answer) else answer


@cache
def _verified() -> Any:
    from mcp.server.auth.provider import AccessToken

    class Verified(AccessToken):
        """A token with the caller that it stands for."""

        caller: Any

    return Verified
