"""The guard: fetches what a model or a third party has named, from public addresses alone.

    guard = Guard()
    fetched = await guard.fetch("https://example.com/cat.png")

A model's URL is a request by an untrusted party, made from inside the network. So the address is checked that
is connected to, not a name that may change its answer in between; every redirect is checked like the first URL; nothing
is sent but the request itself: no cookies, no credentials but the caller's, through no proxy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from re import search
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

from attrs import field, frozen

from pegboard_net._addresses import is_public
from pegboard_net._bodies import BodyError, Look, body_of, charset_of, redirect_of
from pegboard_net._client import CONNECT_SECONDS, open_transport, proxy_for
from pegboard_net._urls import RefusedUrlError, UrlError, WebUrl, read_url, redacted

if TYPE_CHECKING:
    import httpx2

__all__ = ["Fetched", "Guard", "Judge", "Resolver"]

MAX_BYTES: Final = 50 * 1024 * 1024
MAX_SECONDS: Final = 30.0
MAX_REDIRECTS: Final = 5
# Compression gains nothing for media, and only a compressed answer can be a decompression bomb.
_HEADERS: Final = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "pegboard-net"}
_HARMLESS: Final = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})

Network: TypeAlias = IPv4Network | IPv6Network
Headers: TypeAlias = Mapping[str, str]
Form: TypeAlias = Mapping[str, Any] | None
Judge: TypeAlias = Callable[[WebUrl], Awaitable[None]] | None
"""Is shown each URL before it is asked for, and raises if it must not be."""
Resolver: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Gives the addresses of a host name, as text, for a port; raises OSError or gives none for a name that has none."""
_NONE: Final[Headers] = {}


async def _resolve(host: str, port: int) -> list[str]:
    import asyncio
    import socket

    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@final
@frozen
class Fetched:
    """What was fetched.

    Args:
        content: The bytes, after decoding.
        url: Where it was, after redirects.
        status: Status of the answer.
        content_type: Its `Content-Type`, as it came.
    """

    content: bytes = field(repr=False)
    url: str
    status: int = 200
    content_type: str = ""

    @property
    def media_type(self) -> str:
        """The `Content-Type` in lower case and without parameters, such as `text/html`; empty where none was sent."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset that the `Content-Type` names, whether it is among `CHARSETS` or not; None for none."""
        return charset_of(self.content_type)


class _Target(NamedTuple):
    at: WebUrl
    addresses: tuple[str, ...]
    proxied: str | None = None


def _allowed(entries: Iterable[str]) -> frozenset[str | Network]:
    return frozenset(map(_entry, entries))


def _entry(entry: str) -> str | Network:
    """An entry of `allow`, as URLs and addresses are compared with it."""
    if "://" in entry:
        return read_url(entry).origin
    if "/" in entry:
        return ip_network(entry)
    entry = f"[{entry}]" if entry.count(":") > 1 and "[" not in entry else entry
    at = read_url(f"http://{entry}")
    return f"{at.host}:{at.port}" if search(r":\d+$", entry) else at.host


