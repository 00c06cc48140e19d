"""Measuring on a machine that others use too: what disturbs a measurement only ever makes it worse."""

import time
from collections.abc import Callable

__all__ = ["least", "paces", "seconds"]


def least(measure: Callable[[], float], *, enough: float, tries: int = 10) -> float:
    """The least of some measurements, the first that is below `enough` being good enough."""
    found = measure()
    for _ in range(tries - 1):
        if found < enough:
            break
        found = min(found, measure())
    return found


def paces(
    work: Callable[[], object], *, most: float, clock: Callable[[], float] = time.thread_time, tries: int = 5
) -> float:
    """How many times as long as a fixed piece of plain Python some work takes: the least of some tries.

    The piece, which takes about a millisecond, runs before it and after it, so that a machine that is slow for the work
    is slow for the piece too. It is for what must not freeze: `most` may be many times what the work takes.
    """

    def ratio() -> float:
        before = seconds(_piece, clock)
        took = seconds(work, clock)
        return 2 * took / (before + seconds(_piece, clock))

    return least(ratio, enough=most, tries=tries)


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long some work takes, by a clock."""
    started = clock()
    work()
    return clock() - started


def _piece() -> int:
    found: dict[int, int] = {}
    for number in range(15_000):
        found[number % 100] = number
    return len(found)
