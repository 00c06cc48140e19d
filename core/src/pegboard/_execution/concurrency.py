"""Limits: how many calls run at once, in all, in a group or under a lock, which is a limit of one.

They count calls in threads and on event loops alike. Why no calls wait for each other in a circle:

1. A call takes one permit for all its limits, when each of them has room. While it waits it holds none, and no call
   waits for it: calls from outside cannot close a circle, in whatever order their limits are named.
2. A call that a running tool makes waits only for the limits that the calls above it do not hold, and they keep theirs.
   Calls from outside do not come before it: those above it end, and give their permits back, only after it.
3. That leaves a circle which the tools themselves make: one holds `a` and calls what needs `b`, another holds `b` and
   calls what needs `a`. Only calls with a call above them can close it. They look for one before they wait
   (`_never_ends`), and the one that would close it gives way with an error.
4. A call that keeps an event loop from going on (`call_sync` inside it) never waits, nor do the calls below it: what
   holds the permit may need that loop. It ends as an error.

First come, first served, but a call that has to wait for one limit does not keep others from using another one. It is
overtaken in this way `OVERTAKEN` times, then room is kept for it.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, final
from weakref import WeakValueDictionary

from pegboard._base.effects import StaleError, after_fork, guarded, new_future
from pegboard._base.errors import PegboardError

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

OVERTAKEN: Final = 100

_numbers = itertools.count()
# One for all toolkits: the tool of one may call those of another.
_guard = threading.Lock()
guarded(_guard)
_above: contextvars.ContextVar[Permit | None] = contextvars.ContextVar("pegboard_permit", default=None)
# The calls around this one that keep a loop from going on: each is a list, and empty once that call has ended.
_standstills: contextvars.ContextVar[tuple[list[Any], ...]] = contextvars.ContextVar("pegboard_standstills", default=())

# Calls that wait for the same limits below the same call: all are stuck or none is.
_Waiting: TypeAlias = "tuple[tuple[Limit, ...], Permit | None]"


@final
class Limit:
    """At most `capacity` calls hold it at a time."""

    def __init__(self, label: str, capacity: int) -> None:
        self.label = label
        self.capacity = capacity
        self.holders: set[Permit] = set()


@final
class Permit:
    """What one call holds, or waits for: to run under all its `limits`.

    `turn` is done once it is granted, None if that was at once. `inside` are the threads in which its function is: one
    that the call has abandoned keeps the permit, which is `over` then, until it comes back. `above` is that of the
    nearest call above that has one, `waits` are the calls below that have to have their turn.
    """

    held: bool = False
    over: bool = False
    inside: int = 0
    passed = 0
    turn: Future[None] | None = None

    def __init__(self, limits: tuple[Limit, ...], above: Permit | None) -> None:
        self.number = next(_numbers)
        self.thread = threading.get_ident()  # that drives the call
        self.limits = limits
        self.above = above
        self.key: _Waiting = limits, above
        self.waits: set[_Waiting] = set()

    def upwards(self) -> Iterator[Permit]:
        """This call and those above it that still hold one; one that ended no longer waits for us."""
        permit: Permit | None = self
        while permit is not None:
            if permit.held or permit is self:
                yield permit
            permit = permit.above


@contextmanager
def standing_still(loop: Any) -> Iterator[None]:
    """While the current thread, which runs `loop`, waits for a call: no call below waits for a limit."""
    standstill = [loop]
    token = _standstills.set((*_standstills.get(), standstill))
    try:
        yield
    finally:
        standstill.clear()  # tasks that were begun meanwhile keep their copy of the context
        _standstills.reset(token)


def permit_above() -> Permit | None:
    """The permit of the nearest call above that holds one."""
    above = _above.get()
    return None if above is None else next((permit for permit in above.upwards() if permit.held), None)


@final
class ConcurrencyLimits:
    """The limits of one toolkit, and who waits for them."""

    def __init__(self) -> None:
        self._named: WeakValueDictionary[tuple[str, int], Limit] = WeakValueDictionary()
        self._queues: dict[_Waiting, OrderedDict[Permit, None]] = {}
        after_fork(self, ConcurrencyLimits._forget_parent)

    def _forget_parent(self) -> None:
        # In a child of a fork there are no calls but those that the fork was made in.
        above = permit_above()
        going_on = set() if above is None else set(above.upwards())
        for limit in list(self._named.values()):
            limit.holders &= going_on
        self._queues = {}

    def named(self, label: str, capacity: int = 1) -> Limit:
        """The limit of that name, the same whenever it is asked for."""
        with _guard:
            limit = self._named.get((label, capacity))
            if limit is None:
                limit = self._named[label, capacity] = Limit(label, capacity)
            return limit

    def take(self, limits: Iterable[Limit]) -> Permit | None:
        """A permit for those limits that the calls above do not hold, at once or in turn; None if there are none left.

        Raises `PegboardError` if that turn would never come.
        """
        above = permit_above()
        missing = tuple(limits)
        if above is not None:
            held = {limit for permit in above.upwards() for limit in permit.limits}
            missing = tuple(limit for limit in missing if limit not in held)
        if not missing:
            return None
        permit = Permit(missing, above)
        with _guard:
            if not self._queues:
                for limit in missing:
                    if len(limit.holders) >= limit.capacity:
                        break
                else:
                    self._grant(permit)
                    return permit
            self._enqueue(permit)
            self._admit(missing)
            if not permit.held:
                self._check(permit)
                permit.turn = new_future()
        return permit

    def leave(self, permit: Permit) -> None:
        """Give a permit back, or stop waiting for it."""
        with _guard:
            if not permit.held:
                self._dequeue(permit)
            permit.over = True
            self._free(permit)

    def run(self, permit: Permit, job: Callable[[], T]) -> T:
        """Run a job whose thread may outlive its call. Raises `StaleError` if that call is over before it begins."""
        if threading.get_ident() == permit.thread:
            return job()  # in the caller's own thread, which the call does not leave before
        with _guard:
            if permit.over:
                raise StaleError
            permit.inside += 1
        try:
            return job()
        finally:
            with _guard:
                permit.inside -= 1
                self._free(permit)

    @staticmethod
    def waits_for_abandoned(permit: Permit) -> bool:
        """Whether what a call waits for is held by an abandoned thread."""
        with _guard:
            return any(holder.over for limit in permit.limits for holder in limit.holders)

    @staticmethod
    def enter(permit: Permit | None) -> None:
        """Calls that are made from here on, in this context, are below `permit`."""
        _above.set(permit)

    # Everything below is called under the guard.

    def _free(self, permit: Permit) -> None:
        if permit.inside or not permit.over:
            return
        permit.held = False
        for limit in permit.limits:
            limit.holders.discard(permit)
        if self._queues:
            self._admit(permit.limits)

    def _enqueue(self, permit: Permit) -> None:
        queue = self._queues.get(permit.key)
        if queue is None:
            queue = self._queues[permit.key] = OrderedDict()
            for above in () if permit.above is None else permit.above.upwards():
                above.waits.add(permit.key)
        queue[permit] = None

    def _dequeue(self, permit: Permit) -> None:
        queue = self._queues.get(permit.key)
        if queue is not None and queue.pop(permit, permit) is None and not queue:
            del self._queues[permit.key]
            above = permit.above
            while above is not None:
                above.waits.discard(permit.key)
                above = above.above

    def _grant(self, permit: Permit) -> bool:
        """Give a call its permit; False if it no longer waits."""
        if permit.turn is not None and not permit.turn.set_running_or_notify_cancel():
            return False
        permit.held = True
        for limit in permit.limits:
            limit.holders.add(permit)
        if permit.turn is not None:
            permit.turn.set_result(None)
        return True

    def _admit(self, freed: Iterable[Limit]) -> None:
        """Let in the calls that can be, first come first served, of those that wait for a limit of `freed`."""
        touched = frozenset(freed)
        heap = [
            (above is None, next(iter(permits)).number, permits)
            for (limits, above), permits in self._queues.items()
            if not touched.isdisjoint(limits)
        ]
        heapify(heap)
        refused: list[Permit] = []
        kept: set[Limit] = set()
        while heap:
            patient, _, permits = heappop(heap)
            permit = next(iter(permits))
            if any(len(limit.holders) >= limit.capacity for limit in permit.limits) or (
                patient and not kept.isdisjoint(permit.limits)
            ):
                refused.append(permit)
                if patient and permit.passed >= OVERTAKEN:
                    kept.update(permit.limits)
                continue
            self._dequeue(permit)
            if self._grant(permit):
                for other in refused:
                    other.passed += not set(permit.limits).isdisjoint(other.limits)
            if permits:
                heappush(heap, (patient, next(iter(permits)).number, permits))

    def _check(self, permit: Permit) -> None:
        """Raise `PegboardError` for a call that must not wait, or would wait forever."""
        # The model reads this: groups and locks are the program's affair.
        if any(_standstills.get()):
            message = "this call cannot wait here, and what it needs is in use"
            remedy = "inside a running event loop use `await toolkit.call(...)`"
        elif permit.above is not None and len(self._queues[permit.key]) == 1 and self._never_ends(permit.key):
            message = "this call would wait forever: what it waits for is held by a call that waits for this one"
            remedy = "let the outer tools take the same locks and belong to the same groups as those that they call"
        else:
            return
        self._dequeue(permit)
        wanted = ", ".join(limit.label for limit in permit.limits)
        raise PegboardError(message, {"waits_for": wanted, "remedy": remedy})

    def _never_ends(self, new: _Waiting) -> bool:
        """Whether calls would wait for themselves. Assumes that all are stuck, and strikes out those that are not."""
        stuck = self._behind(new)
        while new in stuck:
            above = {permit for _, below in stuck if below is not None for permit in below.upwards()}
            still = {key for key in stuck if any(_is_held_up(limit, above) for limit in key[0])}
            if len(still) == len(stuck):
                return True
            stuck = still
        return False

    def _behind(self, new: _Waiting) -> set[_Waiting]:
        """What calls wait for: themselves too if there is a circle."""
        found: set[_Waiting] = set()
        following = [new]
        while following:
            for holder in {holder for limit in following.pop()[0] for holder in limit.holders}:
                following += holder.waits - found
                found |= holder.waits
        return found


def _is_held_up(limit: Limit, above: set[Permit]) -> bool:
    """Whether no holder of a limit can end while the calls below `above` wait."""
    return len(limit.holders & above) >= limit.capacity
