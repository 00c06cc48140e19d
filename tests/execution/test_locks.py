"""Locks: which calls wait for each other, and that no call waits for ever."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pegboard import Status, Toolkit, ToolResult, tool
from tests.support.calls import both
from tests.support.waiting import PATIENCE, within

SHORT = 0.03


class Overlap:
    """Counts how many are inside at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self._lock:
            self.inside -= 1

    def sync(self) -> None:
        self.enter()
        time.sleep(0.003)
        self.leave()

    async def later(self) -> None:
        self.enter()
        await asyncio.sleep(0.003)
        self.leave()


def _method(overlap: Overlap, kind: str) -> Callable[..., Any]:
    async def later() -> None:
        await overlap.later()

    def sync() -> None:
        overlap.sync()

    return later if kind == "later" else sync


class TestLocks:
    def test_exclusive(self, toolkit: Toolkit) -> None:
        for kind in ("sync", "later"):
            overlap = Overlap()
            toolkit.register(tool(exclusive=True)(_method(overlap, kind)), name=kind)
            asyncio.run(toolkit.call_many([(kind, {})] * 6))
            toolkit.call_many_sync([(kind, {})] * 6)
            assert overlap.most == 1

    def test_named_locks_are_shared(self, toolkit: Toolkit) -> None:
        overlap = Overlap()
        toolkit.register(tool(locks="db")(_method(overlap, "sync")), name="a")
        toolkit.register(tool(locks=["db", "file"])(_method(overlap, "later")), name="b")
        toolkit.register(tool(locks=["file", "db"])(_method(overlap, "later")), name="c")

        def plain() -> None:
            for name in ("a", "b", "c"):
                toolkit.call_sync(name)

        def in_loop() -> None:
            asyncio.run(toolkit.call_many([("a", {}), ("b", {}), ("c", {})] * 3))

        with ThreadPoolExecutor(3) as pool:
            futures: list[Future[Any]] = [pool.submit(plain), pool.submit(in_loop)]
            for future in futures:
                future.result(PATIENCE)
        assert overlap.most == 1

    def test_others_overlap(self, toolkit: Toolkit) -> None:
        overlap = Overlap()
        toolkit.register(_method(overlap, "later"), name="free")
        asyncio.run(toolkit.call_many([("free", {})] * 6))
        assert overlap.most == 6

    def test_a_tool_keeps_its_locks_when_it_calls_another(self, toolkit: Toolkit) -> None:
        @tool(locks="db")
        def inner() -> str:
            return "in"

        @tool(locks="db")
        async def outer() -> str:
            return (await toolkit.call("inner")).text + toolkit.call_sync("inner").text

        toolkit.register(inner, outer)
        for result in both(toolkit, "outer"):
            assert result.value == "inin"

    def test_a_cancelled_waiter_does_not_open_the_lock(self, toolkit: Toolkit) -> None:
        overlap = Overlap()
        go = asyncio.Event()

        @tool(exclusive=True)
        async def hold() -> None:
            overlap.enter()
            await go.wait()
            overlap.leave()

        toolkit.register(hold)

        async def main() -> None:
            tasks = [asyncio.create_task(toolkit.call("hold")) for _ in range(4)]
            await asyncio.sleep(0.01)
            tasks[1].cancel()
            tasks[2].cancel()
            await asyncio.sleep(0.01)
            assert overlap.most == 1
            go.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(each, ToolResult) for each in results] == [True, False, False, True]
            assert overlap.most == 1
            assert (await toolkit.call("hold")).status is Status.SUCCESS

        asyncio.run(main())

    def test_a_blocked_loop_is_an_error_not_a_deadlock(self, toolkit: Toolkit) -> None:
        @tool(exclusive=True)
        async def hold() -> str:
            await asyncio.sleep(0.01)
            return "held"

        toolkit.register(hold)

        async def main() -> tuple[ToolResult, ToolResult]:
            running = asyncio.create_task(toolkit.call("hold"))
            await asyncio.sleep(0)
            return toolkit.call_sync("hold"), await running

        blocking, held = within(lambda: asyncio.run(main()))
        assert blocking.status is Status.ERROR
        assert blocking.error is not None
        assert "await toolkit.call" in blocking.error.details["remedy"]
        assert held.value == "held"

    def test_a_failing_tool_gives_them_back(self, toolkit: Toolkit) -> None:
        @tool(exclusive=True, timeout=SHORT)
        async def fail(how: str) -> str:
            if how == "raise":
                raise SystemExit(1)
            if how == "hang":
                await asyncio.Event().wait()
            return how

        toolkit.register(fail)
        for how in ("raise", "hang", "fine"):
            for result in both(toolkit, "fail", {"how": how}):
                assert result.is_error is (how != "fine")
