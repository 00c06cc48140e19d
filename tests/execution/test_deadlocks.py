"""Calls that wait for calls: none of them may wait for itself."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pegboard import ToolCall, Toolkit, ToolResult, tool
from tests.support.thinning import first
from tests.support.waiting import PATIENCE, begin, within

CROWD = 6


@pytest.fixture(name="toolkit", params=[1, 2], ids=lambda size: f"{size} threads")
def saturated(request: pytest.FixtureRequest) -> Iterator[Toolkit]:
    """A toolkit whose pool is saturated at once."""
    made = Toolkit(plugins=(), max_threads=request.param)
    yield made
    within(made.close)


def values(results: list[ToolResult]) -> list[Any]:
    assert [result.error for result in results] == [None] * len(results)
    return [result.value for result in results]


def from_a_loop(toolkit: Toolkit, calls: list[Any]) -> list[Any]:
    return values(within(lambda: asyncio.run(toolkit.call_many(calls))))


def from_plain_code(toolkit: Toolkit, calls: list[Any]) -> list[Any]:
    return values(within(lambda: toolkit.call_many_sync(calls)))


def from_threads(toolkit: Toolkit, calls: list[Any]) -> list[Any]:
    def run_all() -> list[ToolResult]:
        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(lambda call: toolkit.call_sync(*call), calls))

    return values(within(run_all))


everywhere = pytest.mark.parametrize("many", [from_a_loop, from_plain_code, from_threads])
Many = Callable[[Toolkit, list[Any]], list[Any]]


@everywhere
def test_worker_to_async_tool_to_worker(toolkit: Toolkit, many: Many) -> None:
    async def middle(n: int) -> int:
        """Call a sync tool."""
        result = await toolkit.call("inner", {"n": n})
        return int(result.value) + 1

    @tool(timeout=PATIENCE)
    def inner(n: int) -> int:
        """Answer."""
        return n + 1

    @tool(timeout=PATIENCE)
    def outer(n: int) -> int:
        """Call an async tool."""
        return int(toolkit.call_sync("middle", {"n": n}).value) + 1

    toolkit.register(outer, middle, inner)
    assert many(toolkit, [("outer", {"n": n}) for n in range(CROWD)]) == [n + 3 for n in range(CROWD)]
    assert toolkit.stats["abandoned_threads"] == 0


@everywhere
@pytest.mark.parametrize("inner", ["plain", "bounded", "later"])
def test_an_async_tool_that_uses_call_sync(toolkit: Toolkit, many: Many, inner: str) -> None:
    async def later(n: int) -> int:
        """Answer after a while."""
        await asyncio.sleep(0.001)
        return n

    def plain(n: int) -> int:
        """Answer."""
        return n

    async def outer(n: int) -> Any:
        """Block the loop."""
        await asyncio.sleep(0.001)
        return toolkit.call_sync(inner, {"n": n}).value

    toolkit.register(later, plain, outer)
    toolkit.register(tool(timeout=PATIENCE)(plain), name="bounded")
    assert many(toolkit, [("outer", {"n": n}) for n in range(CROWD)]) == list(range(CROWD))


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", ["later", "bounded", "nests"])
def test_call_sync_inside_a_running_loop(toolkit: Toolkit, name: str, batch: bool) -> None:
    async def later() -> int:
        """Answer after a while."""
        await asyncio.sleep(0.001)
        return 1

    async def nests() -> Any:
        """Call back."""
        return toolkit.call_sync("bounded").value

    async def main() -> list[ToolResult]:
        if batch:
            return toolkit.call_many_sync([(name, {})] * CROWD)
        return [toolkit.call_sync(name)]

    toolkit.register(later, nests)
    toolkit.register(tool(timeout=PATIENCE)(lambda: 1), name="bounded")
    assert set(values(within(lambda: asyncio.run(main())))) == {1}


@everywhere
def test_batches_inside_workers(toolkit: Toolkit, many: Many) -> None:
    @tool(timeout=PATIENCE)
    def fan(depth: int) -> int:
        """Count the leaves below."""
        if depth == 0:
            return 1
        return sum(values(toolkit.call_many_sync([("fan", {"depth": depth - 1})] * 3)))

    toolkit.register(fan)
    assert many(toolkit, [("fan", {"depth": 3})] * 2) == [27, 27]
    assert toolkit.stats["abandoned_threads"] == 0


@everywhere
@pytest.mark.parametrize("kind", first(2, ["sync", "async", "bounded", "in turns"]))
def test_a_tool_that_calls_itself_thirty_deep(toolkit: Toolkit, many: Many, kind: str) -> None:
    def down(depth: int) -> Any:
        """Go down."""
        return 0 if depth == 0 else 1 + toolkit.call_sync("other", {"depth": depth - 1}).value

    async def down_later(depth: int) -> Any:
        """Go down."""
        await asyncio.sleep(0)
        return 0 if depth == 0 else 1 + toolkit.call_sync("down", {"depth": depth - 1}).value

    bounded = tool(timeout=PATIENCE)(down)
    first = down_later if kind == "async" else bounded if kind == "bounded" else down
    second = down_later if kind in ("async", "in turns") else first
    toolkit.register(first, name="down")
    toolkit.register(second, name="other")
    assert many(toolkit, [("down", {"depth": 30})] * 2) == [30, 30]


class Alone:
    """Notices who is in at the same time."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._inside: Counter[int] = Counter()
        self.most = 0

    def enter(self, who: int) -> None:
        with self._guard:
            self._inside[who] += 1
            self.most = max(self.most, len(self._inside))

    def leave(self, who: int) -> None:
        with self._guard:
            self._inside[who] -= 1
            self._inside += Counter()


