"""Calls: the verbs that a session and a toolkit share, written once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from pegboard._base.effects import ClosedError
from pegboard._execution.bound import BoundTool
from pegboard._execution.runner import NOTHING_GIVEN
from pegboard._model.call import Listener, ToolCall
from pegboard._model.policy import ExecutionPolicy
from pegboard._model.result import ToolResult
from pegboard._toolkit.catalog import Catalog

if TYPE_CHECKING:
    from pegboard._execution.streaming import Batch, Event

_NOTHING: Final = ()  # the one empty tuple that there is


class Calls(Catalog):
    """Makes calls of the tools that a session shows."""

    def prepare(self, name: str | ToolCall, arguments: Any = None, *, call_id: str | None = None) -> ToolCall:
        """A call that may run later. Never raises: a bad call has its result already (`not_found`, `invalid`, ...)."""
        call = name if isinstance(name, ToolCall) else ToolCall(call_id or "", name, arguments)
        return self._core.runner.prepare(self, call)

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
        result: ToolResult = self._called(name, arguments, call_id, context, agent, on_chunk, policy, False)
        try:
            return result
        finally:  # what a tool raised keeps this frame, and would keep its own result through it
            del result

    def _called(
        self,
        name: Any,
        arguments: Any,
        call_id: str | None,
        context: Any,
        agent: Any,
        on_chunk: Any,
        policy: Any,
        on_loop: bool,
    ) -> Any:
        """Make a call: its result or, `on_loop`, perhaps what has to be awaited for it."""
        core = self._core
        if type(name) is not str:
            call = self.prepare(name, arguments, call_id=call_id)
            return core.runner.execute(call, (context, agent, on_chunk, policy), on_loop)
        if self._generation != core.registry.generation:
            self._refresh()
        bound = self._cache.get(name) or self.ready(name)
        if type(bound) is not BoundTool:
            return core.runner.absent(self, name, call_id, bound)
        nothing = context is _NOTHING and agent is None and on_chunk is None and policy is None
        given = NOTHING_GIVEN if nothing else (context, agent, on_chunk, policy)
        if on_chunk is None:
            return core.run(self, bound, arguments, call_id, given, on_loop)
        from pegboard._execution.streaming import heard

        return heard(partial(core.run, self, bound, arguments, call_id), given, on_loop)

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
        result = self._called(name, arguments, call_id, context, agent, on_chunk, policy, True)
        while type(result) is not ToolResult:
            result = await result
        try:
            return result
        finally:  # as above
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
        drivers = self._core.engine.drivers
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
        core = self._core
        together = core.options.parallel if parallel is None else parallel
        return _batch_class()(self.call, calls, options, on_chunk, together, core.engine)

    def resume(self, call_id: str | ToolCall, value: Any) -> ToolResult:
        """Complete a suspended call with its answer. `call_id` may be the call itself, as `pending` lists it.

        Raises `PegboardError` for an id that no call waits under, naming those that are owed, and for one that two wait
        under.
        """
        return self._core.runner.resume(call_id, value, self.pending)

    def suspend(self, call: ToolCall, reason: str = "") -> ToolResult:
        """Owe the answer of a call that waited for it in an earlier program: it is suspended here and does not run."""
        return self._core.runner.suspend(self.prepare(call), reason)


@cache
def _batch_class() -> type[Batch]:
    from pegboard._execution.streaming import Batch  # once: to find it takes a tenth of a batch of one call

    return Batch
