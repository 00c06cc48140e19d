"""HTTP: the client that both transports over HTTP speak with, and requests that are posted without one of them.

What is read has an end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import cache
from ssl import SSLContext
from typing import Any, Final, final

import httpx2
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from pegboard_mcp._wire.reasons import UnreachableError
from pegboard_mcp._wire.unrequested import QUIET, Meter, Tail

__all__ = ["Posts", "certificates", "client"]

LASTING: Final = 10.0
"""In so many seconds a stream may bring once more what it may bring at once."""
IDLE: Final = 4.0
"""Seconds after which an idle connection is not used again: many servers, as those of uvicorn, close it after five."""
HEADERS: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_NONE: Final = ErrorData(code=CONNECTION_CLOSED, message="the response ended without an answer")
_BLANK: Final = (b"\n\n", b"\r\r", b"\r\n\r\n")


def client(
    headers: Mapping[str, str],
    auth: Any,
    timeout: httpx2.Timeout,
    *,
    trusted: SSLContext,
    longest: int,
    tail: Tail,
    authorized: Callable[[str], object],
    reached: Callable[[str], object] | None = None,
) -> httpx2.AsyncClient:
    """A client whose responses are read up to `longest` bytes, of a stream of events each event and what comes at once.

    A stream that brings events in a flood is read no longer. `trusted` are the certificates, as in `certificates`.

    What the server answers with an error goes to `tail`, what is sent as authorization to `authorized`, and addresses
    that answer with something else than a redirect to `reached`.
    """

    async def sending(request: Any) -> None:
        if credentials := request.headers.get("authorization"):
            authorized(credentials)

    async def note(response: Any) -> None:
        # The SDK says only that there was an error.
        if response.status_code >= 400:
            tail.note(f"HTTP {response.status_code} {response.reason_phrase}")
        if reached is not None and not response.is_redirect:
            reached(str(response.url))
        response.stream = _Bounded(response, longest, tail)

    return httpx2.AsyncClient(
        # Compressed, a small body may be a large one.
        headers={**headers, "accept-encoding": "identity"},
        auth=auth,
        timeout=timeout,
        verify=trusted,
        limits=httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=IDLE),
        event_hooks={"request": [sending] if auth is not None or headers else [], "response": [note]},
    )


def certificates(url: str) -> SSLContext:
    """What is trusted: read for each server, since it takes longer than to connect, and once for all without TLS."""
    return httpx2.create_ssl_context() if url.casefold().startswith("https:") else _unneeded()


@cache
def _unneeded() -> SSLContext:
    return httpx2.create_ssl_context()


@final
class _Bounded(httpx2.AsyncByteStream):
    """The bytes of a response. Raises `httpx2.StreamError` where they have no end."""

    def __init__(self, response: Any, longest: int, tail: Tail) -> None:
        self._stream = response.stream
        self._events = response.headers.get("content-type", "").partition(";")[0].strip() == "text/event-stream"
        self._encoding = response.headers.get("content-encoding", "identity").strip().casefold()
        self._longest = longest
        self._tail = tail

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._encoding != "identity":
            raise self._refused(f"(a body encoded as {self._encoding[:40]!r}, which was not asked for)")
        held, read, end, began, meter = 0, 0, b"", time.monotonic(), Meter()
        async for chunk in self._stream:
            read += len(chunk)
            if not self._events:
                if read > self._longest:
                    raise self._refused(f"(a body longer than {self._longest:,} bytes)")
                yield chunk
                continue
            window = end + chunk
            blank = max(window.rfind(each) + len(each) if each in window else 0 for each in _BLANK)
            held = len(window) - blank if blank else held + len(chunk)
            end = window[-3:]
            lasting = 1 + (time.monotonic() - began) / LASTING
            if held > self._longest or read > self._longest * lasting:
                raise self._refused(f"(a body longer than {self._longest:,} bytes)")
            if not meter.takes(max(map(window.count, _BLANK))):
                raise httpx2.StreamError(self._tail.flood())
            yield chunk

    def _refused(self, why: str) -> httpx2.StreamError:
        self._tail.note(why)
        return httpx2.StreamError(why)

    async def aclose(self) -> None:
        """Close what is read from."""
        await self._stream.aclose()


@final
class Posts:
    """Posts requests to one server, each on its caller's own loop, where its answer is read too.

    By the protocol of 2026-07-28 a request stands alone: it says itself who asks, and closing its response cancels it.
    The SDK's transport posts all of them from the connection's thread; but two threads that take turns at the
    interpreter for a request take a quarter more time for it than one. `heard` gets the notifications that come before
    an answer.
    """

    def __init__(
        self, url: str, client: Callable[[], httpx2.AsyncClient], heard: Callable[[JSONRPCNotification], None]
    ) -> None:
        self._url = url
        self._client = client
        self._heard = heard
        self._held: dict[asyncio.AbstractEventLoop, AsyncGenerator[None]] = {}
        self._clients: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}
        self._closing: set[asyncio.Future[None]] = set()

    def moved(self, url: str) -> None:
        """The server is at this address, to which the first one redirects."""
        self._url = url

    async def answer(self, line: str, headers: Mapping[str, str]) -> dict[str, Any] | ErrorData:
        """The result of a request, or the error. Raises `UnreachableError` if nothing was sent."""
        client = self._clients.get(asyncio.get_running_loop()) or await self._begun()
        loud = QUIET.set(True)
        try:
            async with client.stream("POST", self._url, content=line, headers={**HEADERS, **headers}) as response:
                return await self._read(response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise UnreachableError(f"{type(error).__name__}: {error}") from error
        except (httpx2.HTTPError, RuntimeError) as error:  # RuntimeError: the client was closed meanwhile
            return ErrorData(code=CONNECTION_CLOSED, message=f"{type(error).__name__}: {error}")
        finally:
            QUIET.reset(loud)

    def end(self) -> None:
        """Close the connections, soon, each on its loop; from any thread."""
        self._clients.clear()
        while self._held:
            loop, held = self._held.popitem()
            with suppress(RuntimeError):  # the loop is closed, and has ended them itself
                loop.call_soon_threadsafe(self._close, held)

    def _close(self, held: AsyncGenerator[None]) -> None:
        task = asyncio.ensure_future(held.aclose())
        self._closing.add(task)  # the loop itself would let it go
        task.add_done_callback(self._closing.discard)

    async def _begun(self) -> httpx2.AsyncClient:
        """The client of the running loop, which closes its generators at its end, and with one of them the client."""
        loop = asyncio.get_running_loop()
        for closed in [each for each in list(self._held) if each.is_closed()]:
            self._held.pop(closed, None)
            self._clients.pop(closed, None)
        client = self._clients[loop] = self._client()

        async def held() -> AsyncGenerator[None]:
            try:
                yield
            finally:
                self._held.pop(loop, None)
                self._clients.pop(loop, None)
                await client.aclose()

        self._held[loop] = held()
        await anext(self._held[loop])  # it waits for nothing, so no other task comes between
        return client

    async def _read(self, response: httpx2.Response) -> dict[str, Any] | ErrorData:
        kind = response.headers.get("content-type", "").lower()
        is_json = kind.startswith("application/json")
        if response.status_code >= 400:
            return _refused(response.status_code, await response.aread() if is_json else b"")
        if response.status_code >= 300 or response.status_code == 202:
            return ErrorData(code=INVALID_REQUEST, message=f"it answered a request with status {response.status_code}")
        try:
            if is_json:
                outcome = self._outcome_in(await response.aread())
                return _NONE if outcome is None else outcome
            if kind.startswith("text/event-stream"):
                async for event in httpx2.EventSource(response, max_event_size=None):
                    if event.data and (outcome := self._outcome_in(event.data)) is not None:
                        return outcome
                return _NONE
        except (httpx2.StreamError, ValidationError) as error:
            return ErrorData(code=PARSE_ERROR, message=f"Failed to parse the response: {error}")
        return ErrorData(code=INVALID_REQUEST, message=f"Unexpected content type: {kind}")

    def _outcome_in(self, data: str | bytes) -> dict[str, Any] | ErrorData | None:
        """The answer that a message is; None for another one. Raises ValidationError for what is no message."""
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
        if isinstance(message, JSONRPCNotification):
            self._heard(message)
        if isinstance(message, JSONRPCError):
            return message.error
        return message.result if isinstance(message, JSONRPCResponse) else None


def _refused(status: int, body: bytes) -> ErrorData:
    """The error of a refusal: that in its body, or one for its status, with the codes that the SDK gives."""
    with suppress(ValidationError):
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
        if isinstance(message, JSONRPCError):
            return message.error
    if status == 404:
        return ErrorData(code=METHOD_NOT_FOUND, message="Not Found")
    return ErrorData(code=INTERNAL_ERROR, message="Server returned an error response")
