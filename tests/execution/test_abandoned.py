"""What a caller that leaves, or a deadline, leaves behind: nothing that queued begins, and few threads run on."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Status, Toolkit, ToolResult, tool
from tests.support.waiting import PATIENCE, begin, eventually, until, within

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
    blocking.toolkit._core.engine._threads().max_abandoned = most
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


class Alone:
    """A toolkit with a tool that runs alone, blocks as long as it shall, and says who was inside with it."""

    def __init__(self, terms: dict[str, Any]) -> None:
        self.toolkit = Toolkit(plugins=())
        self.go = threading.Event()
        self.inside = self.most = self.ran = 0
        self._lock = threading.Lock()

        @tool(**terms)
        def alone(block: bool = False) -> str:
            with self._lock:
                self.ran += 1
                self.inside += 1
                self.most = max(self.most, self.inside)
            if block:
                self.go.wait(PATIENCE)
            with self._lock:
                self.inside -= 1
            return "done"

        @tool(**terms)
        def drawn(block: bool = False) -> Iterator[str]:
            yield alone(block)

        self.toolkit.register(alone, drawn)

    def abandon(self, how: str, name: str) -> None:
        """Leave a thread inside of a call that has ended."""
        if how == "timeout":
            policy = ExecutionPolicy(timeout=0.05)
            assert self.toolkit.call_sync(name, {"block": True}, policy=policy).status is Status.TIMEOUT
        elif how == "stop":
            call = self.toolkit.prepare(name, {"block": True})
            running = begin(lambda: asyncio.run(call.execute()))
            assert eventually(lambda: self.inside)
            call.stop()
            assert running.result(PATIENCE).status is Status.CANCELLED
        else:
            within(lambda: asyncio.run(self._cancelled(name)))
        assert self.toolkit.stats["abandoned_threads"] == 1

    async def _cancelled(self, name: str) -> None:
        task = asyncio.create_task(self.toolkit.call(name, {"block": True}))
        await until(lambda: self.inside)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def call(self, name: str, on_loop: bool, timeout: float) -> ToolResult:
        policy = ExecutionPolicy(timeout=timeout)
        if on_loop:
            return within(lambda: asyncio.run(self.toolkit.call(name, policy=policy)))
        return within(lambda: self.toolkit.call_sync(name, policy=policy))


@pytest.fixture(params=[{"exclusive": True}, {"locks": "door"}], ids=["exclusive", "lock"])
def alone(request: pytest.FixtureRequest) -> Iterator[Alone]:
    made = Alone(request.param)
    yield made
    made.go.set()
    made.toolkit.close()


@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.parametrize("name", ["alone", "drawn"])
@pytest.mark.parametrize("how", ["timeout", "cancel", "stop"])
class TestALockWithAnAbandonedThreadInside:
    def test_stays_held_until_that_thread_is_out(self, alone: Alone, how: str, name: str, on_loop: bool) -> None:
        alone.abandon(how, name)
        waiting = begin(lambda: alone.call(name, on_loop, PATIENCE))
        assert eventually(lambda: alone.toolkit.stats["waiting"] == 1)
        assert alone.ran == 1
        alone.go.set()
        assert waiting.result(PATIENCE).text == "done"
        assert (alone.ran, alone.most) == (2, 1)
        assert eventually(lambda: alone.toolkit.stats["abandoned_threads"] == 0)

    def test_a_call_that_waits_for_it_says_so_once_its_own_time_has_passed(
        self, alone: Alone, how: str, name: str, on_loop: bool
    ) -> None:
        alone.abandon(how, name)
        result = alone.call(name, on_loop, 0.05)
        assert result.error is not None
        assert (result.status, result.error.kind, result.attempts) == (Status.ERROR, "held", 0)
        assert result.text == (
            f"Error: {name} was not run: a call before it timed out or was cancelled, and is still at work"
        )
        assert ("exclusive" in result.error.details["waits_for"]) or ("lock" in result.error.details["waits_for"])
        assert alone.ran == 1
        alone.go.set()
        assert eventually(lambda: alone.call(name, on_loop, PATIENCE).text == "done")


def test_a_call_that_waits_for_one_that_runs_is_not_bounded_by_its_timeout() -> None:
    made = Alone({"exclusive": True})
    holding = begin(lambda: made.toolkit.call_sync("alone", {"block": True}))
    assert eventually(lambda: made.inside)
    waiting = begin(lambda: made.call("alone", True, 0.03))
    assert eventually(lambda: made.toolkit.stats["waiting"] == 1)
    threading.Event().wait(0.2)
    made.go.set()
    assert holding.result(PATIENCE).text == waiting.result(PATIENCE).text == "done"
    made.toolkit.close()
