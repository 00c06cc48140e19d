"""The guard of an HTTP server: allowed addresses, origins and bearer tokens."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final, TypeAlias, final

from pegboard import PegboardError
from pegboard_mcp._auth.callers import Caller, Scopes, caller_of, checked_scopes

__all__ = [
    "VerifyToken",
    "answered",
    "app_with_scopes",
    "check_address",
    "cross_origin",
    "guards",
    "parse_address",
    "security",
]

Verdict: TypeAlias = "Caller | str | bool | None"
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]
MOST: Final = 4 * 1024 * 1024
"""Bytes of a request that are looked into; the SDK takes no more."""
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


def app_with_scopes(make: Callable[..., Any], scopes: Scopes, name_of: Callable[[str], str], **options: Any) -> Any:
    """The SDK's application, `make(**options)`, whose refusals name scopes: those of all requests, and of tools.

    `name_of` gives the name of the tool that a client calls by another one. Raises ValueError for what is no scope.
    """
    from starlette.middleware import Middleware

    app, auth = make(**options), options.get("auth")
    required = checked_scopes("required_scopes", (auth.required_scopes if auth is not None else None) or ())
    resource, metadata = None if auth is None else auth.resource_server_url, None
    if auth is not None and resource is not None:
        from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes

        metadata = str(build_resource_metadata_url(resource))
        # Before the SDK's own, which names only the scopes that every request needs.
        app.router.routes[:0] = create_protected_resource_routes(
            resource_url=resource,
            authorization_servers=[auth.issuer_url],
            scopes_supported=list(dict.fromkeys((*required, *scopes.all))) or None,
        )
    path = options.get("streamable_http_path", "/mcp")
    if required or scopes.all:
        # The innermost one: whom the token stands for is known there.
        app.user_middleware.append(
            Middleware(_Challenges, path=path, required=required, scopes=scopes, name_of=name_of, metadata=metadata)
        )
    return app


@final
class _Challenges:
    """Refuses calls of tools whose scopes the caller lacks, and says in every refusal which scopes are needed."""

    def __init__(
        self,
        app: Any,
        *,
        path: str,
        required: tuple[str, ...],
        scopes: Scopes,
        name_of: Callable[[str], str],
        metadata: str | None,
    ) -> None:
        self._app = app
        self._path = path
        self._required = required
        self._scopes = scopes
        self._name_of = name_of
        self._metadata = metadata

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http" or scope["path"].removeprefix(scope.get("root_path", "")) != self._path:
            await self._app(scope, receive, send)
            return
        caller, needed, name, number = caller_of(scope), self._required, "", None
        is_unknown = caller is None and "user" in scope  # the SDK answers: there is no good token
        if scope["method"] == "POST" and self._scopes.all and not is_unknown:
            receive, number, name = await _called(receive)
            of_tool = self._scopes.needed(self._name_of(name)) if name else ()
            needed = tuple(dict.fromkeys((*needed, *of_tool)))
        missing = [each for each in needed if each not in (caller or Caller()).scopes]
        if missing and len(needed) > len(self._required):
            await self._refuse(send, number, name, missing, needed)
        else:
            await self._app(scope, receive, partial(_named, send, needed))

    async def _refuse(self, send: Send, number: Any, name: str, missing: list[str], needed: tuple[str, ...]) -> None:
        message = f"{name} needs the scope {' '.join(missing)!r}, which the caller's token does not have"
        fields = {
            "error": "insufficient_scope",
            "scope": " ".join(needed),
            "error_description": "the token does not have the scope that the tool needs",
            "resource_metadata": self._metadata,
        }
        challenge = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        error = {"code": -32_600, "message": message, "data": {"error": "insufficient_scope", "scope": list(needed)}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"www-authenticate", f"Bearer {challenge}".encode()),
        ]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _called(receive: Receive) -> tuple[Receive, Any, str]:
    """What receives a request once more, with its number and the name of the tool, if that is what it calls."""
    messages, body = [], b""
    while len(body) <= MOST:
        message = await receive()
        messages.append(message)
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    left = iter(messages)

    async def again() -> Any:
        return next(left, None) or await receive()

    try:
        found = json.loads(body) if len(body) <= MOST else None
    except (RecursionError, ValueError):  # which the SDK says
        found = None
    if not isinstance(found, dict) or found.get("method") != "tools/call":
        return again, None, ""
    parameters = found.get("params")
    name = parameters.get("name") if isinstance(parameters, dict) else None
    return again, found.get("id"), name if isinstance(name, str) else ""


async def _named(send: Send, needed: tuple[str, ...], message: Any) -> None:
    """Send a message of the application; where it is a refusal of the SDK, with the scopes that are needed."""
    if message["type"] == "http.response.start" and message["status"] in (401, 403) and needed:
        scope = f', scope="{" ".join(needed)}"'.encode()
        headers = [
            (name, value + scope if name.lower() == b"www-authenticate" and b"scope=" not in value else value)
            for name, value in message["headers"]
        ]
        message = {**message, "headers": headers}
    await send(message)
