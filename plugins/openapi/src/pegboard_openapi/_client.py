"""The client: sends a request, signs it last, and bounds the answer."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NoReturn, final
from urllib.parse import quote, urljoin, urlsplit

import httpx2
from attrs import field, frozen

from pegboard import ToolError
from pegboard_net import BodyError, Guard, body_of, decoded, open_client, open_transport, redirect_of, retry_after
from pegboard_openapi._credentials import Credentials, Signature
from pegboard_openapi._request import Request

__all__ = ["Answer", "AnswerError", "BusyError", "Client"]

MAX_REDIRECTS: Final = 5
_MAX_MESSAGE: Final = 2_000
_METADATA_HEADERS: Final = ("etag", "link", "location")
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class AnswerError(ToolError):
    """The server refuses, or its answer cannot be used. `status` and `body` are those of the answer, if any."""

    def __init__(self, message: str, status: int | None = None, body: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class BusyError(Exception):
    """The server cannot answer now: whether to try again is for the call's policy to say."""

    def __init__(
        self, message: str, retry_after: float | None = None, status: int | None = None, body: str = ""
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.status = status
        self.body = body


@final
@frozen
class Answer:
    """A successful answer."""

    status: int
    media_type: str
    body: bytes = field(repr=False)
    headers: dict[str, str] = field(repr=False, factory=dict)

    @property
    def text(self) -> str:
        """The body as text."""
        return decoded(self.body, self.media_type)


@final
class Client:
    """What all operations of a document are sent with."""

    def __init__(self, credentials: Credentials, app: Any, seconds: float, max_bytes: int) -> None:
        self._credentials = credentials
        self._app = app
        self.seconds = seconds
        self.max_bytes = max_bytes

    async def send(self, request: Request, signature: Signature, label: str, *, again: bool) -> Answer:
        """The answer to a request, if it is a successful one. Raises `AnswerError`, and `BusyError` if `again`."""
        sending = _Sending(self, signature, label, again)
        try:
            async with asyncio.timeout(self.seconds):
                return await sending.run(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise BusyError(f"{label}: the server cannot be reached ({type(error).__name__})") from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            sending.fail(f"did not answer within {self.seconds:g} seconds", error)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            sending.fail(f"broke off before it had answered ({type(error).__name__})", error)

    def open(self, url: str, signature: Signature) -> httpx2.AsyncClient:
        """A client for one call: it keeps no cookies, follows no redirects and adds the signature."""
        app = self._app
        inner = open_transport(url) if app is None else httpx2.ASGITransport(app, raise_app_exceptions=False)
        return open_client(self.seconds, _Signing(inner, signature))

    def shown(self, text: str) -> str:
        """A server's words on one line, bounded, without credentials."""
        plain = " ".join(self._credentials.redact(text).split())
        return plain if len(plain) <= _MAX_MESSAGE else f"{plain[:_MAX_MESSAGE]}..."


class _Sending:
    """One call on its way, redirects included."""

    def __init__(self, client: Client, signature: Signature, label: str, again: bool) -> None:
        self._client = client
        self._signature = signature
        self._label = label
        self._again = again

    async def run(self, request: Request) -> Answer:
        method, url = request.method, request.url
        content: dict[str, Any] = {"content": request.content, "files": request.files}
        headers = request.headers
        async with self._client.open(url, self._signature) as client:
            for _ in range(MAX_REDIRECTS + 1):
                async with client.stream(method, url, headers=headers, **content) as response:
                    target = redirect_of(response)
                    if target is None:
                        return await self._accepted(response)
                    if method not in ("GET", "HEAD") and response.status_code != 303:
                        raise self._refused(f"answered {response.status_code}, a redirect, which is not followed")
                target = urljoin(url, target)
                if urlsplit(target)[:2] != urlsplit(url)[:2]:
                    # It gets no credentials, and only public addresses are contacted.
                    guard = Guard(max_bytes=self._client.max_bytes, max_seconds=self._client.seconds)
                    found = await guard.fetch(target)
                    return Answer(found.status, found.content_type, found.content)
                method, url, content = "HEAD" if method == "HEAD" else "GET", target, {}
                headers = {name: each for name, each in headers.items() if name != "Content-Type"}
        raise self._refused("is behind more redirects than are followed")

    async def _accepted(self, response: httpx2.Response) -> Answer:
        try:
            body = await body_of(response, self._client.max_bytes)
        except BodyError as error:
            raise AnswerError(f"{self._label} answered with {error}.", response.status_code) from None
        headers = {
            name: self._client.shown(response.headers[name]) for name in _METADATA_HEADERS if name in response.headers
        }
        answer = Answer(response.status_code, response.headers.get("content-type", ""), body, headers)
        if response.is_success or response.status_code == 304:
            return answer
        details = self._client.shown(answer.text)
        phrase = httpx2.codes.get_reason_phrase(response.status_code)
        message = f"{self._label} answered {response.status_code} {phrase}".rstrip()
        message += f": {details}" if details else ""
        seconds = retry_after(response.headers.get("retry-after", ""))
        message += f" (it asks to wait {seconds:g} seconds)" if seconds else ""
        if response.status_code in _BUSY and self._again:
            raise BusyError(message, seconds, response.status_code, details)
        raise AnswerError(message, response.status_code, details)

    def fail(self, what: str, error: Exception) -> NoReturn:
        """Raise for a broken connection. The request may have arrived: only an idempotent one may be repeated."""
        remark = "" if self._label.startswith(("GET", "HEAD")) else "; it may have been done all the same"
        raise (BusyError if self._again else AnswerError)(f"{self._label} {what}{remark}") from error

    def _refused(self, what: str) -> AnswerError:
        return AnswerError(f"{self._label} {what}.")


@final
class _Signing(httpx2.AsyncBaseTransport):
    """Adds what is secret to requests below everything that logs them or keeps them in exceptions."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, signature: Signature) -> None:
        self._inner = inner
        self._signature = signature

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        added = self._signature
        url, headers = request.url, request.headers.copy()
        if added.query:
            pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in added.query)
            url = url.copy_with(query=b"&".join(filter(None, (url.query, pairs.encode("ascii")))))
        headers.update(dict(added.headers))
        if added.cookies:
            cookies = (f"{name}={quote(value, safe='')}" for name, value in added.cookies)
            headers["Cookie"] = "; ".join((*filter(None, (headers.get("Cookie"),)), *cookies))
        signed = httpx2.Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )
        return await self._inner.handle_async_request(signed)

    async def aclose(self) -> None:
        await self._inner.aclose()
