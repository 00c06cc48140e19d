"""B9: many calls at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from pegboard import Toolkit
from tests.benchmarks.measuring import Figure, Pace, alternate

__all__ = ["BENCHMARKS"]

PAUSE = 0.01
ASYNC_CALLS = 1000
SYNC_CALLS = 64


async def doze() -> None:
    """Wait a little."""
    await asyncio.sleep(PAUSE)


def nap() -> None:
    """Block a little."""
    time.sleep(PAUSE)


async def _bare() -> float:
    started = perf_counter()
    await asyncio.gather(*(asyncio.sleep(PAUSE) for _ in range(ASYNC_CALLS)))
    return perf_counter() - started


async def _crowd(toolkit: Toolkit, name: str, number: int) -> float:
    started = perf_counter()
    results = await toolkit.call_many([(name, "{}")] * number)
    took = perf_counter() - started
    assert [result.status for result in results] == ["success"] * number
    return took


async def _warm(pool: ThreadPoolExecutor) -> float:
    loop = asyncio.get_running_loop()
    started = perf_counter()
    await asyncio.gather(*(loop.run_in_executor(pool, nap) for _ in range(SYNC_CALLS)))
    return perf_counter() - started


def _fan_out(pace: Pace) -> Iterator[Figure]:
    with Toolkit(plugins=()) as toolkit, ThreadPoolExecutor(SYNC_CALLS) as pool, asyncio.Runner() as runner:
        toolkit.register(doze, nap)
        rounds = alternate(
            lambda: runner.run(_bare()), lambda: runner.run(_crowd(toolkit, "doze", ASYNC_CALLS)), pace.repeats * 3
        ).rounds
        yield Figure.of("B9", "call_many, 1,000 async tools of 10 ms", rounds, 1.25, 1.05)
        rounds = alternate(
            lambda: runner.run(_warm(pool)), lambda: runner.run(_crowd(toolkit, "nap", SYNC_CALLS)), pace.repeats * 3
        ).rounds
        yield Figure.of("B9", "  64 sync tools of 10 ms", rounds, 1.3, 1.05)


BENCHMARKS = {"B9": _fan_out}
