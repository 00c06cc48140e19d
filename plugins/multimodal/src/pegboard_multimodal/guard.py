"""The guard: fetches what a model has named, from public addresses alone.

    guard = Guard()
    fetched = await guard.fetch("https://example.com/cat.png")

A model's URL is a request by an untrusted party, made from inside the network. So the address is checked that
is connected to, not a name that may change its answer in between; every redirect is checked like the first URL; nothing
is sent but the request itself: no cookies, no credentials, through no proxy.

Any pack may use this module.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

from pegboard import ToolError

if TYPE_CHECKING:
    import httpx2

__all__ = ["Fetched", "Guard", "RefusedUrlError", "Resolver", "UrlError", "is_public", "origin_of"]

MAX_BYTES: Final = 50 * 1024 * 1024
MAX_SECONDS: Final = 30.0
MAX_REDIRECTS: Final = 5
HEAD: Final = 4096  # bytes by which a kind of file is known

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_CONNECT_SECONDS: Final = 10.0
_MAX_URL: Final = 8192
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.ASCII)
_ODD: Final = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
# What the registries call global, or Python does not know, and leads to this machine, its network or nowhere.
_NOT_PUBLIC: Final = tuple(
    map(
        ip_network,
        (
            "168.63.129.16/32",  # the host of a virtual machine at Azure
            "192.0.0.0/24",  # protocol assignments, the gateway's port control among them
            "192.88.99.0/24",  # 6to4 relays
            "2001::/23",  # protocol assignments, Teredo among them
            "3fff::/20",  # documentation
        ),
    )
)
_UNICAST: Final = ip_network("2000::/3")
# Networks whose addresses hold an IPv4 address, and how far from the right it ends.
_HOLD_IPV4: Final = (
    (ip_network("::ffff:0:0/96"), 0),
    (ip_network("64:ff9b::/96"), 0),  # NAT64
    (ip_network("2002::/16"), 80),  # 6to4
)

Resolver: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Gives the addresses of a host name, as text."""


class UrlError(ToolError):
    """What a URL names could not be had: it does not answer, is too large, or is not what is wanted."""


class RefusedUrlError(UrlError):
    """The guard does not go there; nothing was connected to."""


class Fetched(NamedTuple):
    """What was found, and the URL where it was found after redirects."""

    content: bytes
    url: str


class _Target(NamedTuple):
    url: httpx2.URL
    host: str
    port: int
    addresses: tuple[str, ...]


