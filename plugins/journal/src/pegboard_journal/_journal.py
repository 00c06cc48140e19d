"""The journal as a program reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, Self, final

import attrs

from pegboard import PegboardError, Session, Toolkit
from pegboard_journal._entry import PRUNED, RUNNING, Entry, Row, chained
from pegboard_journal._settings import age
from pegboard_journal._store import CURRENT, Store
from pegboard_journal._urls import opened

if TYPE_CHECKING:
    from pegboard_journal._recorder import Recorder

__all__ = ["Flaw", "Journal", "ToolFigures"]

_FILTERS: Final = ("tool", "status", "session", "subject", "agent", "call_id", "parent")


@attrs.frozen
class Flaw:
    """What is wrong with the journal.

    Args:
        kind: `"changed"` for a row that was changed or inserted, `"missing"` for rows that are missing, `"head"` for an
            end that was cut.
        seq: Number of the row, or of the last row that is affected.
        message: The same as a sentence.
    """

    kind: Literal["changed", "missing", "head"]
    seq: int
    message: str


@attrs.frozen
class ToolFigures:
    """Figures of one tool.

    Args:
        tool: Name of the tool.
        calls: Number of calls.
        errors: Number of calls that ended as errors.
        statuses: Number of calls by status.
        median: Median duration in seconds.
        p95: 95th percentile of the durations in seconds.
        longest: Longest duration in seconds.
    """

    tool: str
    calls: int
    errors: int
    statuses: dict[str, int]
    median: float
    p95: float
    longest: float


@final
class Journal:
    """Reads a journal: `Journal.of(toolkit)`, or `Journal("sqlite:///calls.db")` for that of other programs.

    Each method raises `JournalError` if the journal cannot be read.

    Args:
        url: Address of the journal, as the setting `url` has it.
    """

    def __init__(self, url: str) -> None:
        self._store = opened(url)

    @classmethod
    def of(cls, toolkit: Toolkit | Session) -> Journal:
        """The journal of a toolkit. Raises `PegboardError` where it has none."""
        from pegboard.inspection import plugins_of

        for each in plugins_of(toolkit.toolkit).contributions("provide_middleware"):
            recorder: Recorder | None = getattr(each.value.around, "__self__", None)
            store = getattr(recorder, "store", None)
            if each.value.whole and isinstance(store, Store):
                return cls._with(store)
        raise PegboardError(
            'this toolkit has no journal; give it one: settings={"journal": {"url": "sqlite:///calls.db"}}'
        )

    @classmethod
    def _with(cls, store: Store) -> Journal:
        journal = cls.__new__(cls)
        journal._store = store
        return journal

    def calls(
        self,
        *,
        tool: str | None = None,
        status: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        agent: str | None = None,
        call_id: str | None = None,
        parent: str | None = None,
        since: datetime | timedelta | str | None = None,
    ) -> Iterator[Entry]:
        """Yield the calls that fit, in the order in which they ended; one that runs stands where it began.

        What is recorded meanwhile may be among them. None sets no condition.

        Args:
            tool: Name of the tool.
            status: Status of the result.
            session: Id of the session.
            subject: For whom the session acts.
            agent: Name of the agent.
            call_id: Id of the call.
            parent: Id of the call that made them.
            since: Moment (without a zone in local time), or how long ago: a `timedelta`, or text such as `"2d"`.
        """
        given = {"tool": tool, "status": status, "session": session, "subject": subject}
        given |= {"agent": agent, "call_id": call_id, "parent": parent}
        wanted = {name: str(value) for name, value in given.items() if value is not None}
        conditions = [f"this.{name} = ?" for name in wanted]
        values: list[Any] = list(wanted.values())
        if since is not None:
            conditions.append("this.started >= ?")
            values.append(_moment(since))
        where = " AND ".join([f"this.status <> '{PRUNED}'", CURRENT, *conditions])
        return (Entry.of(row) for row in self._store.every(where, values))

    def unfinished(self) -> list[Entry]:
        """The calls with an effect that were begun by a process that is gone: whether they ran is unknown."""
        store = self._store
        begun = store.every(f"this.status = '{RUNNING}' AND {CURRENT}")
        left = [row for row in begun if not store.is_alive(row.process or "0")]
        # Looked at again: a process may have written an outcome and ended in between.
        return [Entry.of(row) for row in left if not store.rows("follows = ?", row.seq, limit=1)]

    @property
    def head(self) -> str:
        """The hash of the last row, to be kept elsewhere: `verify(head=...)` finds a cut end. Empty without rows."""
        last = self._store.rows("1 = 1", order="seq DESC", limit=1)
        return last[0].hash if last else ""

    def verify(self, head: str | None = None) -> list[Flaw]:
        """What was changed, removed or inserted, as far as the chain of hashes shows it; nothing if all is whole.

        That the last rows were cut off shows only with a `head` that was kept elsewhere.

        Args:
            head: The `head` that was kept elsewhere. None leaves the end unchecked.
        """
        return list(_flaws(self._store, head))

    def stats(self, since: datetime | timedelta | str | None = None) -> list[ToolFigures]:
        """Figures of each tool, by name, of the calls that have ended.

        Args:
            since: Moment (without a zone in local time), or how long ago: a `timedelta`, or text such as `"2d"`. None
                counts all.
        """
        statuses: dict[str, Counter[str]] = {}
        seconds: dict[str, list[float]] = {}
        for entry in self.calls(since=since):
            if entry.status != RUNNING:
                statuses.setdefault(entry.tool, Counter())[entry.status] += 1
                seconds.setdefault(entry.tool, []).append(entry.duration or 0.0)
        return [_figures(tool, statuses[tool], sorted(seconds[tool])) for tool in sorted(statuses)]

    def prune(self, older_than: datetime | timedelta | str) -> int:
        """Remove the rows that are older, and leave an anchor for `verify`; how many were removed.

        Calls of which the outcome is unknown go too, and so do the answers of calls that run once.

        Args:
            older_than: Moment (without a zone in local time), or an age: a `timedelta`, or text such as `"90d"`.
        """
        return self._store.prune(_moment(older_than))

    def close(self) -> None:
        """Close the connection; the next use makes another one."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({self._store.place!r})"


