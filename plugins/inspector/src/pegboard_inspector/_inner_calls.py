"""Calls that calls make: those of a program in code mode, of a sub-agent, of a tool that calls tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, final

from pegboard import EnteredCall, Middleware, Status, Toolkit, ToolResult
from pegboard.inspection import watch_calls
from pegboard_inspector._calls import Made

__all__ = ["InnerCalls"]

RUNNING: Final[ContextVar[Made | None]] = ContextVar("pegboard_inspector", default=None)
"""The call of the page, or the one that it made, that runs here."""


@final
class InnerCalls:
    """Follows the calls of a toolkit that begin while a call of the page runs: each gets a record below that one.

    `known` are the records by the ids of the page, which are those of its own calls. `begun(entered, parent)` makes a
    record.
    """

    def __init__(self, known: Mapping[str, Made], begun: Callable[[EnteredCall, Made], Made]) -> None:
        self._known = known
        self._begun = begun
        self.end: Callable[[], None] = lambda: None
        """Stop following."""

    def watch(self, toolkit: Toolkit) -> None:
        """Follow the calls of this toolkit, and of no other any more."""
        self.end()
        self.end = watch_calls(toolkit, Middleware(self._around, "inspector", whole=True, told=self._hear))

    @contextmanager
    def within(self, made: Made) -> Iterator[None]:
        """What is called in here belongs to that call."""
        token = RUNNING.set(made)
        try:
            yield
        finally:
            with suppress(ValueError):  # a coroutine that is collected is closed in another context
                RUNNING.reset(token)

    def _around(self, entered: EnteredCall, proceed: Callable[[], Any]) -> Any:
        try:
            made = self._made(entered)
        except Exception:  # noqa: BLE001 - what cannot be shown must not change what is called
            made = None
        if made is None:
            return proceed()
        try:
            with self.within(made):
                found = proceed()
        except BaseException:
            self._ended(made, None)
            raise
        if not isinstance(found, ToolResult):
            return self._awaited(found, made)
        self._ended(made, found)
        return found

    async def _awaited(self, found: Any, made: Made) -> ToolResult:
        try:
            with self.within(made):
                while not isinstance(found, ToolResult):
                    found = await found
        except BaseException:  # the caller was cancelled
            self._ended(made, None)
            raise
        self._ended(made, found)
        return found

    def _made(self, entered: EnteredCall) -> Made | None:
        """The record of a call; None if no call of the page runs here."""
        if (own := self._known.get(entered.call_id)) is not None and own.call is not None:
            return own
        outer = RUNNING.get()
        if outer is None:
            return None
        # A call may name another one that it is a part of than the one in whose place it runs.
        return self._begun(entered, next((each for each in outer.lineage if each.call_id == entered.parent), outer))

    @staticmethod
    def _ended(made: Made, result: ToolResult | None) -> None:
        """Record how a call ended that another one made, None where its caller was cancelled; the page's end alone."""
        if made.call is None:
            ended = result or ToolResult(made.call_id, made.name, Status.CANCELLED, "Error: the caller was cancelled")
            made.name = made.name or ended.name
            made.finish(ended)

    def _hear(self, what: str, details: Mapping[str, Any]) -> None:
        """A suspended call of a program has its answer."""
        outer = RUNNING.get()
        if what != "resumed" or outer is None:
            return
        inner = [each for each in list(self._known.values()) if each.call is None and each.root is outer.root]
        for each in inner:
            if each.status is Status.SUSPENDED and each.call_id == details["call"].id:
                each.finish(details["result"])
