"""B16: code mode: a short program over the bare sandbox, a call inside a program over a call, and several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

from pydantic_monty import Monty

from pegboard import Toolkit
from pegboard_code import CodeMode
from tests.benchmarks.measuring import Figure, Pace, alternate

__all__ = ["BENCHMARKS"]

RUNS = 50
CALLS = 40
SEVERAL = 20
WAIT = 0.05


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def wait(seconds: float) -> float:
    """Wait."""
    await asyncio.sleep(seconds)
    return seconds


def _programs(pace: Pace) -> Iterator[Figure]:
    with Toolkit(plugins=()) as toolkit, Monty() as pool:
        toolkit.register(add, wait)
        toolkit.register(CodeMode(toolkit))

        def bare() -> float:
            started = perf_counter()
            for _ in range(RUNS):
                with pool.checkout(limits={"max_feed_duration_secs": 30.0}) as session:
                    session.feed_run("1")
            return (perf_counter() - started) / RUNS

        def program(code: str, runs: int = RUNS) -> float:
            started = perf_counter()
            for _ in range(runs):
                result = toolkit.call_sync("run_code", {"code": code})
                assert not result.is_error, result.text
            return (perf_counter() - started) / runs

        def call() -> float:
            started = perf_counter()
            for number in range(RUNS):
                toolkit.call_sync("add", {"a": number, "b": 1})
            return (perf_counter() - started) / RUNS

        rounds = alternate(bare, partial(program, "1"), pace.repeats).rounds
        yield Figure.of("B16", "a program that was checked, over the sandbox", rounds, 3.0, 2.0)
        calls = f"for number in range({CALLS}):\n    await add(a=number, b=1)\n1"
        inner = [(program(calls, 3) - program("1", 10)) / CALLS * 1e3 - call() * 1e3 for _ in range(pace.repeats)]
        yield Figure.of("B16", "  a call in it, more than a call", inner, 1.0, 0.5, "ms")
        yield Figure.of("B16", f"  {SEVERAL} at once of {WAIT * 1e3:g} ms", _several(toolkit, pace), 100.0, 80.0, "ms")


def _several(toolkit: Toolkit, pace: Pace) -> list[float]:
    code = f"import asyncio\nlen(await asyncio.gather(*[wait(seconds={WAIT}) for _ in range({SEVERAL})]))"

    async def measured() -> list[float]:
        times = []
        for _ in range(pace.repeats + 1):
            started = perf_counter()
            result: Any = await toolkit.call("run_code", {"code": code})
            times.append((perf_counter() - started) * 1e3)
            assert result.data == SEVERAL
        return times[1:]

    return asyncio.run(measured())


BENCHMARKS = {"B16": _programs}