@final
@frozen(eq=False)
class Guard:
    """Fetches from public addresses, and from what the program allows.

    Raises ValueError or `RefusedUrlError` for an invalid entry of `allow`.

    Args:
        allow: Addresses that are allowed although they are not public: an origin (`"http://10.0.0.5:8000"`), a host
            with or without a port (`"wiki.internal"`), or a network of addresses (`"10.1.0.0/16"`).
        max_bytes: Most bytes of an answer after decoding; 50 MiB by default.
        max_seconds: Seconds that a whole fetch may take.
        max_redirects: Most redirects; 5 by default.
        proxies: Whether origins and hosts of `allow` are reached through the proxy that the environment names.
        resolver: Gives the addresses of a name. The system's by default.
        transport: Takes requests for an address instead of the network. None: the network.
    """

    allow: frozenset[str | Network] = field(default=(), converter=_allowed)
    max_bytes: int = field(default=MAX_BYTES, kw_only=True)
    max_seconds: float = field(default=MAX_SECONDS, kw_only=True)
    max_redirects: int = field(default=MAX_REDIRECTS, kw_only=True)
    proxies: bool = field(default=False, kw_only=True)
    resolver: Resolver = field(default=_resolve, kw_only=True)
    transport: httpx2.AsyncBaseTransport | None = field(default=None, kw_only=True)

    async def fetch(
        self,
        url: str,
        *,
        headers: Headers = _NONE,
        look: Look = None,
        form: Form = None,
        any_status: bool = False,
        judge: Judge = None,
    ) -> Fetched:
        """Fetch a URL by GET and follow its redirects.

        Encoded answers are taken in the codings that `Accept-Encoding` asks for, by default none. Raises
        `RefusedUrlError`, `UrlError`, and what `look` and `judge` raise.

        Args:
            url: The URL.
            headers: Headers of the request. Others than `Accept`, `Accept-Encoding`, `Accept-Language` and `User-Agent`
                are credentials: they go to the origin of `url` until the first redirect to another one, and no redirect
                from https to http is followed with them.
            look: Sees the first bytes, as in `body_of`. None for none.
            form: `data`, `files` or `json` as httpx2 takes them, sent by POST; then no redirect is followed. None for
                GET.
            any_status: Whether answers other than 200 are returned. False makes them errors.
            judge: Sees each URL before it is asked for, those of redirects too. None for none.
        """
        import asyncio

        import httpx2

        at, origin = url, ""
        try:
            async with asyncio.timeout(self.max_seconds):
                for _ in range(1 if form else self.max_redirects + 1):
                    target = await self._target(at, judge)
                    if target.at.origin != (origin := origin or target.at.origin):
                        headers = _without_credentials(headers, origin, at)
                    # Without a client, which would write the whole URL, signatures included, into the log.
                    async with (
                        self.transport or open_transport(target.proxied) as transport,
                        aclosing(await self._connect(transport, target, headers, form)) as response,
                    ):
                        to = None if form else redirect_of(response)
                        if to is None:
                            return await self._read(response, at, look, any_status)
                    at = str(target.at.url.join(to))
        except TimeoutError:
            raise UrlError(f"{redacted(at)} did not answer within {self.max_seconds:g} seconds.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise UrlError(f"{redacted(at)} could not be fetched: {type(error).__name__}.") from error
        raise UrlError(f"{redacted(at)} is behind more redirects than are followed.")

    def fetch_sync(self, url: str, **options: Any) -> Fetched:
        """The same for callers that cannot await: it blocks, and uses an event loop in a thread of its own."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.fetch(url, **options)).result()

    async def _target(self, text: str, judge: Judge) -> _Target:
        """Where to send a request for a URL. Raises `RefusedUrlError`, `UrlError`, and what `judge` raises."""
        target = await self._reachable(text)
        if judge is not None:
            await judge(target.at)
        return target

    async def _reachable(self, text: str) -> _Target:
        at = read_url(text)
        is_allowed = not self.allow.isdisjoint((at.host, f"{at.host}:{at.port}", at.origin))
        if is_allowed and self.proxies and proxy_for(text):  # which looks up the name
            return _Target(at, (at.host,), text)
        if not is_allowed and at.port not in (80, 443) and not 1024 <= at.port < 65536:  # those of users, RFC 6335
            raise RefusedUrlError(f"{redacted(text)} is refused: port {at.port} is no web server's.")
        addresses = await self._addresses(at)
        if not is_allowed and not all(map(self._is_open, addresses)):
            raise RefusedUrlError(f"{redacted(text)} is refused: {at.host} is not at a public address.")
        return _Target(at, addresses)

    def _is_open(self, address: str) -> bool:
        return is_public(address) or any(ip_address(address) in it for it in self.allow if not isinstance(it, str))

    async def _addresses(self, at: WebUrl) -> tuple[str, ...]:
        found: Iterable[str] = [at.host]
        try:
            if ":" not in at.host and not at.host.rpartition(".")[2].isdecimal():
                found = await self.resolver(at.host, at.port)
            addresses = tuple(dict.fromkeys(str(ip_address(each)) for each in found))
        except (OSError, ValueError):
            addresses = ()
        if not addresses:
            raise UrlError(f"There is no host {redacted(at.host)}.")
        return addresses

    async def _connect(
        self, transport: httpx2.AsyncBaseTransport, target: _Target, headers: Headers, form: Form
    ) -> httpx2.Response:
        """The beginning of an answer, from the first address that takes a connection."""
        import httpx2

        url, method = target.at.url, "POST" if form else "GET"
        sent = httpx2.Headers({"Host": "", **_HEADERS})
        sent.update(headers)
        sent["Host"] = url.netloc.decode("ascii")
        timeout = httpx2.Timeout(self.max_seconds, connect=CONNECT_SECONDS).as_dict()
        extensions = {"timeout": timeout, "sni_hostname": target.at.host}
        for address in target.addresses:
            dialled = url.copy_with(host=address, fragment=None)
            request = httpx2.Request(method, dialled, headers=sent, extensions=extensions, **(form or {}))
            failures = () if address == target.addresses[-1] else (httpx2.ConnectError, httpx2.ConnectTimeout)
            with suppress(*failures):  # then the next address is tried
                response = await transport.handle_async_request(request)
                response.request = request
                return response
        raise AssertionError("there is at least one address")

    async def _read(self, response: httpx2.Response, at: str, look: Look, any_status: bool) -> Fetched:
        status, length = response.status_code, response.headers.get("content-length", "")
        if status != 200 and not any_status:
            raise UrlError(f"{redacted(at)} answered {status}.")
        try:
            if length.isdecimal() and int(length[:20]) > self.max_bytes:
                raise BodyError(f"a body of more than {self.max_bytes:,} bytes")
            content = await body_of(response, self.max_bytes, look)
        except BodyError as error:
            raise UrlError(f"{redacted(at)} answered with {error}.") from None
        return Fetched(content, at, status, response.headers.get("content-type", ""))


def _without_credentials(headers: Headers, origin: str, to: str) -> Headers:
    harmless = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
    if harmless != headers and origin.startswith("https:") and to.lower().startswith("http:"):
        raise RefusedUrlError(f"{redacted(to)} is refused: a redirect leads to it from https.")
    return harmless
