"""Clients for servers that the program names: they follow no redirects, and share the certificates."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx2

__all__ = ["open_client", "open_transport", "proxy_for"]

CONNECT_SECONDS: Final = 10.0


def open_client(seconds: float | None, transport: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
    """Make a client that follows no redirects, for a server that the program names; it uses the environment's proxies.

    Args:
        seconds: Seconds to wait for each read and write, and at most 10 to connect; no deadline for the whole. None
            waits for ever.
        transport: Takes the requests, without a proxy. None: the network.
    """
    import httpx2

    timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds or CONNECT_SECONDS))
    if transport is not None:
        return httpx2.AsyncClient(transport=transport, timeout=timeout)
    return httpx2.AsyncClient(verify=_certificates(), timeout=timeout)


def open_transport(proxied: str | None = None) -> httpx2.AsyncHTTPTransport:
    """What a client sends with. It uses nothing of the environment but, for the URL `proxied`, its proxy.

    Args:
        proxied: URL whose proxy in the environment is used. None for no proxy.
    """
    import httpx2

    return httpx2.AsyncHTTPTransport(verify=_certificates(), trust_env=False, proxy=proxied and proxy_for(proxied))


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL (`HTTPS_PROXY`, `NO_PROXY` and the like), if it names one."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxies = getproxies()
    return None if proxy_bypass(parts.hostname or "") else proxies.get(parts.scheme) or proxies.get("all")


@cache
def _certificates() -> Any:
    import httpx2

    return httpx2.create_ssl_context()  # takes longer than most requests to this machine
