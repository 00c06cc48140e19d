"""Histories: what the calls of one session have been, as far as limits and flow rules go by it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from pegboard_policy._limits import LimitedTools

__all__ = ["Histories", "History"]

MOST_NAMED: Final = 100_000
"""Sessions with an id that are remembered; of more, those that called something last."""


@final
class History:
    """What one session has called: `first` is the first tool of each kind, `counts` the calls that count for limits.

    `own` are the names and ids of calls that this process has counted, and `elsewhere` is what others have, by limits.
    It is no larger than limits and rules allow: no call counts beyond a limit.
    """

    def __init__(self, session: str | None = None) -> None:
        self.session = session
        self.first: dict[str, str] = {}
        self.counts: Counter[LimitedTools] = Counter()
        self.elsewhere: Counter[LimitedTools] = Counter()
        self.own: Counter[tuple[str, str]] = Counter()

    def count(self, limited: LimitedTools) -> int:
        """How many calls count for a limit."""
        return self.counts[limited] + self.elsewhere[limited]


@final
class Histories:
    """The histories of the sessions of one toolkit. Not safe for several threads at once."""

    def __init__(self) -> None:
        self._named: OrderedDict[str, History] = OrderedDict()
        self._unnamed: WeakKeyDictionary[Any, History] = WeakKeyDictionary()

    def of(self, session: Any) -> History:
        """That of a session: by its id, else by the widest session that it was made from.

        So a session that a tool makes for the calls of its caller counts as that one.
        """
        if session.id is None:
            return self._unnamed.setdefault(_widest(session), History())
        found = self._named.setdefault(session.id, History(session.id))
        self._named.move_to_end(session.id)
        if len(self._named) > MOST_NAMED:
            self._named.popitem(last=False)
        return found


def _widest(session: Any) -> Any:
    """What tells a session from others: the widest one below the toolkit that is not just a view of it."""
    *own, root = session.lineage()
    if len(own) > 1 and own[-1].is_view:
        own.pop()
    return own[-1] if own else root
