"""Limits: how many calls run at once, in all, in a group or under a lock, which is a limit of one.

They count calls in threads and on event loops alike. Why no calls wait for each other in a circle:

1. A call takes one permit for all its limits, when each of them has room. While it waits it holds none, so nobody waits
   for it: calls from outside cannot close a circle, in whatever order their limits are named.
2. A call that a running tool makes waits only for the limits that the calls above it do not hold, and they keep theirs.
   Calls from outside do not come before it: those above it end, and give their permits back, only after it.
3. That leaves a circle which the tools themselves make: one holds `a` and calls what needs `b`, another holds `b` and
   calls what needs `a`. A permit may also be held by what runs on an event loop that a waiting `call_sync` blocks. Only
   calls with a call above them, or that block a loop, can close such a circle. They look for one before they wait
   (`_never_ends`), and the one that would close it gives way with an error.

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

from pegboard._base.effects import StaleError, after_fork, guarded, new_future, running_loop
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
# The loops that stand still until a call that blocks them has ended: each in a set, which is empty then.
_blocked: contextvars.ContextVar[tuple[set[Any], ...]] = contextvars.ContextVar("pegboard_blocked", default=())

# Calls that wait for the same limits, are alike urgent, and can be woken on the same loop.
_WaitQueue: TypeAlias = "tuple[tuple[Limit, ...], bool, Any]"
# Calls that wait for the same limits below the same call and block the same loops: all are stuck or none is.
_WaitGroup: TypeAlias = "tuple[tuple[Limit, ...], Permit | None, frozenset[Any]]"


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
    nearest call above that has one,
    `loops` are the event loops that have to run for this call to end, `waits` the calls below that have to have their
    turn.
    """

    held: bool = False
    over: bool = False
    inside: int = 0
    queue: _WaitQueue | None = None
    group: _WaitGroup | None = None
    passed = 0
    turn: Future[None] | None = None

    def __init__(self, limits: tuple[Limit, ...], above: Permit | None) -> None:
        loop = running_loop()
        self.number = next(_numbers)
        self.thread = threading.get_ident()  # that drives the call
        self.limits = limits
        self.above = above
        blocked = _blocked.get()
        self.blocks = frozenset().union(*blocked) if blocked else frozenset()
        self.home = None if loop in self.blocks else loop  # where it has to be woken
        self.urgent = above is not None or bool(self.blocks)  # somebody cannot go on before this call has ended
        self.loops: dict[Any, int] = {}
        self.waits: set[_WaitGroup] = set()

    def upwards(self) -> Iterator[Permit]:
        """This call and those above it that still hold one; one that ended no longer waits for us."""
        permit: Permit | None = self
        while permit is not None:
            if permit.held or permit is self:
                yield permit
            permit = permit.above

    def require(self, loop: Any, is_blocked: Callable[[], bool]) -> bool:
        """Say that this call and those above it need `loop`, unless it is blocked: they must not need it then.

        Asked and said under the guard, under which those who wait look for circles.
        """
        with _guard:
            if is_blocked():
                return False
            self.count(loop, 1)
            return True

    def release(self, loop: Any) -> None:
        """Take it back."""
        with _guard:
            self.count(loop, -1)

    def count(self, loop: Any, change: int) -> None:
        """Count `loop` among those that this call and those above it need; under the guard."""
        if loop is not None:
            for permit in (self,) if self.above is None else self.upwards():
                count = permit.loops.get(loop, 0) + change
                if count > 0:
                    permit.loops[loop] = count
                else:
                    permit.loops.pop(loop, None)


@contextmanager
def blocking(loop: Any) -> Iterator[None]:
    """While the current thread, which runs `loop`, waits for a call. Calls below know of it."""
    blocked = {loop}
    token = _blocked.set((*_blocked.get(), blocked))
    try:
        yield
    finally:
        blocked.clear()  # tasks that were begun meanwhile keep their copy of the context
        _blocked.reset(token)


def permit_above() -> Permit | None:
    """The permit of the nearest call above that holds one."""
    permit = _above.get()
    while permit is not None and not permit.held:
        permit = permit.above
    return permit


