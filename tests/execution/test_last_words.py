"""A coroutine that is ended early learns why, and may still say what it came to."""

import asyncio
import threading
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Fault, Status, Toolkit, ToolResult, tool
from tests.support.waiting import PATIENCE, begin

begun = threading.Event()


@tool
async def report_the_end() -> ToolResult:
    """Wait, and tell what ended the wait."""
    why = "nothing"
    begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError as cancelled:
        await asyncio.sleep(0)  # it takes its time
        why = "".join(cancelled.args)
    status = Status.TIMEOUT if why == "timed out" else Status.CANCELLED
    return ToolResult("", "", status, f"ended: {why}", error=Fault(str(status), why))


@pytest.fixture
def toolkit() -> Toolkit:
    begun.clear()
    toolkit = Toolkit(plugins=())
    toolkit.register(report_the_end)
    return toolkit


def told(result: ToolResult | None) -> Any:
    assert result is not None
    return result.status, result.text


class TestTimeIsUp:
    late = ExecutionPolicy(timeout=0.02, max_attempts=2)

    def test_in_plain_code(self, toolkit: Toolkit) -> None:
        assert told(toolkit.call_sync("report_the_end", policy=self.late)) == (Status.TIMEOUT, "ended: timed out")

    def test_on_a_loop(self, toolkit: Toolkit) -> None:
        async def call() -> ToolResult:
            return await toolkit.call("report_the_end", policy=self.late)

        assert told(asyncio.run(call())) == (Status.TIMEOUT, "ended: timed out")

    def test_in_a_batch(self, toolkit: Toolkit) -> None:
        results = toolkit.call_many_sync([("report_the_end", {})] * 3, policy=self.late)
        assert [told(result) for result in results] == [(Status.TIMEOUT, "ended: timed out")] * 3


def test_a_stop_says_something_else(toolkit: Toolkit) -> None:
    call = toolkit.prepare("report_the_end")
    ended = begin(call.execute_sync)
    assert begun.wait(PATIENCE)
    call.stop()
    assert told(ended.result(PATIENCE)) == (Status.CANCELLED, "ended: ")


def test_the_callers_own_cancellation_goes_on(toolkit: Toolkit) -> None:
    call = toolkit.prepare("report_the_end")

    async def leave() -> None:
        task = asyncio.ensure_future(call.execute())
        await asyncio.sleep(0.02)
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert told(call.result) == (Status.CANCELLED, "ended: enough")
