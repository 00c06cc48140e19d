"""Deadlines of jobs in worker threads and of coroutines: one timer for each loop, whatever it waits for."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from pegboard import Status, Toolkit
from pegboard._base.effects import AttemptTimeoutError
from pegboard._execution.threads import Ticket
from pegboard._execution.timers import AbandonedTasks, JobWait, TaskGuard, Timers, timers_of
from pegboard._execution.timers import bounded as bounded_by
from tests.support.waiting import PATIENCE


async def bounded(awaitable: Awaitable[Any], timeout: float) -> Any:  # noqa: ASYNC109 - what is tested
    return await bounded_by(awaitable, timeout, TaskGuard(AbandonedTasks()))


class Clock:
    """A loop whose time is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_soon_threadsafe(self, callback: Callable[..., None], *arguments: Any, context: Any) -> None:
        """No caller waits."""

    def call_at(self, when: float, callback: Callable[..., None], *arguments: Any) -> None:
        self.timers.append((when, callback, arguments))

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, callback, arguments in due:
            callback(*arguments)


class Pool:
    """Where a job runs that is given up."""

    def abandon(self, job: Ticket, error: BaseException) -> bool:
        return job.end((None, error))


class Wait:
    """The wait for a job that a worker picked up `ago` seconds ago."""

    def __init__(self, clock: Clock, timeout: float, ago: float = 1e9) -> None:
        self.ago = ago
        self.job = JobWait(cast("Any", Pool()), print)
        self.job.loop, self.job.timeout = cast("Any", clock), timeout
        self.job._callback = self.job._context = None
        self.job.elapsed = lambda: self.ago  # type: ignore[method-assign]

    def done(self) -> bool:
        return self.job.outcome is not None


@pytest.fixture
def clock() -> Clock:
    return Clock()


def own_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def watched(own: Timers, clock: Clock, timeout: float, ago: float = 1e9) -> Wait:
    wait = Wait(clock, timeout, ago)
    own.set(cast("Any", clock), wait.job, timeout)
    return wait


def test_rings_at_the_deadline_and_not_before(clock: Clock) -> None:
    wait = watched(Timers(), clock, 5)
    clock.advance(4.9)
    assert not wait.done()
    clock.advance(0.2)
    assert wait.job.outcome is not None
    _, error = wait.job.outcome
    assert isinstance(error, AttemptTimeoutError)
    assert error.seconds == 5


def test_each_at_its_own_deadline(clock: Clock) -> None:
    own = Timers()
    late, early, later = watched(own, clock, 10), watched(own, clock, 1), watched(own, clock, 20)
    clock.advance(1)
    assert [wait.done() for wait in (late, early, later)] == [False, True, False]
    clock.advance(9)
    assert [wait.done() for wait in (late, early, later)] == [True, True, False]
    clock.advance(10)
    assert later.done()


def test_queueing_does_not_count(clock: Clock) -> None:
    wait = watched(Timers(), clock, 5, ago=0)
    clock.advance(5)
    assert not wait.done()
    wait.ago = 3.0
    clock.advance(5)
    assert not wait.done()
    wait.ago = 5.0
    clock.advance(2)
    assert wait.done()


def test_a_forgotten_wait_is_left_alone(clock: Clock) -> None:
    own = Timers()
    wait = watched(own, clock, 5)
    own.forget(wait.job)
    own.forget(wait.job)
    clock.advance(10)
    assert not wait.done()
    assert clock.timers == []


def test_many_waits_need_one_timer(clock: Clock) -> None:
    own = Timers()
    for _ in range(1000):
        own.forget(watched(own, clock, 300).job)
        clock.advance(0.001)
    assert len(clock.timers) == 1


def test_one_for_each_loop() -> None:
    async def own() -> Timers:
        loop = asyncio.get_running_loop()
        assert timers_of(loop) is timers_of(loop)
        return timers_of(loop)

    assert asyncio.run(own()) is not asyncio.run(own())


def test_a_coroutine_is_cancelled_and_nothing_of_it_stays() -> None:
    async def check() -> None:
        with pytest.raises(AttemptTimeoutError):
            await bounded(asyncio.sleep(30), 0.01)
        assert own_task().cancelling() == 0
        assert await bounded(asyncio.sleep(0.01, "in time"), 30) == "in time"

    asyncio.run(check())


def test_a_cancellation_from_outside_is_no_timeout() -> None:
    async def check() -> None:
        task = asyncio.ensure_future(bounded(asyncio.sleep(30), 20))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(check())


def test_a_coroutine_may_swallow_its_timeout() -> None:
    async def check() -> None:
        async def stubborn() -> str:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                return "at last"
            return "never"

        assert await bounded(stubborn(), 0.01) == "at last"
        assert own_task().cancelling() == 0

    asyncio.run(check())


def test_what_a_coroutine_raises_instead_of_its_timeout_is_its_own() -> None:
    async def check() -> None:
        async def angry() -> None:
            try:
                await asyncio.sleep(30)
            finally:
                raise LookupError("own")

        with pytest.raises(LookupError) as caught:
            await bounded(angry(), 0.01)
        assert isinstance(caught.value.__context__, asyncio.CancelledError)
        assert caught.value.__context__.__context__ is None

    asyncio.run(check())


def test_tools_with_several_deadlines_at_once() -> None:
    release = threading.Event()

    def hang() -> str:
        """Wait for the end of the test."""
        release.wait(PATIENCE)
        return "back"

    async def both(toolkit: Toolkit) -> list[Any]:
        slow = asyncio.ensure_future(toolkit.call("hang", policy=policy(PATIENCE)))
        started = time.monotonic()
        quick = await toolkit.call("hang", policy=policy(0.05))
        assert time.monotonic() - started < PATIENCE / 2
        release.set()
        return [quick, await slow]

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(hang)
        quick, slow = asyncio.run(both(toolkit))
    assert quick.status is Status.TIMEOUT
    assert slow.text == "back"


def policy(timeout: float) -> Any:
    from pegboard import ExecutionPolicy

    return ExecutionPolicy(timeout=timeout)


def test_calls_one_after_another_share_one_thread() -> None:
    """A worker counts as idle before its outcome is reported: the next call starts no other thread."""
    seen: set[int] = set()

    def note() -> None:
        """Note the thread."""
        seen.add(threading.get_ident())

    async def many(toolkit: Toolkit) -> None:
        for _ in range(300):
            await toolkit.call("note")

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(note)
        asyncio.run(many(toolkit))
    assert len(seen) == 1
