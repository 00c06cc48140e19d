"""What stands between an approved call and its tool: cassette, cache, and the record that an effect begins."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, cast, final
from weakref import WeakKeyDictionary

import attrs

from pegboard import Note, Session, Tool, ToolCall, ToolResult, Verdict
from pegboard_journal._cache import Cache, cache_key
from pegboard_journal._cassette import Cassette
from pegboard_journal._once import ELSEWHERE, Once
from pegboard_journal._recorder import RECORD, Record, Recorder, has_effect
from pegboard_journal._results import answered
from pegboard_journal._settings import Settings

__all__ = ["Answers"]

PAUSE: Final = 0.02
"""Seconds between two looks at a call that runs elsewhere."""


@attrs.define(eq=False)
class _Course:
    """How far one call has come: its line of the cassette, and the key of its flight."""

    call: ToolCall
    record: Record | None
    """None where there is a cache alone, and calls are not followed."""
    shown: Tool
    """As its session calls it."""
    tool: Tool
    """As it is registered."""
    line: dict[str, Any] | None = None
    flight: Any = None


@final
class Answers:
    """Middleware around the tools of one toolkit: nearest to the tool, and so after permission and approval."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recorder = recorder = Recorder(settings)
        self._cache, self._board = Cache(), settings.cache_scope == "board"
        self._tools: WeakKeyDictionary[Any, dict[str, Tool]] = WeakKeyDictionary()
        self._once = None if recorder.store is None else Once(recorder, recorder.store)
        self._cassette = None
        if settings.replays and settings.cassette is not None:
            self._cassette = Cassette.at(settings.cassette, settings.mode)

    @property
    def recorder(self) -> Recorder:
        """What records whole calls."""
        return self._recorder

    def check(self, call: ToolCall) -> Verdict | None:
        """What a guard says of a call: to ask about one that may have run before."""
        record = RECORD.get()
        tool = None if record is None else self._registered(record.entered.tool)
        if tool is None or self._once is None or not self._settings.runs_once(tool.name):
            return None
        return self._once.check(call, tool.name)

    @property
    def looked_up(self) -> Callable[[Tool, dict[str, Any], Session], ToolResult | None] | None:
        """What answers calls that come to the cache at once, if there is one and no cassette comes before it."""
        return self._look_up if self._settings.cache and self._cassette is None else None

    def _look_up(self, tool: Tool, arguments: dict[str, Any], session: Session) -> ToolResult | None:
        found = self._cache.kept(cache_key(tool, arguments, session, session.scope, board=self._board))
        if found is not None and self._recorder.follows:
            cast("Record", RECORD.get()).arguments = arguments
        return found

    def concerns_plain(self, tool: Tool) -> bool:
        """Whether calls of a tool pass here, and its function is a plain one: they wait in their own thread."""
        return self._concerns(tool) and not _is_awaited(tool)

    def concerns_awaited(self, tool: Tool) -> bool:
        """Whether calls of a tool pass here, and its function is awaited."""
        return self._concerns(tool) and _is_awaited(tool)

    def _concerns(self, tool: Tool) -> bool:
        self._tools.setdefault(tool.definition, {})[tool.name] = tool
        cached = self._settings.seconds_cached(tool) is not None
        return self._settings.replays or cached or self._is_recorded_first(tool)

    def _registered(self, tool: Tool | None) -> Tool | None:
        """The tool as it is registered, whatever a view calls it: the settings name it so."""
        known = {} if tool is None else self._tools.get(tool.definition, {})
        return tool if tool is None or not known else known.get(tool.name) or next(iter(known.values()))

    def _is_recorded_first(self, tool: Tool) -> bool:
        return self._recorder.store is not None and (has_effect(tool) or self._settings.runs_once(tool.name))

    def around(self, call: ToolCall, proceed: Callable[[], Any]) -> ToolResult:
        """Answer a call of a plain function, or run it."""
        course, steps = self._entered(call)
        answer: ToolResult | None = None
        try:
            step = next(steps)
            while True:
                if isinstance(step, Future):
                    step = steps.send(step.result())
                elif callable(step):
                    step = steps.send(step())
                else:
                    time.sleep(PAUSE)
                    step = next(steps)
        except StopIteration as end:
            answer = end.value
        except BaseException:
            self._over(course, None)
            raise
        if answer is not None:
            self._over(course, None)
            return answer
        result = None
        try:
            result = proceed()
        finally:
            self._over(course, result)
        return cast("ToolResult", result)

    async def around_awaited(self, call: ToolCall, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Answer a call of a function that is awaited, or run it."""
        import asyncio

        course, steps = self._entered(call)
        answer: ToolResult | None = None
        try:
            step = next(steps)
            while True:
                if isinstance(step, Future):
                    step = steps.send(await asyncio.shield(asyncio.wrap_future(step)))
                elif callable(step):
                    step = steps.send(await self._recorder.aside(step))
                else:
                    await asyncio.sleep(PAUSE)
                    step = next(steps)
        except StopIteration as end:
            answer = end.value
        except BaseException:  # the caller was cancelled
            self._over(course, None)
            raise
        if answer is not None:
            self._over(course, None)
            return answer
        result = None
        try:
            result = await proceed()
        finally:
            self._over(course, result)
        return result

    # Steps -----------------------------------------------------------------------------------------------------

    def _entered(self, call: ToolCall) -> tuple[_Course, Generator[Any, Any, ToolResult | None]]:
        record = RECORD.get() if self._recorder.follows else None
        if record is not None:
            record.arguments = call.arguments
        shown = cast("Tool", call.session[call.name] if record is None else record.entered.tool)
        course = _Course(call, record, shown, cast("Tool", self._registered(shown)))
        return course, self._steps(course)

    def _steps(self, course: _Course) -> Generator[Any, Any, ToolResult | None]:
        """What a call is answered with; None if it has to run.

        It yields what has to be waited for first: a flight, work that waits for the store, or None for a pause.
        """
        call = course.call
        if self._cassette is not None and course.record is not None:
            answer, course.line = self._cassette.look(call, course.shown, course.record.entered.redact)
            if answer is not None:
                return answer
        seconds = self._settings.seconds_cached(course.tool)
        if seconds is not None:
            key = cache_key(course.shown, call.arguments, call.session, call.context, board=self._board)
            while isinstance(found := self._cache.look(key, call), Future):
                landed = yield found
                if landed is not None:
                    return answered(
                        call, landed, Note("an equal call was under way: this is its answer", kind="cached")
                    )
            if found is not None:
                return found
            course.flight = key
        if self._is_recorded_first(course.tool):
            while (begun := (yield partial(self._begin, course))) is ELSEWHERE:
                yield None
            return begun if isinstance(begun, ToolResult) else None
        return None

    def _begin(self, course: _Course) -> Any:
        record = cast("Record", course.record)  # there is a store
        if self._once is not None and self._settings.runs_once(course.tool.name):
            return self._once.begin(course.call, record, course.tool.name)
        return self._recorder.intend(course.call, record)

    def _over(self, course: _Course, result: ToolResult | None) -> None:
        record = course.record
        if record is not None and result is not None and result.attempts and record.redact is None:
            record.redact = course.call.redact  # those that were computed are known now
        if course.flight is not None:
            seconds = self._settings.seconds_cached(course.tool) or 0.0
            self._cache.land(course.flight, result, seconds)
        if self._cassette is not None and course.line is not None:
            self._cassette.keep(course.line, result, course.call.redact)


def _is_awaited(tool: Tool) -> bool:
    from pegboard.inspection import function_kind

    return tool.function is not None and function_kind(tool.function).startswith("async")
