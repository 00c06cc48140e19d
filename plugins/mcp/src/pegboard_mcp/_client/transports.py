"""Transports: the ways to reach a server, what the SDK's client needs for each, and what is read over them."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, final

from attrs import field, frozen

from pegboard_mcp._auth.oauth import PATIENCE, OAuth
from pegboard_mcp._client.secrets import expanded, expanded_all, without_login
from pegboard_mcp._wire.protocol import known_options
from pegboard_mcp._wire.reasons import not_started
from pegboard_mcp._wire.unrequested import Tail

if TYPE_CHECKING:
    from pegboard_mcp._wire.direct import Direct

__all__ = ["LONGEST", "Http", "InProcess", "Sse", "Stdio", "Transport", "overheard"]

Opened: TypeAlias = Any
"""What `mcp.Client` takes: a transport of the SDK, or a server in this process."""
LONGEST: Final = 64 * 1024 * 1024
"""The default for the bytes of one message."""


class Transport(Protocol):
    """One way to reach a server."""

    quoted: ClassVar[str]
    """What the end of `tail` is the end of."""

    @property
    def label(self) -> str:
        """What is reached, without secrets."""

    def open(self, tail: Tail, direct: Direct) -> Opened:
        """What to connect to. What the server writes to stderr goes to `tail`; `direct` is opened if it can be."""


def _bare(url: str) -> str:
    """A URL without user, password and query."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


@final
@frozen
class Stdio:
    """A process that is spoken to over its stdin and stdout.

    It gets HOME, PATH and the like, and `env`; nothing else of this process's environment.
    """

    quoted: ClassVar[str] = "its stderr ends"

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None
    longest: int = field(default=LONGEST, kw_only=True)

    @property
    def label(self) -> str:
        """The command."""
        return f"the command {self.command!r}"

    def open(self, tail: Tail, direct: Direct) -> Opened:
        """The process, begun when the client enters it."""
        from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

        command, args = expanded(self.command), list(map(expanded, self.args))
        env = {**get_default_environment(), **expanded_all(self.env)}
        cwd = None if self.cwd is None else expanded(self.cwd)
        if sys.platform == "win32":
            # A stray byte on stdout is that line's problem, and not the end of the connection.
            given = {"command": command, "args": args, "env": env, "cwd": cwd}
            parameters = StdioServerParameters(**given, encoding_error_handler="replace")
            return _started(stdio_client(parameters, errlog=tail.file), command)
        from pegboard_mcp._wire.pipes import piped

        return piped(command, args, env=env, cwd=cwd, tail=tail, direct=direct, longest=self.longest)


@asynccontextmanager
async def _started(process: Any, command: str) -> Any:
    """A process of the SDK's. Raises `UnreachableError` for one that cannot be started."""
    async with AsyncExitStack() as stack:
        try:
            both = await stack.enter_async_context(process)
        except OSError as error:
            raise not_started(error, command) from error
        yield both


@frozen
class _AtUrl:
    """A server at a URL. `auth` is `OAuth`, or an `httpx2.Auth`, such as the SDK's OAuth providers."""

    quoted: ClassVar[str] = "it answered"

    url: str = field(repr=_bare)
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    auth: Any = field(default=None, repr=False)
    longest: int = field(default=LONGEST, kw_only=True)
    patience: float = field(default=PATIENCE, kw_only=True)
    """Seconds in which the user has to agree, for OAuth."""
    authorizations: set[str] = field(factory=set, init=False, repr=False, eq=False)
    """What was sent as authorization so far, and tokens."""

    @property
    def label(self) -> str:
        """The host and path."""
        return _bare(self.url)


@final
@frozen
class Http(_AtUrl):
    """A server at a URL, over streamable HTTP."""

    timeout: float | None = 120.0

    def open(self, tail: Tail, direct: Direct) -> Opened:
        """The endpoint, with a client of its own for headers and authorization."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        # No limit of the SDK's own: a screenshot is larger than its megabyte.
        unlimited = known_options(streamable_http_client, max_sse_event_size=None)
        url, client = _reached(self, tail)
        # Our own timeouts come first, and bound how long a call waits for one of the connections, too.
        timeout = httpx2.Timeout(30.0, read=None if self.timeout is None else self.timeout + 5.0, pool=None)
        posts = direct.post_to(url, partial(client, timeout)) if self.auth is None else None  # a sign-in has one loop

        @asynccontextmanager
        async def opened() -> Any:
            async with (
                client(timeout, reached=posts and posts.moved) as http,
                streamable_http_client(url, http_client=http, **unlimited) as both,
            ):
                yield both

        return opened()


@final
@frozen
class Sse(_AtUrl):
    """A server at a URL, over the older HTTP with server-sent events."""

    def open(self, tail: Tail, direct: Direct) -> Opened:
        """The event stream."""
        from mcp.client.sse import sse_client

        day = 86_400.0  # an idle stream is no dead one; calls have timeouts of their own
        url, client = _reached(self, tail)
        return sse_client(url, sse_read_timeout=day, httpx_client_factory=client)


def _reached(transport: _AtUrl, tail: Tail) -> tuple[str, Any]:
    """The URL that is asked, without user and password, and what makes the client that asks it."""
    import httpx2

    from pegboard_mcp._wire.http import certificates, client

    url, login = without_login(expanded(transport.url))
    headers, authorized = expanded_all(transport.headers), transport.authorizations.add
    trusted = certificates(url)

    def made(timeout: Any = 30.0, reached: Any = None, **_: Any) -> Any:
        listeners = {"tail": tail, "authorized": authorized, "reached": reached}
        return client(headers, auth, timeout, trusted=trusted, longest=transport.longest, **listeners)

    auth = transport.auth
    if isinstance(auth, OAuth):
        from pegboard_mcp._auth.access import Access

        auth = Access(url, auth, transport.patience, authorized, made)
    auth = httpx2.BasicAuth(*login) if login is not None and auth is None else auth
    return url, made


@final
@frozen
class InProcess:
    """A server object of the SDK in this process."""

    quoted: ClassVar[str] = "it said"

    server: Any

    @property
    def label(self) -> str:
        """Where it is."""
        return "a server in this process"

    def open(self, tail: Tail, direct: Direct) -> Opened:
        """The server itself."""
        return self.server


@asynccontextmanager
async def overheard(
    transport: AbstractAsyncContextManager[Any], heard: Callable[[Any], Any], ended: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The transport's streams. Every message is read as `heard(message)`; `ended()` is called after the last one.

    So a server that dies between two calls is noticed before the next one is sent.
    """
    async with transport as (read, write):
        yield _Overheard(read, heard, ended), write


@final
class _Overheard:
    """A stream to read from, with everything that it is besides."""

    def __init__(self, stream: Any, heard: Callable[[Any], Any], ended: Callable[[], None]) -> None:
        self._stream = stream
        self._heard = heard
        self._ended = ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Overheard:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._heard(await self._stream.__anext__())
        except BaseException:  # whatever ends the reading ends the connection
            self._ended()
            raise

    async def receive(self) -> Any:
        try:
            return self._heard(await self._stream.receive())
        except BaseException:
            self._ended()
            raise

    async def __aenter__(self) -> _Overheard:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        self._ended()
        return await self._stream.__aexit__(*failure)
