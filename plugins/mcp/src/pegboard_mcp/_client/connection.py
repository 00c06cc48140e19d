"""Connections: one connection to a server, owned by one task on its own loop and thread."""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

from attrs import field, frozen

from pegboard import Redaction
from pegboard_mcp._client.asking import current_call
from pegboard_mcp._client.listing import Listing, Sieve, list_all
from pegboard_mcp._client.log import Log
from pegboard_mcp._client.secrets import quiet_loggers
from pegboard_mcp._client.transports import InProcess, Stdio, Transport, overheard
from pegboard_mcp._wire.bridge import Bridge
from pegboard_mcp._wire.processes import end_groups, new_loop
from pegboard_mcp._wire.protocol import APPS, APPS_SHOWN, is_newer, known_options, own_version
from pegboard_mcp._wire.reasons import ConsentError, UnreachableError, innermost, reason
from pegboard_mcp._wire.unrequested import Tail

if TYPE_CHECKING:
    from pegboard_mcp._wire.direct import Direct

__all__ = ["Connection", "Hearer", "Terms", "close_all"]

T = TypeVar("T")
GRACE: Final = 8.0
"""Seconds that closing may take: the SDK gives a process two to end, and two more after each signal."""
RELISTEN: Final = 2.0
REST: Final = 10
"""After a changed list was read and registered, the next one waits this many times as long as that took."""
LAST_WORDS: Final = 2.0
"""Seconds to wait at most for the stderr of a process that died, or for what is sent last; both mostly end at once."""
WORDS_SO_FAR: Final = 0.3
"""Seconds to wait for the stderr of a process that still runs; it has no end to wait for."""


@final
@frozen
class Terms:
    """The options of a connection; timeouts in seconds."""

    connect_timeout: float
    call_timeout: float | None
    mode: str
    max_tools: int
    elicit: Any = field(repr=False)
    poll: float | None = None
    """Seconds between two looks at the tools of a server that does not say when they change."""


class Hearer(Protocol):
    """Listeners for a connection, called on its thread before any caller that waits for it goes on."""

    def opened(self, connection: Connection, listing: Listing) -> None:
        """It is open, and these are the tools."""

    def failed(self, connection: Connection, error: UnreachableError) -> None:
        """It could not be opened."""

    def relisted(self, listing: Listing) -> None:
        """The tools have changed, or could not be read again."""

    def flooded(self) -> None:
        """The server sends more than is listened to."""

    log_store: Log
    log_level: str | None
    """The level from which on the server's logging is asked for, None for whatever it sends."""

    @property
    def redact(self) -> Redaction:
        """Masks in texts the secrets by which the server is reached."""