def _moment(when: datetime | timedelta | str) -> float:
    """Seconds since 1970 of a moment, or of how long ago."""
    if isinstance(when, str):
        when = age(when) if when.endswith(("d", "h")) else datetime.fromisoformat(when)
    return ((datetime.now(UTC) - when) if isinstance(when, timedelta) else when).timestamp()


def _flaws(store: Store, head: str | None) -> Iterator[Flaw]:
    anchors = {row.turn: row.fingerprint for row in store.every(f"status = '{PRUNED}'")}
    last, before = 0, ""
    found = head in (None, "") or head in anchors.values()
    for row in store.every():
        known: str | None = before
        if row.seq != last + 1:
            known = anchors.get(row.seq - 1) if last == 0 else None
            if known is None:
                removed = f"row {last + 1} is" if row.seq == last + 2 else f"rows {last + 1} to {row.seq - 1} are"
                yield Flaw("missing", row.seq - 1, f"{removed} missing")
        if known is not None and chained(known, row[:-1]) != row.hash:
            yield Flaw("changed", row.seq, f"row {row.seq} was changed or inserted: {_named(row)}")
        last, before = row.seq, row.hash
        found = found or row.hash == head
    if not found:
        yield Flaw("head", last, f"the head is not in the journal: rows after {last} are missing, or it was made anew")


def _named(row: Row) -> str:
    return f"the {row.status} call {row.call_id} of {row.tool}"


def _figures(tool: str, statuses: Counter[str], seconds: list[float]) -> ToolFigures:
    errors = sum(number for status, number in statuses.items() if status not in ("success", "suspended"))

    def quantile(share: float) -> float:
        return seconds[min(len(seconds) - 1, int(share * len(seconds)))]

    calls = len(seconds)
    return ToolFigures(tool, calls, errors, dict(sorted(statuses.items())), quantile(0.5), quantile(0.95), seconds[-1])