@everywhere
@pytest.mark.parametrize("kind", ["sync", "bounded", "async", "batch"])
def test_an_exclusive_tool_keeps_its_lock_when_it_calls_itself(toolkit: Toolkit, many: Many, kind: str) -> None:
    alone = Alone()

    def step(who: int, depth: int) -> Any:
        """Go down, alone."""
        alone.enter(who)
        try:
            if depth == 0:
                return who
            below = ("own", {"who": who, "depth": depth - 1})
            return toolkit.call_many_sync([below])[0].value if kind == "batch" else toolkit.call_sync(*below).value
        finally:
            alone.leave(who)

    async def step_later(who: int, depth: int) -> Any:
        """Go down, alone."""
        alone.enter(who)
        try:
            await asyncio.sleep(0.001)
            return who if depth == 0 else (await toolkit.call("own", {"who": who, "depth": depth - 1})).value
        finally:
            alone.leave(who)

    timeout = None if kind == "sync" else PATIENCE
    toolkit.register(tool(exclusive=True, timeout=timeout)(step_later if kind == "async" else step), name="own")
    calls = [("own", {"who": who, "depth": 4}) for who in range(CROWD)]
    assert many(toolkit, calls) == list(range(CROWD))
    assert alone.most == 1


@everywhere
def test_locks_taken_in_two_orders(toolkit: Toolkit, many: Many) -> None:
    async def later() -> int:
        """Answer after a while."""
        await asyncio.sleep(0.0005)
        return 1

    def bounded() -> int:
        """Answer."""
        return 1

    toolkit.register(tool(locks=("a", "b"))(later), name="ab_later")
    toolkit.register(tool(locks=("b", "a"))(later), name="ba_later")
    toolkit.register(tool(locks=("a", "b"), timeout=PATIENCE)(bounded), name="ab")
    toolkit.register(tool(locks=("b", "a"), timeout=PATIENCE)(bounded), name="ba")
    calls = [(name, None) for _ in range(5) for name in ("ab_later", "ba", "ba_later", "ab")]
    assert many(toolkit, calls) == [1] * len(calls)


@pytest.mark.parametrize("many", [from_a_loop, from_threads])
def test_locks_taken_in_two_orders_by_calls_in_calls(many: Many) -> None:
    """One of the two has to give way, as an error: each holds the lock that the other's inner call waits for."""
    both = threading.Barrier(2)
    inner_calls: list[ToolCall] = []

    def register(name: str, lock: str, other: str) -> None:
        @tool(locks=(lock,))
        def step(inner: bool = False) -> Any:
            """Take the other lock too."""
            if inner:
                return 1
            both.wait(PATIENCE)
            inner_calls.append(toolkit.prepare(other, {"inner": True}))
            return inner_calls[-1].execute_sync().value

        toolkit.register(step, name=name)

    with Toolkit(plugins=()) as toolkit:
        register("one", "a", "two")
        register("two", "b", "one")
        try:
            answers = within(lambda: many(toolkit, [("one", {}), ("two", {})]))
        finally:
            for call in inner_calls:
                call.stop()
    assert 1 in answers


