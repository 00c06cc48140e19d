"""Access to a server by OAuth: tokens are shared with other programs, refreshed, and asked for where that is needed."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import Any, Final, TypeAlias, TypeVar, final
from urllib.parse import urlsplit

import anyio
import httpx2
from attrs import define, field
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, oauth2
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel, ValidationError

from pegboard.inspection import spelled_out
from pegboard_mcp._auth.oauth import Door, OAuth, TokenFile, token_file
from pegboard_mcp._wire.reasons import NO_ACCESS, ConsentError, UnreachableError, reason

__all__ = ["Access"]

Requests: TypeAlias = AsyncGenerator[httpx2.Request, httpx2.Response]
T = TypeVar("T", bound=BaseModel)
_SECRET: Final = ("access_token", "refresh_token", "id_token", "client_secret")
_OPENING: Final = frozenset({None, "initialize", "server/discover"})
"""Requests whose failure says that there is no connection; others fail by themselves. None are those of a stream."""
_CALLS: Final = frozenset({"initialize", "prompts/get", "resources/read", "server/discover", "tools/call"})
"""Requests that a caller waits for. For others the user is asked once in a connection."""


REFRESHES: Final = 2
"""How often a token is refreshed for one request: on a slow connection one may end before it arrives."""


@define
class _Attempt:
    """What was tried for one request."""

    since: float
    """An answer of the user after that time counts for it."""
    sent: str = field(default="", repr=False)
    """The access token that it was sent with."""
    response: httpx2.Response | None = None
    """How it was refused."""
    refreshed: int = 0
    has_asked: bool = False

    @property
    def steps_up(self) -> bool:
        """Whether the token is good, and has too few scopes."""
        return self.response is not None and self.response.status_code == 403

    def needed(self) -> list[str]:
        """The scopes that the refusal names."""
        named = None if self.response is None else extract_scope_from_www_auth(self.response)
        return (named or "").strip('"').split()


@final
class Access(OAuthClientProvider):
    """Adds tokens to requests. Where one is refused, others are looked for under the lock of the token file.

    In this order: what another call or program has got meanwhile; what the refresh token gives; what the user agrees
    to. How the user is asked, from the search for the authorization server on, is the SDK's.
    """

    def __init__(
        self, url: str, wanted: OAuth, patience: float, note: Callable[[str], object], client: Callable[[], Any]
    ) -> None:
        anywhere = OAuthClientMetadata(client_name="pegboard", redirect_uris=[AnyUrl("http://127.0.0.1/callback")])
        super().__init__(url, anywhere, self, self._send, self._back)
        self._file = TokenFile(token_file(url))
        self._wanted = wanted
        self._patience = patience
        self._note = note
        self._client = client
        self._opened = time.time()
        self._requested: list[str] = []
        self._token_endpoint: str | None = None
        self._door: Door | None = None

    # Requests --------------------------------------------------------------------------------------------------

    async def async_auth_flow(self, request: httpx2.Request) -> Requests:
        """Send a request, again with another token where one is refused. Raises `UnreachableError` without access.

        Only requests that open a connection raise: with an error of any other one the SDK would end it.
        """
        method = _message(request).get("method")
        attempt, failure = _Attempt(time.time() if method in _CALLS else self._opened), ""
        if not self._initialized:
            await self._initialize()
        while True:
            if attempt.response is not None or (self._can_refresh() and not self.context.is_token_valid()):
                try:
                    async with (
                        self._file.alone(self._patience, self._left(method), _waiting),
                        aclosing(self._renewed(request, attempt)) as steps,
                    ):
                        outgoing = await _next(steps)
                        while outgoing is not None:
                            outgoing = await _next(steps, (yield outgoing))
                except (UnreachableError, OAuthFlowError, OSError) as error:
                    if method in _OPENING:
                        raise
                    failure = reason(error)
            attempt.sent = self._authorize(request)
            attempt.response = response = yield request
            if not _is_refused(response):
                return
            if failure:
                _explain(response, request, failure)
            if failure or attempt.has_asked:
                return

    def _left(self, method: Any) -> float:
        """The seconds that the user has still; less where a connection opens, which waits no longer."""
        is_opening = method is not None and method in _OPENING  # a stream opens later, too
        return max(0.0, self._patience - (time.time() - self._opened if is_opening else 0.0))

    def _can_refresh(self) -> bool:
        """Whether there is a refresh token, and it is known where it came from: no other place may see it."""
        return self._token_endpoint is not None and self.context.can_refresh_token()

    def _authorize(self, request: httpx2.Request) -> str:
        """Put the token into a request, if there is one. Returns it."""
        request.headers.pop("Authorization", None)
        if not self.context.is_token_valid() or self.context.current_tokens is None:
            return ""
        self._add_auth_header(request)
        return self.context.current_tokens.access_token

    def _needed(self, attempt: _Attempt) -> list[str]:
        """The scopes without which the user has to be asked."""
        return [*self._wanted.scopes, *attempt.needed()]

    async def _renewed(self, request: httpx2.Request, attempt: _Attempt) -> Requests:
        """The requests after which there may be a better token. Under the lock."""
        self.context.protocol_version = request.headers.get("mcp-protocol-version")
        await self._initialize()
        tokens = self.context.current_tokens
        if tokens is not None and tokens.access_token != attempt.sent and self.context.is_token_valid():
            return  # another call, or another program, has got it meanwhile
        if not attempt.steps_up and attempt.refreshed < REFRESHES and self._can_refresh():
            attempt.refreshed += 1
            # A server takes a refresh token once: a request that is cancelled, and a connection that closes, wait until
            # its answer is kept, or the user would be asked again.
            with anyio.CancelScope(shield=True):
                is_new = await self._refreshed()
            if is_new:
                return
        if attempt.response is None:  # what the server wants is known when it has refused
            self.context.clear_tokens()
            return
        attempt.has_asked = True
        last = self._file.consent()
        if last is not None and last.covers(self._needed(attempt), attempt.since):
            if last.refused:
                raise ConsentError(last.refused)
            return
        async with aclosing(self._signed_in(request, attempt)) as steps:
            outgoing = await _next(steps)
            while outgoing is not None:
                outgoing = await _next(steps, (yield outgoing))

    async def _refreshed(self) -> bool:
        """Whether there are new tokens. Raises `UnreachableError` where there is no answer."""
        async with self._client() as http:
            try:
                answer = await http.send(await self._refresh_token(), auth=None)
            except (httpx2.HTTPError, httpx2.StreamError) as error:
                raise UnreachableError(f"the token could not be refreshed: {reason(error)}; try again later") from error
            return await self._handle_refresh_response(answer)

    async def _signed_in(self, request: httpx2.Request, attempt: _Attempt) -> Requests:
        """The requests of asking the user. Raises `ConsentError` where the user gives no access."""
        self._door = Door(self._wanted.open, self._patience, self._left(_message(request).get("method")))
        try:
            challenge = await self._challenge(self._door, attempt)
            async with aclosing(super().async_auth_flow(request)) as steps:
                await anext(steps)  # the request itself, whose refusal is known
                outgoing = await _next(steps, challenge)
                while outgoing is not None and outgoing is not request:
                    wider = self._wider(outgoing)
                    response = yield wider or outgoing
                    if wider is not None and response.status_code >= 400:
                        response = yield outgoing
                    outgoing = await _next(steps, response)
            self._file.note_answer([*self._requested, *self._needed(attempt)])
        except ConsentError as error:
            self._file.note_answer(self._needed(attempt), str(error))
            raise
        except OAuthFlowError as error:
            if isinstance(error.__cause__, ValueError):  # which quotes what was sent, tokens and all
                raise UnreachableError("the authorization server sent something that cannot be used") from None
            raise
        finally:
            self._door.close()

    def _wider(self, request: httpx2.Request) -> httpx2.Request | None:
        """A registration for all scopes of the server, so that the client may ask for more later; None for no such."""
        resource, body = self.context.protected_resource_metadata, _message(request)
        if resource is None or not resource.scopes_supported or "redirect_uris" not in body:
            return None
        scopes = dict.fromkeys((*str(body.get("scope") or "").split(), *resource.scopes_supported))
        return httpx2.Request("POST", request.url, json={**body, "scope": " ".join(scopes)})

    async def _challenge(self, door: Door, attempt: _Attempt) -> httpx2.Response:
        """The refusal as the SDK reads it, with all scopes to ask for, after what is kept was made to fit them."""
        assert attempt.response is not None  # noqa: S101 - the user is asked after a refusal
        context, refused = self.context, attempt.response
        kept = self._requested if attempt.steps_up or not self._covers_wanted() else []
        granted = context.current_tokens.scope if attempt.steps_up and context.current_tokens else None
        requested = list(dict.fromkeys((*kept, *(granted or "").split(), *self._needed(attempt))))
        if attempt.steps_up:
            context.token_expiry_time = None  # the server knows the token, whatever the clock says
        else:
            context.clear_tokens()
        client = context.client_info
        known = client.redirect_uris if client is not None else None
        port = (urlsplit(str(known[0])).port or 0) if known else 0
        found = await door.listen(port)
        if client is not None and (found != port or not _is_registered(client, requested)):
            context.client_info = None  # it is registered anew
        context.client_metadata.redirect_uris = [AnyUrl(f"http://127.0.0.1:{found}/callback")]
        fields = {
            "error": "insufficient_scope" if attempt.steps_up else None,
            "scope": " ".join(requested),
            "resource_metadata": extract_resource_metadata_from_www_auth(refused),
        }
        challenge = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        headers = {"WWW-Authenticate": f"Bearer {challenge}"}
        return httpx2.Response(refused.status_code, headers=headers, request=refused.request)

    async def _send(self, url: str) -> None:
        assert self._door is not None  # noqa: S101 - the user is asked at an open door
        self._requested = (self.context.client_metadata.scope or "").split()
        await self._door.send(url)

    async def _back(self) -> Any:
        assert self._door is not None  # noqa: S101 - the same
        return await self._door.back()

    # What the SDK does with tokens -----------------------------------------------------------------------------

    async def _initialize(self) -> None:
        """Read what is kept. Tokens that were asked for with fewer scopes than are wanted here do not count."""
        found, context = self._file.read(), self.context
        context.client_info = _valid(OAuthClientInformationFull, found.get("client"))
        context.current_tokens = tokens = _valid(OAuthToken, found.get("tokens"))
        ends, endpoint, scopes = found.get("expires_at"), found.get("token_endpoint"), found.get("scopes")
        context.token_expiry_time = float(ends) if isinstance(ends, int | float) else None
        self._token_endpoint = endpoint if isinstance(endpoint, str) else None
        granted = (tokens.scope or "").split() if tokens is not None else []
        self._requested = [each for each in scopes if isinstance(each, str)] if isinstance(scopes, list) else granted
        self._noted(found.get("client"), found.get("tokens"))
        if not self._covers_wanted():
            context.clear_tokens()
        self._initialized = True

    def _covers_wanted(self) -> bool:
        """Whether the user was asked for all scopes that are wanted."""
        return set(self._requested).issuperset(self._wanted.scopes)

    async def _refresh_token(self) -> httpx2.Request:
        """The request of the SDK, sent to where the tokens came from: that is known before anything is discovered."""
        request, endpoint = await super()._refresh_token(), self._token_endpoint
        if endpoint is None or str(request.url) == endpoint:
            return request
        headers = {name: request.headers[name] for name in ("content-type", "authorization") if name in request.headers}
        return httpx2.Request("POST", endpoint, headers=headers, content=request.content)

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        """Whether there are new tokens. Raises `UnreachableError` where that is not known: the user is not asked."""
        found = await self._read(response)
        if response.status_code not in (200, 400, 401, 403):
            raise UnreachableError(f"the token could not be refreshed: HTTP {response.status_code}; try again later")
        if found.get("error") == "invalid_client":
            self.context.client_info = None
        if response.status_code == 200 and _valid(OAuthToken, found) is not None:
            return await super()._handle_refresh_response(response)
        self.context.clear_tokens()
        return False

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        """Keep the tokens. Raises `ConsentError` where there are none: the SDK's words quote all that was sent."""
        found = await self._read(response)
        if response.status_code not in (200, 201):
            code = spelled_out(" ".join(str(found.get("error", "without a reason"))[:100].split()))
            raise ConsentError(f"the authorization server gave no token (HTTP {response.status_code}): {code}")
        if _valid(OAuthToken, found) is None:
            raise ConsentError("the authorization server gave no token that can be used")
        await super()._handle_token_response(response)

    async def _read(self, response: httpx2.Response) -> dict[str, Any]:
        await response.aread()
        try:
            found = response.json()
        except ValueError:
            return {}
        self._noted(found)
        return found if isinstance(found, dict) else {}

    def _noted(self, *holders: Any) -> None:
        for holder in holders:
            for name in _SECRET if isinstance(holder, dict) else ():
                if isinstance(holder.get(name), str):
                    self._note(holder[name])

    # Where the SDK keeps tokens --------------------------------------------------------------------------------

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens that are kept."""
        return self.context.current_tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens with all that another program needs to refresh them, and the client that they were given to."""
        if self.context.oauth_metadata is not None or self._token_endpoint is None:
            self._token_endpoint = self._get_token_endpoint()
        content = {
            "client": _dumped(self.context.client_info),
            "tokens": _dumped(tokens),
            "expires_at": self.context.token_expiry_time,
            "token_endpoint": self._token_endpoint,
            "scopes": self._requested,
        }
        self._file.replace(content)  # not in a thread, which a cancelled request would not wait for

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """What this client was registered as."""
        return self.context.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Kept with the first tokens: another program could do nothing with a client alone."""
        self._noted(_dumped(client_info))


async def _next(steps: Requests, response: httpx2.Response | None = None) -> httpx2.Request | None:
    """The next request of a flow, which goes on with a response; None at its end."""
    try:
        return await (anext(steps) if response is None else steps.asend(response))
    except StopAsyncIteration:
        return None


def _waiting() -> AbstractContextManager[None]:
    """While it is entered, the time of the call that waits does not run; older releases of the SDK cannot do that."""
    pause: Callable[[], AbstractContextManager[None]] = getattr(oauth2, "waiting_on_a_person", nullcontext)
    return pause()


def _is_refused(response: httpx2.Response) -> bool:
    """Whether another token may help."""
    if response.status_code == 403:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401


def _is_registered(client: OAuthClientInformationFull, scopes: Iterable[str]) -> bool:
    """Whether a client may ask for scopes; one that was registered without any may, as far as is known."""
    return client.scope is None or set(client.scope.split()).issuperset(scopes)


def _dumped(value: BaseModel | None) -> Any:
    return None if value is None else value.model_dump(mode="json", exclude_none=True)


def _valid(kind: type[T], value: Any) -> T | None:
    """A record of the SDK; None for what is none: the user is asked again."""
    try:
        return None if value is None else kind.model_validate(value)
    except ValidationError:
        return None


def _message(request: httpx2.Request) -> dict[str, Any]:
    """The message of the protocol that a request carries; empty where it carries none."""
    try:
        found = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return {}
    return found if isinstance(found, dict) else {}


def _explain(response: httpx2.Response, request: httpx2.Request, why: str) -> None:
    """Put the reason into the refusal, as the error of the protocol that the call ends with."""
    error = {"code": NO_ACCESS, "message": why}
    body = json.dumps({"jsonrpc": "2.0", "id": _message(request).get("id"), "error": error}).encode()
    response.headers["Content-Type"] = "application/json"
    response.stream = _Instead(body, response.stream)


@final
class _Instead(httpx2.AsyncByteStream):
    """Bytes in the place of those that a server sends."""

    def __init__(self, body: bytes, stream: Any) -> None:
        self._body = body
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        """Close what would have been read from."""
        await self._stream.aclose()
