"""Limits: how many calls run at once in all, in a group, under a lock; and that no calls wait in a circle."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Status, ToolCall, Toolkit, ToolResult, tool
from pegboard._execution.concurrency import OVERTAKEN, ConcurrencyLimits, Permit
from tests.support.calls import without_arguments
from tests.support.waiting import PATIENCE, eventually, given_time, until, within

PARALLEL = 12


class Inside:
    """Counts the calls inside at once. None leaves before `most` have come, or no more can come."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.now = self.most = self.came = 0
        self._guard = threading.Lock()
        self._full = threading.Event()

    def enter(self) -> None:
        with self._guard:
            self.now += 1
            self.came += 1
            self.most = max(self.most, self.now)
            if self.now >= self.expected:
                self._full.set()

    def leave(self) -> None:
        with self._guard:
            self.now -= 1

    def sync(self) -> None:
        """Stay until as many are inside as may be."""
        self.enter()
        try:
            assert self._full.wait(PATIENCE)
        finally:
            self.leave()

    async def later(self) -> None:
        """Stay until as many are inside as may be."""
        self.enter()
        try:
            await until(self._full.is_set)
        finally:
            self.leave()


def many(toolkit: Toolkit, driver: str, calls: list[Any]) -> list[ToolResult]:
    def from_threads() -> list[ToolResult]:
        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(toolkit.call_sync, calls))

    run: dict[str, Callable[[], list[ToolResult]]] = {
        "loop": lambda: asyncio.run(toolkit.call_many(without_arguments(calls))),
        "plain": lambda: toolkit.call_many_sync(without_arguments(calls)),
        "threads": from_threads,
    }
    return within(run[driver])


drivers = pytest.mark.parametrize("driver", ["loop", "plain", "threads"])
kinds = pytest.mark.parametrize("kind", ["sync", "bounded", "later"])


def hang(toolkit: Toolkit, inside: Inside, kind: str, name: str = "work", **options: Any) -> None:
    """Register a tool of that kind that goes inside."""
    if kind == "bounded":
        options["timeout"] = PATIENCE

    def sync() -> None:
        inside.sync()

    async def later() -> None:
        await inside.later()

    group = options.pop("group", None)
    toolkit.register(tool(**options)(later if kind == "later" else sync), name=name, group=group)


class TestOfTheToolkit:
    @drivers
    @kinds
    def test_so_many_run_and_no_more(self, driver: str, kind: str) -> None:
        inside = Inside(3)
        with Toolkit(plugins=(), max_concurrency=3) as toolkit:
            hang(toolkit, inside, kind)
            results = many(toolkit, driver, ["work"] * PARALLEL)
        assert [result.status for result in results] == [Status.SUCCESS] * PARALLEL
        assert (inside.most, inside.came) == (3, PARALLEL)

    def test_is_shared_by_tools_sessions_and_threads(self) -> None:
        inside = Inside(2)
        with Toolkit(plugins=(), max_concurrency=2) as toolkit:
            for kind in ("bounded", "later"):
                hang(toolkit, inside, kind, kind)
            sessions = [toolkit.session() for _ in range(3)]

            def in_loop() -> list[ToolResult]:
                return asyncio.run(sessions[0].call_many([("later", {}), ("bounded", {})] * 3))

            def plain() -> list[ToolResult]:
                return sessions[1].call_many_sync([("later", {}), ("bounded", {})] * 3)

            with ThreadPoolExecutor(2) as pool:
                futures = [pool.submit(in_loop), pool.submit(plain)]
                results = within(lambda: [result for future in futures for result in future.result()])
        assert {result.status for result in results} == {Status.SUCCESS}
        assert inside.most == 2

    def test_without_one_every_call_runs(self) -> None:
        inside = Inside(PARALLEL)
        with Toolkit(plugins=()) as toolkit:
            hang(toolkit, inside, "later")
            many(toolkit, "loop", ["work"] * PARALLEL)
        assert inside.most == PARALLEL

    @pytest.mark.parametrize("value", [0, -1, 1.5, "3", True])
    def test_what_is_no_number_of_calls(self, value: Any) -> None:
        with pytest.raises(ValueError, match="max_concurrency"):
            Toolkit(plugins=(), max_concurrency=value)
        toolkit = Toolkit(plugins=())
        with pytest.raises(ValueError, match="max_concurrency"):
            toolkit.create_group("g", max_concurrency=value)
        assert toolkit.groups == ()

    def test_a_call_costs_no_steps_without_one(self) -> None:
        free, limited = Toolkit(plugins=()), Toolkit(plugins=(), max_concurrency=3)
        for toolkit, straight in ((free, True), (limited, False)):
            toolkit.register(lambda: 1, name="one")
            ready: Any = toolkit.ready("one")
            assert (ready.begins, ready.begins_on_loop) == (straight, straight)