@final
class ConcurrencyLimits:
    """The limits of one toolkit, and who waits for them."""

    def __init__(self) -> None:
        self._named: WeakValueDictionary[tuple[str, int], Limit] = WeakValueDictionary()
        self._queues: dict[_WaitQueue, OrderedDict[Permit, None]] = {}
        self._groups: dict[_WaitGroup, int] = {}  # how many wait in each
        self._blockers: dict[Any, set[_WaitGroup]] = {}
        after_fork(self, ConcurrencyLimits._forget_parent)

    def _forget_parent(self) -> None:
        # In a child of a fork there are no calls but those that the fork was made in.
        above = permit_above()
        going_on = set() if above is None else set(above.upwards())
        for limit in list(self._named.values()):
            limit.holders &= going_on
        self._queues, self._groups, self._blockers = {}, {}, {}

    def named(self, label: str, capacity: int = 1) -> Limit:
        """The limit of that name, the same for everybody who asks."""
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
            if permit.queue is not None:
                self._dequeue(permit)
            if permit.held and permit.above is not None:  # its own count ends with it
                permit.count(permit.home, -1)
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
        # Where a loop was blocked, those who wait on it were passed over, whatever they wait for.
        if self._queues:
            self._admit(None if permit.blocks else permit.limits)

    def _enqueue(self, permit: Permit) -> None:
        permit.queue = permit.limits, permit.urgent, permit.home
        self._queues.setdefault(permit.queue, OrderedDict())[permit] = None
        if permit.urgent:
            self._join(permit, (permit.limits, permit.above, permit.blocks))

    def _dequeue(self, permit: Permit) -> None:
        queue, group = permit.queue, permit.group
        permit.queue = permit.group = None
        if queue is not None:
            del self._queues[queue][permit]
            if not self._queues[queue]:
                del self._queues[queue]
        if group is not None:
            self._groups[group] -= 1
            if not self._groups[group]:
                self._dissolve(group)

    def _join(self, permit: Permit, group: _WaitGroup) -> None:
        permit.group = group
        if group not in self._groups:
            for above in () if permit.above is None else permit.above.upwards():
                above.waits.add(group)
            for loop in permit.blocks:
                self._blockers.setdefault(loop, set()).add(group)
        self._groups[group] = self._groups.get(group, 0) + 1

    def _dissolve(self, group: _WaitGroup) -> None:
        del self._groups[group]
        _, above, blocks = group
        while above is not None:
            above.waits.discard(group)
            above = above.above
        for loop in blocks:
            self._blockers[loop].discard(group)
            if not self._blockers[loop]:
                del self._blockers[loop]

    def _grant(self, permit: Permit) -> bool:
        """Give a call its permit; False if it no longer waits."""
        if permit.turn is not None and not permit.turn.set_running_or_notify_cancel():
            return False
        permit.held = True
        for limit in permit.limits:
            limit.holders.add(permit)
        permit.count(permit.home, 1)
        if permit.turn is not None:
            permit.turn.set_result(None)
        return True

    def _admit(self, freed: Iterable[Limit] | None) -> None:
        """Let in who can be, first come first served, of all who wait or of those who wait for a limit of `freed`."""
        touched = None if freed is None else frozenset(freed)
        # Who waits on a loop that stands still until another one has had its turn could not make use of it.
        heap = [
            (not urgent, next(iter(permits)).number, permits)
            for (limits, urgent, home), permits in self._queues.items()
            if home not in self._blockers and (touched is None or not touched.isdisjoint(limits))
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
        group = permit.group
        if group is None or self._groups[group] > 1 or not self._never_ends(group):
            return
        self._dequeue(permit)
        wanted = ", ".join(limit.label for limit in permit.limits)
        remedy = "let the outer tools take the same locks and belong to the same groups as those that they call"
        if permit.blocks:
            remedy = "inside a running event loop use `await toolkit.call(...)`"
        # The model reads this: groups and locks are the program's affair.
        message = "this call would wait forever: what it waits for is held by a call that waits for this one"
        raise PegboardError(message, {"waits_for": wanted, "remedy": remedy})

    def _never_ends(self, new: _WaitGroup) -> bool:
        """Whether a group would wait for itself. Assumes that everybody is stuck, and strikes out whoever is not."""
        stuck = self._behind(new)
        while new in stuck:
            above = {permit for _, below, _ in stuck if below is not None for permit in below.upwards()}
            loops = {loop for _, _, blocks in stuck for loop in blocks}
            still = {group for group in stuck if any(_is_held_up(limit, above, loops) for limit in group[0])}
            if len(still) == len(stuck):
                return True
            stuck = still
        return False

    def _behind(self, new: _WaitGroup) -> set[_WaitGroup]:
        """Whom a group waits for: itself too if there is a circle."""
        found: set[_WaitGroup] = set()
        following = [new]
        while following:
            for holder in {holder for limit in following.pop()[0] for holder in limit.holders}:
                blockers = [self._blockers.get(loop, ()) for loop in holder.loops]
                for group in holder.waits.union(*blockers) - found:
                    found.add(group)
                    following.append(group)
        return found


def _is_held_up(limit: Limit, above: set[Permit], loops: set[Any]) -> bool:
    """Whether no holder of a limit can end while the calls below `above` wait and the `loops` stand still."""
    return sum(permit in above or not loops.isdisjoint(permit.loops) for permit in limit.holders) >= limit.capacity