@final
class Guard:
    """Fetches from public addresses, and from `origins`, which the program knows ("http://10.0.0.5:8000").

    `resolver` gives the addresses of a name, the system's by default; `transport` takes requests for an address instead
    of the network.
    """

    def __init__(
        self,
        origins: Iterable[str] = (),
        *,
        max_bytes: int = MAX_BYTES,
        max_seconds: float = MAX_SECONDS,
        max_redirects: int = MAX_REDIRECTS,
        resolver: Resolver | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.origins = frozenset(map(origin_of, origins))
        self.max_bytes = max_bytes
        self.max_seconds = max_seconds
        self.max_redirects = max_redirects
        self._resolver = resolver or _resolve
        self._transport = transport

    async def check(self, url: str) -> None:
        """Raises `RefusedUrlError` for a URL that `fetch` would not go to, `UrlError` for a host that is not there.

        For URLs that another program is to fetch; it may find another address there.
        """
        await self._target(url)

    async def fetch(
        self, url: str, *, look: Callable[[bytes], object] | None = None, form: Mapping[str, Any] | None = None
    ) -> Fetched:
        """Fetch a URL. `look` is shown the first bytes as soon as they are there, and raises if they are no use.

        A `form`, with `data` and `files` as httpx2 takes them, is sent there by POST; it follows no redirect.
        Raises `UrlError`, and what `look` raises.
        """
        import asyncio

        import httpx2

        try:
            # Without a proxy, which would look up names itself, after they were checked.
            async with asyncio.timeout(self.max_seconds), open_client(self.max_seconds, self._transport) as client:
                for _ in range(1 if form else self.max_redirects + 1):
                    target = await self._target(url)
                    found = await self._request(client, target, look, form)
                    if isinstance(found, bytes):
                        return Fetched(found, url)
                    url = str(target.url.join(found))
        except TimeoutError:
            raise UrlError(f"{shown(url)} did not answer within {self.max_seconds:g} seconds.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise UrlError(f"{shown(url)} could not be fetched: {type(error).__name__}.") from error
        raise UrlError(f"{shown(url)} is behind more redirects than are followed.")

    async def _target(self, text: str) -> _Target:
        url, host, port = _read(text)
        if origin_of(text) in self.origins:
            return _Target(url, host, port, tuple(await self._addresses(host, port)))
        if not 1024 <= port < 65536 and port not in _DEFAULT_PORTS.values():
            raise RefusedUrlError(f"{shown(text)} is refused: port {port} is no web server's.")
        addresses = await self._addresses(host, port)
        if not all(map(is_public, addresses)):
            raise RefusedUrlError(f"{shown(text)} is refused: {host} is not at a public address.")
        return _Target(url, host, port, tuple(addresses))

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        try:
            found = list(dict.fromkeys(await self._resolver(host, port)))
        except (OSError, UnicodeError):
            found = []
        if not found:
            raise UrlError(f"There is no host {shown(host)}.")
        return found

    async def _request(
        self,
        client: httpx2.AsyncClient,
        target: _Target,
        look: Callable[[bytes], object] | None,
        form: Mapping[str, Any] | None,
    ) -> bytes | str:
        """The body, or where a redirect leads."""
        import httpx2

        for address in target.addresses:
            request = client.build_request(
                "POST" if form else "GET",
                target.url.copy_with(host=address, fragment=None),
                # Nothing is gained by packing media, and bombs are packed.
                headers={"Host": target.url.netloc.decode("ascii"), "Accept": "*/*", "Accept-Encoding": "identity"},
                extensions={"sni_hostname": target.host} if target.url.scheme == "https" else {},
                **(form or {}),
            )
            try:
                response = await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if address == target.addresses[-1]:
                    raise
                continue
            try:
                return await self._body(response, target, look)
            finally:
                await response.aclose()
        raise AssertionError("there is at least one address")

    async def _body(
        self, response: httpx2.Response, target: _Target, look: Callable[[bytes], object] | None
    ) -> bytes | str:
        name = shown(str(target.url))
        if response.status_code in (301, 302, 303, 307, 308) and "location" in response.headers:
            return str(response.headers["location"])
        if response.status_code != 200:
            raise UrlError(f"{name} answered {response.status_code}.")
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise UrlError(f"{name} answered with compressed content, which was not asked for.")
        too_large = UrlError(f"{name} has more than {self.max_bytes:,} bytes.")
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self.max_bytes:
            raise too_large
        body = bytearray()
        async for piece in response.aiter_bytes():
            unseen = len(body) < HEAD
            body += piece
            if len(body) > self.max_bytes:
                raise too_large
            if look and unseen and len(body) >= HEAD:
                look(bytes(body[:HEAD]))
        if look and len(body) < HEAD:
            look(bytes(body))
        return bytes(body)


def open_client(
    seconds: float, transport: httpx2.AsyncBaseTransport | None = None, *, proxies: bool = False
) -> httpx2.AsyncClient:
    """A client that follows no redirects; without `proxies` nothing of the environment is used either."""
    import httpx2

    return httpx2.AsyncClient(
        transport=transport,
        verify=_certificates(),
        trust_env=proxies,
        follow_redirects=False,
        timeout=httpx2.Timeout(seconds, connect=_CONNECT_SECONDS),
    )


@cache
def _certificates() -> Any:
    import httpx2

    return httpx2.create_ssl_context()  # takes longer than most requests to this machine


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet, also if it holds an IPv4 address: neither may be private."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return found.is_global and not found.is_multicast and not any(found in each for each in _NOT_PUBLIC)
    for network, shift in _HOLD_IPV4:
        if found in network:
            return is_public(str(IPv4Address(int(found) >> shift & 0xFFFFFFFF)))
    return _is_public_ipv6(found)


def _is_public_ipv6(address: IPv6Address) -> bool:
    special = any(address in each for each in _NOT_PUBLIC) or address.scope_id is not None
    return address in _UNICAST and address.is_global and not special


def origin_of(url: str) -> str:
    """Scheme, host and port of an http(s) URL. Raises `RefusedUrlError` for anything else."""
    read, host, port = _read(url)
    return f"{read.scheme}://{host}:{port}"


def shown(text: str, limit: int = 200) -> str:
    """A URL as messages show it: on one line, shortened, without what may be a signature or a password."""
    bare = re.sub(r"(?<=//)[^/?#]*@", "", text.partition("?")[0].partition("#")[0])
    plain = "".join(character if character.isprintable() else "?" for character in bare)
    return plain if len(plain) <= limit else f"{plain[:limit]}..."


def _read(text: str) -> tuple[httpx2.URL, str, int]:
    """A URL, its host and its port, if all that read URLs would agree what they are."""
    import httpx2

    def refuse(why: str) -> RefusedUrlError:
        return RefusedUrlError(f"{shown(text)} is refused: {why}.")

    if len(text) > _MAX_URL or _ODD.search(text):
        raise refuse("it is too long, or holds blanks, backslashes or control characters")
    if not re.match(r"https?://[^/]", text, re.IGNORECASE):
        raise refuse("only http:// and https:// URLs are fetched")
    authority = re.split(r"[/?#]", text.partition("//")[2], maxsplit=1)[0]
    if "@" in authority:
        raise refuse("it holds a user name or a password")
    if not authority.isascii():
        raise refuse("its host is not ASCII; write it as xn--...")
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        raise refuse("it is no valid URL") from None
    host = url.host.lower()
    if not _is_plain(host):
        raise refuse("its host is neither a name nor an address in its usual form")
    return url, host, _DEFAULT_PORTS[url.scheme] if url.port is None else url.port


def _is_plain(host: str) -> bool:
    """Whether a host is a name, or an address in its usual form: 127.1, 0x7f000001 and the like are neither."""
    try:
        ip_address(host)
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2]
        return _HOST.fullmatch(host) is not None and not re.fullmatch(r"\d+|0x[0-9a-f]*", last) and len(host) < 254
    return "%" not in host


async def _resolve(host: str, port: int) -> list[str]:
    import asyncio
    import socket

    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
