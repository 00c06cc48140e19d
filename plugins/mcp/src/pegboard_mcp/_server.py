"""MCP servers as sources of tools."""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final, Literal, Self, TypeAlias, final

from pegboard_mcp._asking import Asking, answer
from pegboard_mcp._connection import Connection, Terms
from pegboard_mcp._listing import Listing
from pegboard_mcp._reasons import UnreachableError, is_forgotten
from pegboard_mcp._redaction import without_secrets
from pegboard_mcp._remote_tool import RemoteTool, remote_tool
from pegboard_mcp._transports import Http, InProcess, Sse, Stdio, Transport

__all__ = ["McpServer"]

Mode: TypeAlias = Literal["auto", "legacy", "2026-07-28"]
CONNECT_TIMEOUT: Final = 30.0
CALL_TIMEOUT: Final = 120.0
LONGEST_PAUSE: Final = 30.0
MOST_SAID: Final = 20
"""Problems of one list that are told one by one."""


@final
class McpServer:
    """An MCP server, whose tools `toolkit.register(server)` hangs up; made by `stdio`, `http`, `sse` or `in_process`.

    The connection opens on first use, is shared by all toolkits that the server is registered with, opens again after
    it was lost, and closes with the last of these toolkits or by `close()`. `connect_timeout` and `call_timeout` are
    in seconds. `mode` is `"auto"`, `"legacy"` for a server that hangs when it is asked for the newer protocol, or one
    version. A server that cannot be reached raises nothing: `problems` says why, and so does a call of its tools.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        name: str,
        connect_timeout: float = CONNECT_TIMEOUT,
        call_timeout: float = CALL_TIMEOUT,
        mode: str = "auto",
    ) -> None:
        self.name = name
        self.transport = transport
        self._terms = Terms(connect_timeout, call_timeout, mode, self._elicited)
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._watchers: list[Callable[[], None]] = []
        self._tools: dict[str, RemoteTool] = {}
        self._of_list: tuple[str, ...] = ()
        self._away = ""
        self._stderr = ""
        self._failures = 0
        self._paused_until = 0.0
        self._running: dict[int, Asking] = {}
        _OPEN.add(self)

    # Making one ------------------------------------------------------------------------------------------------

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Iterable[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """A process that is spoken to over its stdin and stdout; of this environment it gets HOME, PATH and the like.

        `${NAME}` in any of the texts is read from the environment when the process is started.
        """
        return cls(Stdio(command, tuple(args), env, cwd), name=name or command.rpartition("/")[2], **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        name: str | None = None,
        call_timeout: float = CALL_TIMEOUT,
        **options: Any,
    ) -> Self:
        """A server at a URL, over streamable HTTP; `auth` is an `httpx2.Auth`, such as the SDK's OAuth providers."""
        transport = Http(url, headers, auth, call_timeout)
        return cls(transport, name=name or transport.label, call_timeout=call_timeout, **options)

    @classmethod
    def sse(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        name: str | None = None,
        mode: str = "legacy",
        **options: Any,
    ) -> Self:
        """A server at a URL, over HTTP with server-sent events, which only the older protocol knows."""
        transport = Sse(url, headers, auth)
        return cls(transport, name=name or transport.label, mode=mode, **options)

    @classmethod
    def in_process(cls, server: Any, *, name: str | None = None, **options: Any) -> Self:
        """A `Server` or `MCPServer` of the SDK in this process."""
        return cls(InProcess(server), name=name or str(getattr(server, "name", "") or "in-process"), **options)

    # A source of tools -----------------------------------------------------------------------------------------

    def tools(self) -> list[RemoteTool]:
        """The server's tools; waits for the first connection. Nothing is raised: see `problems`."""
        if not self._tools and not self._away:
            self.refresh()
        return list(self._tools.values())

    @property
    def problems(self) -> Sequence[str]:
        """Why tools are missing: the server is away, or its list says something that cannot be used."""
        away = [f"the MCP server {self.name!r} cannot be reached: {self._away}{self._quoted()}"] if self._away else []
        said = list(self._of_list[:MOST_SAID])
        if len(self._of_list) > MOST_SAID:
            said.append(f"its list has {len(self._of_list) - MOST_SAID} problems more")
        return [*away, *(f"the MCP server {self.name!r}: {problem}" for problem in said)]

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed()` when the tools change. Begins to connect; with the last watcher the connection closes."""
        with self._lock:
            self._watchers.append(changed)
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
        """Connect if need be and fetch the tools again. Raises nothing: see `problems`."""
        self._paused_until = 0.0
        try:
            self._current().ready.result(self._terms.connect_timeout + 5.0)
        except (UnreachableError, TimeoutError):
            return  # it is noted already

    async def connect(self) -> None:
        """`refresh` for coroutines: connect before `register`, and no loop is blocked meanwhile."""
        await asyncio.to_thread(self.refresh)

    def close(self) -> None:
        """End the connection and the process behind it. A later use opens another one."""
        with self._lock:
            connection, self._connection = self._connection, None
            self._away, self._failures, self._paused_until = "", 0, 0.0
        if connection is not None:
            connection.close()

    # The connection --------------------------------------------------------------------------------------------

    def _current(self) -> Connection:
        """The connection, opened if there is none that lives. Raises `UnreachableError` soon after a failure."""
        with self._lock:
            connection = self._connection
            if connection is not None and connection.alive:
                return connection
            if monotonic() < self._paused_until:
                wait = self._paused_until - monotonic()
                raise UnreachableError(f"{self._away}; the next attempt is in {wait:.0f} seconds")
            self._connection = Connection(self.name, self.transport, self._terms, self)
            return self._connection

    def failed(self, connection: Connection, error: UnreachableError) -> None:
        """A connection could not be opened: it is not tried again for a while, longer each time."""
        with self._lock:
            if connection is self._connection:
                self._away = str(error)
                self._stderr = without_secrets(connection.tail.text, self.transport)
                self._failures += 1
                self._paused_until = monotonic() + min(LONGEST_PAUSE, 0.5 * 2.0**self._failures)
                self._connection = None

    def opened(self, connection: Connection, listing: Listing) -> None:
        """A connection is open: its tools count from now on."""
        with self._lock:
            if connection is not self._connection:
                return  # closed meanwhile
            again = bool(self._tools) or bool(self._failures)
            self._away, self._failures = "", 0
            self._adopt(listing)
        if again:
            # On a thread of its own: this one is the connection's, and a toolkit takes its time.
            threading.Thread(target=self._tell, name="pegboard-mcp-changed", daemon=True).start()

    def relisted(self, listing: Listing) -> None:
        """The server says that its tools changed."""
        if not listing.tools and listing.problems:
            self._of_list = listing.problems
            return
        with self._lock:
            self._adopt(listing)
        self._tell()

    def _adopt(self, listing: Listing) -> None:
        problems = list(listing.problems)
        tools: dict[str, RemoteTool] = {}
        for described in listing.tools:
            made, problem = remote_tool(described, self)
            if made is not None:
                tools[made.name] = made
            if problem:
                problems.append(problem)
        self._tools, self._of_list = tools, tuple(problems)

    def _tell(self) -> None:
        for changed in list(self._watchers):
            changed()

    # Calls -----------------------------------------------------------------------------------------------------

    async def send(
        self, name: str, arguments: dict[str, Any], progress: Callable[..., Any] | None, asking: Asking
    ) -> Any:
        """Call a tool of the server once. Raises `UnreachableError` where nothing was sent."""
        connection = self._connection
        if connection is None or connection.client is None or not connection.alive:
            connection = await self._opened()

        async def sent(client: Any) -> Any:
            self._running[id(asking)] = asking
            asking.begin()
            try:
                return await client.call_tool(name, arguments, progress_callback=progress)
            finally:
                del self._running[id(asking)]

        try:
            return await connection.carry(sent)
        except UnreachableError:  # it ended this moment, and nothing was sent: another one may live
            return await (await self._opened()).carry(sent)
        except Exception as error:
            if not isinstance(self.transport, Http) or not is_forgotten(error):
                raise
            connection.lose()
            # Not sent again: that a call did not run is what the server says, and a tool may say the same.
            said = "it has forgotten this session, as after a restart; the next call opens another one"
            raise UnreachableError(said) from error

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
        return self._stderr if connection is None else without_secrets(connection.tail.text, self.transport)

    async def _elicited(self, context: Any, parameters: Any) -> Any:
        return await answer(self._running, parameters)

    def _quoted(self) -> str:
        return f"; {self.transport.quoted}: {self._stderr}" if self._stderr else ""

    def __repr__(self) -> str:
        state = "away" if self._away else "open" if self._connection else "closed"
        return f"McpServer({self.name!r}, {len(self._tools)} tools, {state})"


_OPEN: Final[weakref.WeakSet[McpServer]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """What nobody closed: no process is left behind."""
    for server in list(_OPEN):
        server.close()
