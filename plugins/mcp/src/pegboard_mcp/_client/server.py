"""MCP servers as sources of tools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from time import monotonic
from typing import Any, Final, Literal, Self, TypeAlias, final
from weakref import WeakSet

from pegboard import Block, Redaction, Toolkit
from pegboard.inspection import spelled_out
from pegboard_mcp._arguments import count, http_url, seconds, text, texts, texts_by_name
from pegboard_mcp._auth.oauth import OAuth, oauth
from pegboard_mcp._client.asking import Asking, answer
from pegboard_mcp._client.connection import Connection, Terms, close_all
from pegboard_mcp._client.incoming import block_of
from pegboard_mcp._client.listing import MOST_TOOLS, Listing
from pegboard_mcp._client.log import Log, LogLine
from pegboard_mcp._client.remote_tool import RemoteTool, remote_tool
from pegboard_mcp._client.resources import all_of, contents, resource_tools
from pegboard_mcp._client.secrets import secrets_of
from pegboard_mcp._client.tasks import followed
from pegboard_mcp._client.transports import LONGEST, Http, InProcess, Sse, Stdio, Transport
from pegboard_mcp._wire.reasons import ConsentError, TaskStartedError, UnreachableError, is_forgotten
from pegboard_mcp._wire.unrequested import FLOOD

__all__ = ["McpServer"]

Mode: TypeAlias = Literal["auto", "legacy", "2026-07-28"]
CONNECT_TIMEOUT: Final = 30.0
CALL_TIMEOUT: Final = 120.0
OAUTH_TIMEOUT: Final = 305.0
ASKED_SOONER: Final = 5.0
"""Seconds by which the user has less time than a connection: so the message says what the user did not do."""
LONGEST_PAUSE: Final = 30.0
MOST_PROBLEMS: Final = 20
"""Problems of one list that are reported one by one."""


@final
class McpServer:
    """An MCP server, whose tools `toolkit.register(server)` registers; made by `stdio`, `http`, `sse` or `in_process`.

    The connection opens on first use, is shared by all toolkits that the server is registered with, opens again after
    it has ended, and closes with the last of these toolkits or by `close()`. A server that cannot be reached raises
    nothing: `problems` says why, and so does a call of its tools. Raises ValueError for an invalid argument.

    Args:
        transport: How it is reached; the four class methods make it.
        name: Name for messages.
        connect_timeout: Seconds until the connection has to be open; 30 by default.
        call_timeout: Seconds that a call may take, without those in which a user is asked; 120 by default. None for no
            limit.
        mode: Version of the protocol: `"auto"`, `"legacy"` for a server that never answers when asked for the newer
            one, or one version.
        poll: Seconds between two looks at the list of tools, for a server that does not announce changes. None never
            looks.
        resources: `"tools"` adds `list_resources` and `read_resource`, by which the model reads what the server offers
            beside tools.
        max_tools: Most of its tools that count; 5,000 by default.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        name: str,
        connect_timeout: float = CONNECT_TIMEOUT,
        call_timeout: float | None = CALL_TIMEOUT,
        mode: str = "auto",
        poll: float | None = None,
        resources: Literal["tools"] | None = None,
        max_tools: int = MOST_TOOLS,
    ) -> None:
        if resources not in (None, "tools"):
            raise ValueError(f'resources can be "tools" or None; it is {resources!r}')
        seconds("connect_timeout", connect_timeout)
        seconds("call_timeout", call_timeout, or_none=True)
        seconds("poll", poll, or_none=True)
        self.name = text("name", name)
        self.transport = transport
        self._terms = Terms(connect_timeout, call_timeout, mode, count("max_tools", max_tools), self._elicited, poll)
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._begun: WeakSet[Connection] = WeakSet()  # those that end, too
        self._watchers: list[Callable[[], None]] = []
        self._tools: dict[str, RemoteTool] = {}
        self._of_list: tuple[str, ...] = ()
        self._failure = ""
        self._has_flooded = False
        self._stderr = ""
        self._secrets: tuple[str, ...] = ()
        self._redact = Redaction()
        self._failures = 0
        self._paused_until = 0.0
        self._running: dict[int, Asking] = {}
        self.features: frozenset[str] = frozenset()
        """What the server has beside tools: `resources` and `prompts`; nothing before it was connected."""
        self.log_level: str | None = None
        """From which level on its logging is asked for, as `debug` or `info`, by the next connection; None asks not."""
        self.log_store = Log()
        self._reading = resource_tools(self) if resources == "tools" else []

    # Making one ------------------------------------------------------------------------------------------------

    @classmethod
    def stdio(
        cls,
        command: str | PathLike[str],
        args: Iterable[str | PathLike[str]] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PathLike[str] | None = None,
        name: str | None = None,
        max_message: int = LONGEST,
        **options: Any,
    ) -> Self:
        """Start a process and reach it over its stdin and stdout. Of this environment it gets HOME, PATH and the like.

        `${NAME}` in any of the texts is read from the environment when the process is started.

        Args:
            command: The program.
            args: Its arguments.
            env: More environment variables.
            cwd: Its directory. None: the current one.
            name: Name for messages. None makes one from the command.
            max_message: Most bytes of a message; 64 MiB by default.
            options: Further parameters of `McpServer`.
        """
        transport = Stdio(
            text("command", command),
            texts("args", args),
            texts_by_name("env", env),
            None if cwd is None else text("cwd", cwd),
            longest=count("max_message", max_message),
        )
        known = transport.command.rpartition("/")[2] or transport.command
        return cls(transport, name=known if name is None else name, **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        scopes: str | Iterable[str] = (),
        name: str | None = None,
        call_timeout: float | None = CALL_TIMEOUT,
        max_message: int = LONGEST,
        **options: Any,
    ) -> Self:
        """Reach a server at a URL, over streamable HTTP.

        Args:
            url: Address of the server.
            headers: Headers of every request. They are secret.
            auth: An `httpx2.Auth`, such as the SDK's OAuth providers. With `"oauth"`, or an `OAuth`, a browser asks the
                user, who has five minutes unless `connect_timeout` is given; the tokens are kept in a file of the user.
            scopes: Scopes to ask for, beside what the server needs.
            name: Name for messages. None makes one from the URL.
            call_timeout: Seconds that a call may take; 120 by default. None for no limit.
            max_message: Most bytes of a message; 64 MiB by default.
            options: Further parameters of `McpServer`.
        """
        auth, patience = _asking(auth, scopes, options)
        known = texts_by_name("headers", headers, headers=True)
        longest = count("max_message", max_message)
        transport = Http(http_url(url), known, auth, call_timeout, longest=longest, patience=patience)
        return cls(transport, name=transport.label if name is None else name, call_timeout=call_timeout, **options)

    @classmethod
    def sse(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        name: str | None = None,
        mode: str = "legacy",
        max_message: int = LONGEST,
        **options: Any,
    ) -> Self:
        """Reach a server at a URL, over HTTP with server-sent events, which only the older protocol knows.

        Args:
            url: Address of the server.
            headers: Headers of every request. They are secret.
            auth: As in `http`.
            name: Name for messages. None makes one from the URL.
            mode: Version of the protocol, as in `McpServer`.
            max_message: Most bytes of a message; 64 MiB by default.
            options: Further parameters of `McpServer`.
        """
        auth, patience = _asking(auth, (), options)
        known = texts_by_name("headers", headers, headers=True)
        longest = count("max_message", max_message)
        transport = Sse(http_url(url), known, auth, longest=longest, patience=patience)
        return cls(transport, name=transport.label if name is None else name, mode=mode, **options)

    @classmethod
    def in_process(cls, server: Any, *, name: str | None = None, **options: Any) -> Self:
        """Use a `Server` or `MCPServer` of the SDK in this process.

        Args:
            server: The server.
            name: Name for messages. None: that of the server.
            options: Further parameters of `McpServer`.
        """
        if server is None or isinstance(server, Toolkit):
            raise ValueError("in_process takes a server of the SDK; of a toolkit that is mcp_server(toolkit)")
        known = str(getattr(server, "name", "") or "")
        known = known if known.strip() else "in-process"
        return cls(InProcess(server), name=known if name is None else name, **options)

    # A source of tools -----------------------------------------------------------------------------------------

    def tools(self) -> list[Any]:
        """The server's tools; waits for the first connection. Nothing is raised: see `problems`."""
        if not self._tools and not self._failure:
            self._wait()
        return [*self._tools.values(), *(() if self._failure else self._reading)]

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong: the server is unavailable, its list says something that cannot be used, or it has flooded."""
        problems = [f": {problem}" for problem in self._of_list[:MOST_PROBLEMS]]
        if len(self._of_list) > MOST_PROBLEMS:
            problems.append(f": its list has {len(self._of_list) - MOST_PROBLEMS} problems more")
        if self._failure:
            problems.insert(0, f" cannot be reached: {self._failure}{self._quoted()}")
        elif self._has_flooded:
            problems.insert(0, f": it was not listened to any longer: {FLOOD.strip('()')}")
        return [f"the MCP server {self.name!r}{problem}" for problem in problems]

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed()` when the tools change. Begins to connect; with the last watcher the connection closes."""
        with self._lock:
            self._watchers.append(changed)
            with suppress(UnreachableError):  # a moment ago it could not be reached: `problems` says so
                self._current()

        def stop() -> None:
            with self._lock:
                if changed in self._watchers:
                    self._watchers.remove(changed)
                last = not self._watchers
            if last:
                self.close()

        return stop

    def refresh(self) -> None:
        """Connect if need be and fetch the tools again; an earlier flood is no problem any more.

        Raises nothing: see `problems`.
        """
        self._has_flooded = False
        before = self._connection
        connection = self._wait()
        if connection is not None and connection is before:  # another one has just fetched them
            with suppress(UnreachableError, TimeoutError):
                connection.fetch(self._terms.connect_timeout)

    def _wait(self) -> Connection | None:
        """The connection once it is open; None where it cannot be opened, which is noted."""
        self._paused_until = 0.0
        try:
            connection = self._current()
            connection.wait_until_ready()
        except (UnreachableError, TimeoutError):
            return None
        return connection

    async def connect(self) -> None:
        """`refresh` for coroutines: connect before `register`, and no loop is blocked meanwhile."""
        await asyncio.to_thread(self.refresh)

    def close(self) -> None:
        """End the connection and the process behind it, also one that never answered. A later use opens another one."""
        with self._lock:
            self._connection = None
            self._failure, self._failures, self._paused_until, self._has_flooded = "", 0, 0.0, False
            begun = list(self._begun)
        close_all(begun)

    # The connection --------------------------------------------------------------------------------------------

    def _current(self) -> Connection:
        """The connection, opened if there is none that lives. Raises `UnreachableError` soon after a failure."""
        with self._lock:
            connection = self._connection
            if connection is not None and connection.alive:
                return connection
            if monotonic() < self._paused_until:
                wait = self._paused_until - monotonic()
                raise UnreachableError(f"{self._failure}; the next attempt is in {wait:.0f} seconds")
            self._connection = Connection(self.name, self.transport, self._terms, self)
            self._begun.add(self._connection)
            return self._connection

    def failed(self, connection: Connection, error: UnreachableError) -> None:
        """A connection could not be opened: it is not tried again for a while, longer each time."""
        with self._lock:
            if connection is self._connection:
                self._failure = str(error)
                explains = not isinstance(error, ConsentError)
                self._stderr = spelled_out(connection.tail.quoted(self.redact)) if explains else ""
                self._failures += 1
                self._paused_until = monotonic() + min(LONGEST_PAUSE, 0.5 * 2.0**self._failures)
                self._connection = None

    def opened(self, connection: Connection, listing: Listing) -> None:
        """A connection is open: its tools count from now on."""
        with self._lock:
            if connection is not self._connection:
                return  # closed meanwhile
            known = connection.client.server_capabilities
            self.features = frozenset(name for name in ("resources", "prompts") if getattr(known, name) is not None)
            again = bool(self._tools) or bool(self._failures)
            self._failure, self._failures = "", 0
            self._adopt(listing)
        if again:
            # On a thread of its own: this one is the connection's, and a toolkit takes its time.
            threading.Thread(target=self._tell, name="pegboard-mcp-changed", daemon=True).start()

    def relisted(self, listing: Listing) -> None:
        """The server says that its tools changed."""
        if not listing.tools and listing.problems:
            self._of_list = tuple(map(self.redact, listing.problems))
            return
        with self._lock:
            self._adopt(listing)
        self._tell()

    def flooded(self) -> None:
        """The server sends more than is listened to; the next use opens another connection."""
        self._has_flooded = True

    def _adopt(self, listing: Listing) -> None:
        problems = list(listing.problems)
        tools: dict[str, RemoteTool] = {}
        for described in listing.tools:
            made, problem = remote_tool(described, self)
            if made is not None:
                tools[made.name] = made
            if problem:
                problems.append(problem)
        self._tools, self._of_list = tools, tuple(map(self.redact, problems))

    def _tell(self) -> None:
        for changed in list(self._watchers):
            changed()

    # Resources and prompts -------------------------------------------------------------------------------------

    async def list_resources(self) -> list[Any]:
        """The resources, as the SDK describes them. Raises what the SDK's client does, as the other methods here."""
        found: list[Any] = await self._requested(lambda client: all_of(client.list_resources, "resources"))
        return found

    async def list_resource_templates(self) -> list[Any]:
        """The templates of resources' URIs, as the SDK describes them."""
        found: list[Any] = await self._requested(
            lambda client: all_of(client.list_resource_templates, "resource_templates")
        )
        return found

    async def read_resource(self, uri: str) -> tuple[Block, ...]:
        """What a resource holds: text, and files by their URIs."""
        return contents(await self.fetch(uri))

    async def fetch(self, uri: str) -> Any:
        """A resource as the SDK gives it."""
        return await self._requested(lambda client: client.read_resource(uri))

    async def list_prompts(self) -> list[Any]:
        """The prompts, as the SDK describes them."""
        found: list[Any] = await self._requested(lambda client: all_of(client.list_prompts, "prompts"))
        return found

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Any:
        """A prompt with its arguments filled in, as the SDK gives it: `messages`, and a `description`."""
        return await self._requested(lambda client: client.get_prompt(name, dict(arguments or {})))

    async def prompt_messages(self, name: str, arguments: Mapping[str, str] | None = None) -> list[tuple[str, Block]]:
        """The messages of `get_prompt`: of whom each is, and its content."""
        prompt = await self.get_prompt(name, arguments)
        return [(str(each.role), block_of(each.content)) for each in prompt.messages]

    async def _requested(self, work: Callable[[Any], Any]) -> Any:
        return await (await self._opened()).carry(work)

    # Calls -----------------------------------------------------------------------------------------------------

    async def send(
        self, name: str, arguments: dict[str, Any], progress: Callable[..., Any] | None, asking: Asking
    ) -> Any:
        """Call a tool of the server once. Raises `UnreachableError` where nothing was sent.

        Args:
            name: Name of the tool.
            arguments: The arguments.
            progress: Function that gets progress. None for none.
            asking: Answers what the server asks meanwhile.
        """
        try:
            return await self._answer_to(name, arguments, progress, asking)
        except TaskStartedError as started:
            return await followed(self, started.task, progress, asking, self._terms.call_timeout)

    async def request(self, request: Any, kind: Any) -> Any:
        """The answer to a request, over a new connection if need be."""
        return await (await self._opened()).carry(
            lambda client: client.session.send_request(request, kind), direct=True
        )

    def send_off(self, request: Any, kind: Any) -> None:
        """Send a request without waiting for its answer."""
        if (connection := self._connection) is not None:
            connection.send_off(lambda client: client.session.send_request(request, kind))

    async def _answer_to(
        self, name: str, arguments: dict[str, Any], progress: Callable[..., Any] | None, asking: Asking
    ) -> Any:
        connection = self._connection
        if connection is None or connection.client is None or not connection.alive:
            connection = await self._opened()

        async def sent(client: Any) -> Any:
            self._running[id(asking)] = asking
            try:
                with asking.while_sent():
                    return await client.call_tool(name, arguments, progress_callback=progress)
            finally:
                del self._running[id(asking)]

        direct = progress is None
        try:
            return await connection.carry(sent, direct=direct)
        except UnreachableError:  # it ended this moment, and nothing was sent: another one may live
            connection.lose()
            return await (await self._opened()).carry(sent, direct=direct)
        except Exception as error:
            if not isinstance(self.transport, Http) or not is_forgotten(error):
                raise
            connection.lose()
            # Not sent again: only the server says that the call did not run, and a tool may say the same.
            forgotten = "it has forgotten this session, as after a restart; the next call opens another one"
            raise UnreachableError(forgotten) from error

    async def _opened(self) -> Connection:
        connection = self._current()
        if not connection.ready.done():
            await asyncio.shield(asyncio.wrap_future(connection.ready))
        elif (error := connection.ready.exception()) is not None:
            raise error
        return connection

    def stderr(self) -> str:
        """The end of what the server wrote to stderr, a thousand characters at most."""
        connection = self._connection
        return self._stderr if connection is None else spelled_out(connection.tail.quoted(self.redact))

    def log(self) -> tuple[LogLine, ...]:
        """The last 1,000 lines of its stderr and its logging, over all connections, without secrets."""
        return self.log_store.lines(self.redact)

    @property
    def log_count(self) -> int:
        """How many lines there were so far, those that are no longer kept included."""
        return self.log_store.count

    @property
    def redact(self) -> Redaction:
        """Masks in texts the secrets by which the server is reached."""
        known = secrets_of(self.transport)
        if known != self._secrets:
            self._secrets, self._redact = known, Redaction(known)
        return self._redact

    async def _elicited(self, context: Any, parameters: Any) -> Any:
        return await answer(self._running, parameters)

    def _quoted(self) -> str:
        return f"; {self.transport.quoted}: {self._stderr}" if self._stderr else ""

    def __repr__(self) -> str:
        state = "unavailable" if self._failure else "open" if self._connection else "closed"
        return f"McpServer({self.name!r}, {len(self._tools)} tools, {state})"


def _asking(auth: Any, scopes: str | Iterable[str], options: dict[str, Any]) -> tuple[Any, float]:
    """`auth` as transports take it, and the seconds that the user has: a little less than the connection."""
    auth = oauth(auth, scopes)
    if isinstance(auth, OAuth):
        options.setdefault("connect_timeout", OAUTH_TIMEOUT)
    whole = seconds("connect_timeout", options.get("connect_timeout", OAUTH_TIMEOUT)) or OAUTH_TIMEOUT
    return auth, whole - min(ASKED_SOONER, whole / 10)
