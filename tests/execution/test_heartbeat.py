"""A sync tool never delays the event loop that calls it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pegboard import Toolkit, tool
from tests.support.waiting import PATIENCE

TOOLS = 64
BLOCKED = 0.2
BEAT = 0.005
MISSED = 0.1
"""Seconds by which a beat may be late."""
TRIES = 12


def block() -> None:
    """Block a thread."""
    time.sleep(BLOCKED)


async def latest_beat(work: Callable[[], Awaitable[object]]) -> float:
    """By how many seconds the latest beat of the loop was late while `work` was done."""
    late = [0.0]

    async def beat() -> None:
        while True:
            due = time.perf_counter() + BEAT
            await asyncio.sleep(BEAT)
            late.append(time.perf_counter() - due)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(2 * BEAT)
    await work()
    await asyncio.sleep(2 * BEAT)
    heart.cancel()
    return max(late)


async def excess(work: Callable[[], Awaitable[object]], tries: int = TRIES) -> float:
    """How much later beats come than under a bare pool of threads: the best of some tries, for machines are busy."""
    loop = asyncio.get_running_loop()
    found = []
    with ThreadPoolExecutor(TOOLS) as pool:

        async def bare() -> None:
            await asyncio.gather(*(loop.run_in_executor(pool, block) for _ in range(TOOLS)))

        for _ in range(tries):
            found.append(await latest_beat(work) - await latest_beat(bare))
            if found[-1] < MISSED:
                break
    return min(found)


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=(), max_threads=TOOLS) as made:
        yield made


@pytest.mark.parametrize("timeout", [None, PATIENCE], ids=["default", "own timeout"])
def test_blocking_tools_leave_the_loop_alone(toolkit: Toolkit, timeout: float | None) -> None:
    toolkit.register(tool(timeout=timeout)(block) if timeout else block, name="block")
    assert asyncio.run(excess(lambda: toolkit.call_many([("block", {})] * TOOLS))) < MISSED


def test_generators_and_calls_in_calls_leave_it_alone(toolkit: Toolkit) -> None:
    def nest() -> None:
        """Block in a tool of a tool."""
        toolkit.call_sync("block")

    def stream() -> Iterator[str]:
        """Block between two chunks."""
        yield "a"
        time.sleep(BLOCKED)
        yield "b"

    toolkit.register(block, nest, stream)
    assert asyncio.run(excess(lambda: toolkit.call_many([("nest", {}), ("stream", {})] * (TOOLS // 2)))) < MISSED


def test_a_tool_on_the_loop_itself_is_noticed(toolkit: Toolkit) -> None:
    toolkit.register(tool(backend="inline")(block), name="block")
    # A busy machine may hold up the bare pool as long, now and then.
    assert any(asyncio.run(excess(lambda: toolkit.call("block"), tries=1)) > MISSED for _ in range(TRIES))
