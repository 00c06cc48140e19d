"""Calls: one request to run a tool, and what a running tool can reach of it."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, final, runtime_checkable

from attrs import define, frozen

from pegboard._base.effects import after_fork, guarded
from pegboard._base.errors import PegboardError
from pegboard._base.records import Compared
from pegboard._model.result import Block, Note, Status, TextBlock, ToolResult


# Unique within the process by the counter and across processes by the prefix; uuid4 for each call would cost more
# than the rest of a short call.
@final
class _CallIds:
    """What the ids of calls are made of."""

    def __init__(self) -> None:
        self.next = itertools.count(1).__next__
        self.renew()

    def renew(self) -> None:
        """Take another prefix: a forked child must not repeat its parent's ids."""
        self.prefix = f"call_{os.urandom(6).hex()}_"


call_ids: Final = _CallIds()


def new_call_id() -> str:
    """A process-unique call id such as `call_4f0c9a2b11de_17`."""
    return f"{call_ids.prefix}{call_ids.next()}"


after_fork(call_ids, _CallIds.renew)


@runtime_checkable
class Agent(Protocol):
    """Any object passed as `agent=`: a tool that asks for `Agent` receives it."""

    @property
    def name(self) -> str:
        """The agent's name."""


class Progress(NamedTuple):
    """How much is done, and of how much if that is known."""

    done: float
    total: float | None = None


@frozen(eq=False, repr=False)
class Chunk(Compared):
    """A piece of progress of a running call: it reaches `on_chunk` and `stream()`, never the model.

    Args:
        call_id: Id of the call.
        name: Name of the tool.
        content: The block that was emitted.
        progress: How far the work has come, as `done` and `total`. None where the tool did not report it.
    """

    call_id: str
    name: str
    content: Block
    progress: Progress | None = None

    @property
    def text(self) -> str:
        """The chunk's text; empty for binary blocks."""
        return self.content.text


Listener: TypeAlias = Callable[[Chunk], Any]


@final
@define(eq=False, repr=False)
class Emitter:
    """Reports progress: ask for it by type, `def work(items: list[str], emitter: Emitter)`.

    A sync tool that reports faster than the listener takes it waits in `emit`; an async tool that reports much says
    `await emitter.drain()` now and then.

    Args:
        call_id: Id of the call. The toolkit makes the emitters of calls; in a test, `Emitter()` has no listener.
        name: Name of the tool.
        listener: Function that gets each `Chunk`. None for no listener.
        drain: Coroutine function that waits for the listener. None where it never has to.
    """

    _call_id: str = ""
    _name: str = ""
    _listener: Listener | None = None
    _drain: Callable[[], Awaitable[None]] | None = None

    @property
    def heard(self) -> bool:
        """Whether there is a listener."""
        return self._listener is not None

    def emit(self, content: str | Block) -> None:
        """Send a piece of progress to the listener; without a listener nothing happens.

        Args:
            content: Text or a block.
        """
        if content is None:
            raise TypeError("emit(None) says nothing; emit text or a block")
        if self._listener is not None:
            block = content if isinstance(content, Block) else TextBlock(str(content))
            self._listener(Chunk(self._call_id, self._name, block.carried))

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report how far the work has come.

        Args:
            done: How much is done, in any unit.
            total: How much there is to do, in the same unit. None where it is unknown.
            text: A message to show.
        """
        if self._listener is not None:
            self._listener(Chunk(self._call_id, self._name, TextBlock(text).carried, Progress(done, total)))

    async def drain(self) -> None:
        """Wait until the listener has caught up, as far as to leave room for more."""
        if self._drain is not None:
            await self._drain()


# Guards the state of every token: it is held for an instant, and a lock for each would cost more. A signal handler may
# stop a call in between.
_tokens: Final = threading.RLock()
guarded(_tokens)


class CancelToken:
    """Tells a tool that it should stop: ask for it by type and look at `cancelled` now and then."""

    # Most tokens are only looked at, and pay for nothing else.
    _cancelled = False
    _event: threading.Event | None = None
    _callbacks: list[Callable[[], Any]] | None = None
    reason = ""

    @property
    def cancelled(self) -> bool:
        """Whether the call was asked to stop."""
        return self._cancelled

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask the call to stop. Only the first reason counts."""
        with _tokens:
            if self._cancelled:
                return
            self.reason = reason
            self._cancelled = True
            event, callbacks, self._callbacks = self._event, self._callbacks, None
        if event is not None:
            event.set()
        for callback in callbacks or ():
            callback()

    def on_cancel(self, callback: Callable[[], Any]) -> None:
        """Run `callback` when the call is asked to stop, at once if it already was."""
        with _tokens:
            if not self._cancelled:
                self._callbacks = [*(self._callbacks or ()), callback]
                return
        callback()

    def wait(self, seconds: float | None = None) -> bool:
        """Block until the call is asked to stop; return whether it was.

        Args:
            seconds: Seconds to wait at most. None waits for ever.
        """
        with _tokens:
            if self._cancelled:
                return True
            event = self._event = self._event or threading.Event()
        return event.wait(seconds)

    def __repr__(self) -> str:
        return f"CancelToken({'cancelled: ' + self.reason if self.cancelled else 'live'})"


