"""Many calls at once: each is answered once, in order, and nothing of them stays."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from pegboard import Status, ToolCall, Toolkit, ToolResult, tool
from tests.support.measuring import least
from tests.support.waiting import PATIENCE, within

ASYNC_CALLS = 10_000
SYNC_CALLS = 2_000
SLEEPERS = 1_000
PAUSE = 0.01


async def later(n: int) -> int:
    """Answer after a turn of the loop."""
    await asyncio.sleep(0)
    return n


def now(n: int) -> int:
    """Answer."""
    return n


@tool(timeout=PATIENCE)
def with_call(n: int, call: ToolCall) -> str:
    """Answer with the own id."""
    return f"{call.id} {n}"


async def doze() -> None:
    """Sleep a little."""
    await asyncio.sleep(PAUSE)


def nap() -> None:
    """Block a little."""
    time.sleep(5 * PAUSE)


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(later, now, with_call, doze)
        yield made


def crowd(**numbers: int) -> list[dict[str, object]]:
    """Calls of the tools, as many of each as said, mixed."""
    names = [name for name, number in sorted(numbers.items()) for _ in range(number)]
    mixed = sorted(range(len(names)), key=lambda n: n * 7919 % 10_007)
    return [{"id": f"c{n}", "name": names[n], "arguments": {"n": n}} for n in mixed]


CROWDS = {
    "async": {"later": ASYNC_CALLS},
    "sync": {"now": SYNC_CALLS},
    "mixed": {"later": ASYNC_CALLS, "now": SYNC_CALLS},
    "on the long way": {"with_call": SYNC_CALLS},
}


def answered(calls: list[dict[str, object]], results: list[ToolResult]) -> None:
    ids = [call["id"] for call in calls]
    assert [result.call_id for result in results] == ids
    assert len(set(ids)) == len(ids)
    assert {result.status for result in results} == {Status.SUCCESS}
    for result in results:
        n = result.call_id[1:]
        assert result.text == (f"{result.call_id} {n}" if result.name == "with_call" else n)


@pytest.mark.parametrize(
    "from_loop", [pytest.param(True, id="loop"), pytest.param(False, id="plain", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("which", CROWDS)
def test_every_caller_is_answered_once_and_in_order(toolkit: Toolkit, which: str, from_loop: bool) -> None:
    calls = crowd(**CROWDS[which])
    many = (lambda: asyncio.run(toolkit.call_many(calls))) if from_loop else (lambda: toolkit.call_many_sync(calls))
    answered(calls, within(many))
    counted = toolkit.stats
    assert (counted["running"], counted["waiting"], counted["abandoned_threads"]) == (0, 0, 0)
    assert {name: each["calls"] for name, each in counted["tools"].items()} == CROWDS[which]


THREADS = 8
# A pointer for each call would be 8 bytes. What a program uses is some tens of megabytes: a tenth of that, for 12,000
# calls, would be hundreds of bytes for each.
POINTER = 8


def growth(once: Callable[[], object], enough: float) -> float:
    """By how many bytes each further time grows what is in use; the least of some, for tables grow now and then."""
    gc.freeze()  # what was there before cannot grow, and need not be looked through each time
    tracemalloc.start()

    def used() -> int:
        once()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    last = used()

    def grown() -> int:
        nonlocal last
        before, last = last, used()
        return last - before

    try:
        return least(grown, enough=enough)
    finally:
        tracemalloc.stop()
        gc.unfreeze()


def growth_for_each(toolkit: Toolkit, calls: list[dict[str, object]], *, from_loop: bool) -> float:
    """Bytes for each call that stay after all of them, results included, are freed."""

    def once() -> None:
        if from_loop:
            asyncio.run(toolkit.call_many(calls))
        else:
            toolkit.call_many_sync(calls)

    return within(lambda: growth(once, POINTER * len(calls))) / len(calls)


@pytest.mark.parametrize("from_loop", [True, False], ids=["loop", "plain"])
@pytest.mark.parametrize(
    ("which", "part"),
    [
        ("mixed", 10),
        ("on the long way", 4),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in ("mixed", "on the long way")),
    ],
)
def test_nothing_stays_in_memory(which: str, part: int, from_loop: bool) -> None:
    calls = crowd(**{name: number // part for name, number in CROWDS[which].items()})
    with Toolkit(plugins=(), max_threads=THREADS) as toolkit:
        toolkit.register(later, now, with_call, nap)
        within(lambda: toolkit.call_many_sync([("nap", {})] * THREADS))  # every thread that there will be
        assert growth_for_each(toolkit, calls, from_loop=from_loop) < POINTER


def test_what_stays_in_memory_is_seen() -> None:
    kept: list[list[int]] = []
    with Toolkit(plugins=()) as toolkit:

        def keeps(n: int) -> int:
            """Keep something."""
            kept.append([n])
            return n

        toolkit.register(keeps)
        assert growth_for_each(toolkit, crowd(keeps=500), from_loop=True) > POINTER


def test_a_thousand_sleepers_sleep_at_once(toolkit: Toolkit) -> None:
    async def bare() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(asyncio.sleep(PAUSE) for _ in range(SLEEPERS)))
        return time.perf_counter() - started

    async def called() -> float:
        started = time.perf_counter()
        results = await toolkit.call_many([("doze", {})] * SLEEPERS)
        took = time.perf_counter() - started
        assert len(results) == SLEEPERS
        return took

    async def ratio() -> float:
        floor = await bare()
        return await called() / floor

    # The best of some tries: a busy machine slows all of them, a pause for each call as well.
    assert least(lambda: asyncio.run(ratio()), enough=3) < 3
