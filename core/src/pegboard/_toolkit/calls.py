"""Calls: the verbs that a session and a toolkit share, written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Protocol

from pegboard._base.effects import ClosedError
from pegboard._execution.bound_tool import BoundTool, Unavailable
from pegboard._execution.fastpath import NOTHING_GIVEN
from pegboard._model.call import Listener, ToolCall
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.result import ToolResult
from pegboard._toolkit.state import ToolkitState

if TYPE_CHECKING:
    from pegboard._execution.streaming import Batch, Event

_NOTHING: Final = ()  # the one empty tuple that there is


class CallingSession(Protocol):
    """The session in whose name a call is made."""

    _core: ToolkitState
    _cache: dict[str, BoundTool]
    _generation: int

    def ready(self, name: Any) -> BoundTool | Unavailable:
        """The tool made ready for calls, or why it cannot be called. Never raises."""

    def _refresh(self) -> None: ...

    @property
    def pending(self) -> list[ToolCall]:
        """The suspended calls whose answers are owed here."""


class Calls(ABC):
    """Makes calls in the name of `_caller`: a session is its own, that of a toolkit is its root session."""

    __slots__ = ()

    @property
    @abstractmethod
    def _caller(self) -> CallingSession: ...

    def prepare(self, name: str | ToolCall, arguments: Any = None, *, call_id: str | None = None) -> ToolCall:
        """A call that may run later. Never raises: a bad call has its result already (`not_found`, `invalid`, ...)."""
        session = self._caller
        call = name if isinstance(name, ToolCall) else ToolCall(call_id or "", name, arguments)
        if call._runner is None:
            session._core.engine.prepare(session, call, session.ready(call.name))
        return call

    def call_sync(
        self,
        name: str | ToolCall,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
    ) -> ToolResult:
        """Call a tool from plain code. `arguments`: a mapping, JSON text or bytes; empty text or None for none."""
        if type(name) is not str:
            return self.prepare(name, arguments, call_id=call_id).execute_sync(context, agent, on_chunk, policy)
        session = self._caller
        core = session._core
        if session._generation != core.registry.generation:
            session._refresh()
        bound = session._cache.get(name) or session.ready(name)
        if on_chunk is not None:
            from pegboard._execution.streaming import check_listener

            check_listener(on_chunk)
        if type(bound) is not BoundTool:
            return core.engine.unavailable(session, ToolCall(call_id or "", name, arguments), bound)
        nothing = context is _NOTHING and agent is None and on_chunk is None and policy is None
        given = NOTHING_GIVEN if nothing else (context, agent, on_chunk, policy)
        result: ToolResult = core.fast_path.run(session, bound, arguments, call_id, given, False)
        try:
            return result
        finally:  # what a tool raised keeps this frame, and would keep its own result through it
            del result

    async def call(
        self,
        name: str | ToolCall,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
    ) -> ToolResult:
        """Call a tool. Ends in one `ToolResult` whatever the tool does; only the caller's own cancellation leaves."""
        if type(name) is not str:
            return await self.prepare(name, arguments, call_id=call_id).execute(context, agent, on_chunk, policy)
        session = self._caller
        core = session._core
        if session._generation != core.registry.generation:
            session._refresh()
        bound = session._cache.get(name) or session.ready(name)
        if type(bound) is not BoundTool:
            return core.engine.unavailable(session, ToolCall(call_id or "", name, arguments), bound)
        listener: Any = on_chunk
        if listener is not None:
            from pegboard._execution.streaming import ChunkChannel, heard_by

            if not isinstance(listener, ChunkChannel):
                async with heard_by(listener) as channel:
                    options = {"context": context, "agent": agent, "on_chunk": channel, "policy": policy}
                    return await self.call(name, arguments, call_id=call_id, **options)
        nothing = context is _NOTHING and agent is None and listener is None and policy is None
        given = NOTHING_GIVEN if nothing else (context, agent, listener, policy)
        result: Any = core.fast_path.run(session, bound, arguments, call_id, given, True)
        while type(result) is CoroutineType:
            result = await result
        try:
            return result  # type: ignore[no-any-return]  # `cast` would be a frame more
        finally:  # what a tool raised keeps this frame, and would keep its own result through it
            del result

    async def call_many(
        self,
        calls: Iterable[Any],
        *,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
        parallel: bool | None = None,
    ) -> list[ToolResult]:
        """Run several calls; results in call order. Each is a `ToolCall`, a `(name, arguments)` pair or a mapping.

        `parallel` beats what the toolkit says. Raises `PegboardError` for what is no call, before any of them runs.
        """
        options = {"context": context, "agent": agent, "policy": policy}
        return await self._batch(calls, options, on_chunk, parallel).run()

    def call_many_sync(
        self,
        calls: Iterable[Any],
        *,
        context: Any = (),
        agent: Any = None,
        on_chunk: Listener | None = None,
        policy: ExecutionPolicy | None = None,
        parallel: bool | None = None,
    ) -> list[ToolResult]:
        """`call_many` from plain code."""
        options = {"context": context, "agent": agent, "policy": policy}
        batch = self._batch(calls, options, on_chunk, parallel)
        drivers = self._caller._core.engine.drivers
        try:
            if drivers.available:
                results: list[ToolResult] = drivers.block_on(batch.run)
                return results
        except ClosedError:  # meanwhile, before any of them began
            pass
        return batch.run_one_by_one()  # closed, or the interpreter is shutting down: each call says so itself

    def stream(
        self,
        calls: Iterable[Any],
        *,
        context: Any = (),
        agent: Any = None,
        policy: ExecutionPolicy | None = None,
        parallel: bool | None = None,
    ) -> AsyncIterator[Event]:
        """Run several calls and yield their chunks and results as they come. Leaving early cancels the rest."""
        options = {"context": context, "agent": agent, "policy": policy}
        return self._batch(calls, options, None, parallel).stream()

    def _batch(
        self, calls: Iterable[Any], options: Mapping[str, Any], on_chunk: Listener | None, parallel: bool | None
    ) -> Batch:
        from pegboard._execution.streaming import Batch

        session = self._caller
        return Batch(session, calls, options, on_chunk, session._core.parallel if parallel is None else parallel)

    def resume(self, call_id: str | ToolCall, value: Any) -> ToolResult:
        """Complete a suspended call with its answer. `call_id` may be the call itself, as `pending` lists it.

        Raises `PegboardError` for an id that nobody waits for, naming those that are owed, and for one that two wait
        for.
        """
        session = self._caller
        return session._core.engine.resume(call_id, value, session.pending)

    @property
    def pending(self) -> list[ToolCall]:
        """The suspended calls whose answers are owed."""
        return self._caller.pending
