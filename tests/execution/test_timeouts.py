"""Timeouts: what they end, what they leave running, and what they do not count."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pegboard import CancelToken, ExecutionPolicy, Status, Toolkit, ToolResult, tool
from tests.support.calls import both
from tests.support.waiting import PATIENCE, eventually, given_time

pytestmark = pytest.mark.usefixtures("path")

SHORT = 0.03


def test_of_an_async_tool(toolkit: Toolkit) -> None:
    cleaned: list[int] = []

    @tool(timeout=SHORT)
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(1)

    toolkit.register(wait)
    for result in both(toolkit, "wait"):
        assert result.status is Status.TIMEOUT
        assert result.text == f"Error: timed out after {SHORT:g} s"
        assert result.error is not None
        assert result.error.kind == "timeout"
        assert SHORT <= result.duration < PATIENCE / 2
    assert cleaned == [1, 1]
    assert toolkit.stats["abandoned_threads"] == 0


def test_of_a_sync_tool_leaves_its_thread(toolkit: Toolkit) -> None:
    go = threading.Event()
    toolkit.register(tool(timeout=SHORT)(lambda: go.wait(PATIENCE)), name="wait")
    for count, result in enumerate(both(toolkit, "wait"), start=1):
        assert result.status is Status.TIMEOUT
        assert toolkit.stats["abandoned_threads"] == count
    go.set()
    assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)


def test_an_abandoned_thread_can_hear_of_it(toolkit: Toolkit) -> None:
    told: list[str] = []

    @tool(timeout=SHORT)
    def poll(token: CancelToken) -> None:
        token.wait(PATIENCE)
        told.append(token.reason)

    toolkit.register(poll)

    async def main() -> int:
        result = await toolkit.call("poll")
        assert result.status is Status.TIMEOUT
        await asyncio.sleep(0.01)  # nothing may strike the caller afterwards
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert toolkit.call_sync("poll").status is Status.TIMEOUT
    assert asyncio.run(main()) == 0
    assert eventually(lambda: len(told) == 2)
    assert told == ["timed out", "timed out"]


def test_of_generators(toolkit: Toolkit) -> None:
    def slow() -> Iterator[str]:
        yield "a"
        time.sleep(4 * SHORT)
        yield "b"

    async def slow_later() -> Any:
        yield "a"
        await asyncio.Event().wait()

    toolkit.register(slow, slow_later)
    for name in ("slow", "slow_later"):
        for result in both(toolkit, name, policy=ExecutionPolicy(timeout=SHORT)):
            assert result.status is Status.TIMEOUT


def test_the_default_does_not_move_a_sync_tool(toolkit: Toolkit) -> None:
    def where() -> int:
        return threading.get_ident()

    toolkit.register(where)
    here = threading.get_ident()
    assert toolkit.call_sync("where").value == here
    assert toolkit.call_sync("where", policy=ExecutionPolicy(max_attempts=2)).value == here
    assert toolkit.call_sync("where", policy=ExecutionPolicy(timeout=PATIENCE)).value != here


def test_one_that_a_tool_raises_itself_is_an_error(toolkit: Toolkit) -> None:
    async def raises() -> None:
        raise TimeoutError("the server is slow")

    toolkit.register(raises)
    for result in both(toolkit, "raises"):
        assert (result.status, result.text) == (Status.ERROR, "Error: the server is slow")


def test_queueing_does_not_count() -> None:
    calls = [("work", {"n": n}) for n in range(5)]

    def statuses(timeout: float) -> list[Status]:
        @tool(timeout=timeout)
        def work(n: int) -> int:
            time.sleep(0.4 * timeout)  # twice the timeout, one after the other
            return n

        with Toolkit(plugins=(), max_threads=1) as toolkit, ThreadPoolExecutor(5) as pool:
            toolkit.register(work)
            results = toolkit.call_many_sync(calls)
            plain = [pool.submit(toolkit.call_sync, *call) for call in calls]
            return [result.status for result in (*results, *(future.result(PATIENCE) for future in plain))]

    enough = [Status.SUCCESS] * 10
    assert given_time(statuses, lambda found: found == enough, 0.3) == enough


def test_blocked_tools_starve_no_other() -> None:
    go = threading.Event()
    with Toolkit(plugins=(), max_threads=4) as toolkit:
        toolkit.register(tool(timeout=SHORT)(lambda: go.wait(PATIENCE)), name="hang")
        toolkit.register(lambda: "here", name="echo")

        async def main() -> ToolResult:
            await toolkit.call_many([("hang", {})] * 20)
            return await asyncio.wait_for(toolkit.call("echo"), PATIENCE / 2)

        assert asyncio.run(main()).value == "here"
        assert toolkit.stats["abandoned_threads"] == 20
        go.set()
        assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)


def test_no_limit_at_all(toolkit: Toolkit) -> None:
    toolkit.register(lambda: 1, name="one")
    for timeout in (None, float("inf"), 1e12):
        for result in both(toolkit, "one", policy=ExecutionPolicy(timeout=timeout)):
            assert result.value == 1
