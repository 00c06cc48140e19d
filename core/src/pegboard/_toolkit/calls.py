"""Calls: the verbs that a session and a toolkit share, written once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from pegboard._base.effects import ClosedError
from pegboard._execution.engine import BoundTool
from pegboard._execution.runner import NOTHING_GIVEN
from pegboard._model.call import Listener, ToolCall
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.result import ToolResult
from pegboard._toolkit.catalog import Catalog

if TYPE_CHECKING:
    from pegboard._execution.streaming import Batch, Event

_NOTHING: Final = ()  # the one empty tuple that there is


class Calls:
    """Makes calls in the name of `_caller`: a session is its own, that of a toolkit is its root session."""

    __slots__ = ()

    if TYPE_CHECKING:  # a toolkit has it as an attribute, which is looked up three times as fast

        @property
        def _caller(self) -> Catalog: ...

    def prepare(self, name: str | ToolCall, arguments: Any = None, *, call_id: str | None = None) -> ToolCall:
        """A call that may run later. Never raises: a bad call has its result already (`not_found`, `invalid`, ...)."""
        session = self._caller
        call = name if isinstance(name, ToolCall) else ToolCall(call_id or "", name, arguments)
        return session._core.runner.prepare(session, call)

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
        if type(bound) is not BoundTool:
            return core.runner.absent(session, name, call_id, bound)
        nothing = context is _NOTHING and agent is None and on_chunk is None and policy is None
        given = NOTHING_GIVEN if nothing else (context, agent, on_chunk, policy)
        result: Any
        if on_chunk is None:
            result = core.run(session, bound, arguments, call_id, given, False)
        else:
            from pegboard._execution.streaming import heard

            result = heard(partial(core.run, session, bound, arguments, call_id), given, False)
        try:
            return result  # type: ignore[no-any-return]  # `cast` would be a frame more
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
            return core.runner.absent(session, name, call_id, bound)
        nothing = context is _NOTHING and agent is None and on_chunk is None and policy is None
        given = NOTHING_GIVEN if nothing else (context, agent, on_chunk, policy)
        result: Any
        if on_chunk is None:
            result = core.run(session, bound, arguments, call_id, given, True)
        else:
            from pegboard._execution.streaming import heard

            result = heard(partial(core.run, session, bound, arguments, call_id), given, True)
        while type(result) is not ToolResult:
            result = await result
        try:
            return result
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
        return await self._batch(calls, on_chunk, parallel, context=context, agent=agent, policy=policy).run()

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
        batch = self._batch(calls, on_chunk, parallel, context=context, agent=agent, policy=policy)
        drivers = self._caller._core.engine.drivers
        try:
            results: list[ToolResult] = drivers.block_on(batch.run_apart)
        except ClosedError:  # before any of them began: each call says so itself
            return batch.run_one_by_one(self.call_sync)
        return results

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
        return self._batch(calls, None, parallel, context=context, agent=agent, policy=policy).stream()

    def _batch(self, calls: Iterable[Any], on_chunk: Listener | None, parallel: bool | None, **options: Any) -> Batch:
        core = self._caller._core
        together = core.options.parallel if parallel is None else parallel
        return _batch_class()(self.call, calls, options, on_chunk, together, core.engine)

    def resume(self, call_id: str | ToolCall, value: Any) -> ToolResult:
        """Complete a suspended call with its answer. `call_id` may be the call itself, as `pending` lists it.

        Raises `PegboardError` for an id that nobody waits for, naming those that are owed, and for one that two wait
        for.
        """
        session = self._caller
        return session._core.runner.resume(call_id, value, session.pending)

    def suspend(self, call: ToolCall, reason: str = "") -> ToolResult:
        """Owe the answer of a call that waited for it in an earlier program: it is suspended here and does not run."""
        return self._caller._core.runner.suspend(self.prepare(call), reason)

    @property
    def pending(self) -> list[ToolCall]:
        """The suspended calls whose answers are owed."""
        return self._caller.pending


@cache
def _batch_class() -> type[Batch]:
    from pegboard._execution.streaming import Batch  # once: to find it takes a tenth of a batch of one call

    return Batch
