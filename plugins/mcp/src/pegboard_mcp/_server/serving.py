"""Serving: a toolkit over stdio or HTTP, until the client goes or a signal comes."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import Any, Final, TypedDict, Unpack, final

from pegboard import PegboardError, Toolkit
from pegboard_mcp._arguments import check_names, function, http_url, scopes, several, text
from pegboard_mcp._auth.callers import SessionFor
from pegboard_mcp._auth.guard import VerifyToken, check_address, cross_origin, guards, parse_address, security
from pegboard_mcp._client.server import McpServer
from pegboard_mcp._server.library import missing_pages
from pegboard_mcp._server.links import ReadLink
from pegboard_mcp._server.resources import Resources, Source
from pegboard_mcp._server.selection import Selection, offered
from pegboard_mcp._server.tool_server import ToolServer
from pegboard_mcp._wire.reasons import innermost
from pegboard_mcp._wire.terminal import diverted, say

__all__ = ["Served", "ServedOverHttp", "mcp_server", "serve_mcp", "serve_mcp_async"]

KEPT_ALIVE: Final = 120
"""Seconds for which an idle connection stays open: longer than in the pools of clients and balancers.

A client that sends on a connection at the moment when the server closes it loses its request. httpx keeps one for 5
seconds, as uvicorn does by default; balancers keep one for 60, Go's client for 90.
"""


class Served(TypedDict, total=False):
    """What is served, to whom, and under which name.

    Served are the tools that say `read_only=True`; or `tools` by name or pattern and those of `groups`; or with
    `all_tools` all that are offered. `session_for(caller)` gives the session of a caller: groups, presets and
    permissions. `scopes` are what a token must have for a tool, by name or pattern: a call without them is refused, and
    the refusal says which. `headers` are the request's that tools may read in their `Caller`. `state_keys` are the same
    in all workers behind a balancer, 32 characters at least: the first seals what a client brings back with an answer.
    `read_link(uri, caller)` says what a link leads to that a tool of the program gave out: text, bytes, or None. It may
    be async. `resources` are what clients may read, by URI: text, bytes, a `Path`, a function, or `(value, media
    type)`; `Resources` says more. `prompts` are functions that return text, content or messages, and
    servers whose prompts are passed on.
    """

    tools: Iterable[str] | None
    groups: Iterable[str] | None
    all_tools: bool
    name: str
    instructions: str | None
    session_for: SessionFor | None
    scopes: Mapping[str, str | Iterable[str]]
    headers: Iterable[str]
    state_keys: Iterable[str | bytes]
    read_link: ReadLink | None
    resources: Mapping[str, Source] | Resources
    prompts: Iterable[Callable[..., Any] | McpServer]


class ServedOverHttp(Served, total=False):
    """Where, and who may come in.

    `http` is "HOST:PORT". `token` is what clients must send as a bearer token; `verify_token(token)` says whom another
    one stands for: a `Caller`, a name, True, or nothing for one that it does not know. It may be async. Clients that
    have no token hear of the `authorization_server` that gives one for `resource_url`, by default the address that
    is served; `required_scopes` are what each needs. `origins` are pages that may speak to the server from a browser,
    such as "https://example.com". With `stateless` no connections are kept for clients of the older protocol, so that
    any worker may answer any request; they hear of no changes then, and are asked no questions.
    """

    http: str | None
    token: str | None
    verify_token: VerifyToken | None
    authorization_server: str | None
    resource_url: str | None
    required_scopes: Iterable[str]
    origins: Iterable[str]
    stateless: bool


def mcp_server(toolkit: Toolkit, **options: Unpack[Served]) -> Any:
    """Make the SDK's low-level server over a toolkit, for transports and tests of your own.

    Raises `UnknownNameError` for an unknown tool or group, ValueError and `RegistrationError` for an invalid resource
    or prompt, and TypeError for an unknown option.

    Args:
        toolkit: The toolkit.
        tools: Names or patterns of the tools to serve. None, without `groups` and `all_tools`: those that say
            `read_only=True`.
        groups: Groups whose tools are served.
        all_tools: Whether all tools that are offered are served.
        name: Name of the server; `pegboard` by default.
        instructions: Text for the clients' models. None for none.
        session_for: `session_for(caller)` gives the session of a caller: groups, presets and permissions. None: one
            session for all.
        scopes: Scopes that a token must have for a tool, by name or pattern. A call without them is refused, and the
            refusal says which.
        headers: Headers of the request that tools may read in their `Caller`.
        state_keys: Keys of 32 characters at least, the same in all workers behind a balancer. The first seals what a
            client brings back with an answer.
        read_link: `read_link(uri, caller)`, async or not, says what a link leads to that a tool gave out: text, bytes,
            or None.
        resources: What clients may read, by URI, or a `Resources`.
        prompts: Functions that return text, content or messages, and servers whose prompts are passed on.
    """
    check_names("mcp_server", options, Served.__annotations__)
    return _tool_server(toolkit, options, connections=True).server


def serve_mcp(toolkit: Toolkit, **options: Unpack[ServedOverHttp]) -> None:
    """Serve the toolkit's tools over stdin and stdout, or over HTTP, until the client or a signal ends it.

    Without a token only this machine's own addresses are served. Raises `PegboardError` for an address that is refused
    or taken, `UnknownNameError` for an unknown tool or group, ValueError and `RegistrationError` for an invalid
    resource or prompt, and TypeError for an unknown option.

    Args:
        toolkit: The toolkit.
        tools: Names or patterns of the tools to serve. None, without `groups` and `all_tools`: those that say
            `read_only=True`.
        groups: Groups whose tools are served.
        all_tools: Whether all tools that are offered are served.
        name: Name of the server; `pegboard` by default.
        instructions: Text for the clients' models. None for none.
        session_for: `session_for(caller)` gives the session of a caller: groups, presets and permissions. None: one
            session for all.
        scopes: Scopes that a token must have for a tool, by name or pattern. A call without them is refused, and the
            refusal says which.
        headers: Headers of the request that tools may read in their `Caller`.
        state_keys: Keys of 32 characters at least, the same in all workers behind a balancer. The first seals what a
            client brings back with an answer.
        read_link: `read_link(uri, caller)`, async or not, says what a link leads to that a tool gave out: text, bytes,
            or None.
        resources: What clients may read, by URI, or a `Resources`.
        prompts: Functions that return text, content or messages, and servers whose prompts are passed on.
        http: Address to listen on, as `"HOST:PORT"`. None serves stdin and stdout.
        token: What clients must send as a bearer token. None for none.
        verify_token: `verify_token(token)`, async or not, says whom another token stands for: a `Caller`, a name, True,
            or nothing for an unknown one.
        authorization_server: URL of the server that gives a token to clients that have none.
        resource_url: What it gives the token for. None: the address that is served.
        required_scopes: Scopes that each token needs.
        origins: Pages that may speak to the server from a browser, such as `"https://example.com"`.
        stateless: Whether no connections are kept for clients of the older protocol, so that any worker may answer any
            request. They are not informed of changes then, and are asked no questions.
    """
    asyncio.run(serve_mcp_async(toolkit, **options))


async def serve_mcp_async(toolkit: Toolkit, **options: Unpack[ServedOverHttp]) -> None:
    """`serve_mcp` for coroutines; cancelling it ends the server.

    Args:
        toolkit: The toolkit.
        options: The options of `serve_mcp`.
    """
    check_names("serve_mcp", options, {**Served.__annotations__, **ServedOverHttp.__annotations__})
    # A token of blanks alone would look like one, and be none.
    options["token"] = text("token", options.get("token") or "", may_be_empty=True).strip()
    http, stateless = options.get("http"), options.get("stateless", False)
    address = None if http is None else parse_address(text("http", http))
    if address is not None:
        check_address(address[0], options["token"] or options.get("verify_token"))
    tools = _tool_server(toolkit, options, connections=not stateless)
    async with tools.watching():
        if address is None:
            await _serve_stdio(tools)
        else:
            await _serve_http(tools, *address, options)


def _tool_server(toolkit: Toolkit, options: Served, *, connections: bool) -> ToolServer:
    tools, groups = options.get("tools"), options.get("groups")
    selection = Selection(
        toolkit,
        None if tools is None else several("tools", tools),
        None if groups is None else several("groups", groups),
        options.get("all_tools", False),
    )
    base, session_for = selection.of(toolkit), function("session_for", options.get("session_for"))
    keys, given = options.get("state_keys", ()), options.get("resources", {})
    resources = given if isinstance(given, Resources) else Resources(given)
    if not offered(base):
        say(f"pegboard: nothing is served: {selection.why_nothing(toolkit)}")
    elif excluded := selection.excluded(toolkit):
        say(f"pegboard: {excluded}")
    for uri, name in sorted(missing_pages(offered(base), resources).items()):
        say(f"pegboard: {name} names the page {uri}, which no resource is; give it by resources=")
    return ToolServer(
        base,
        name=text("name", options.get("name", "pegboard")),
        instructions=options.get("instructions"),
        session_for=None if session_for is None else lambda caller: selection.of(session_for(caller)),
        scopes=options.get("scopes", {}),
        headers=several("headers", options.get("headers", ())),
        state_keys=(keys,) if isinstance(keys, str | bytes) else keys,
        read_link=function("read_link", options.get("read_link")),
        resources=resources,
        prompts=options.get("prompts", ()),
        connections=connections,
    )


async def _serve_stdio(tools: ToolServer) -> None:
    from mcp.server.stdio import stdio_server

    with diverted() as (lines, output):
        streams: Any = (lines, output)  # the SDK asks for files of anyio, and uses no more of them than these have
        async with _signals(lines.end), stdio_server(*streams) as (read, write):
            await tools.run(read, write)


async def _serve_http(tools: ToolServer, host: str, port: int, options: ServedOverHttp) -> None:
    with closing(bound(host, port)) as listening:
        await _serve_at(listening, tools, host, options)


async def _serve_at(listening: socket.socket, tools: ToolServer, host: str, options: ServedOverHttp) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        """Signals are ours: uvicorn would raise them again when it is done."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}/mcp"
    app = _application(tools, host, url, options)
    config = uvicorn.Config(
        app,
        log_level="warning",
        timeout_graceful_shutdown=2,
        timeout_keep_alive=KEPT_ALIVE,
        lifespan="on",
        ws="none",
    )
    server = Server(config)
    say(f"serving MCP at {url}")

    def stop() -> None:
        server.should_exit = True

    async with _signals(stop):
        served = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            with _departures_in_a_line():
                await asyncio.shield(served)
        finally:
            stop()  # a cancelled one would leave its connections open
            await served


