"""Named locks for tools that must not overlap, usable from threads and event loops alike."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import final

__all__ = ["Locks"]

# A tool that calls another one keeps its locks: the inner call runs in a copy of the outer one's context.
_held: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar("pegboard_held_locks", default=frozenset())


@final
class Locks:
    """First come, first served. Locks are taken in sorted order, so that two calls cannot wait for each other."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: dict[str, deque[Future[None]]] = {}

    def missing(self, names: Iterable[str]) -> list[str]:
        """The locks that the current call does not hold yet, in the order in which to take them."""
        return sorted(set(names) - _held.get())

    def take(self, name: str) -> Future[None] | None:
        """Take a lock: None if it was free, else a future that is done once it is ours."""
        with self._guard:
            queue = self._waiting.get(name)
            if queue is None:
                self._waiting[name] = deque()
                return None
            turn: Future[None] = Future()
            queue.append(turn)
            return turn

    def leave(self, name: str, turn: Future[None] | None = None) -> None:
        """Give a lock back, or leave its queue when `turn` has not come yet."""
        with self._guard:
            queue = self._waiting[name]
            if turn is not None and not turn.done() and turn in queue:
                queue.remove(turn)
                return
            while queue:
                following = queue.popleft()
                if following.set_running_or_notify_cancel():
                    following.set_result(None)
                    return
            del self._waiting[name]

    @staticmethod
    def hold(names: Iterable[str]) -> contextvars.Token[frozenset[str]]:
        """Remember in the current context that these locks are held."""
        return _held.set(_held.get() | frozenset(names))

    @staticmethod
    def release(token: contextvars.Token[frozenset[str]]) -> None:
        """Forget it again."""
        _held.reset(token)
