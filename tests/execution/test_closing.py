"""Closing a toolkit, and the end of the interpreter: all ends in results, and nothing stays."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from pegboard import CancelToken, Injected, Middleware, Status, ToolCall, Toolkit, ToolResult, hookimpl, tool
from tests.support.interpreters import as_calls_run, complained
from tests.support.thinning import first
from tests.support.waiting import PATIENCE, eventually, until, within

pytestmark = pytest.mark.usefixtures("path")

SHORT = 0.03


class TestClose:
    def test_leaves_no_thread_and_no_task(self) -> None:
        before = set(threading.enumerate())
        begun, cancelled = threading.Event(), list[int]()

        async def wait() -> None:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                cancelled.append(1)

        toolkit = Toolkit(plugins=())
        toolkit.register(wait)
        toolkit.register(tool(timeout=PATIENCE)(lambda: 1), name="thread")
        toolkit.call_many_sync([("thread", {})] * 10)
        asyncio.run(toolkit.call_many([("thread", {})] * 10))
        box: list[ToolResult] = []
        caller = threading.Thread(target=lambda: box.append(toolkit.call_sync("wait")))
        caller.start()
        assert begun.wait(PATIENCE)
        toolkit.close()
        caller.join(PATIENCE)
        assert box[0].status is Status.CANCELLED
        assert cancelled == [1]
        assert set(threading.enumerate()) <= before

    def test_twice_and_without_having_run(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.close()
        toolkit.close()

    def test_waits_for_sync_tools(self) -> None:
        done: list[int] = []
        begun = threading.Event()
        toolkit = Toolkit(plugins=())

        @tool(timeout=PATIENCE)
        def work() -> None:
            begun.set()
            time.sleep(0.05)
            done.append(1)

        toolkit.register(work)
        caller = threading.Thread(target=lambda: toolkit.call_sync("work"))
        caller.start()
        assert begun.wait(PATIENCE)
        toolkit.close()
        assert done == [1]
        caller.join(PATIENCE)

    def test_calls_afterwards_end_in_results(self) -> None:
        async def later() -> int:
            return 1

        toolkit = Toolkit(plugins=())
        toolkit.register(later)
        toolkit.register(tool(timeout=PATIENCE)(lambda: 1), name="thread")
        toolkit.close()
        for result in [toolkit.call_sync("later"), *toolkit.call_many_sync([("later", {}), ("thread", {})])]:
            assert result.status is Status.ERROR
            assert "closed" in result.text

    def test_batch_that_is_overtaken_by_the_close(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def later() -> int:
            return 1

        toolkit = Toolkit(plugins=())
        toolkit.register(later)
        assert toolkit.call_sync("later").value == 1
        drivers = type(toolkit._core.engine.drivers)

        block_on = drivers.block_on

        def begins_and_is_closed(found: Any, start: Any) -> Any:
            toolkit.close()
            return block_on(found, start)

        monkeypatch.setattr(drivers, "block_on", begins_and_is_closed)
        for result in toolkit.call_many_sync([("later", {}), ("later", {})]):
            assert result.status is Status.ERROR
            assert "closed" in result.text

    def test_context_managers(self) -> None:
        async def main() -> Toolkit:
            async with Toolkit(plugins=()) as toolkit:
                toolkit.register(tool(timeout=PATIENCE)(lambda: 1), name="thread")
                assert (await toolkit.call("thread")).value == 1
            return toolkit

        before = set(threading.enumerate())
        toolkit = asyncio.run(main())
        assert toolkit.call_sync("thread").is_error
        assert set(threading.enumerate()) <= before

    def test_a_blocked_tool_does_not_delay_it(self) -> None:
        go = threading.Event()
        toolkit = Toolkit(plugins=())
        toolkit.register(tool(timeout=SHORT)(lambda: go.wait(PATIENCE)), name="hang")
        toolkit.register(tool(timeout=PATIENCE)(lambda: 1), name="fine")
        toolkit.call_many_sync([("hang", {}), ("hang", {}), ("fine", {})])
        started = time.monotonic()
        toolkit.close()
        assert time.monotonic() - started < PATIENCE / 2
        go.set()


def _only_old_threads(before: set[threading.Thread]) -> bool:
    return {thread for thread in threading.enumerate() if "pegboard" in thread.name} <= before


def _without_parameters(function: Callable[..., Any]) -> Callable[[], Any]:
    if asyncio.iscoroutinefunction(function):

        async def later() -> Any:
            return await function()

        return later
    return lambda: function()  # noqa: PLW0108 - an object would bring its own signature


class TestCloseWhileToolsRun:
    def test_from_within_a_tool(self) -> None:
        for kind in ("sync", "bounded", "async", "straight"):
            for driver in ("sync", "async"):
                before = set(threading.enumerate())
                toolkit = Toolkit(plugins=())

                def close(toolkit: Toolkit = toolkit) -> str:
                    toolkit.close()
                    return "closed"

                async def close_later(toolkit: Toolkit = toolkit) -> str:
                    toolkit.close()
                    await asyncio.sleep(0)
                    return "closed"

                options: dict[str, dict[str, Any]] = {
                    "bounded": {"timeout": PATIENCE},
                    "sync": {"exclusive": True},
                    "async": {"exclusive": True},
                }
                body = close if kind in ("sync", "bounded") else close_later
                toolkit.register(tool(**options.get(kind, {}))(_without_parameters(body)), name="close")
                run: Any = (
                    (lambda toolkit=toolkit: toolkit.call_sync("close"))
                    if driver == "sync"
                    else (lambda toolkit=toolkit: asyncio.run(toolkit.call("close")))
                )
                assert within(run).status in (Status.SUCCESS, Status.CANCELLED)
                assert eventually(partial(_only_old_threads, before))

    @pytest.mark.parametrize("asked", [None, ToolCall, CancelToken])
    def test_before_an_async_tool_waits_for_the_first_time(self, asked: Any) -> None:
        async def close(toolkit: Toolkit, asked: Any) -> None:
            toolkit.close()
            await asyncio.Event().wait()

        close.__annotations__["asked"] = Injected[Toolkit] if asked is None else asked
        toolkit = Toolkit(plugins=())
        toolkit.register(close)
        assert within(lambda: asyncio.run(toolkit.call("close"))).status is Status.CANCELLED

    def test_from_many_threads_at_once(self) -> None:
        toolkit = Toolkit(plugins=())

        async def wait() -> None:
            await asyncio.Event().wait()

        toolkit.register(wait)
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(toolkit.call_sync, "wait") for _ in range(4)]
            assert eventually(lambda: toolkit.stats["running"] == 4)
            for closing in [pool.submit(toolkit.close) for _ in range(4)]:
                closing.result(PATIENCE)
            assert {call.result(PATIENCE).status for call in calls} == {Status.CANCELLED}

    def test_a_context_manager_lets_the_loop_go_on(self) -> None:
        """A worker waits for this loop, which waits for the worker to end: only if it goes on can both."""
        ended: list[str] = []

        class Around:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                return [Middleware(lambda call, proceed: proceed())]

        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                ended.append("wait")

        async def main() -> ToolResult:
            async with Toolkit(plugins=[Around()]) as toolkit:
                toolkit.register(wait)
                task = asyncio.create_task(toolkit.call("wait"))
                await until(lambda: toolkit.stats["running"])
                await asyncio.sleep(0.01)
                started = asyncio.get_running_loop().time()
            assert asyncio.get_running_loop().time() - started < PATIENCE / 2
            return await task

        assert within(lambda: asyncio.run(main())).status is Status.CANCELLED
        assert ended == ["wait"]

    def test_one_that_ignores_it_does_not_hold_up_for_ever(self) -> None:
        begun, go = threading.Event(), threading.Event()

        async def stubborn() -> None:
            begun.set()
            while not go.is_set():
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)

        toolkit = Toolkit(plugins=())
        toolkit.register(stubborn)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(toolkit.call_sync, "stubborn")
            assert begun.wait(PATIENCE)
            threading.Timer(1, go.set).start()
            within(toolkit.close)
            assert running.result(PATIENCE).status in (Status.SUCCESS, Status.CANCELLED)

    def test_a_batch_in_plain_code_ends_in_results(self) -> None:
        begun = threading.Event()

        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        toolkit = Toolkit(plugins=())
        toolkit.register(wait)
        with ThreadPoolExecutor(1) as pool:
            batch = pool.submit(toolkit.call_many_sync, [("wait", {})] * 5)
            assert begun.wait(PATIENCE)
            assert eventually(lambda: toolkit.stats["running"] == 5)
            within(toolkit.close)
            assert [result.status for result in batch.result(PATIENCE)] == [Status.CANCELLED] * 5


SCRIPTS = {
    "unclosed": """