@final
class Connection:
    """Opens at once. It is open when `ready` is done, with the server's tools or with the reason why it failed.

    The SDK's client must be left by the task that entered it, on the loop where it was entered: that is this thread's
    one task. Calls come from any loop through `carry`.
    """

    def __init__(self, name: str, transport: Transport, terms: Terms, hearer: Hearer) -> None:
        self.ready: Future[Listing] = Future()
        kind = "stderr" if isinstance(transport, Stdio) else "connection"
        self.tail = Tail(hearer.flooded, partial(hearer.log_store.add, kind))
        self.client: Any = None
        self._name = name
        self._transport = transport
        self._terms = terms
        self._hearer = hearer
        self._sieve = Sieve()
        self._direct: Direct | None = None
        self._loaded = threading.Event()
        self._over = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bridge: Bridge | None = None
        self._stop: asyncio.Event | None = None
        self._lock = threading.Lock()
        self._closing = False
        self._lost = False
        self._started: list[int] = []
        self._sent_off: set[asyncio.Task[None]] = set()
        _LIVE.add(self)
        self._thread = threading.Thread(target=self._run, name=f"pegboard-mcp {name}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether calls can be sent, as far as it knows."""
        return not self._lost and not self._closing and not self._over.is_set()

    def wait_until_ready(self) -> None:
        """Wait until it is open, on any other thread. Raises `UnreachableError` where it cannot be opened."""
        self._loaded.wait()  # the SDK takes a second to load, or many on a busy machine, which is no server's fault
        self.ready.result(self._terms.connect_timeout + 5.0)

    def carry(self, work: Callable[[Any], Coroutine[Any, Any, T]], *, direct: bool = False) -> Awaitable[T]:
        """The outcome of `work(client)` beside the owner. Raises `UnreachableError` where the connection has ended.

        `direct` work is done here, if the transport can do that: it only calls a tool, and hears no progress.
        """
        bridge = self._bridge
        if bridge is None or not self.alive:
            raise UnreachableError("the connection has ended")
        if direct and self._direct is not None and self._direct.is_open:
            return work(self.client)
        return bridge.carry(partial(work, self.client))

    def send_off(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> None:
        """Have `work(client)` done, from any thread. No caller waits for it, but the end of the connection does."""
        if self._loop is not None and self.alive:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._begin, work)

    def fetch(self, wait: float) -> None:
        """Fetch the list again, from any other thread. Raises `TimeoutError` after `wait` seconds."""
        loop = self._loop
        if loop is None or not self.alive or threading.current_thread() is self._thread:
            return
        asyncio.run_coroutine_threadsafe(self.relist(self.client), loop).result(wait + 5.0)

    def lose(self) -> None:
        """The server has ended: nothing more is sent, and the rest is cleaned up."""
        self._lost = True
        self._end()

    def close(self) -> None:
        """End the connection, and the process behind it, soon."""
        self._closing = True
        self._end()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended; then whatever is left of its process is killed."""
        if threading.current_thread() is not self._thread and not self._over.wait(seconds):
            end_groups(self._started)

    def _end(self) -> None:
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(stop.set)

    # On the connection's own thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        loop, self._started = new_loop()
        try:
            _load()
            self._loaded.set()
            with (
                # A server in this process belongs to the program, and so does its log.
                quiet_loggers(self._masked, quiet=not isinstance(self._transport, InProcess)),
                asyncio.Runner(loop_factory=lambda: loop) as runner,
            ):
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001 - a thread's end: callers that wait must learn of it
            self._fail(error)
        finally:
            if self._direct is not None:
                self._direct.end_posts()
            end_groups(self._started)
            self._fail(UnreachableError("the connection was closed"))
            self._loaded.set()
            self.tail.close()
            self._over.set()
            _LIVE.discard(self)
            if self._bridge is not None:
                self._bridge.end()

    def _masked(self, text: str) -> str:
        return self._hearer.redact(text)

    def _fail(self, error: BaseException, last_words: float = LAST_WORDS) -> None:
        with self._lock:
            if not self.ready.done():
                self.tail.finish(last_words)
                kind = ConsentError if isinstance(innermost(error), ConsentError) else UnreachableError
                failure = kind(self._masked(reason(error)))
                self._hearer.failed(self, failure)
                self.ready.set_exception(failure)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._bridge = Bridge(self._loop)
        self._stop = asyncio.Event()
        if self._closing:
            return
        owner = asyncio.create_task(self._own(self._stop))
        stopped = asyncio.create_task(self._stop.wait())
        timeout = self._terms.connect_timeout
        late = self._loop.call_later(timeout, self._too_late, owner, timeout)
        await asyncio.wait({owner, stopped}, return_when=asyncio.FIRST_COMPLETED)
        late.cancel()
        if not self.ready.done():
            owner.cancel()  # work that has begun is not waited for
        await asyncio.wait({owner}, timeout=GRACE)
        stopped.cancel()
        if not owner.done():
            owner.cancel()
            await asyncio.wait({owner}, timeout=GRACE)
        elif not owner.cancelled() and (error := owner.exception()) is not None:
            self._fail(error)

    def _too_late(self, owner: asyncio.Task[None], timeout: float) -> None:
        if not self.ready.done():
            self._fail(UnreachableError(f"it did not answer within {timeout:g} seconds"), WORDS_SO_FAR)
            owner.cancel()

    async def _own(self, stop: asyncio.Event) -> None:
        changed = asyncio.Event()
        async with self._client(changed) as client:
            # The SDK would drop an answer that does not fit its schema, text and all; it is checked elsewhere.
            client.session.validate_tool_result = _unchecked
            if self._direct is not None and self._direct.is_open:
                client.session.send_request = self._sent_by_whom(client.session, self._direct)
            await _ask_for_log(client, self._hearer.log_level)
            listing = await self._listed(client)
            self.client = client
            with self._lock:
                if not self.ready.done():
                    self._hearer.opened(self, listing)
                    self.ready.set_result(listing)
            async with asyncio.TaskGroup() as beside:
                tasks = [
                    beside.create_task(self._relist(client, changed)),
                    beside.create_task(_listen(client, changed)),
                    beside.create_task(_poll(client, changed, self._terms.poll)),
                ]
                await stop.wait()
                for task in tasks:
                    task.cancel()
                if self._sent_off and not self._lost:
                    await asyncio.wait(self._sent_off, timeout=LAST_WORDS)

    def _begin(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> None:
        async def done() -> None:
            with suppress(Exception):  # the server is told, whatever it makes of it
                await work(self.client)

        task = asyncio.ensure_future(done())
        self._sent_off.add(task)
        task.add_done_callback(self._sent_off.discard)

    def _sent_by_whom(self, session: Any, direct: Direct) -> Any:
        """The sender of requests: on this loop the SDK's session, on any other loop a session that sends directly."""
        from mcp import ClientSession

        from pegboard_mcp._wire.tasks import TASKS, TasksExtension

        extensions = {TASKS: {}, APPS: APPS_SHOWN}
        claims: dict[str, Any] = {"extensions": extensions, "result_claims": {TASKS: TasksExtension().claims()}}
        ours, own = ClientSession(dispatcher=direct, **self._introduced(), **claims), session.send_request
        ours.adopt(session.discover_result or session.initialize_result)
        thread = threading.get_ident()

        def send_request(*arguments: Any, **options: Any) -> Any:
            return (own if threading.get_ident() == thread else ours.send_request)(*arguments, **options)

        return send_request

    def _introduced(self) -> dict[str, Any]:
        """How the client introduces itself, and its terms."""
        from mcp import ClientSession
        from mcp_types import Implementation

        async def logged(parameters: Any) -> None:
            self._hearer.log_store.message(parameters)

        return {
            "logging_callback": logged,
            **known_options(ClientSession, log_level=self._hearer.log_level),
            "read_timeout_seconds": self._terms.call_timeout,
            "elicitation_callback": self._terms.elicit,
            "client_info": Implementation(name="pegboard", version=own_version()),
        }

    def _client(self, changed: asyncio.Event) -> Any:
        """The SDK's client, not yet entered. Raises `UnreachableError` for settings that cannot be used."""
        from mcp import Client
        from mcp.client import advertise

        from pegboard_mcp._wire.direct import Direct
        from pegboard_mcp._wire.tasks import TasksExtension

        async def hear(message: Any) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                changed.set()

        self._direct = Direct(self._unheard, partial(current_call.get, None), self._heard)
        try:
            opened = self._transport.open(self.tail, self._direct)
            if not isinstance(self._transport, InProcess):
                opened = overheard(opened, self._sieve.sifted, self._ended)
            return Client(
                opened,
                mode=self._terms.mode,
                message_handler=hear,
                cache=None,
                extensions=[TasksExtension(), advertise(APPS, APPS_SHOWN)],
                **self._introduced(),
            )
        except ValueError as error:
            raise UnreachableError(str(error)) from error

    def _ended(self) -> None:
        if self.client is not None:  # before that, the handshake fails by itself and says why
            self.lose()

    def _heard(self, notification: Any) -> None:
        """Keep a message of the server's logging; from any thread."""
        from mcp_types import LoggingMessageNotificationParams
        from pydantic import ValidationError

        if notification.method == "notifications/message":
            with suppress(ValidationError):
                self._hearer.log_store.message(LoggingMessageNotificationParams.model_validate(notification.params))

    def _unheard(self) -> None:
        """Nothing more comes. What has come already is read before `_ended`."""
        self._lost = self._lost or self.client is not None

    async def _listed(self, client: Any) -> Listing:
        listing = await list_all(client, self._sieve, self._terms.max_tools)
        # By the older protocol requests have a session in common; arguments in headers are the SDK's business.
        if self._direct is not None and (not is_newer(client.protocol_version) or _has_headers(listing)):
            self._direct.post_no_more()
        return listing

    async def relist(self, client: Any) -> None:
        """Fetch the list again, and hand it on."""
        try:
            async with asyncio.timeout(self._terms.connect_timeout):
                listing = await self._listed(client)
        except Exception as error:  # noqa: BLE001 - a failing list leaves the old one; the connection may go on
            listing = Listing((), (f"its list of tools could not be read again: {self._masked(reason(error))}",))
        await asyncio.to_thread(self._hearer.relisted, listing)

    async def _relist(self, client: Any, changed: asyncio.Event) -> None:
        """Fetch the list again whenever the server says that it changed."""
        while True:
            await changed.wait()
            changed.clear()
            began = time.monotonic()
            await self.relist(client)
            # A server whose tools change all the time must not take all the time.
            await asyncio.sleep(REST * (time.monotonic() - began))


def _has_headers(listing: Listing) -> bool:
    """Whether arguments of a tool go into headers of the request, too."""
    from mcp.shared.inbound import x_mcp_header_map

    return any(x_mcp_header_map(tool.input_schema) for tool in listing.tools)


def _load() -> None:
    """Load the SDK before the time for connecting begins to run."""
    import mcp  # noqa: F401 - what is used of it is imported where it is used


_LIVE: Final[set[Connection]] = set()
"""Connections whose process may still run, even if the program no longer refers to them."""


def close_all(connections: Iterable[Connection]) -> None:
    """End connections in parallel and wait for it. A process that does not end is killed."""
    ending = list(connections)
    for each in ending:
        each.close()
    deadline = time.monotonic() + GRACE
    for each in ending:
        each.wait(max(0.0, deadline - time.monotonic()))


@atexit.register
def _close_at_exit() -> None:
    close_all(list(_LIVE))


async def _unchecked(name: str, result: Any) -> None:
    """Every result passes."""


async def _ask_for_log(client: Any, level: Any) -> None:
    """Ask for messages from this level on; by the newer protocol each request does. A refusal costs nothing else."""
    if level is None or is_newer(client.protocol_version) or client.server_capabilities.logging is None:
        return
    from mcp_types import EmptyResult, SetLevelRequest, SetLevelRequestParams

    with suppress(Exception):  # the protocol, the SDK or the server may raise anything
        await client.session.send_request(SetLevelRequest(params=SetLevelRequestParams(level=level)), EmptyResult)


async def _listen(client: Any, changed: asyncio.Event) -> None:
    """Subscribe to changes, if the protocol needs it; by the older one servers announce changes without."""
    if not is_newer(client.protocol_version) or not _announces(client):
        return
    while True:
        with suppress(Exception):  # a subscription that ended is requested again; calls do not depend on it
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    changed.set()
        await asyncio.sleep(RELISTEN)
        changed.set()  # changes meanwhile were not reported


async def _poll(client: Any, changed: asyncio.Event, seconds: float | None) -> None:
    """Read the tools of a server that announces no changes every `poll` seconds."""
    while seconds is not None and not _announces(client):
        await asyncio.sleep(seconds)
        changed.set()


def _announces(client: Any) -> bool:
    """Whether the server announces changes of its tools."""
    return bool(getattr(getattr(client.server_capabilities, "tools", None), "list_changed", False))
