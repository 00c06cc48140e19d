"""Statistics: how often each tool ran, how it ended and how long it took."""

from __future__ import annotations

from typing import Any, final

from pegboard._result import Status

__all__ = ["Stats", "ToolStats"]


@final
class ToolStats:
    """Counts of one tool. `histogram[n]` counts calls that took less than 2**n microseconds and at least half of it.

    Plain additions: each is one bytecode sequence that CPython does not interrupt, and a lock would cost more than the
    rest of the bookkeeping.
    """

    __slots__ = ("by_status", "calls", "histogram", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.by_status: dict[Status, int] = {}
        self.histogram = [0] * 48

    def succeeded(self, seconds: float) -> None:
        """Count a call that returned: what the straight path does, inlined."""
        self.calls += 1
        self.seconds += seconds
        self.histogram[min(int(seconds * 1e6).bit_length(), 47)] += 1

    def ended(self, status: Status, seconds: float) -> None:
        """Count a call however it ended."""
        self.succeeded(seconds)
        if status is not Status.SUCCESS:
            self.by_status[status] = self.by_status.get(status, 0) + 1

    def to_dict(self) -> dict[str, Any]:
        """`calls`, `seconds`, `statuses` and the non-empty `histogram` buckets (upper bound in microseconds: count)."""
        failed = sum(self.by_status.values())
        statuses = {Status.SUCCESS.value: self.calls - failed, **{key.value: n for key, n in self.by_status.items()}}
        return {
            "calls": self.calls,
            "seconds": self.seconds,
            "statuses": {name: count for name, count in sorted(statuses.items()) if count},
            "histogram": {2**n: count for n, count in enumerate(self.histogram) if count},
        }


@final
class Stats:
    """The statistics of a toolkit."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolStats] = {}
        self.running = 0
        self.waiting = 0

    def of(self, tool: str) -> ToolStats:
        """The counts of a tool."""
        return self._tools.get(tool) or self._tools.setdefault(tool, ToolStats())

    def to_dict(self, *, abandoned_threads: int = 0) -> dict[str, Any]:
        """Everything as JSON-able data."""
        return {
            "running": self.running,
            "waiting": self.waiting,
            "abandoned_threads": abandoned_threads,
            "tools": {name: stats.to_dict() for name, stats in sorted(self._tools.items()) if stats.calls},
        }
