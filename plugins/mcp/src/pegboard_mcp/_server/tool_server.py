"""The server: the SDK's low-level server over a view of a toolkit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, final

from attrs import define

from pegboard import PegboardError, Session, Status, Tool, ToolCall
from pegboard import ToolResult as Result
from pegboard_mcp._auth.callers import Caller, Callers, Scopes, SessionFor
from pegboard_mcp._auth.guard import app_with_scopes
from pegboard_mcp._client.asking import Approved, Human, human_of_this_call
from pegboard_mcp._client.remote_tool import remote_of
from pegboard_mcp._client.server import McpServer
from pegboard_mcp._server.functions import Functions
from pegboard_mcp._server.library import Library
from pegboard_mcp._server.links import Links, ReadLink
from pegboard_mcp._server.outgoing import answer_of, described, error_of
from pegboard_mcp._server.promise import Promises
from pegboard_mcp._server.prompts import Prompts
from pegboard_mcp._server.questions import Answers, Desk, NeededError, Refused, UsedStates
from pegboard_mcp._server.resources import Resources
from pegboard_mcp._server.running import Held, HeldCalls, Progress, Workshop, blocks_no_loop
from pegboard_mcp._server.selection import offered
from pegboard_mcp._server.subscribers import Subscribers
from pegboard_mcp._wire.protocol import APPS, APPS_SHOWN, connection_of, is_newer, known_options, own_version

__all__ = ["ToolServer"]

LOOK: Final = 0.25
"""Seconds between two checks whether the offered tools have changed; longer if there are many tools."""
LOOK_AT_ONE: Final = 0.002


@final
class ToolServer:
    """Serves the tools that a session offers. `server` is the SDK's own server, for any of its transports.

    `session_for` gives a caller's session; without it each has one of its own that begins as this one is. With
    `state_keys` what a client brings back when it comes again is sealed with the first of them and may come to any
    server that has it. With `connections` clients of the older protocol have connections, and hear of changes.
    """

    def __init__(
        self,
        session: Session,
        *,
        name: str = "pegboard",
        instructions: str | None = None,
        session_for: SessionFor | None = None,
        scopes: Mapping[str, str | Iterable[str]] | None = None,
        headers: Iterable[str] = (),
        state_keys: Iterable[str | bytes] = (),
        read_link: ReadLink | None = None,
        resources: Resources | None = None,
        prompts: Iterable[Callable[..., Any] | McpServer] = (),
        connections: bool = True,
    ) -> None:
        self._callers = Callers(session, session_for, headers)
        self._workshop: Workshop | None = None
        self._peers: dict[int, _Peer] = {}
        self._promises = Promises()
        self._used = UsedStates()
        self._scopes = Scopes(scopes or {})
        self._held = HeldCalls()
        self._links = Links(read_link)
        self._library = Library(resources or Resources({}), self._links, self._callers, self._scopes)
        self._prompts = Prompts(prompts)
        self.server: Any = self._sdk_server(name, instructions)
        self._declare(connections=connections)
        self.server.middleware.append(_sealing(list(state_keys), name))

    def _sdk_server(self, name: str, instructions: str | None) -> Any:
        """The SDK's server, whose requests are answered here."""
        from mcp.server import Server
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self._bus = InMemorySubscriptionBus()
        library, self._subscribers = self._library, Subscribers(self._bus, self._library.resources)
        handlers: dict[str, Any] = {}  # what is not there is not declared
        if self._prompts:
            handlers = {"on_list_prompts": self._prompts.listed, "on_get_prompt": self._get_prompt}
        if self._prompts or any(each.pattern for each in library.resources):
            handlers["on_completion"] = self._complete
        server: Any = Server(
            name,
            version=own_version(),
            instructions=instructions,
            lifespan=self._lifespan,
            # Headers that mirror arguments are checked by it, where the release of the SDK does that.
            **known_options(Server, get_tool_input_schema=self._input_schema),
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=library.listed,
            on_list_resource_templates=library.templates,
            on_read_resource=self._read,
            on_subscribe_resource=self._subscribers.subscribe,
            on_unsubscribe_resource=self._subscribers.unsubscribe,
            **handlers,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        server.streamable_http_app = partial(app_with_scopes, server.streamable_http_app, self._scopes, self._name_of)
        return server

    def _declare(self, *, connections: bool) -> None:
        """Each transport asks what to declare to clients of the older protocol; none of them knows of changes."""
        from mcp.server.lowlevel import NotificationOptions

        server, options = self.server, NotificationOptions(tools_changed=connections)
        server.create_initialization_options = partial(server.create_initialization_options, options)
        server.get_capabilities = partial(self._declared, server.get_capabilities, connections)

    def _declared(self, declare: Callable[..., Any], connections: bool, *arguments: Any, **options: Any) -> Any:
        """What the server can do. For the SDK a server that reports changed tools reports all other changes, too."""
        from mcp_types import PromptsCapability, ResourcesCapability

        subscribable = bool(self._library.resources) and (
            connections or is_newer(options.get("protocol_version") or "")
        )
        found = declare(*arguments, **options)
        known: dict[str, Any] = {
            "resources": ResourcesCapability(subscribe=True) if subscribable else ResourcesCapability()
        }
        known["prompts"] = found.prompts and PromptsCapability()
        if self._library.has_pages(self._callers.base):
            known["extensions"] = {**(found.extensions or {}), APPS: APPS_SHOWN}
        return found.model_copy(update=known)

    async def run(self, read: Any, write: Any) -> None:
        """Serve one client over a pair of streams, until it disconnects."""
        await self.server.run(read, write, self.server.create_initialization_options())

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Run tools, and notify clients of changes, until it is left."""
        self._workshop = Workshop()
        watcher = asyncio.create_task(self._watch())
        loop = asyncio.get_running_loop()
        deaf = self._library.resources.watch(
            lambda uri: asyncio.run_coroutine_threadsafe(self._subscribers.tell(uri), loop)
        )
        try:
            yield
        finally:
            deaf()
            self._held.close()
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
            self._workshop.close()
            for each in (self._prompts.functions, self._library.resources.functions):
                each.close()

    @asynccontextmanager
    async def _lifespan(self, server: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield the data that the SDK keeps for one client, over HTTP for all clients: there is none."""
        if self._workshop is None:  # served without `watching`, such as by a test
            async with self.watching():
                yield {}
            self._workshop = None
        else:
            yield {}

    # Tools -----------------------------------------------------------------------------------------------------

    def _input_schema(self, name: str) -> dict[str, Any] | None:
        with suppress(PegboardError):
            return self._callers.base[name].parameters
        return None

    def _session_of(self, context: Any) -> Session:
        return self._callers.lasting(context) or self._callers.shown(self._callers.caller(context))

    def _name_of(self, name: str) -> str:
        """The name of the tool that has this one as an alias."""
        with suppress(PegboardError):
            return self._callers.base[name].name
        return name

    async def _list(self, context: Any, parameters: Any) -> Any:
        from mcp_types import ListToolsResult

        session = self._session_of(context)
        known = offered(session)
        self._remember_peer(context, session, known)
        tools = []
        for tool in known:
            with suppress(PegboardError):  # its pack is broken: the other tools are served
                needed = self._scopes.needed(tool.name)
                tools.append(described(tool, self._promises.of(tool), context.protocol_version, needed))
        return ListToolsResult(tools=tools)

    # Resources and prompts -------------------------------------------------------------------------------------

    async def _read(self, context: Any, parameters: Any) -> Any:
        return await self._answered(self._library.read(context, parameters, partial(self._run, context, parameters)))

    async def _get_prompt(self, context: Any, parameters: Any) -> Any:
        return await self._answered(self._prompts.get(parameters, partial(self._run, context, parameters)))

    async def _answered(self, work: Awaitable[Any]) -> Any:
        """The answer, or the request to ask the user. Raises `MCPError` where the user refuses."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_REQUEST

        try:
            return await work
        except NeededError as needed:
            return needed.result
        except Refused as refused:
            raise MCPError(INVALID_REQUEST, str(refused)) from refused

    async def _run(
        self, context: Any, parameters: Any, functions: Functions, name: str, arguments: Mapping[str, Any]
    ) -> Result:
        """Call a function for a request, which may ask its user and report as a tool does."""
        caller, session = self._callers.caller(context), functions.session(self._session_of(context))
        progress = Progress(context, asyncio.get_running_loop())
        call = session.prepare(name, arguments)
        if call.result is not None:
            return call.result
        return await self._outcome(Desk(context, parameters, self._used), session, call, caller, progress)

    async def _complete(self, context: Any, parameters: Any) -> Any:
        if parameters.ref.type == "ref/prompt":
            return self._prompts.completed(parameters.ref.name, parameters.argument)
        return self._library.completed(str(parameters.ref.uri), parameters.argument)

    # Changes ---------------------------------------------------------------------------------------------------

    def _remember_peer(self, context: Any, session: Session, known: list[Tool]) -> None:
        """A client that has listed the tools over a connection is notified when they change, while it is open."""
        connection = connection_of(context)
        if is_newer(context.protocol_version) or not connection.has_standalone_channel:
            return
        if id(connection) not in self._peers:
            connection.exit_stack.callback(self._peers.pop, id(connection), None)
        self._peers[id(connection)] = _Peer(connection, session, known)

    async def _watch(self) -> None:
        """Look whether the tools changed, and tell: the newer protocol's subscribers, and the older one's clients."""
        known = offered(self._callers.base)
        while True:
            await asyncio.sleep(max(LOOK, LOOK_AT_ONE * len(self._peers)))
            now = offered(self._callers.base)
            if _differs(known, now):
                await self._publish()
            known = now
            await self._look_at_peers()

    async def _look_at_peers(self) -> None:
        # Apart, for what is named while it sleeps would keep the last client's session.
        for peer in list(self._peers.values()):
            await peer.look()

    async def _publish(self) -> None:
        from mcp.server.subscriptions import ToolsListChanged

        await self._bus.publish(ToolsListChanged())

    # Calls -----------------------------------------------------------------------------------------------------

    async def _call(self, context: Any, parameters: Any) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS

        caller = self._callers.caller(context)
        lasting = self._callers.lasting(context)
        before = None if lasting is None else offered(lasting)
        session = lasting or self._callers.fresh(caller)
        call = session.prepare(parameters.name, parameters.arguments or {})
        if call.status in (Status.NOT_FOUND, Status.INACTIVE):
            text = "" if call.result is None else call.result.text
            raise MCPError(code=INVALID_PARAMS, message=text or f"no tool {parameters.name!r}")
        if missing := self._scopes.missing(call.name, caller):
            # Over HTTP it has been refused before: this is for other transports, and other names of a session's tools.
            scope = " ".join(missing)
            return error_of(f"{call.name} needs the scope {scope!r}, which the caller's token does not have")
        desk = Desk(context, parameters, self._used)
        progress = Progress(context, asyncio.get_running_loop())
        try:
            result = await self._outcome(desk, session, call, caller, progress)
        except NeededError as needed:
            return needed.result
        except Refused as refused:
            return error_of(str(refused))
        if before is not None and lasting is not None and _differs(before, offered(lasting)):
            await self._publish()
        tool = session[call.name]
        answer = answer_of(result, self._promises.of(tool), context.protocol_version)
        self._links.give(lasting, tool.name, remote_of(tool), answer)
        return answer

    async def _outcome(
        self, desk: Desk, session: Session, call: ToolCall, caller: Caller, progress: Progress
    ) -> Result:
        """How a call ends, after all that a human is asked on its way. Raises `Refused`, or `NeededError`."""
        name, arguments = call.name, call.arguments
        if call.status is Status.AWAITING_APPROVAL and session.approver is None and desk.can_ask:
            await desk.approve(call)
            # For this call alone: what the tool calls in turn was not shown for approval.
            session = session.session(approver=Approved(call.id))
            call = session.prepare(name, arguments, call_id=call.id)
        if desk.is_answered:
            value = await desk.answer()
            if not desk.state.again:
                session.suspend(call)
                return await session.aresume(call, value)
        running = self._held_before(desk, progress)
        while True:
            if running is None:
                running = self._begun(desk, session, call, caller, progress)
            session, call = running.session, running.call
            result = await self._ended(desk, running)
            running = None
            if result.status is not Status.SUSPENDED:
                return result
            try:
                if not desk.can_ask and not desk.comes_again:
                    return result
                value = await desk.value(result)
                if not desk.state.again:
                    return await session.aresume(call, value)
            finally:  # no other caller waits for the answer, and nothing may pile up
                session.withdraw(call)
            call = session.prepare(name, arguments, call_id=call.id)

    def _begun(self, desk: Desk, session: Session, call: ToolCall, caller: Caller, progress: Progress) -> Held:
        """A call that runs. What the server of a remote tool asks meanwhile is put to the human at the client."""
        human = Human(None if desk.comes_again else desk.put) if desk.can_ask else None
        human_of_this_call.set(human)
        report = progress.report if progress.is_heard else None
        work = partial(call.execute, (Answers(desk.state.answers), caller), on_chunk=report)
        # Async tools of the user's may block their loop: it is not this one.
        running = work() if blocks_no_loop(session[call.name]) else self._tools().run(work)
        may_be_held = human is not None and desk.comes_again
        return Held(session, call, human, asyncio.ensure_future(running) if may_be_held else running, progress)

    def _held_before(self, desk: Desk, progress: Progress) -> Held | None:
        """The call that the request brings an answer for, and goes on. Raises `Refused` for one that has ended."""
        if not desk.held:
            return None
        running = self._held.take(desk.held)
        if running is None or running.human is None:
            raise Refused("the call that asked this has ended, or runs at another worker; make it again")
        running.human.answer(desk.response())
        running.progress.moved(progress)
        return running

    async def _ended(self, desk: Desk, running: Held) -> Result:
        """The result of a call that runs. Raises `NeededError` where it waits for an answer, for which it is held."""
        result: Result
        if running.human is None or not desk.comes_again:
            result = await running.task
            return result
        question = asyncio.ensure_future(running.human.questions.get())
        held = False
        try:
            await asyncio.wait({running.task, question}, return_when=asyncio.FIRST_COMPLETED)
            if running.task.done():
                result = await running.task
                return result
            held = True
            await desk.hold(*question.result(), self._held.keep(running))
            raise AssertionError("a client that can be asked at once was made to come again")
        finally:
            question.cancel()
            if not held:
                running.task.cancel()

    def _tools(self) -> Workshop:
        if self._workshop is None:
            raise PegboardError("this server is not running: enter watching(), or serve it by serve_mcp()")
        return self._workshop


@final
@define
class _Peer:
    """A client of the older protocol that has listed the tools, and what it listed."""

    connection: Any
    session: Session
    known: list[Tool]

    async def look(self) -> None:
        """Notify the client if the tools have changed."""
        now = offered(self.session)
        if _differs(self.known, now):
            with suppress(Exception):  # one that has disconnected needs no news
                await self.connection.send_tool_list_changed()
        self.known = now


def _differs(known: list[Tool], now: list[Tool]) -> bool:
    if known == now:  # the same objects, mostly: that is a fast comparison
        return False
    return [(tool.name, tool.definition) for tool in known] != [(tool.name, tool.definition) for tool in now]


def _sealing(keys: list[str | bytes], name: str) -> Any:
    """What a client brings back when it comes again is sealed: it cannot be made up, nor used for another call."""
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

    sealed = RequestStateSecurity(keys=keys) if keys else RequestStateSecurity.ephemeral()
    return RequestStateBoundary(sealed, default_audience=name)