_PENDING: Final = Status.PENDING  # a member of an enum is looked up slowly

# What a caller gives a call: context, agent, listener, policy.
Given: TypeAlias = tuple[Any, Any, Any, Any]


class Runner(Protocol):
    """What a `ToolCall` runs on."""

    # What closing the toolkit stops, by `cancel(reason)`: each call that can be stopped.
    live: dict[Any, None]

    def execute(self, call: ToolCall, given: Given, on_loop: bool) -> Any:
        """Run a call: gives its result or, `on_loop`, perhaps what has to be awaited for it."""

    def stop(self, call: ToolCall) -> None:
        """Ask a running call to stop."""


class CallerSession(Protocol):
    """The session in whose name a call is made, as far as those rooms need it that the session's own room joins."""

    scope: Any  # what the context of a call is looked up in
    agent: Any
    subject: Any
    id: str | None
    shared: Any  # where its suspended calls are kept for other programs too

    @property
    def toolkit(self) -> Any:
        """The toolkit that it is a session of."""

    @property
    def approver(self) -> Callable[..., Any] | None:
        """Answers requests for approval."""

    def lineage(self) -> Iterator[Any]:
        """What tells this session from other ones, then the same of each wider one."""

    def ready(self, name: Any, /) -> Any:
        """The tool made ready for calls, or why it cannot be called. Never raises."""

    def holds(self, bound: Any, /) -> bool:
        """Whether nothing was decided anew since that tool was made ready."""