def test_a_lock_whose_holder_waits_for_this_loop() -> None:
    """`holder` waits for `later`, which runs on the library's loop, which `blocks` blocks until `holder` is done."""
    there, begun = threading.Event(), threading.Event()
    inner_calls: list[ToolCall] = []

    async def later() -> int:
        """Take two turns of the loop."""
        begun.set()
        await asyncio.sleep(0.05)
        return 1

    @tool(locks=("a",))
    def holder() -> Any:
        """Hold the lock while an async tool runs."""
        there.wait(PATIENCE)
        return toolkit.call_sync("later").value

    @tool(locks=("a",))
    def locked() -> int:
        """Need the lock."""
        return 1

    async def blocks() -> Any:
        """Block the loop until the lock is free."""
        there.set()
        while not begun.is_set():  # noqa: ASYNC110 - set by a tool that may run on another loop
            await asyncio.sleep(0.001)
        inner_calls.append(toolkit.prepare("locked"))
        return inner_calls[-1].execute_sync().status

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(later, holder, locked, blocks)
        first, second = begin(lambda: toolkit.call_sync("holder")), begin(lambda: toolkit.call_sync("blocks"))
        try:
            within(lambda: (first.result(), second.result()))
        finally:
            for call in inner_calls:
                call.stop()
    assert first.result().value == 1


def test_two_loops_that_block_each_other() -> None:
    """`waits` blocks its loop for `later`, on the library's; `locks` blocks that one for what `holds` on the first."""
    begun = threading.Event()
    inner_calls: list[ToolCall] = []

    async def later() -> int:
        """Take two turns of the loop."""
        begun.set()
        await asyncio.sleep(0.1)
        return 1

    @tool(locks=("a",))
    async def holds() -> int:
        """Hold the lock for two turns of the loop."""
        await asyncio.sleep(0.05)
        return 1

    @tool(locks=("a",))
    def locked() -> int:
        """Need the lock."""
        return 1

    async def waits() -> Any:
        """Block the loop until an async tool has ended."""
        return toolkit.call_sync("later").value

    async def locks() -> Any:
        """Block the loop until the lock is free."""
        while not begun.is_set():  # noqa: ASYNC110 - set by a tool that may run on another loop
            await asyncio.sleep(0.001)
        inner_calls.append(toolkit.prepare("locked"))
        return inner_calls[-1].execute_sync().status.value

    with Toolkit(plugins=()) as toolkit:
        toolkit.register(later, holds, locked, waits, locks)
        other = begin(lambda: toolkit.call_sync("locks"))
        try:
            results = within(lambda: asyncio.run(toolkit.call_many([("holds", {}), ("waits", {})])))
        finally:
            for call in inner_calls:
                call.stop()
            other.result(PATIENCE)
    assert values(results) == [1, 1]


def test_a_deadline_on_a_loop_that_waits_for_the_thread() -> None:
    """`hangs` has the only thread, and its deadline is on the loop that `blocks` blocks until there is a thread."""
    release = threading.Event()

    @tool(timeout=0.05)
    def hangs() -> None:
        """Block."""
        release.wait(PATIENCE)

    async def blocks() -> Any:
        """Block the loop until there is a thread."""
        return toolkit.call_sync("bounded").value

    async def main() -> list[Any]:
        results = await toolkit.call_many([("hangs", {}), ("blocks", {})])
        return [result.status.value for result in results] + [results[1].value]

    with Toolkit(plugins=(), max_threads=1) as toolkit:
        toolkit.register(hangs, blocks)
        toolkit.register(tool(timeout=PATIENCE)(lambda: 1), name="bounded")
        assert within(lambda: asyncio.run(main())) == ["timeout", "success", 1]
        assert toolkit.stats["abandoned_threads"] == 1
        release.set()
