"""Measuring: many short rounds of floor and subject in turn, medians, and how far the rounds lie apart.

Work that never waits is measured in processor time of the whole process, so that whatever else the machine does counts
as little as possible; work that waits for threads, sleeps or processes is measured by the clock on the wall.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any, TypeAlias

from attrs import field, frozen

__all__ = ["Clock", "Figure", "Pace", "Ratio", "alternate", "per_await", "per_call", "quiet", "timed", "waited"]

Clock: TypeAlias = Callable[[], float]
"""Does some work and returns how long it took, in seconds."""


@frozen
class Pace:
    """How much to measure: `rounds` of about `seconds` each for what can be repeated, `repeats` of what takes long."""

    rounds: int = 200
    seconds: float = 0.002
    repeats: int = 7

    @classmethod
    def quick(cls) -> Pace:
        """Enough for a first look."""
        return cls(rounds=40, seconds=0.001, repeats=3)


@frozen
class Ratio:
    """Subject over floor, round by round; `floor` and `subject` are the medians in seconds."""

    floor: float
    subject: float
    rounds: list[float] = field(repr=False)


@frozen
class Figure:
    """One row of the table. `value` is what `must` and `aim` limit; half of the rounds lie between `low` and `high`."""

    key: str
    work: str
    value: float
    low: float
    high: float
    must: float | None = None
    aim: float | None = None
    unit: str = "x"

    @classmethod
    def of(
        cls, key: str, work: str, values: list[float], must: float | None, aim: float | None, unit: str = "x"
    ) -> Figure:
        """The figure of several measurements of the same thing."""
        low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
        return cls(key, work, middle, low, high, must, aim, unit)

    @property
    def verdict(self) -> str:
        """Whether the figure is where it must be."""
        if self.must is None:
            return ""
        return "MISSED" if self.value > self.must else "must" if self.aim is None or self.value > self.aim else "aim"


def alternate(floor: Clock, subject: Clock, rounds: int) -> Ratio:
    """Run both in turn, so that whatever else the machine does hits both alike."""
    with quiet():
        floor(), subject()
        pairs = [(floor(), subject()) for _ in range(rounds)]
    floors, subjects = zip(*pairs, strict=True)
    return Ratio(statistics.median(floors), statistics.median(subjects), [subject / floor for floor, subject in pairs])


def per_call(function: Callable[[], Any], seconds: float, now: Clock = process_time) -> Clock:
    """Time of one call, from a loop of about `seconds`."""
    function()
    number = max(1, int(seconds / max(timed(function, now), 1e-7)))

    def clock() -> float:
        started = now()
        for _ in range(number):
            function()
        return (now() - started) / number

    number = max(1, int(seconds / clock()))
    return clock


def per_await(
    function: Callable[[], Awaitable[Any]], seconds: float, runner: asyncio.Runner, now: Clock = process_time
) -> Clock:
    """Time of one awaited call, from a loop of about `seconds` inside a running event loop."""
    number = 10

    async def loop() -> float:
        started = now()
        for _ in range(number):
            await function()
        return (now() - started) / number

    runner.run(loop())
    number = max(1, int(seconds / runner.run(loop())))
    return lambda: runner.run(loop())


def timed(function: Callable[[], Any], now: Clock = process_time) -> float:
    """Seconds of processor time of one run."""
    started = now()
    function()
    return now() - started


def waited(function: Callable[[], Any]) -> float:
    """Seconds on the wall of one run."""
    return timed(function, perf_counter)


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection in between: it would hit the code that happens to allocate the thousandth object."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
