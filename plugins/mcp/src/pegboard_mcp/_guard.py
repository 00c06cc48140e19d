"""The guard of an HTTP server: who may bind where, and who may come in."""

from __future__ import annotations

import hmac
import ipaddress
from typing import Any, final

from pegboard import PegboardError

__all__ = ["Bearer", "check_address", "parse_address", "security"]


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`. Raises `PegboardError` for anything else."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise PegboardError(f"{address!r} is no address: write HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def check_address(host: str, token: str | None) -> None:
    """Raises `PegboardError` for an address that others can reach, unless they need a token."""
    if not token and not is_loopback(host):
        raise PegboardError(
            f"{host!r} can be reached from other machines, and anybody there could run these tools; "
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


def security(host: str, port: int) -> Any:
    """The SDK's protection against pages that make a browser speak to this server: which names it answers to.

    At an address that says "any" no name is known beforehand; there the token keeps such pages out.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    names = ["127.0.0.1", "localhost", "[::1]"] if is_loopback(host) else [f"[{host}]" if ":" in host else host]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[f"{scheme}://{name}:*" for scheme in ("http", "https") for name in names],
    )


@final
class Bearer:
    """Lets requests in that carry the token, in front of any ASGI application."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer 401 to whoever has no token."""
        if scope["type"] == "http" and not self._admits(scope["headers"]):
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"this server requires a bearer token\n"})
            return
        await self._app(scope, receive, send)

    def _admits(self, headers: Any) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)
