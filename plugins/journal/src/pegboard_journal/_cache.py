"""Kept answers of read-only tools, and one flight for equal calls at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from marshal import dumps
from typing import TYPE_CHECKING, Any, Final, final

from pegboard import Note, Session, Status, Tool, ToolCall, ToolResult
from pegboard_journal._entry import canonical
from pegboard_journal._results import IMMUTABLE, answered, is_fixed, own

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Cache", "cache_key"]

MOST: Final = 1_000
"""Answers that are kept; the oldest are forgotten."""


@final
class _Kept:
    """An answer, from when it is and until when it counts."""

    def __init__(self, result: ToolResult, since: float, until: float) -> None:
        self.result = result
        self.since = since
        self.until = until
        self._last: tuple[int, ToolResult] | None = None

    def note(self, now: float) -> Note:
        """What tells that it is not new."""
        return Note(f"the answer comes from the cache, {int(now - self.since)} s old", kind="cached")

    def at(self, now: float) -> ToolResult:
        """The answer with that note. Those of one second are the same, if nothing in it can be changed."""
        age, last = int(now - self.since), self._last
        if last is not None and last[0] == age:
            return last[1]
        result = own(self.result, self.note(now))
        if is_fixed(result):
            self._last = age, result
        return result


@final
class _Same:
    """An object as a part of a key: it is equal to itself alone."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def cache_key(tool: Tool, arguments: dict[str, Any], session: Session, context: Any, *, board: bool) -> Hashable:
    """What has to be equal for two calls to have one answer. `context` is that of the call, or its session's."""
    known = _exact(arguments)
    if board:
        return tool.name, tool.definition, known
    who, presets = session.id or session, session.presets_of(tool.name)
    if not presets and context is session.scope:
        return tool.name, tool.definition, known, who
    filled = tuple((name, *map(_Same, preset)) for name, preset in sorted(presets.items()))
    return tool.name, tool.definition, known, who, filled, _brought(context, session.scope)


def _exact(arguments: dict[str, Any]) -> str | bytes:
    """Arguments as a text that equal data share, and no other data: 1, 1.0 and true are equal to Python alone."""
    if IMMUTABLE.issuperset(map(type, arguments.values())):
        return dumps(sorted(arguments.items()), 2)  # in half the time of JSON; later versions mark shared objects
    return canonical(arguments)


def _brought(context: Any, outer: Any) -> Hashable:
    """The objects that a call brings in its context, beyond those of its session, and what they are found by."""
    found = tuple((key, _Same(given)) for key, given in context.given())
    return found[: len(found) - len(list(outer.given()))]


@final
class Cache:
    """The answers of one toolkit, in its memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._flights: dict[Hashable, Future[ToolResult | None]] = {}

    def kept(self, key: Hashable) -> ToolResult | None:
        """A kept answer."""
        kept = self._kept.get(key)  # in one step: no lock is needed
        now = self._clock()
        return kept.at(now) if kept is not None and now < kept.until else None

    def look(self, key: Hashable, call: ToolCall) -> ToolResult | Future[ToolResult | None] | None:
        """A kept answer, the flight of an equal call, or None: then this call is the flight, and has to `land`."""
        from concurrent.futures import Future

        now = self._clock()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and now < kept.until:
                return answered(call, kept.result, kept.note(now))
            flight = self._flights.get(key)
            if flight is None:
                self._flights[key] = Future()
            return flight

    def land(self, key: Hashable, result: ToolResult | None, seconds: float) -> None:
        """End a flight: its answer is given to the calls that wait, and kept if it is a success."""
        now = self._clock()
        result = None if result is None else own(result)
        with self._lock:
            flight = self._flights.pop(key, None)
            if result is not None and result.status is Status.SUCCESS:
                self._kept[key] = _Kept(result, now, now + seconds)
                self._kept.move_to_end(key)
                while len(self._kept) > MOST:
                    self._kept.popitem(last=False)
        if flight is not None:
            flight.set_result(result)
