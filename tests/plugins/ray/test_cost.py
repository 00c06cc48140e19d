"""What a call costs beside a bare Ray task, in one run and in turn: the best of several rounds."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.plugins.ray import laborers
from tests.plugins.ray.conftest import Board

pytestmark = pytest.mark.ray


def rounds(*works: Callable[[], Any], number: int) -> list[float]:
    """Seconds of each, the least of all rounds."""
    found = [float("inf")] * len(works)
    for _ in range(number):
        for index, work in enumerate(works):
            begun = time.perf_counter()
            work()
            found[index] = min(found[index], time.perf_counter() - begun)
    return found


def measured(board: Board) -> tuple[float, float, float]:
    """What a call takes of a bare task, one after another; and how many there are for a bare one, all at once.

    The last is of a tool that may run twice, whose calls share tasks, and the one before it of another.
    """
    import ray

    toolkit = board(laborers.add, laborers.add_for_good)
    for name in ("add", "add_for_good"):
        assert toolkit.call_sync(name, {"a": 1, "b": 2}).data == 3
    bare = ray.remote(plus).options(max_retries=0)

    def at_once(name: str) -> None:
        calls = [(name, {"a": number, "b": 1}) for number in range(500)]
        assert [each.data for each in asyncio.run(toolkit.call_many(calls))] == list(range(1, 501))

    one, bare_one, all_, shared, bare_all = rounds(
        lambda: [toolkit.call_sync("add", {"a": 1, "b": 2}) for _ in range(50)],
        lambda: [ray.get(bare.remote(1, 2)) for _ in range(50)],
        lambda: at_once("add_for_good"),
        lambda: at_once("add"),
        lambda: ray.get([bare.remote(number, 1) for number in range(500)]),
        number=12,
    )
    took = f"{one / 50 * 1e3:.2f} ms a call, {bare_one / 50 * 1e3:.2f} bare: {one / bare_one:.2f}"
    many = f"{500 / all_:.0f}/s in tasks of their own, {500 / shared:.0f} shared, {500 / bare_all:.0f} bare"
    print(f"\n{took}; {many}: {bare_all / all_:.2f} and {bare_all / shared:.2f}")
    return one / bare_one, bare_all / all_, bare_all / shared


def plus(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_a_call_takes_little_more_than_a_task(board: Board) -> None:
    latency, alone, shared = measured(board)
    # Said in docs/packs/ray.md; here with a wide margin, for it is time on a machine that others use.
    assert latency < 3
    assert alone > 0.2
    assert shared > 0.75
