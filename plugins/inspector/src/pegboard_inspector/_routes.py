"""The API of the page, under `/api/`, and the page's own files."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pegboard import Approval, PegboardError, UnknownNameError
from pegboard_inspector._data import dialect_data, tool_data
from pegboard_inspector._desk import Desk
from pegboard_inspector._json import dumps
from pegboard_inspector._sources import log_lines, prompts_data, read_prompt, read_resource, resources_data

__all__ = ["application"]

Sent: TypeAlias = dict[str, Any]

PAGE: Final = Path(__file__).with_name("page")
LARGEST: Final = 32 * 2**20
"""Bytes of a request: an image as an argument fits in."""


def application(desk: Desk) -> Starlette:
    """The page and its API over a desk; the guard decides which requests are allowed."""
    gets: dict[str, Callable[[str], Any]] = {
        "board": lambda _: desk.board(),
        "earlier": lambda _: {"calls": desk.earlier()},
        "stats": lambda _: desk.toolkit.stats,
        "tools/{name}": lambda name: tool_data(desk.session, name),
        "dialects/{name}": lambda name: dialect_data(desk.session, name),
        "costs/{name}": desk.cost,
        "calls/{name}": desk.details,
        "resources/{name:path}": lambda name: resources_data(desk.toolkit, name),
        "prompts/{name:path}": lambda name: prompts_data(desk.toolkit, name),
        "logs/{name:path}": lambda name: log_lines(desk.toolkit, name),
    }

    async def events(request: Request) -> Response:
        last = re.fullmatch("[0-9]{1,18}", request.headers.get("last-event-id", ""))
        return StreamingResponse(_events(desk, int(last[0]) if last else 0), media_type="text/event-stream")

    async def app(request: Request) -> Response:
        html = desk.apps.html(request.path_params["key"])
        return PlainTextResponse("This page is not open any more.\n", 404) if html is None else HTMLResponse(html)

    return Starlette(
        routes=[
            Route("/", lambda request: FileResponse(PAGE / "index.html"), methods=["GET"]),
            *(Route(f"/api/{path}", _getting(get), methods=["GET"]) for path, get in gets.items()),
            *(Route(f"/api/{path}", _posting(post), methods=["POST"]) for path, post in _posts(desk).items()),
            Route("/api/events", events, methods=["GET"]),
            Route("/apps/{key}", app, methods=["GET"]),
            Mount("/page", StaticFiles(directory=PAGE)),
        ],
    )


def _posts(desk: Desk) -> dict[str, Callable[[Sent], Any]]:
    """What may be done, each with what was sent; in a thread, since a lazy tool is imported and a pack may be slow."""

    def call(sent: Sent) -> Any:
        return {"id": desk.call(_text(sent, "name"), _text(sent, "arguments")).id}

    def again(sent: Sent) -> Any:
        before = desk.made(_text(sent, "call"))  # with the secrets that the page does not know
        return {"id": desk.call(before.name, before.sent).id}

    def reload(_: Sent) -> Any:
        added, removed = desk.renew()
        return {"added": added, "removed": removed}

    return {
        "apps": lambda sent: desk.open_app(_text(sent, "call")),
        "apps/call": lambda sent: {
            "id": desk.call_from_app(_text(sent, "app"), _text(sent, "name"), _text(sent, "arguments")).id
        },
        "calls": call,
        "again": again,
        "cancel": lambda sent: desk.cancel(_text(sent, "call")),
        "approvals": lambda sent: {"problems": desk.decide(_text(sent, "approval"), _answer(sent))},
        "resume": lambda sent: desk.resume(_text(sent, "call"), sent.get("value")),
        "resource": lambda sent: read_resource(desk.toolkit, _text(sent, "source"), _text(sent, "uri")),
        "prompt": lambda sent: read_prompt(
            desk.toolkit, _text(sent, "source"), _text(sent, "name"), _texts(sent, "arguments")
        ),
        "groups": lambda sent: desk.set_group(_text(sent, "name"), sent.get("active") is True),
        "reload": reload,
    }


def _getting(get: Callable[[str], Any]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return await _answered(get, request.path_params.get("name", ""))

    return answer


def _posting(post: Callable[[Sent], Any]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return await _answered(post, await _sent(request))

    return answer


async def _answered(work: Callable[[Any], Any], given: Any) -> Response:
    """What the work gives, as JSON; what the library refuses with its reason."""
    try:
        found, status = await run_in_threadpool(work, given), 200
    except UnknownNameError as error:
        found, status = {"error": str(error)}, 404
    except (PegboardError, ValueError, RecursionError) as error:
        found, status = {"error": str(error)}, 400
    # Lone surrogates, which a name from outside may have, are no UTF-8.
    return Response(dumps(found).encode(errors="replace"), status, media_type="application/json")


async def _sent(request: Request) -> Sent:
    """The JSON object that was posted. Raises `HTTPException` for anything else."""
    # A form of another page can send text, but it cannot say that it is JSON.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send application/json")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST:
            raise HTTPException(413, f"a request has at most {LARGEST:,} bytes")
    try:
        sent = json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise HTTPException(400, "this is no JSON") from None
    if not isinstance(sent, dict):
        raise HTTPException(400, "send a JSON object")
    return sent


def _text(sent: Sent, member: str) -> str:
    if not isinstance(found := sent.get(member, ""), str):
        raise ValueError(f"{member!r} has to be text")
    return found


def _texts(sent: Sent, member: str) -> dict[str, str]:
    found = sent.get(member, {})
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError(f"{member!r} has to be an object of texts")
    return found


def _answer(sent: Sent) -> Approval:
    if sent.get("approve") is not True:
        return Approval.deny(_text(sent, "reason") or "the user said no")
    if isinstance(members := sent.get("members"), dict):
        return Approval.edit(members)
    if (edited := _text(sent, "arguments")) == "":
        return Approval.approve()
    arguments = json.loads(edited)
    if not isinstance(arguments, dict):
        raise ValueError("arguments are a JSON object")
    return Approval.edit(arguments)


async def _events(desk: Desk, since: int) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async for version, news in desk.news(since):
        yield f"id: {version}\ndata: {dumps(news)}\n\n".encode(errors="replace")
