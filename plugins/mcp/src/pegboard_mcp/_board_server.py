"""The board as a server: the SDK's low-level server over a view of a toolkit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, final

from pegboard import Chunk, DataBlock, PegboardError, Session, Status, Tool, ToolResult
from pegboard_mcp._answers import AnswerNeededError, Desk
from pegboard_mcp._outgoing import answer_of, described
from pegboard_mcp._sdk import known_options
from pegboard_mcp._version import VERSION
from pegboard_mcp._workshop import Workshop

__all__ = ["BoardServer"]

LOOK: Final = 0.25
"""Seconds between two looks at whether the offered tools have changed."""


@final
class BoardServer:
    """Serves the tools that a session offers. `server` is the SDK's own server, for any of its transports."""

    def __init__(self, session: Session, *, name: str, instructions: str | None = None) -> None:
        from mcp.server import Server
        from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self._session = session
        self._workshop: Workshop | None = None
        self._bus = InMemorySubscriptionBus()
        self._peers: dict[int, Any] = {}
        # Headers that mirror arguments are checked by it, where the release of the SDK does that.
        more: dict[str, Any] = known_options(Server, get_tool_input_schema=self._input_schema)
        self.server: Any = Server(
            name,
            version=VERSION,
            instructions=instructions,
            lifespan=self._lifespan,
            **more,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        # What a client brings back when it comes again is sealed: it cannot be made up, nor used for another call.
        self.server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=name))

    async def run(self, read: Any, write: Any) -> None:
        """Serve one client over a pair of streams, until it goes."""
        from mcp.server.lowlevel import NotificationOptions

        options = self.server.create_initialization_options(NotificationOptions(tools_changed=True))
        await self.server.run(read, write, options)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Tell clients of changes for as long as it is entered, and run tools."""
        self._workshop = Workshop()
        watcher = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
            self._workshop.close()

    @asynccontextmanager
    async def _lifespan(self, server: Any) -> AsyncIterator[dict[str, Any]]:
        if self._workshop is None:  # served by somebody who knows nothing of `watching`, such as a test
            async with self.watching():
                yield {}
            self._workshop = None
        else:
            yield {}

    # Tools -----------------------------------------------------------------------------------------------------

    def _offered(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._session.tools}

    def _input_schema(self, name: str) -> dict[str, Any] | None:
        tool = self._offered().get(name)
        return None if tool is None else tool.parameters

    async def _list(self, context: Any, parameters: Any) -> Any:
        from mcp_types import ListToolsResult

        self._peers[id(context.session)] = context.session
        tools = []
        for tool in self._session.tools:
            with suppress(PegboardError):  # its pack turns out to be broken: the others are served
                tools.append(described(tool, context.protocol_version))
        return ListToolsResult(tools=tools)

    async def _watch(self) -> None:
        """Look whether the tools changed, and tell: the newer protocol's subscribers, and the older one's clients."""
        from mcp.server.subscriptions import ToolsListChanged

        known = self._fingerprint()
        while True:
            await asyncio.sleep(LOOK)
            now = self._fingerprint()
            if now == known:
                continue
            known = now
            await self._bus.publish(ToolsListChanged())
            peers, self._peers = self._peers, {}  # each lists again, and is a peer again
            for peer in peers.values():
                with suppress(Exception):  # one that is gone needs no news
                    await peer.send_tool_list_changed()

    def _fingerprint(self) -> list[tuple[str, int]]:
        return [(tool.name, id(tool.definition)) for tool in self._session.tools]

    # Calls -----------------------------------------------------------------------------------------------------

    async def _call(self, context: Any, parameters: Any) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS

        tool = self._offered().get(parameters.name)
        if tool is None:
            result = self._session.prepare(parameters.name, {}).result
            raise MCPError(code=INVALID_PARAMS, message=result.text if result else f"no tool {parameters.name!r}")
        try:
            result = await self._result(context, parameters)
        except AnswerNeededError as needed:
            return needed.result
        return answer_of(result, tool, context.protocol_version)

    async def _result(self, context: Any, parameters: Any) -> ToolResult:
        desk = Desk(context, parameters)
        owed = next((call for call in self._session.pending if call.id == desk.state), None)
        if owed is not None and owed.result is not None:
            return await self._completed(desk, owed.result)
        call = self._session.prepare(parameters.name, parameters.arguments or {})
        runs = call
        if call.status is Status.AWAITING_APPROVAL and self._session.approver is None and await desk.approval(call):
            approved = self._session.session(approver=lambda request: True)
            runs = approved.prepare(parameters.name, parameters.arguments or {})
        progress = _Progress(context, asyncio.get_running_loop())
        result = await self._tools().run(lambda: runs.execute(on_chunk=progress.report))
        return await self._completed(desk, result) if result.status is Status.SUSPENDED else result

    async def _completed(self, desk: Desk, suspended: ToolResult) -> ToolResult:
        """A suspended call, resumed with what a human says; suspended still where there is nobody to ask."""
        answered, value = await desk.value(suspended)
        return self._session.resume(suspended.call_id, value) if answered else suspended

    def _tools(self) -> Workshop:
        if self._workshop is None:
            raise PegboardError("this server is not running: enter watching(), or serve it by serve_mcp()")
        return self._workshop


@final
class _Progress:
    """Chunks of a tool as progress of its request, sent on the loop that the protocol runs on."""

    def __init__(self, context: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._count = 0.0

    async def report(self, chunk: Chunk) -> None:
        """Send one, and wait until it is sent: a tool that reports faster than its client reads slows down."""
        progress, total, message = self._read(chunk)
        sending = self._context.session.report_progress(progress, total, message)
        with suppress(Exception):  # a client that is gone needs no progress; the call ends by itself
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(sending, self._loop))

    def _read(self, chunk: Chunk) -> tuple[float, float | None, str | None]:
        """A block `{"progress": 50, "total": 100}` says how far it is; of anything else the count is the progress."""
        data = chunk.content.data if isinstance(chunk.content, DataBlock) else None
        if isinstance(data, dict) and isinstance(data.get("progress"), int | float):
            self._count = float(data["progress"])
            return self._count, data.get("total"), data.get("message")
        self._count += 1.0
        return self._count, None, chunk.text or None
