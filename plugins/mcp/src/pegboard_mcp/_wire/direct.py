"""Direct calls: a request is sent from the caller's own thread, and its answer wakes only that caller.

The SDK's own dispatcher lives on the connection's loop. To call through it from another one takes two wakes, there and
back, and each costs more than a short call does. So requests of callers have a dispatcher of their own: the SDK makes
and reads them as ever, on the caller's loop. Everything else on the connection goes the SDK's way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, Protocol, final

from attrs import define
from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, ErrorData, JSONRPCNotification, JSONRPCRequest
from opentelemetry.propagate import inject
from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer

from pegboard_mcp._wire.bridge import Mailbox, Mailboxes
from pegboard_mcp._wire.http import Posts
from pegboard_mcp._wire.reasons import UnreachableError

__all__ = ["Direct"]

FIRST: Final = 1_000_000_000
"""Where the numbers of these requests begin; those of the SDK begin at 1."""


class Call(Protocol):
    """A call whose task sends requests."""

    under_way: bool
    """Whether its answer has not come yet."""


@final
@define(eq=False)
class _Request:
    """A request, and the caller that waits for its answer."""

    number: int
    line: str
    box: Mailbox
    answer: asyncio.Future[Any]
    call: Call | None
    sent: bool = False


@final
class Direct:
    """A dispatcher for sessions of the SDK, for requests alone, which may be sent from any loop.

    `call()` is the call whose task sends a request, if one does; `heard` gets notifications that come with an answer.
    """

    def __init__(
        self,
        ended: Callable[[], None],
        call: Callable[[], Call | None] = lambda: None,
        heard: Callable[[Any], None] = lambda notification: None,
    ) -> None:
        self._ended = ended
        self._call = call
        self._heard = heard
        self._posts: Posts | None = None
        self._posting = False
        self._tracer = get_tracer("mcp-python-sdk")
        self._post: Callable[[bytes], None] | None = None
        self._numbers = count(FIRST)
        self._waiting: dict[Any, _Request] = {}
        self._boxes = Mailboxes()
        self._to_wake: list[Mailbox] = []
        self._turns: dict[Mailbox, list[_Request]] = {}

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent so: not over every transport, and not after its end."""
        return self._post is not None or self._posting

    def open(self, post: Callable[[bytes], None]) -> None:
        """Send by `post(lines)` from now on, which any thread may call; it raises `UnreachableError` after the end."""
        self._post = post

    def post_to(self, url: str, client: Callable[[], Any]) -> Posts:
        """Post each request to this address from now on, on each loop with a client that `client()` makes."""
        self._posts = posts = Posts(url, client, self._heard)
        self._posting = True
        return posts

    def post_no_more(self) -> None:
        """Leave further requests to the SDK's own dispatcher; those that were posted are answered all the same."""
        self._posting = False

    def end_posts(self) -> None:
        """Post no more, and close what is open for it."""
        self._posting = False
        if self._posts is not None:
            self._posts.end()

    def end(self) -> None:
        """No answer will come any more. On the connection's thread, as are the next two."""
        self._post = None
        self._ended()  # at first, so that who makes the next call knows
        for number in list(self._waiting):
            self._give(number, ErrorData(code=CONNECTION_CLOSED, message="Connection closed"))
        self._wake()

    def takes(self, message: Any) -> bool:
        """Whether that is the answer to one of these requests: then `wake` hands it over."""
        outcome = getattr(message, "result", None)
        return self._give(getattr(message, "id", None), getattr(message, "error", None) if outcome is None else outcome)

    def wake(self) -> None:
        """Wake each loop that has got something, once: now if no answers are outstanding, or else after this turn."""
        if self._to_wake and self._waiting:
            asyncio.get_running_loop().call_soon(self._wake)
        else:
            self._wake()

    def _wake(self) -> None:
        while self._to_wake:
            self._to_wake.pop().wake()

    def _give(self, number: Any, outcome: Any) -> bool:
        request = None if outcome is None else self._waiting.pop(coerce_request_id(number), None)
        if request is None:
            return False
        if request.call is not None:
            request.call.under_way = False
        with suppress(UnreachableError):  # its loop has ended, and no caller waits
            request.box.add(partial(_settle, request.answer, outcome), partial(self._to_wake.append, request.box))
        return True

    # On the caller's loop --------------------------------------------------------------------------------------

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The answer to a request. Raises `MCPError` as the SDK's own does, `UnreachableError` if nothing was sent."""
        number, given = next(self._numbers), dict(params or {})
        named = given.get("name")
        # The span that the SDK's own dispatcher makes.
        with self._tracer.start_as_current_span(
            f"MCP send {method} {named}" if isinstance(named, str) else f"MCP send {method}",
            kind=SpanKind.CLIENT,
            attributes={"mcp.method.name": method, "jsonrpc.request.id": str(number)},
        ) as span:
            inject(meta := dict(given.pop("_meta", None) or {}))
            if meta:
                given["_meta"] = meta
            outcome = await self._answered(number, method, given, opts or {})
            if isinstance(outcome, dict):
                return outcome
            span.set_attributes({"error.type": str(outcome.code), "rpc.response.status_code": str(outcome.code)})
            span.set_status(Status(StatusCode.ERROR, outcome.message))
        raise MCPError(code=outcome.code, message=outcome.message, data=outcome.data)

    async def _answered(self, number: int, method: str, params: dict[str, Any], options: Mapping[str, Any]) -> Any:
        """The result, or the `ErrorData`."""
        message = JSONRPCRequest(jsonrpc="2.0", id=number, method=method, **({"params": params} if params else {}))
        line = message.model_dump_json(by_alias=True, exclude_unset=True)
        if (call := self._call()) is not None:
            call.under_way = True
        try:
            async with asyncio.timeout(options.get("timeout")):
                if self._posting and self._posts is not None:
                    return await self._posts.answer(line, options.get("headers", {}))
                return await self._given(number, line, call)
        except UnreachableError as error:
            if "inputResponses" in params or "requestState" in params:  # an earlier round of this call was sent
                raise MCPError(code=CONNECTION_CLOSED, message="Connection closed") from error
            raise
        except TimeoutError:
            raise MCPError(code=REQUEST_TIMEOUT, message=f"Request {method!r} timed out") from None
        finally:
            if call is not None:
                call.under_way = False

    async def _given(self, number: int, line: str, call: Call | None) -> Any:
        """The answer that comes over the connection. A caller that stops waiting tells the server."""
        box = self._boxes.here()
        request = self._waiting[number] = _Request(number, line, box, box.loop.create_future(), call)
        try:
            self._send(request)
            return await request.answer
        except asyncio.CancelledError:
            self._abandon(request)
            raise
        finally:
            self._waiting.pop(number, None)

    def _send(self, request: _Request) -> None:
        """Send it, at once if it is alone, or else after this turn of the loop, which may have more."""
        if (turn := self._turns.get(request.box)) is not None:
            turn.append(request)
        elif len(self._waiting) == 1:
            self._write(request.line)
            request.sent = True
        else:
            self._turns[request.box] = [request]
            request.box.loop.call_soon(self._end_turn, request.box)

    def _end_turn(self, box: Mailbox) -> None:
        turn = [request for request in self._turns.pop(box) if not request.answer.done()]  # as who is cancelled is
        try:
            if turn:
                self._write("\n".join(request.line for request in turn))
        except UnreachableError as error:
            for request in turn:
                request.answer.set_exception(UnreachableError(str(error)))
        for request in turn:
            request.sent = True

    def _write(self, lines: str) -> None:
        if (post := self._post) is None:
            raise UnreachableError("the connection has ended")
        post(f"{lines}\n".encode())

    def _abandon(self, request: _Request) -> None:
        if not request.sent:
            return
        params = {"requestId": request.number, "reason": "the caller does not wait any more"}
        notification = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
        with suppress(UnreachableError):
            self._write(notification.model_dump_json(by_alias=True, exclude_unset=True))

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        """Raises RuntimeError: notifications are sent by the SDK's own dispatcher."""
        raise RuntimeError(f"{method} goes through the SDK's own dispatcher; only requests are sent directly")

    async def run(self, *handlers: Any, **options: Any) -> None:
        """Raises RuntimeError: the SDK's own dispatcher runs."""
        raise RuntimeError("the SDK's own dispatcher runs on the connection; only requests are sent directly")


def _settle(answer: asyncio.Future[Any], outcome: Any) -> None:
    if not answer.done():
        answer.set_result(outcome)
