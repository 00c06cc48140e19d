"""The guard of an HTTP server: allowed addresses, origins and bearer tokens."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias, final

from pegboard import PegboardError
from pegboard_mcp._auth.callers import Caller

__all__ = ["VerifyToken", "answered", "check_address", "cross_origin", "guards", "parse_address", "security"]

Verdict: TypeAlias = "Caller | str | bool | None"
VerifyToken: TypeAlias = Callable[[str], "Verdict | Awaitable[Verdict]"]


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`. Raises `PegboardError` for anything else."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise PegboardError(f"{address!r} is no address: write HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def check_address(host: str, needs_token: object) -> None:
    """Raises `PegboardError` for an address that other machines can reach, unless clients need a token."""
    if not needs_token and not is_loopback(host):
        raise PegboardError(
            f"{host!r} can be reached from other machines, and any user of those could run these tools; "
            "serve at 127.0.0.1, or require a token"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. Names other than localhost are not looked up: they may change."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def security(host: str, origins: Iterable[str] = ()) -> Any:
    """The SDK's protection against pages that make a browser speak to this server: which names it answers to.

    At an address that says "any" no name is known beforehand; there the token keeps such pages out. `origins` are the
    pages that may.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    names = _names(host)
    if not names:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    own = [f"{scheme}://{name}:*" for scheme in ("http", "https") for name in names]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*own, *origins],
    )


def cross_origin(app: Any, host: str, origins: Iterable[str] = ()) -> Any:
    """An application that tells browsers which pages may speak to it: those of its own names, and of `origins`."""
    from starlette.middleware.cors import CORSMiddleware

    own = "|".join(map(re.escape, _names(host)))
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_origin_regex=rf"https?://({own})(:\d+)?" if own else None,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
    )


def _names(host: str) -> list[str]:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return []
    return ["127.0.0.1", "localhost", "[::1]"] if is_loopback(host) else [f"[{host}]" if ":" in host else host]


def guards(
    token: str, verify: VerifyToken | None, issuer: str | None, resource: str, scopes: tuple[str, ...]
) -> Mapping[str, Any]:
    """The SDK's options for requests that need a token; empty if no token is needed.

    Raises `PegboardError` where scopes or a place to get tokens are named, and nothing would ask for a token.
    """
    if not token and verify is None:
        if issuer or scopes:
            what = "authorization_server" if issuer else "required_scopes"
            raise PegboardError(f"{what}= wants callers to have a token: give token= or verify_token=")
        return {}
    from mcp.server.auth.settings import AuthSettings

    # Without an issuer there is no metadata, and this address is never used.
    settings = AuthSettings(
        issuer_url=issuer or resource,  # type: ignore[arg-type]  # pydantic reads the URLs
        resource_server_url=resource if issuer else None,  # type: ignore[arg-type]
        required_scopes=list(scopes),
        validate_token_resource=False,  # the verifier checks the audience of a token
    )
    return {"auth": settings, "token_verifier": _Verifier(token, verify)}


@final
class _Verifier:
    """Verifies the configured token, then asks the program."""

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
    """The result of a function of the program. A function that is not async may block, so it runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    answer = await asyncio.to_thread(function, *arguments)
    return await answer if inspect.isawaitable(answer) else answer


@cache
def _verified() -> Any:
    from mcp.server.auth.provider import AccessToken

    class Verified(AccessToken):
        """A token with its caller."""

        caller: Any

    return Verified