toolkit.call_sync("later"); toolkit.call_sync("thread")
asyncio.run(toolkit.call_many([("later", {}), ("thread", {}), ("plain", {})]))
""",
    "closed": """
toolkit.call_sync("later"); toolkit.call_sync("thread"); toolkit.close()
""",
    "blocked": """
print(toolkit.call_sync("hang").status.value)
""",
    "at exit": """
import atexit
@atexit.register
def late():
    results = toolkit.call_many_sync([("later", {}), ("thread", {}), ("plain", {})])
    print([each.status.value in ("success", "error") for each in results])
""",
    "in a late thread": """
def late():
    threading.main_thread().join()
    for name in ("later", "thread", "plain"):
        assert toolkit.call_sync(name).status.value in ("success", "error")
    assert len(toolkit.call_many_sync([("later", {}), ("thread", {})])) == 2
    print("late")
threading.Thread(target=late).start()
""",
    "cancelled": """
async def main():
    task = asyncio.create_task(toolkit.call("wait"))
    await asyncio.sleep(0.01)
    task.cancel()
asyncio.run(main())
""",
    "still running": """
def call(): toolkit.call_sync("wait")
threading.Thread(target=call, daemon=True).start()
import time; time.sleep(0.05)
""",
}
PRELUDE = """
import asyncio, threading
from pegboard import Toolkit, tool
toolkit = Toolkit(plugins=())
async def later() -> int:
    await asyncio.sleep(0)
    return 1
async def wait() -> None:
    await asyncio.Event().wait()
toolkit.register(later, wait)
toolkit.register(lambda: 1, name="plain")
toolkit.register(tool(timeout=60)(lambda: 1), name="thread")
toolkit.register(tool(timeout=0.02)(lambda: threading.Event().wait(60)), name="hang")
"""
PRINTED = {"blocked": "timeout", "at exit": "[True, True, True]", "in a late thread": "late"}


class TestShutdown:
    @pytest.mark.parametrize("script", first(3, SCRIPTS))
    def test_the_interpreter_ends_cleanly_and_at_once(self, path: str, script: str) -> None:
        started = time.monotonic()
        program = as_calls_run(path) + PRELUDE + SCRIPTS[script]
        command = [sys.executable, "-W", "error", "-X", "dev", "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert complained(done.stderr) == []
        assert (done.returncode, done.stdout.strip()) == (0, PRINTED.get(script, ""))
        assert time.monotonic() - started < PATIENCE / 2  # a blocked tool takes all of it