# By hand: attrs makes one in three times as long.
@final
class ToolCall:
    """One request to run a tool, as the model sent it.

    After `prepare`, `arguments` is the decoded mapping, and `typed` holds the structured values after repair, without
    injected ones. `result` is None until the call has ended; `status` says how far it is.

    Args:
        id: Id of the call, which its result repeats. Empty makes one that is unique in the process.
        name: Name of the tool.
        arguments: What was sent: a mapping, JSON text, or None for no arguments.
        provider_meta: Data of the provider, passed through unchanged to the answer. None for none.
    """

    _typed: Mapping[str, Any] | None = None
    _invocation: Any = None  # what surrounds the call of a tool by hand: it has an `emitter` and a `session`

    def __init__(
        self,
        id: str = "",  # noqa: A002 - its name in every provider's API
        name: str = "",
        arguments: Any = None,
        provider_meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = id or new_call_id()
        self.name = name
        self.arguments = arguments
        self.provider_meta: Mapping[str, Any] = {} if provider_meta is None else provider_meta
        self.notes: list[Note] = []
        self.logs: list[str] = []
        self.attachments: list[Block] = []
        self.result: ToolResult | None = None
        self.status = _PENDING
        self._runner: Runner | None = None
        self._state: Any = None  # its invocation, for the runner

    @property
    def typed(self) -> Mapping[str, Any]:
        """The structured values after repair, without injected ones; named on first use."""
        if self._typed is None:
            self._typed = {} if self._state is None else self._state.typed
        return self._typed

    @typed.setter
    def typed(self, values: Mapping[str, Any]) -> None:
        self._typed = values

    async def execute(
        self, context: Any = (), agent: Any = None, on_chunk: Listener | None = None, policy: Any = None
    ) -> ToolResult:
        """Run the call once; a second time returns the same result.

        Raises `PegboardError` for a call that no toolkit prepared.

        Args:
            context: Objects for this call, before those of the session.
            agent: The object that an `Agent` parameter gets in this call.
            on_chunk: Function, sync or async, that gets each `Chunk` of progress.
            policy: Timeout and retries of this call, an `ExecutionPolicy`. It wins over those of tool, session and
                toolkit.
        """
        result = self._prepared().execute(self, (context, agent, on_chunk, policy), True)
        while not isinstance(result, ToolResult):
            result = await result
        return result

    def execute_sync(
        self, context: Any = (), agent: Any = None, on_chunk: Listener | None = None, policy: Any = None
    ) -> ToolResult:
        """`execute` for plain code.

        Args:
            context: Objects for this call, before those of the session.
            agent: The object that an `Agent` parameter gets in this call.
            on_chunk: Function that gets each `Chunk` of progress.
            policy: Timeout and retries of this call, an `ExecutionPolicy`. It wins over those of tool, session and
                toolkit.
        """
        result: ToolResult = self._prepared().execute(self, (context, agent, on_chunk, policy), False)
        return result

    def stop(self) -> None:
        """Ask the call to stop: its `CancelToken` is set and its task cancelled; one that has not begun never will."""
        self._prepared().stop(self)

    @property
    def emitter(self) -> Emitter:
        """Where a tool by hand reports progress; any other call has no listener."""
        return Emitter(self.id, self.name) if self._invocation is None else self._invocation.emitter

    @property
    def session(self) -> Any:
        """The `Session` that the call is made in, for tools by hand, middleware and injectors; None before that."""
        return getattr(self._invocation or self._state, "session", None)

    @property
    def context(self) -> Any:
        """What this call finds in its context, to be passed on as `context=`; nothing for a call that has not begun."""
        return getattr(self._state or self._invocation, "scope", ())

    @property
    def redact(self) -> Any:
        """The `Redaction` of the call's secrets, computed ones too once it has run; None where it has none."""
        return getattr(self._state, "redact", None)

    def surround(self, surroundings: Any) -> None:
        """Let a tool by hand reach the emitter and session of these: for a backend that makes its call elsewhere."""
        self._invocation = surroundings

    def log(self, message: str) -> None:
        """Add a line to `result.logs`."""
        self.logs.append(message)

    def attach(self, block: Block) -> None:
        """Add a block to `result.attachments`."""
        self.attachments.append(block)

    def _prepared(self) -> Runner:
        if self._runner is None:
            raise PegboardError(f"this call of {self.name!r} belongs to no toolkit; get one from toolkit.prepare(...)")
        return self._runner

    def __repr__(self) -> str:
        return f"ToolCall({self.name!r}, {self.status.value}, id={self.id!r})"


@final
class Unseen(NamedTuple):
    """What a result takes from a call that was never asked for: nothing was added to it."""

    id: str
    name: str
    notes: tuple[Note, ...] = ()
    logs: tuple[str, ...] = ()
    attachments: tuple[Block, ...] = ()


# What a result says of its call.
Called: TypeAlias = ToolCall | Unseen
