"""The guard: who may come in. Everything behind it is for the one browser that was given the address."""

from __future__ import annotations

import secrets
from typing import Final, final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard_inspector._apps import FRAME_HEADERS

__all__ = ["KEY", "Guard"]

KEY: Final = "x-pegboard-key"
"""The header that the page sends with every request to the API."""

_HEADERS: Final = {
    # No script, no style and no picture but what this server sends; and no script makes markup out of text, which
    # `require-trusted-types-for` has the browser see to.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; "
        "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_USED: Final = (
    "An address works once, and this one does not or not any more. Start `pegboard inspect` for another one.\n"
)
_NO_TOKEN: Final = "Open the address that `pegboard inspect` has printed: it holds a token.\n"  # noqa: S105


@final
class Guard:
    """Lets in what has the cookie; the token in the address is good for one cookie.

    A request that names another host or origin is refused, and a POST has to name this origin. So no other page, and no
    host name that resolves to this machine, gets through.

    Browsers send a cookie to every server of a host, whatever its port. So the cookie alone opens the empty page; the
    API wants the key as well, which the browser gets once, behind the `#` of an address, keeps for this origin, and
    sends in a header.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self._app = app
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        # Cookies do not keep ports apart: another inspector on this machine must not take this one's place.
        self._cookie = f"pegboard_inspector_{port}"
        self._pass = secrets.token_urlsafe(32)
        self._key = secrets.token_urlsafe(32)
        self._used = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":  # there are no websockets here, and nothing happens at start and end
            return

        is_frame = scope["path"].startswith("/apps/")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS | (FRAME_HEADERS if is_frame else {}))
            await send(message)

        answer = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        """Why the request is refused; None if it is allowed. With a token a redirection takes it out of the address."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            return PlainTextResponse("This host is not served here.\n", 403)
        if origin != f"http://{host}" and (origin is not None or request.method not in ("GET", "HEAD")):
            return PlainTextResponse("Requests of other origins are refused.\n", 403)
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and request.url.path != "/":
            return PlainTextResponse("Requests of other sites are refused.\n", 403)
        known = secrets.compare_digest(request.cookies.get(self._cookie, "").encode(), self._pass.encode())
        token = request.query_params.get("token")
        if token is None or request.url.path != "/":
            known = known and (not request.url.path.startswith("/api/") or self._has_key(request))
            return None if known else PlainTextResponse(_NO_TOKEN, 401)
        entered = self._enter(token)
        if not (known or entered):
            return PlainTextResponse(_USED, 401)
        answer = RedirectResponse(f"/#key={self._key}" if entered else "/", 303)
        answer.set_cookie(self._cookie, self._pass, path="/", httponly=True, samesite="strict")
        return answer

    def _has_key(self, request: Request) -> bool:
        return secrets.compare_digest(request.headers.get(KEY, "").encode(), self._key.encode())

    def _enter(self, token: str) -> bool:
        right = not self._used and secrets.compare_digest(token.encode(), self.token.encode())
        self._used = self._used or right
        return right
