"""Transports: the ways to reach a server, and what the SDK's client needs for each."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Protocol, TypeAlias, final

from attrs import field, frozen

from pegboard_mcp._sdk import known_options
from pegboard_mcp._tail import Tail

__all__ = ["Http", "InProcess", "Sse", "Stdio", "Transport", "expanded"]

Opened: TypeAlias = Any
"""What `mcp.Client` takes: a transport of the SDK, or a server in this process."""
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")


class Transport(Protocol):
    """One way to reach a server."""

    quoted: ClassVar[str]
    """What the end of `tail` is the end of."""

    @property
    def label(self) -> str:
        """What is reached, without secrets."""

    def open(self, tail: Tail) -> Opened:
        """What to connect to. What the server writes to stderr goes to `tail`."""


def expanded(text: str) -> str:
    """`text` with `${NAME}` and `${NAME:-default}` replaced from the environment. Raises `ValueError` naming it."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = os.environ.get(name, default)
        if found is None:
            raise ValueError(f"the environment variable {name!r} is not set")
        return found

    return _VARIABLE.sub(value, text)


def _expanded_all(texts: Mapping[str, str] | None) -> dict[str, str]:
    return {name: expanded(text) for name, text in (texts or {}).items()}


@final
@frozen
class Stdio:
    """A process that is spoken to over its stdin and stdout.

    It gets HOME, PATH and the like, and `env`; nothing else of this process's environment.
    """

    quoted: ClassVar[str] = "its stderr ends"

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None

    @property
    def label(self) -> str:
        """The command."""
        return f"the command {self.command!r}"

    def open(self, tail: Tail) -> Opened:
        """The process, begun when the client enters it."""
        from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

        command, args = expanded(self.command), list(map(expanded, self.args))
        env = {**get_default_environment(), **_expanded_all(self.env)}
        cwd = None if self.cwd is None else expanded(self.cwd)
        if sys.platform == "win32":
            # A stray byte on stdout is that line's problem, and not the end of the connection.
            given = {"command": command, "args": args, "env": env, "cwd": cwd}
            return stdio_client(StdioServerParameters(**given, encoding_error_handler="replace"), errlog=tail.file)
        from pegboard_mcp._pipes import piped

        return piped(command, args, env=env, cwd=cwd, tail=tail)


@final
@frozen
class Http:
    """A server at a URL, over streamable HTTP. `auth` is an `httpx2.Auth`, such as the SDK's OAuth providers."""

    quoted: ClassVar[str] = "it answered"

    url: str
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    auth: Any = field(default=None, repr=False)
    timeout: float = 120.0

    @property
    def label(self) -> str:
        """The host and path."""
        return _bare(self.url)

    def open(self, tail: Tail) -> Opened:
        """The endpoint, with a client of its own for headers and authorization."""
        return self._opened(tail)

    def _opened(self, tail: Tail) -> AbstractAsyncContextManager[Any]:
        from contextlib import asynccontextmanager

        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def note(response: Any) -> None:
            # The SDK says only that there was an error.
            if response.status_code >= 400:
                tail.note(f"HTTP {response.status_code} {response.reason_phrase}")

        @asynccontextmanager
        async def opened() -> Any:
            timeout = httpx2.Timeout(30.0, read=self.timeout + 5.0)  # our own timeouts come first
            # No limit of the SDK's own: a screenshot is larger than its megabyte.
            unlimited = known_options(streamable_http_client, max_sse_event_size=None)
            url, headers = expanded(self.url), _expanded_all(self.headers)
            async with (
                httpx2.AsyncClient(
                    headers=headers, auth=self.auth, timeout=timeout, event_hooks={"response": [note]}
                ) as http,
                streamable_http_client(url, http_client=http, **unlimited) as both,
            ):
                yield both

        return opened()


@final
@frozen
class Sse:
    """A server at a URL, over the older HTTP with server-sent events."""

    quoted: ClassVar[str] = "it answered"

    url: str
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    auth: Any = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The host and path."""
        return _bare(self.url)

    def open(self, tail: Tail) -> Opened:
        """The event stream."""
        from mcp.client.sse import sse_client

        day = 86_400.0  # an idle stream is no dead one; calls have timeouts of their own
        return sse_client(expanded(self.url), headers=_expanded_all(self.headers), auth=self.auth, sse_read_timeout=day)


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

    def open(self, tail: Tail) -> Opened:
        """The server itself."""
        return self.server


def _bare(url: str) -> str:
    """A URL without user, password and query."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
