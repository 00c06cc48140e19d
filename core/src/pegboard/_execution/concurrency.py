"""Limits: how many calls run at once, in all, in a group or under a lock, which is a limit of one.

They count calls in threads and on event loops alike. Why no calls wait for each other in a circle:

1. A call takes its places all at once, when each of its limits has one. While it waits it holds none, so nobody waits
   for it: calls from outside cannot close a circle, in whatever order their limits are named.
2. A call that a running tool makes keeps the places of the calls above it and waits only for the others. Calls from
   outside do not come before it: those above it end, and give their places back, only after it.
3. That leaves a circle which the tools themselves make: one holds `a` and calls what needs `b`, another holds `b` and
   calls what needs `a`. A place may also be held by what runs on an event loop that a waiting `call_sync` blocks. Only
   calls with a call above them, or that block a loop, can close such a circle. They look for one before they wait
   (`_never_ends`), and the one that would close it gives way with an error.

First come, first served, but a call that has to wait for one limit does not keep others from using another one. It is
overtaken in this way `OVERTAKEN` times, then its places are kept free for it.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakValueDictionary

from pegboard._base.effects import new_future, running_loop
from pegboard._base.errors import PegboardError

if TYPE_CHECKING:
    from concurrent.futures import Future

OVERTAKEN: Final = 100
_NO_LOOPS: Final[frozenset[Any]] = frozenset()

_numbers = itertools.count()
_guard = threading.Lock()
"""One for all toolkits: the tool of one may call those of another."""
_above: contextvars.ContextVar[Permit | None] = contextvars.ContextVar("pegboard_place", default=None)
_blocked: contextvars.ContextVar[tuple[_Block, ...]] = contextvars.ContextVar("pegboard_blocked", default=())


@final
class Limit:
    """At most `capacity` calls hold it at a time."""

    __slots__ = ("__weakref__", "capacity", "holders", "label")

    def __init__(self, label: str, capacity: int) -> None:
        self.label = label
        self.capacity = capacity
        self.holders: set[Permit] = set()

    @property
    def full(self) -> bool:
        """Whether the next one has to wait."""
        return len(self.holders) >= self.capacity


@final
class Permit:
    """What one call holds, or waits for: a place in each of its `limits`.

    `turn` is done once they are ours, None if they were free. `above` is the nearest call above that holds places,
    `loops` are the event loops that have to run for this call to end, `waits` the calls below that have to have their
    turn.
    """

    __slots__ = (
        "above",
        "blocks",
        "held",
        "home",
        "knot",
        "limits",
        "line",
        "loops",
        "number",
        "passed",
        "turn",
        "urgent",
        "waits",
    )

    def __init__(self, limits: tuple[Limit, ...], above: Permit | None) -> None:
        loop = running_loop()
        self.number = next(_numbers)
        self.limits = limits
        self.above = above
        blocked = _blocked.get()
        self.blocks = frozenset(block.loop for block in blocked if block.lasts) if blocked else _NO_LOOPS
        self.home = None if loop in self.blocks else loop  # where it has to be woken
        self.urgent = above is not None or bool(self.blocks)  # somebody cannot go on before this call has ended
        self.loops: dict[Any, int] = {}
        self.waits: set[_WaitGroup] = set()
        self.held = False
        self.line: _WaitQueue | None = None
        self.knot: _WaitGroup | None = None
        self.passed = 0
        self.turn: Future[None] | None = None

    def upwards(self) -> Iterator[Permit]:
        """This call and those above it that still hold their places; one that ended no longer waits for us."""
        place: Permit | None = self
        while place is not None:
            if place.held or place is self:
                yield place
            place = place.above

    def lean(self, loop: Any, is_blocked: Callable[[], bool]) -> bool:
        """Say that this call and those above it need `loop`, unless it is blocked: they must not need it then.

        Asked and said under the guard, under which those who wait look for circles.
        """
        with _guard:
            if is_blocked():
                return False
            self.need(loop, 1)
            return True

    def unlean(self, loop: Any) -> None:
        """Take it back."""
        with _guard:
            self.need(loop, -1)

    def need(self, loop: Any, change: int) -> None:
        """Count `loop` among those that this call and those above it need; under the guard."""
        if loop is not None:
            for place in self.upwards():
                count = place.loops.get(loop, 0) + change
                if count > 0:
                    place.loops[loop] = count
                else:
                    place.loops.pop(loop, None)


@final
class _Block:
    """A loop that stands still until the call that blocks it has ended."""

    __slots__ = ("lasts", "loop")

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.lasts = True


@contextmanager
def blocking(loop: Any) -> Iterator[None]:
    """While the current thread, which runs `loop`, waits for a call. Calls below know of it."""
    block = _Block(loop)
    token = _blocked.set((*_blocked.get(), block))
    try:
        yield
    finally:
        block.lasts = False  # tasks that were begun meanwhile keep their copy of the context
        _blocked.reset(token)


def place_above() -> Permit | None:
    """The place of the nearest call above that holds one."""
    place = _above.get()
    while place is not None and not place.held:
        place = place.above
    return place


@final
class _WaitQueue:
    """Calls that wait for the same limits, and can be woken in the same place."""

    __slots__ = ("home", "limits", "places", "urgent")

    def __init__(self, limits: tuple[Limit, ...], urgent: bool, home: Any) -> None:
        self.limits = limits
        self.urgent = urgent
        self.home = home
        self.places: OrderedDict[Permit, None] = OrderedDict()

    @property
    def first(self) -> Permit:
        """Who is served next."""
        return next(iter(self.places))


@final
class _WaitGroup:
    """Calls that wait for the same limits below the same call and block the same loops: all are stuck or none is."""

    __slots__ = ("above", "blocks", "count", "limits")

    def __init__(self, limits: tuple[Limit, ...], above: Permit | None, blocks: frozenset[Any]) -> None:
        self.limits = limits
        self.above = above
        self.blocks = blocks
        self.count = 0


@final
class ConcurrencyLimits:
    """The limits of one toolkit, and who waits for them."""

    def __init__(self) -> None:
        self._named: WeakValueDictionary[tuple[str, int], Limit] = WeakValueDictionary()
        self._lines: dict[tuple[tuple[Limit, ...], bool, Any], _WaitQueue] = {}
        self._knots: dict[tuple[tuple[Limit, ...], Permit | None, frozenset[Any]], _WaitGroup] = {}
        self._blockers: dict[Any, set[_WaitGroup]] = {}

    def named(self, label: str, capacity: int = 1) -> Limit:
        """The limit of that name, the same for everybody who asks."""
        with _guard:
            limit = self._named.get((label, capacity))
            if limit is None:
                limit = self._named[label, capacity] = Limit(label, capacity)
            return limit

    def take(self, limits: Iterable[Limit]) -> Permit | None:
        """Places in those limits that the calls above do not hold; None if there are none. Ours at once, or in turn.

        Raises `PegboardError` if that turn would never come.
        """
        above = place_above()
        missing = tuple(limits)
        if above is not None:
            held = {limit for place in above.upwards() for limit in place.limits}
            missing = tuple(limit for limit in missing if limit not in held)
        if not missing:
            return None
        place = Permit(missing, above)
        with _guard:
            if not self._lines and not any(limit.full for limit in missing):
                self._grant(place)
                return place
            self._queue(place)
            self._admit(missing)
            if not place.held:
                self._check(place)
                place.turn = new_future()
        return place

    def leave(self, place: Permit) -> None:
        """Give places back, or stop waiting for them."""
        with _guard:
            if place.line is not None:
                self._unqueue(place)
            if place.held:
                place.need(place.home, -1)
                place.held = False
                for limit in place.limits:
                    limit.holders.discard(place)
            # Where a loop was blocked, those who wait on it were passed over, whatever they wait for.
            if self._lines:
                self._admit(None if place.blocks else place.limits)

    @staticmethod
    def enter(place: Permit | None) -> None:
        """Calls that are made from here on, in this context, are below `place`."""
        _above.set(place)

    # Everything below is called under the guard.

    def _queue(self, place: Permit) -> None:
        waits = place.limits, place.urgent, place.home
        place.line = self._lines.get(waits) or self._lines.setdefault(waits, _WaitQueue(*waits))
        place.line.places[place] = None
        if place.urgent:
            self._tie(place)

    def _unqueue(self, place: Permit) -> None:
        line, knot = place.line, place.knot
        place.line = place.knot = None
        if line is not None:
            del line.places[place]
            if not line.places:
                del self._lines[line.limits, line.urgent, line.home]
        if knot is not None:
            knot.count -= 1
            if not knot.count:
                self._untie(knot)

    def _tie(self, place: Permit) -> None:
        waits = place.limits, place.above, place.blocks
        knot = self._knots.get(waits)
        if knot is None:
            knot = self._knots[waits] = _WaitGroup(*waits)
            for above in () if place.above is None else place.above.upwards():
                above.waits.add(knot)
            for loop in knot.blocks:
                self._blockers.setdefault(loop, set()).add(knot)
        knot.count += 1
        place.knot = knot

    def _untie(self, knot: _WaitGroup) -> None:
        del self._knots[knot.limits, knot.above, knot.blocks]
        above = knot.above
        while above is not None:
            above.waits.discard(knot)
            above = above.above
        for loop in knot.blocks:
            self._blockers[loop].discard(knot)
            if not self._blockers[loop]:
                del self._blockers[loop]

    def _grant(self, place: Permit) -> bool:
        """Give a call its places; False if it no longer waits."""
        if place.turn is not None and not place.turn.set_running_or_notify_cancel():
            return False
        place.held = True
        for limit in place.limits:
            limit.holders.add(place)
        place.need(place.home, 1)
        if place.turn is not None:
            place.turn.set_result(None)
        return True

    def _admit(self, freed: Iterable[Limit] | None) -> None:
        """Let in who can be, first come first served, of all who wait or of those who wait for a limit of `freed`."""
        touched = None if freed is None else frozenset(freed)
        lines = [line for line in self._lines.values() if touched is None or not touched.isdisjoint(line.limits)]
        # Who waits on a loop that stands still until another one has had its turn could not make use of it.
        heap = [(not line.urgent, line.first.number, line) for line in lines if line.home not in self._blockers]
        heapify(heap)
        refused: list[Permit] = []
        kept: set[Limit] = set()
        while heap:
            patient, _, line = heappop(heap)
            place = line.first
            if any(limit.full for limit in line.limits) or (patient and not kept.isdisjoint(line.limits)):
                refused.append(place)
                if patient and place.passed >= OVERTAKEN:
                    kept.update(line.limits)
                continue
            self._unqueue(place)
            if self._grant(place):
                _count_overtaken(refused, place)
            if line.places:
                heappush(heap, (patient, line.first.number, line))

    def _check(self, place: Permit) -> None:
        knot = place.knot
        if knot is None or knot.count > 1 or not self._never_ends(knot):
            return
        self._unqueue(place)
        wanted = ", ".join(limit.label for limit in place.limits)
        remedy = (
            "inside a running event loop use `await toolkit.call(...)`"
            if place.blocks
            else "let the outer tools take the same locks and belong to the same groups as those that they call"
        )
        raise PegboardError(f"this call would wait for {wanted} forever: who holds that waits for this call; {remedy}")

    def _never_ends(self, new: _WaitGroup) -> bool:
        """Whether a knot would wait for itself. Assumes that everybody is stuck, and strikes out whoever is not."""
        stuck = self._behind(new)
        while new in stuck:
            above = {place for knot in stuck if knot.above is not None for place in knot.above.upwards()}
            loops = {loop for knot in stuck for loop in knot.blocks}
            still = {knot for knot in stuck if any(_is_held_up(limit, above, loops) for limit in knot.limits)}
            if len(still) == len(stuck):
                return True
            stuck = still
        return False

    def _behind(self, new: _WaitGroup) -> set[_WaitGroup]:
        """Whom a knot waits for: itself too if there is a circle."""
        found: set[_WaitGroup] = set()
        following = [new]
        while following:
            for holder in {holder for limit in following.pop().limits for holder in limit.holders}:
                blockers = [self._blockers.get(loop, ()) for loop in holder.loops]
                for knot in holder.waits.union(*blockers) - found:
                    found.add(knot)
                    following.append(knot)
        return found


def _is_held_up(limit: Limit, above: set[Permit], loops: set[Any]) -> bool:
    """Whether no holder of a limit can end while the calls below `above` wait and the `loops` stand still."""
    held_up = sum(place in above or not loops.isdisjoint(place.loops) for place in limit.holders)
    return held_up >= limit.capacity


def _count_overtaken(refused: Iterable[Permit], place: Permit) -> None:
    for other in refused:
        if not set(place.limits).isdisjoint(other.limits):
            other.passed += 1
