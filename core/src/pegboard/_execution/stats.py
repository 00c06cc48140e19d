"""Statistics: how often each tool ran, how it ended and how long it took."""

from __future__ import annotations

from typing import Any, Final, final

from pegboard._model.result import Status

__all__ = ["Stats", "ToolStats"]

_SUCCESS: Final = Status.SUCCESS  # as an attribute of an enum's class it takes three times as long to look up


@final
class ToolStats:
    """Counts of one tool. `histogram[n]` counts calls that took less than 2**n microseconds and at least half of it.

    `open` calls have begun and not yet ended; `waiting` ones of them have nothing running: they wait for approval or
    for their next attempt.

    Plain additions, with no call in between: CPython interrupts no such sequence, and a lock would cost more than the
    rest of the bookkeeping.
    """

    __slots__ = ("by_status", "calls", "histogram", "open", "seconds", "waiting")

    def __init__(self) -> None:
        self.calls = 0
        self.open = 0
        self.waiting = 0
        self.seconds = 0.0
        self.by_status: dict[Status, int] = dict.fromkeys(Status, 0)  # successes are those that are left over
        self.histogram = [0] * 48

    def waits(self) -> ToolStats:
        """While a call has nothing running: to be used in a `with` statement."""
        return self

    def __enter__(self) -> None:
        self.waiting += 1

    def __exit__(self, *_: object) -> None:
        self.waiting -= 1

    def ended(self, status: Status, seconds: float) -> None:
        """Count a call however it ended; the straight path does so itself for most.

        One that never ran, a denied one for instance, took 0 seconds and is not in the histogram.
        """
        self.calls += 1
        if status is not _SUCCESS:
            self.by_status[status] += 1
        if seconds:
            self.seconds += seconds
            self.histogram[int(seconds * 1e6).bit_length()] += 1

    def resumed(self) -> None:
        """A suspended call goes on: it will end a second time, and is still one call."""
        self.calls -= 1
        self.by_status[Status.SUSPENDED] -= 1

    def to_dict(self) -> dict[str, Any]:
        """`calls`, `seconds`, `statuses` and the non-empty `histogram` buckets (upper bound in microseconds: count)."""
        failed = sum(self.by_status.values())
        statuses = {key.value: n for key, n in self.by_status.items()} | {Status.SUCCESS.value: self.calls - failed}
        return {
            "calls": self.calls,
            "seconds": self.seconds,
            "statuses": {name: count for name, count in sorted(statuses.items()) if count},
            "histogram": {2**n: count for n, count in enumerate(self.histogram) if count},
        }


@final
class Stats(dict[str, ToolStats]):
    """The statistics of a toolkit, by tool."""

    def of(self, tool: str) -> ToolStats:
        """The counts of a tool."""
        return self.get(tool) or self.setdefault(tool, ToolStats())

    def to_dict(self, *, abandoned_threads: int = 0, queued: int = 0) -> dict[str, Any]:
        """Everything as JSON-able data. `queued` calls wait for a worker thread, which no tool's counts can tell."""
        tools = sorted(self.items())
        waiting = sum(stats.waiting for _, stats in tools) + queued
        return {
            "running": max(0, sum(stats.open for _, stats in tools) - waiting),
            "waiting": waiting,
            "abandoned_threads": abandoned_threads,
            "tools": {name: stats.to_dict() for name, stats in tools if stats.calls},
        }