class TestOfGroups:
    @drivers
    @kinds
    def test_so_many_tools_of_the_group_run(self, driver: str, kind: str) -> None:
        inside, free = Inside(2), Inside(PARALLEL)
        with Toolkit(plugins=(), max_threads=4 * PARALLEL) as toolkit:
            toolkit.create_group("web", max_concurrency=2)
            for name in ("fetch", "search"):
                hang(toolkit, inside, kind, name, group="web")
            hang(toolkit, free, kind, "free")
            results = many(toolkit, driver, [*["fetch", "search"] * 6, *["free"] * PARALLEL])
        assert {result.status for result in results} == {Status.SUCCESS}
        assert (inside.most, free.most) == (2, PARALLEL)

    def test_a_tool_in_two_needs_a_place_in_each(self) -> None:
        entered, go = threading.Event(), threading.Event()
        order: list[str] = []

        def hold() -> bool:
            entered.set()
            return go.wait(PATIENCE)

        with Toolkit(plugins=()) as toolkit:
            toolkit.create_group("a", max_concurrency=1)
            toolkit.create_group("b", max_concurrency=1)
            toolkit.register(hold, group="a")
            toolkit.register(lambda: order.append("both"), name="both", group=["a", "b"])
            toolkit.register(lambda: order.append("b"), name="only_b", group="b")
            with ThreadPoolExecutor(2) as pool:
                held = pool.submit(toolkit.call_sync, "hold")
                assert entered.wait(PATIENCE)
                waiting = pool.submit(toolkit.call_sync, "both")
                assert eventually(lambda: toolkit.stats["waiting"] == 1)
                within(lambda: toolkit.call_sync("only_b"))  # while it waits for `a`, it does not keep `b`
                assert order == ["b"]
                go.set()
                assert waiting.result(PATIENCE).status is Status.SUCCESS
                held.result(PATIENCE)
        assert order == ["b", "both"]

    def test_one_that_is_made_anew_has_the_new_limit(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            for capacity in (1, 3):
                inside = Inside(capacity)
                toolkit.create_group("g", max_concurrency=capacity)
                hang(toolkit, inside, "later", group="g")
                many(toolkit, "loop", ["work"] * PARALLEL)
                assert inside.most == capacity
                toolkit.remove_groups("g")

    def test_is_shown(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("g", max_concurrency=4)
        toolkit.create_group("h")
        assert [group.max_concurrency for group in toolkit.groups] == [4, None]


@contextmanager
def holding() -> Iterator[tuple[Toolkit, threading.Event]]:
    """A toolkit one of whose calls blocks all others, until the event is set."""
    entered, go = threading.Event(), threading.Event()

    @tool(exclusive=True)
    def hold(wait: bool = True) -> bool:
        entered.set()
        return go.wait(PATIENCE) if wait else True

    with Toolkit(plugins=()) as toolkit, ThreadPoolExecutor(1) as pool:
        toolkit.register(hold)
        first = pool.submit(toolkit.call_sync, "hold")
        assert entered.wait(PATIENCE)
        yield toolkit, go
        go.set()
        first.result(PATIENCE)


class TestWaiting:
    @pytest.fixture
    def held(self) -> Iterator[tuple[Toolkit, threading.Event]]:
        with holding() as found:
            yield found

    @pytest.mark.parametrize("sync", [True, False])
    def test_is_counted_and_shown(self, held: tuple[Toolkit, threading.Event], sync: bool) -> None:
        toolkit, go = held
        calls = [toolkit.prepare("hold") for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(_executed, call, sync=sync) for call in calls]
            assert eventually(lambda: toolkit.stats["waiting"] == 3)
            assert toolkit.stats["running"] == 1
            assert {call.status for call in calls} == {Status.PENDING}
            go.set()
            assert {future.result(PATIENCE).status for future in futures} == {Status.SUCCESS}
        assert toolkit.stats["waiting"] == toolkit.stats["running"] == 0

    @pytest.mark.parametrize("sync", [True, False])
    def test_is_not_charged(self, sync: bool) -> None:
        def found(timeout: float) -> tuple[Status, bool]:
            with holding() as (toolkit, go):
                call = toolkit.prepare("hold", {"wait": False})
                policy = ExecutionPolicy(timeout=timeout)
                timer = threading.Timer(4 * timeout, go.set)
                timer.start()
                result = call.execute_sync(policy=policy) if sync else asyncio.run(call.execute(policy=policy))
                timer.join()
            return result.status, result.duration < 4 * timeout

        assert given_time(found, lambda each: each[1] and each[0] is Status.SUCCESS, 0.05) == (Status.SUCCESS, True)

    def test_first_come_first_served(self, held: tuple[Toolkit, threading.Event]) -> None:
        toolkit, go = held
        order: list[int] = []

        @tool(locks="line")
        def line(n: int) -> None:
            order.append(n)

        @tool(locks="line")
        def stopper() -> bool:
            return go.wait(PATIENCE)

        toolkit.register(line, stopper)
        with ThreadPoolExecutor(10) as pool:
            futures: list[Future[Any]] = [pool.submit(toolkit.call_sync, "stopper")]
            assert eventually(lambda: toolkit.stats["running"] == 2)
            for n in range(8):
                call = toolkit.prepare("line", {"n": n})
                futures.append(pool.submit(_executed, call, sync=n % 2 == 0))
                assert eventually(partial(_are_waiting, toolkit, n + 1))
            go.set()
            for future in futures:
                future.result(PATIENCE)
        assert order == list(range(8))

    @pytest.mark.parametrize("sync", [True, False])
    def test_one_that_is_stopped_makes_way(self, held: tuple[Toolkit, threading.Event], sync: bool) -> None:
        toolkit, go = held
        calls = [toolkit.prepare("hold") for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            futures = []
            for count, call in enumerate(calls, start=1):
                futures.append(pool.submit(_executed, call, sync=sync))
                assert eventually(partial(_are_waiting, toolkit, count))
            calls[0].stop()
            calls[1].stop()
            assert {future.result(PATIENCE).status for future in futures[:2]} == {Status.CANCELLED}
            assert toolkit.stats["waiting"] == 1
            go.set()
            assert futures[2].result(PATIENCE).status is Status.SUCCESS

    @pytest.mark.slow
    def test_thousands_in_line(self) -> None:
        count = 3_000
        inside = Inside(1)
        with Toolkit(plugins=(), max_concurrency=10) as toolkit:
            hang(toolkit, inside, "later", "alone", exclusive=True)
            toolkit.register(lambda: None, name="free")
            calls = ["alone"] * (count // 10) + ["free"] * count
            results = many(toolkit, "loop", calls)
            assert {result.status for result in results} == {Status.SUCCESS}
            assert toolkit.stats["waiting"] == 0
        assert inside.most == 1


def _executed(call: ToolCall, *, sync: bool) -> ToolResult:
    return call.execute_sync() if sync else asyncio.run(call.execute())


def _are_waiting(toolkit: Toolkit, count: int) -> bool:
    return bool(toolkit.stats["waiting"] == count)


def is_in(place: Permit) -> bool:
    return place.held


class TestOvertaking:
    """The table itself, without tools: who may overtake whom."""

    def test_a_call_that_waits_for_two_keeps_neither(self) -> None:
        limits = ConcurrencyLimits()
        a, b = limits.named("a"), limits.named("b")
        holder = taken(limits.take([a]))
        both = taken(limits.take([a, b]))
        assert both.turn is not None
        assert not both.turn.done()
        only_b = taken(limits.take([b]))
        assert is_in(only_b)
        limits.leave(holder)
        assert not is_in(both)
        limits.leave(only_b)
        assert is_in(both)
        assert both.turn.done()

    def test_is_not_overtaken_for_ever(self) -> None:
        limits = ConcurrencyLimits()
        a, b = limits.named("a"), limits.named("b")
        holder = taken(limits.take([a]))
        both = taken(limits.take([a, b]))
        overtook = 0
        while is_in(other := taken(limits.take([b]))):
            limits.leave(other)
            overtook += 1
            assert overtook < 2 * OVERTAKEN
        assert overtook >= OVERTAKEN
        limits.leave(holder)
        assert is_in(both)
        assert not is_in(other)
        limits.leave(both)
        assert is_in(other)
        limits.leave(other)

    def test_a_call_above_that_has_ended_lends_nothing(self) -> None:
        limits = ConcurrencyLimits()
        a, b = limits.named("a"), limits.named("b")
        above = taken(limits.take([a]))
        limits.enter(above)
        try:
            below = taken(limits.take([b]))
            limits.enter(below)
            assert limits.take([a]) is None
            limits.leave(above)
            own = taken(limits.take([a]))
            assert own.held
            assert not is_in(taken(limits.take([a, limits.named("c")])))
        finally:
            limits.enter(None)

    def test_places_given_back_in_any_order(self) -> None:
        limits = ConcurrencyLimits()
        wide = limits.named("wide", 3)
        places = [taken(limits.take([wide])) for _ in range(6)]
        for index in (1, 0, 2):
            limits.leave(places[index])
        assert [place.held for place in places] == [False, False, False, True, True, True]
        for place in places:
            limits.leave(place)
        assert not wide.holders

    def test_one_that_no_longer_waits_is_passed_over(self) -> None:
        limits = ConcurrencyLimits()
        only = limits.named("only")
        places = [taken(limits.take([only])) for _ in range(3)]
        assert places[1].turn is not None
        places[1].turn.cancel()
        limits.leave(places[0])
        assert [place.held for place in places] == [False, False, True]
        limits.leave(places[1])
        limits.leave(places[2])
        assert taken(limits.take([only])).held

    def test_limits_are_forgotten(self) -> None:
        limits = ConcurrencyLimits()
        for n in range(100):
            limits.leave(taken(limits.take([limits.named(f"lock {n}")])))
        gc.collect()
        assert len(limits._named) == 0
        assert not limits._queues


def taken(place: Permit | None) -> Permit:
    assert place is not None
    return place


class TestNested:
    @drivers
    @pytest.mark.parametrize("inner", ["sync", "bounded", "later"])
    @pytest.mark.parametrize("outer", ["sync", "bounded", "later"])
    def test_a_tool_that_calls_the_toolkit_again(self, driver: str, outer: str, inner: str) -> None:
        with Toolkit(plugins=(), max_concurrency=1, max_threads=2) as toolkit:
            toolkit.create_group("g", max_concurrency=1)

            def ends() -> int:
                return 1

            async def ends_later() -> int:
                await asyncio.sleep(0)
                return 1

            def calls() -> Any:
                return toolkit.call_sync("inner").value

            async def calls_later() -> Any:
                return (await toolkit.call("inner")).value

            own: dict[str, dict[str, Any]] = {"bounded": {"timeout": PATIENCE}}
            toolkit.register(
                tool(exclusive=True, **own.get(inner, {}))(ends_later if inner == "later" else ends),
                name="inner", group="g",
            )  # fmt: skip
            toolkit.register(
                tool(**own.get(outer, {}))(calls_later if outer == "later" else calls), name="outer", group="g"
            )
            results = many(toolkit, driver, ["outer", "inner"] * 4)
            assert [result.value for result in results] == [1] * 8, results

    def test_the_calls_of_a_tool_share_its_place(self) -> None:
        inside = Inside(5)
        with Toolkit(plugins=(), max_concurrency=1) as toolkit:
            hang(toolkit, inside, "later", "leaf")

            async def fan() -> int:
                return len(await toolkit.call_many([("leaf", {})] * 5))

            toolkit.register(fan)
            assert within(lambda: asyncio.run(toolkit.call("fan"))).value == 5
        assert inside.most == 5

    @drivers
    def test_innocents_never_make_a_circle(self, driver: str) -> None:
        """One holds the toolkit's only place and calls what needs a lock; another wants the lock and a place."""
        with Toolkit(plugins=(), max_concurrency=2) as toolkit:
            toolkit.create_group("one", max_concurrency=1)
            toolkit.create_group("two", max_concurrency=1)

            @tool(locks="db")
            async def locked() -> int:
                await asyncio.sleep(0.001)
                return 1

            async def outer() -> Any:
                await asyncio.sleep(0.001)
                return (await toolkit.call("locked")).value

            toolkit.register(locked, group=["one", "two"])
            toolkit.register(outer, group="two")
            toolkit.register(tool(locks="db")(lambda: 1), name="plain", group="one")
            calls = ["outer", "locked", "plain", "outer", "plain", "locked"] * 4
            results = many(toolkit, driver, calls)
            assert [result.value for result in results] == [1] * len(calls), results

    @pytest.mark.parametrize("many_calls", [1, 3])
    def test_a_circle_of_groups_gives_way(self, many_calls: int) -> None:
        """So many hold `a` and call what needs `b`, so many hold `b` and call what needs `a`."""
        here = threading.Barrier(2 * many_calls)
        with Toolkit(plugins=(), max_threads=20) as toolkit:
            for group in ("a", "b"):
                toolkit.create_group(group, max_concurrency=many_calls)

            def crossing(name: str, other: str) -> None:
                @tool(timeout=PATIENCE)
                def cross(outer: bool = True) -> Any:
                    if not outer:
                        return name
                    here.wait(PATIENCE)
                    result = toolkit.call_sync(other, {"outer": False})
                    return result.value if result.error is None else result.error.kind

                toolkit.register(cross, name=name, group=name[-1])

            crossing("in_a", "in_b")
            crossing("in_b", "in_a")
            results = within(lambda: toolkit.call_many_sync([("in_a", {}), ("in_b", {})] * many_calls))
            seen = Counter(result.value for result in results)
            assert seen["deadlock"] >= 1
            assert seen["in_a"] + seen["in_b"] >= 1
            assert sum(seen.values()) == 2 * many_calls
            assert toolkit.stats["waiting"] == 0

    def test_one_that_gives_way_says_why(self) -> None:
        toolkit = Toolkit(plugins=())

        @tool(exclusive=True)
        async def hold() -> Any:
            await asyncio.sleep(0)
            return toolkit.call_sync("second").text

        @tool(locks="x")
        async def second() -> str:
            return "fine"

        toolkit.register(hold, second)

        async def main() -> ToolResult:
            running = asyncio.create_task(toolkit.call("hold"))
            await asyncio.sleep(0)
            blocked = toolkit.call_sync("hold")
            assert (await running).value == "fine"
            return blocked

        result = within(lambda: asyncio.run(main()))
        assert result.error is not None
        assert result.error.kind == "deadlock"
        assert "exclusive tool 'hold'" in result.error.details["waits_for"]
        assert "hold" not in result.error.message
        assert "await toolkit.call" in result.error.details["remedy"]
        toolkit.close()

    def test_a_waiting_call_that_blocks_nothing_is_no_circle(self) -> None:
        """A tool holds a lock and a background task of its own waits for one that another call holds."""
        go, waiting = threading.Event(), threading.Event()
        with Toolkit(plugins=()) as toolkit:

            @tool(locks="b")
            def hold_b() -> bool:
                return go.wait(PATIENCE)

            @tool(locks="a")
            async def hold_a() -> Any:
                task = asyncio.create_task(toolkit.call("want_b"))
                await until(lambda: toolkit.stats["waiting"])
                waiting.set()
                return (await task).value

            toolkit.register(hold_b, hold_a)
            toolkit.register(tool(locks="b")(lambda: 1), name="want_b")
            toolkit.register(tool(locks="a")(lambda: 2), name="want_a")
            with ThreadPoolExecutor(3) as pool:
                first = pool.submit(toolkit.call_sync, "hold_b")
                assert eventually(lambda: toolkit.stats["running"] == 1)
                second = pool.submit(lambda: asyncio.run(toolkit.call("hold_a")))
                assert waiting.wait(PATIENCE)
                third = pool.submit(toolkit.call_sync, "want_a")
                assert eventually(lambda: toolkit.stats["waiting"] == 2)
                go.set()
                assert [each.result(PATIENCE).value for each in (first, second, third)] == [True, 1, 2]

    def test_a_task_that_outlives_its_tool_takes_its_own_place(self) -> None:
        inside = Inside(1)
        tasks: list[Any] = []
        with Toolkit(plugins=()) as toolkit:
            hang(toolkit, inside, "later", "leaf", locks="x")

            @tool(locks="x")
            async def spawn() -> None:
                async def later() -> None:
                    await asyncio.sleep(0.01)
                    await toolkit.call("leaf")

                tasks.extend(asyncio.create_task(later()) for _ in range(3))

            toolkit.register(spawn)

            async def main() -> None:
                await toolkit.call("spawn")
                await asyncio.gather(*tasks)

            within(lambda: asyncio.run(main()))
        assert (inside.most, inside.came) == (1, 3)

    @pytest.mark.slow
    def test_a_thousand_callers_with_waiting_calls(self) -> None:
        count = 500
        with Toolkit(plugins=()) as toolkit:
            toolkit.create_group("leaves", max_concurrency=2)

            @tool(locks=())
            async def leaf() -> int:
                await asyncio.sleep(0)
                return 1

            def register(n: int) -> None:
                async def branch() -> Any:
                    return (await toolkit.call("leaf")).value

                toolkit.register(tool(exclusive=True)(branch), name=f"branch_{n}")

            for n in range(count):
                register(n)
            toolkit.register(leaf, group="leaves")
            results = many(toolkit, "loop", [f"branch_{n}" for n in range(count)])
            assert [result.value for result in results] == [1] * count


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_of_calls_end(seed: int) -> None:
    """Tools with random limits that call random tools: every call ends, and the counts hold."""
    import random

    dice = random.Random(seed)
    names = [f"tool_{n}" for n in range(8)]
    inside: Counter[str] = Counter()
    too_many: list[str] = []
    with Toolkit(plugins=(), max_concurrency=4, max_threads=4) as toolkit:
        for group in ("g", "h"):
            toolkit.create_group(group, max_concurrency=2)

        def register(index: int) -> None:
            name = names[index]
            exclusive = dice.random() < 0.3
            below = dice.sample(names[index + 1 :], k=min(2, len(names) - index - 1))

            def enter() -> None:
                inside[name] += 1
                if exclusive and inside[name] > 1:
                    too_many.append(name)

            def sync() -> int:
                enter()
                try:
                    return 1 + sum(_number(toolkit.call_sync(each)) for each in below)
                finally:
                    inside[name] -= 1

            async def later() -> int:
                enter()
                try:
                    await asyncio.sleep(0)
                    return 1 + sum(map(_number, await toolkit.call_many(without_arguments(below))))
                finally:
                    inside[name] -= 1

            locks = dice.sample(["x", "y"], k=dice.randint(0, 1))
            group = dice.sample(["g", "h"], k=dice.randint(0, 2))
            made = tool(exclusive=exclusive, locks=locks, timeout=dice.choice([None, PATIENCE]))
            toolkit.register(made(dice.choice([sync, later])), name=name, group=group)

        for index in range(len(names)):
            register(index)
        calls = [dice.choice(names) for _ in range(40)]
        results = [result for driver in ("loop", "plain", "threads") for result in many(toolkit, driver, calls)]
        assert len(results) == 3 * len(calls)
        assert {result.status for result in results} == {Status.SUCCESS}
        assert toolkit.stats["waiting"] == toolkit.stats["running"] == 0
    assert too_many == []
    assert not +inside


def _number(result: ToolResult) -> int:
    if result.error is not None:
        assert result.error.kind == "deadlock", result
        return 0
    return int(result.value)


def test_a_call_that_waits_can_be_prepared_stopped_and_forgotten() -> None:
    go = threading.Event()
    calls: list[ToolCall] = []
    with Toolkit(plugins=(), max_concurrency=1) as toolkit, ThreadPoolExecutor(4) as pool:
        toolkit.register(lambda: go.wait(PATIENCE), name="hold")
        first = pool.submit(toolkit.call_sync, "hold")
        assert eventually(lambda: toolkit.stats["running"] == 1)
        for _ in range(3):
            calls.append(toolkit.prepare("hold"))
            pool.submit(calls[-1].execute_sync)
        assert eventually(lambda: toolkit.stats["waiting"] == 3)
        for call in calls:
            call.stop()
        assert eventually(lambda: toolkit.stats["waiting"] == 0)
        go.set()
        assert first.result(PATIENCE).value is True
        assert not toolkit._core.engine.limits._queues
