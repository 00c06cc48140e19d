"""Named locks for tools that must not overlap, usable from threads and event loops alike."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, final

from pegboard._effects import current_driver

__all__ = ["Locks", "Place"]

# A tool that calls another one keeps its locks: the inner call runs in a copy of the outer one's context.
_held: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar("pegboard_held_locks", default=frozenset())


@final
class Place:
    """A place in the queue of a lock; the first one holds it. `turn` is done once it is ours, None if it was free."""

    __slots__ = ("behind", "driver", "turn")

    def __init__(self, ahead: Iterable[Place]) -> None:
        self.driver: Any = current_driver()
        self.behind = frozenset(place.driver for place in ahead)
        self.turn: Future[None] | None = Future() if self.behind else None

    def grant(self) -> bool:
        """Let it be ours; False if nobody waits any more."""
        if self.turn is not None:
            if not self.turn.set_running_or_notify_cancel():
                return False
            self.turn.set_result(None)
        return True


@final
class Locks:
    """First come, first served. Locks are taken in sorted order, so that two calls cannot wait for each other."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queues: dict[str, deque[Place]] = {}

    def missing(self, names: Iterable[str]) -> list[str]:
        """The locks that the current call does not hold yet, in the order in which to take them."""
        return sorted(set(names) - _held.get())

    def take(self, name: str) -> Place:
        """Queue for a lock, which may be ours at once."""
        with self._guard:
            queue = self._queues.setdefault(name, deque())
            place = Place(queue)
            queue.append(place)
            return place

    def leave(self, name: str, place: Place) -> None:
        """Give a lock back, or leave its queue before our turn has come."""
        with self._guard:
            queue = self._queues.get(name, deque())
            if place not in queue:
                return  # cancelled while it waited, and passed over
            held = queue[0] is place
            queue.remove(place)
            while held and queue and not queue[0].grant():
                queue.popleft()
            if not queue:
                del self._queues[name]

    @staticmethod
    def hold(names: Iterable[str]) -> contextvars.Token[frozenset[str]]:
        """Remember in the current context that these locks are held."""
        return _held.set(_held.get() | frozenset(names))

    @staticmethod
    def release(token: contextvars.Token[frozenset[str]]) -> None:
        """Forget it again."""
        _held.reset(token)
