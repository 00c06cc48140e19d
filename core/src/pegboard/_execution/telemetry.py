"""Telemetry: how often each tool ran, how it ended and how long it took; and one line in the log for each call."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

from pegboard._base.redaction import Redaction
from pegboard._model.result import SUCCESS, Status, ToolResult
from pegboard._results.factory import shortened, written

if TYPE_CHECKING:
    import logging


DEBUG: Final = 10  # as in `logging`, which a call need not load
INFO: Final = 20
_MAX_NAME = 200
_MAX_MESSAGE = 2_000


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

    def ended(self, status: Status, seconds: float) -> None:
        """Count a call however it ended; the straight road does so itself for most.

        One that never ran, a denied one for instance, took 0 seconds and is not in the histogram.
        """
        self.calls += 1
        if status is not SUCCESS:
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

    def to_dict(self, abandoned_threads: int = 0, abandoned_tasks: int = 0, queued: int = 0) -> dict[str, Any]:
        """Everything as JSON-able data. `queued` calls wait for a worker thread, which no tool's counts can tell."""
        tools = sorted(self.items())
        waiting = sum(stats.waiting for _, stats in tools) + queued
        return {
            "running": max(0, sum(stats.open for _, stats in tools) - waiting),
            "waiting": waiting,
            "abandoned_threads": abandoned_threads,
            "abandoned_tasks": abandoned_tasks,
            "tools": {name: stats.to_dict() for name, stats in tools if stats.calls},
        }


@cache
def logger() -> logging.Logger:
    """The logger `pegboard`."""
    import logging

    found = logging.getLogger("pegboard")
    found.addHandler(logging.NullHandler())
    return found


def log_call(result: ToolResult, redact: Redaction | None = None) -> None:
    """Log a call that ended: DEBUG for one without error, INFO with the message and the traceback for any other.

    The record has `tool`, `call_id`, `status`, `duration` (seconds) and `attempts` as attributes, for programs that
    keep structured logs. Neither arguments nor returned values are logged.
    """
    level = DEBUG if result._fault is None else INFO  # not `error`, which is made when it is asked for
    # While `logging` is not loaded, there is no handler.
    log = logger() if "logging" in sys.modules else None
    if log is None or not log.isEnabledFor(level):
        return
    line, details = "%s %s: %s in %.6f s", [_one_line(result.name, _MAX_NAME), _one_line(result.call_id, _MAX_NAME)]
    facts = {
        "tool": result.name,
        "call_id": result.call_id,
        "status": result.status.value,
        "duration": result.duration,
        "attempts": result.attempts,
    }
    arguments = (*details, result.status.value, result.duration)
    if result.error is not None:
        line, arguments = f"{line}: %s", (*arguments, _one_line(result.error.message, _MAX_MESSAGE))
    record = log.makeRecord(log.name, level, "(pegboard)", 0, line, arguments, None, "log_call", facts)
    if result.error is not None and result.error.kind == "exception" and result.error.exception is not None:
        # Written here, not by the formatter: there secrets are not known, and a broken exception would break the log.
        record.exc_text = written(result.error.exception, redact)
    log.handle(record)


def _one_line(text: str, limit: int) -> str:
    """Ids and names come from models: a line break in one must not begin a line of its own in the log."""
    text = shortened(text, limit)
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
