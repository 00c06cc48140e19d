"""Kept answers of read-only tools, and one flight for equal calls at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from pegboard import Note, Status, ToolCall, ToolResult
from pegboard_journal._entry import canonical
from pegboard_journal._results import answered, own

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Cache", "cache_key"]

MOST: Final = 1_000
"""Answers that are kept; the oldest are forgotten."""


class _Kept(NamedTuple):
    result: ToolResult
    since: float
    until: float
    key: Any  # it holds presets and context, so that no other object takes their place in memory


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


def cache_key(call: ToolCall, schema_hash: str, *, board: bool) -> Hashable:
    """What has to be equal for two calls to have one answer."""
    arguments = canonical(call.arguments)
    if board:
        return call.name, schema_hash, arguments
    session = call.session
    who = session.id or _Same(next(session.lineage()))
    presets = tuple((name, *map(_Same, preset)) for name, preset in sorted(session.presets_of(call.name).items()))
    context = call.context
    given = () if context is session.scope else tuple(map(_Same, _objects(context, session.scope)))
    return call.name, schema_hash, arguments, who, presets, given


def _objects(context: Any, outer: Any) -> list[Any]:
    """What a call brings in its context, by its levels inside those of the session."""
    found = []
    while context is not None and context is not outer:
        found += [given for _, given in context._objects]
        found += [] if context._passed_on is None else [context._passed_on]
        context = context.wider
    return found


@final
class Cache:
    """The answers of one toolkit, in its memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._flights: dict[Hashable, Future[ToolResult | None]] = {}

    def look(self, key: Hashable, call: ToolCall) -> ToolResult | Future[ToolResult | None] | None:
        """A kept answer, the flight of an equal call, or None: then this call is the flight, and has to `land`."""
        from concurrent.futures import Future

        now = self._clock()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and now < kept.until:
                age = now - kept.since
                return answered(
                    call, kept.result, Note(f"the answer comes from the cache, {age:.0f} s old", kind="cached")
                )
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
                self._kept[key] = _Kept(result, now, now + seconds, key)
                self._kept.move_to_end(key)
                while len(self._kept) > MOST:
                    self._kept.popitem(last=False)
        if flight is not None:
            flight.set_result(result)
