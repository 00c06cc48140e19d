"""What a caller that leaves, or a deadline, leaves behind: nothing that queued begins, and few threads run on."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Status, Toolkit, ToolResult
from tests.support.waiting import PATIENCE, eventually, until, within

CROWD = 40
THREADS = 4


class Blocking:
    """A toolkit whose one sync tool blocks until it is let go."""

    def __init__(self, **options: Any) -> None:
        self.begun: list[int] = []
        self.go = threading.Event()
        self.toolkit = Toolkit(plugins=(), max_threads=THREADS, **options)

        def block(n: int) -> int:
            self.begun.append(n)
            self.go.wait(PATIENCE)
            return n

        self.toolkit.register(block)
        self.calls = [("block", {"n": n}) for n in range(CROWD)]


@pytest.fixture
def blocking() -> Iterator[Blocking]:
    made = Blocking()
    yield made
    made.go.set()
    made.toolkit.close()


async def _batch(toolkit: Toolkit, calls: list[Any]) -> None:
    await toolkit.call_many(calls)


async def _gathered(toolkit: Toolkit, calls: list[Any]) -> None:
    await asyncio.gather(*(toolkit.call(*call) for call in calls))


async def _group(toolkit: Toolkit, calls: list[Any]) -> None:
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(toolkit.call(*call))


async def _streamed(toolkit: Toolkit, calls: list[Any]) -> None:
    async for _ in toolkit.stream(calls):
        pass


async def _prepared(toolkit: Toolkit, calls: list[Any]) -> None:
    await toolkit.call_many([toolkit.prepare(*call) for call in calls])


@pytest.mark.parametrize("many", [_batch, _gathered, _group, _streamed, _prepared])
def test_cancelling_many_calls_begins_none_that_queues(
    blocking: Blocking, many: Callable[[Toolkit, list[Any]], Awaitable[None]]
) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(many(blocking.toolkit, blocking.calls))
        await until(lambda: len(blocking.begun) == THREADS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)

    within(lambda: asyncio.run(main()))
    assert len(blocking.begun) == THREADS
    assert blocking.toolkit.stats["abandoned_threads"] == THREADS
    assert blocking.toolkit.stats["waiting"] == 0
    blocking.go.set()
    assert eventually(lambda: blocking.toolkit.stats["abandoned_threads"] == 0)
    assert within(lambda: asyncio.run(blocking.toolkit.call("block", {"n": 1}))).value == 1


def test_other_callers_jobs_get_the_threads(blocking: Blocking) -> None:
    """What another caller queues begins as soon as a cancelled one has left a slot."""

    async def main() -> ToolResult:
        task = asyncio.create_task(blocking.toolkit.call_many(blocking.calls[:THREADS]))
        await until(lambda: len(blocking.begun) == THREADS)
        other = asyncio.create_task(blocking.toolkit.call("other"))
        await until(lambda: blocking.toolkit.stats["waiting"] == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await other

    blocking.toolkit.register(lambda: "other", name="other")
    assert within(lambda: asyncio.run(main())).value == "other"


@pytest.mark.parametrize("most", [2, 10])
def test_timeouts_abandon_no_more_threads_than_the_cap(blocking: Blocking, most: int) -> None:
    blocking.toolkit._core.services.threads.pool.max_abandoned = most
    policy = ExecutionPolicy(timeout=0.02)
    results = within(lambda: asyncio.run(blocking.toolkit.call_many(blocking.calls, policy=policy)))
    timed_out = [result for result in results if result.status is Status.TIMEOUT]
    refused = [result for result in results if result.status is Status.ERROR]
    assert (len(timed_out), len(refused)) == (most, CROWD - most)
    assert blocking.toolkit.stats["abandoned_threads"] == len(blocking.begun) == most
    assert {result.attempts for result in refused} == {0}
    assert f"{most} threads are inside tools that timed out" in refused[0].text
    blocking.go.set()
    assert eventually(lambda: blocking.toolkit.stats["abandoned_threads"] == 0)
    assert within(lambda: asyncio.run(blocking.toolkit.call("block", {"n": 1}))).value == 1
