"""HTTP: the client that both transports over HTTP speak with. What it reads has an end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from typing import Any, Final, final

import httpx2

from pegboard_mcp._wire.unrequested import Meter, Tail

__all__ = ["client"]

LASTING: Final = 10.0
"""In so many seconds a stream may bring once more what it may bring at once."""
_BLANK: Final = (b"\n\n", b"\r\r", b"\r\n\r\n")


def client(
    headers: Mapping[str, str],
    auth: Any,
    timeout: httpx2.Timeout,
    *,
    secure: bool,
    longest: int,
    tail: Tail,
    authorized: Callable[[str], object],
) -> httpx2.AsyncClient:
    """A client whose responses are read up to `longest` bytes, of a stream of events each event and what comes at once.

    A stream that brings events in a flood is read no longer. `secure` is whether the address is one of TLS.

    What the server answers with an error goes to `tail`, what is sent as authorization to `authorized`.
    """

    async def sending(request: Any) -> None:
        if credentials := request.headers.get("authorization"):
            authorized(credentials)

    async def note(response: Any) -> None:
        # The SDK says only that there was an error.
        if response.status_code >= 400:
            tail.note(f"HTTP {response.status_code} {response.reason_phrase}")
        response.stream = _Bounded(response, longest, tail)

    return httpx2.AsyncClient(
        # Compressed, a small body may be a large one.
        headers={**headers, "accept-encoding": "identity"},
        auth=auth,
        timeout=timeout,
        verify=True if secure else _certificates(),
        event_hooks={"request": [sending] if auth is not None or headers else [], "response": [note]},
    )


@cache
def _certificates() -> Any:
    """What is trusted, read once: it takes longer than to connect, and addresses without TLS do not need it."""
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