def _application(tools: ToolServer, host: str, url: str, options: ServedOverHttp) -> Any:
    origins = several("origins", options.get("origins", ()))
    issuer, resource = options.get("authorization_server"), options.get("resource_url")
    app = tools.server.streamable_http_app(
        host=host,
        transport_security=security(host, origins),
        stateless_http=options.get("stateless", False),
        **guards(
            options.get("token") or "",
            function("verify_token", options.get("verify_token")),
            None if issuer is None else http_url(issuer, "authorization_server"),
            url if resource is None else http_url(resource, "resource_url"),
            scopes("required_scopes", options.get("required_scopes", ())),
        ),
    )
    return cross_origin(app, host, origins)


def bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise PegboardError(f"cannot serve at {host}:{port}: {error.strerror or error}") from error
    # asyncio sets it for sockets of protocol TCP alone, and this one says 0; without it an answer in two parts waits
    # for the client's delayed acknowledgement, 40 ms. Connections inherit it.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


@contextmanager
def _departures_in_a_line() -> Iterator[None]:
    """What is logged of a client that leaves in the middle of a request is one line: it is no fault of the server."""
    departures = _Departures()
    loggers = [logging.getLogger(name) for name in ("mcp.server.streamable_http", "uvicorn.error")]
    for each in loggers:
        each.addFilter(departures)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(departures)


@final
class _Departures(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes; one of a departure without its traceback, and as a warning."""
        from starlette.requests import ClientDisconnect

        error = record.exc_info[1] if record.exc_info else None
        if error is not None and isinstance(innermost(error), ClientDisconnect):
            record.msg, record.args = "a client left before its request was complete", ()
            record.exc_info = record.exc_text = None
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True


@asynccontextmanager
async def _signals(stop: Callable[[], Any]) -> AsyncIterator[None]:
    """`stop()` on SIGINT and SIGTERM, where signals can be had: in the main thread of a POSIX system."""
    loop = asyncio.get_running_loop()
    caught = []
    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(each, stop)
            caught.append(each)
    try:
        yield
    finally:
        for each in caught:
            loop.remove_signal_handler(each)
