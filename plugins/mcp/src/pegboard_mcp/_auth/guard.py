"""The guard of an HTTP server: who may bind where, and who may come in."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

from pegboard import PegboardError

__all__ = ["check_address", "cross_origin", "parse_address", "security"]


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`. Raises `PegboardError` for anything else."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise PegboardError(f"{address!r} is no address: write HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def check_address(host: str, needs_token: object) -> None:
    """Raises `PegboardError` for an address that others can reach, unless they need a token."""
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
