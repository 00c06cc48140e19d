"""Calls: every way to make one, from everywhere, and what a `ToolCall` says while it lives."""

import asyncio
import collections
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

import pytest

from pegboard import (
    CancelToken,
    Chunk,
    Emitter,
    ExecutionPolicy,
    PegboardError,
    Status,
    Tool,
    ToolCall,
    Toolkit,
    ToolResult,
    tool,
)
from tests.support.waiting import PATIENCE, begin, eventually, until, within

"""Seconds after which a test that should never block is held to be deadlocked."""


@tool
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


@tool
async def add_later(a: int, b: int = 2) -> int:
    """Add, after a pause."""
    await asyncio.sleep(0.001)
    return a + b


@tool
def count(n: int) -> Iterator[str]:
    """Count."""
    for i in range(n):
        yield str(i)


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(add, add_later, count)
        yield made


def waiting(toolkit: Toolkit) -> list[int]:
    """Register `wait`, which waits until it is cancelled; it notes each time that it was."""
    cancelled: list[int] = []

    @tool
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    toolkit.register(wait)
    return cancelled


class TestArguments:
    @pytest.mark.parametrize("name", ["add", "add_later"])
    @pytest.mark.parametrize(
        "sent",
        [
            {"a": 3, "b": 4},
            '{"a": 3, "b": 4}',
            b'{"a": 3, "b": 4}',
            bytearray(b'{"a": 3, "b": 4}'),
            MappingProxyType({"a": 3, "b": 4}),
            collections.OrderedDict(a=3, b=4),
            collections.ChainMap({"a": 3}, {"b": 4}),
        ],
        ids=lambda sent: type(sent).__name__,
    )
    def test_every_form(self, toolkit: Toolkit, name: str, sent: Any) -> None:
        assert toolkit.call_sync(name, sent).value == 7
        assert asyncio.run(toolkit.call(name, sent)).value == 7
        assert toolkit.prepare(name, sent).execute_sync().value == 7

    @pytest.mark.parametrize("sent", [None, "", "  \n", b"", "{}", {}])
    def test_nothing_is_no_arguments(self, toolkit: Toolkit, sent: Any) -> None:
        toolkit.register(lambda: "ran", name="bare")
        assert toolkit.call_sync("bare", sent).value == "ran"
        assert toolkit.prepare("bare", sent).arguments == {}
        assert toolkit.call_sync("add", sent).status is Status.INVALID

    def test_arguments_are_not_changed(self, toolkit: Toolkit) -> None:
        sent: dict[str, Any] = {"a": "3"}
        assert toolkit.call_sync("add", sent).value == 5
        assert sent == {"a": "3"}

    def test_call_arguments_are_what_was_sent_decoded(self, toolkit: Toolkit) -> None:
        call = toolkit.prepare("add", '{"a": "3"}')
        assert call.arguments in ({"a": "3"}, {"a": 3})
        assert call.typed == {"a": 3, "b": 2}


class TestIdentity:
    def test_ids_are_unique(self, toolkit: Toolkit) -> None:
        def some() -> list[str]:
            return [toolkit.call_sync("add", {"a": 1}).call_id for _ in range(200)]

        with ThreadPoolExecutor(8) as pool:
            ids = [each for future in [pool.submit(some) for _ in range(8)] for each in future.result()]
        assert len(set(ids)) == len(ids) == 1600
        assert all(ids)

    @pytest.mark.parametrize("name", ["add", "add_later", "missing"])
    def test_a_given_id_is_kept(self, toolkit: Toolkit, name: str) -> None:
        assert toolkit.call_sync(name, {"a": 1}, call_id="mine").call_id == "mine"
        assert asyncio.run(toolkit.call(name, {"a": 1}, call_id="mine")).call_id == "mine"
        assert toolkit.prepare(name, {"a": 1}, call_id="mine").id == "mine"
        result = toolkit.call_many_sync([{"name": name, "arguments": {"a": 1}, "id": "mine"}])[0]
        assert (result.call_id, result.name) == ("mine", name)

    def test_provider_meta_is_untouched(self, toolkit: Toolkit) -> None:
        meta = {"signature": object()}
        call = ToolCall("c1", "add", {"a": 1}, meta)
        assert toolkit.call_sync(call).value == 3
        assert call.provider_meta is meta
        assert call.result is not None
        assert call.result.call_id == "c1"

    def test_a_call_that_no_toolkit_prepared(self) -> None:
        call = ToolCall("c1", "add", {"a": 1})
        for act in (call.execute_sync, call.stop, lambda: asyncio.run(call.execute())):
            with pytest.raises(PegboardError, match=r"toolkit\.prepare"):
                act()


class TestStates:
    def test_a_life(self, toolkit: Toolkit) -> None:
        seen: list[Status] = []

        def watch(call: ToolCall, x: int) -> str:
            seen.append(call.status)
            assert call.typed == {"x": x}
            call.log("a line")
            return "done"

        toolkit.register(watch)
        call = toolkit.prepare("watch", {"x": 1})
        assert (call.status, call.result) == (Status.PENDING, None)
        result = call.execute_sync()
        assert seen == [Status.RUNNING]
        assert call.result is result
        assert call.status is result.status is Status.SUCCESS
        assert result.logs == ("a line",)

    def test_a_tool_sees_its_call_however_it_is_called(self, toolkit: Toolkit) -> None:
        def watch(call: ToolCall, x: int) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
            return call.id, call.status.value, dict(call.arguments), dict(call.typed)

        toolkit.register(watch)
        told = ("c", "running", {"x": 1}, {"x": 1})
        assert toolkit.call_sync("watch", '{"x": 1}', call_id="c").value == told
        assert asyncio.run(toolkit.call("watch", '{"x": 1}', call_id="c")).value == told

    @pytest.mark.parametrize(
        ("name", "sent", "status"),
        [
            ("missing", {}, Status.NOT_FOUND),
            ("add", {}, Status.INVALID),
            ("add", "{", Status.INVALID),
            ("never", {}, Status.DENIED),
            ("hidden", {}, Status.INACTIVE),
        ],
    )
    def test_a_bad_call_has_its_result_at_once(self, toolkit: Toolkit, name: str, sent: Any, status: Status) -> None:
        ran: list[str] = []
        toolkit.create_group("closed", active=False)
        toolkit.register(lambda: ran.append("hidden"), name="hidden", group="closed")
        toolkit.register(lambda: ran.append("never"), name="never")
        toolkit.set_permission("never", "never")
        call = toolkit.prepare(name, sent)
        assert call.result is not None
        assert call.status is call.result.status is status
        assert call.result.is_error
        assert call.execute_sync() is call.result
        assert asyncio.run(call.execute()) is call.result
        assert toolkit.call_sync(name, sent).status is status
        assert ran == []

    def test_awaiting_approval(self) -> None:
        seen: list[Status] = []
        made: list[ToolCall] = []

        def approve(request: Any) -> bool:
            seen.append(made[0].status)
            return True

        toolkit = Toolkit(plugins=(), approver=approve)
        toolkit.register(tool(requires_approval=True)(lambda: 1), name="asks")
        made.append(toolkit.prepare("asks"))
        assert made[0].status is Status.AWAITING_APPROVAL
        assert made[0].execute_sync().value == 1
        assert seen == [Status.AWAITING_APPROVAL]


class TestExecute:
    def test_runs_once(self, toolkit: Toolkit) -> None:
        ran: list[int] = []
        toolkit.register(lambda: ran.append(1), name="once")
        call = toolkit.prepare("once")
        first = call.execute_sync()
        assert call.execute_sync() is first
        assert asyncio.run(call.execute()) is first
        assert toolkit.call_sync(call) is first
        assert ran == [1]

    def test_runs_once_for_many_threads(self, toolkit: Toolkit) -> None:
        ran: list[int] = []

        def once() -> str:
            time.sleep(0.02)
            ran.append(1)
            return "x"

        toolkit.register(once)
        call = toolkit.prepare("once")
        with ThreadPoolExecutor(8) as pool:
            results = [future.result(PATIENCE) for future in [pool.submit(call.execute_sync) for _ in range(8)]]
        assert ran == [1]
        assert all(result is results[0] for result in results)

    def test_runs_once_for_many_tasks(self, toolkit: Toolkit) -> None:
        async def main() -> list[ToolResult]:
            call = toolkit.prepare("add_later", {"a": 1})
            return await asyncio.gather(*(call.execute() for _ in range(8)))

        results = asyncio.run(main())
        assert all(result is results[0] for result in results)
        assert results[0].value == 3

    def test_a_cancelled_waiter_leaves_the_call_alone(self, toolkit: Toolkit) -> None:
        async def main() -> ToolResult:
            call = toolkit.prepare("add_later", {"a": 1})
            first = asyncio.create_task(call.execute())
            second = asyncio.create_task(call.execute())
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            return await first

        assert asyncio.run(main()).value == 3

    def test_a_waiter_hears_of_a_cancelled_runner(self, toolkit: Toolkit) -> None:
        @tool
        async def rest_for_ever() -> None:
            await asyncio.Event().wait()

        toolkit.register(rest_for_ever)

        async def main() -> ToolResult:
            call = toolkit.prepare("rest_for_ever")
            first = asyncio.create_task(call.execute())
            second = asyncio.create_task(call.execute())
            await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            return await second

        assert asyncio.run(main()).status is Status.CANCELLED

    def test_waiting_for_itself_is_an_error_not_a_deadlock(self, toolkit: Toolkit) -> None:
        async def main() -> tuple[ToolResult, ToolResult]:
            call = toolkit.prepare("add_later", {"a": 1})
            running = asyncio.create_task(call.execute())
            await asyncio.sleep(0)
            return call.execute_sync(), await running

        blocked, result = within(lambda: asyncio.run(main()))
        assert (blocked.status, result.status) == (Status.ERROR, Status.SUCCESS)
        assert blocked.error is not None
        assert "await call.execute()" in blocked.error.details["remedy"]


class TestMany:
    def test_results_in_call_order(self, toolkit: Toolkit) -> None:
        ended: list[int] = []
        over: dict[int, asyncio.Event] = {}

        @tool
        async def wait(n: int) -> int:
            if n < 4:  # the last one ends first
                await over[n + 1].wait()
            ended.append(n)
            over[n].set()
            return n

        toolkit.register(wait)
        calls = [("wait", {"n": n}) for n in range(5)]
        over.update((n, asyncio.Event()) for n in range(5))
        assert [result.value for result in asyncio.run(toolkit.call_many(calls))] == [0, 1, 2, 3, 4]
        assert ended == [4, 3, 2, 1, 0]
        over.update((n, asyncio.Event()) for n in range(5))
        assert [result.value for result in toolkit.call_many_sync(calls)] == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("sync", [True, False])
    def test_sync_tools_run_in_parallel(self, toolkit: Toolkit, sync: bool) -> None:
        together = threading.Barrier(8)

        def meet() -> bool:
            together.wait(PATIENCE)
            return True

        toolkit.register(meet)
        calls: list[Any] = [("meet", {})] * 8
        results = toolkit.call_many_sync(calls) if sync else asyncio.run(toolkit.call_many(calls))
        assert [result.value for result in results] == [True] * 8

    def test_one_after_the_other(self) -> None:
        at_work = 0
        most = 0

        @tool
        async def work() -> None:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0.001)
            at_work -= 1

        with Toolkit(plugins=(), parallel=False) as toolkit:
            toolkit.register(work)
            toolkit.call_many_sync([("work", {})] * 5)
            assert most == 1
            asyncio.run(toolkit.call_many([("work", {})] * 5))
            assert most == 1

    def test_every_form_of_a_call(self, toolkit: Toolkit) -> None:
        same = ToolCall("same", "add", {"a": 5})
        calls: list[Any] = [
            ("add", {"a": 1}),
            ["add", '{"a": 2}'],
            {"name": "add", "arguments": {"a": 3}},
            same,
            same,
            ("nope", None),
        ]
        results = toolkit.call_many_sync(calls)
        assert [result.value for result in results] == [3, 4, 5, 7, 7, None]
        assert results[3] is results[4]
        assert results[5].status is Status.NOT_FOUND

    def test_no_calls(self, toolkit: Toolkit) -> None:
        assert toolkit.call_many_sync([]) == []
        assert asyncio.run(toolkit.call_many([])) == []

    def test_what_is_no_call_is_refused_before_any_runs(self, toolkit: Toolkit) -> None:
        ran: list[int] = []
        toolkit.register(lambda: ran.append(1), name="first")
        with pytest.raises(PegboardError, match="a call is a ToolCall"):
            toolkit.call_many_sync([("first", {}), 7])
        assert ran == []

    @pytest.mark.parametrize("lone", ["add", b"add", {"name": "add"}, ToolCall("1", "add"), None, 7])
    def test_what_is_no_list_is_refused(self, toolkit: Toolkit, lone: Any) -> None:
        with pytest.raises(PegboardError, match=f"several calls are a list; got a lone {type(lone).__name__}"):
            toolkit.call_many_sync(lone)

    def test_from_an_iterator(self, toolkit: Toolkit) -> None:
        assert [each.value for each in toolkit.call_many_sync(("add", {"a": n}) for n in range(3))] == [2, 3, 4]

    def test_cancelling_the_caller_cancels_all(self, toolkit: Toolkit) -> None:
        all_begun = asyncio.Event()
        cancelled: list[int] = []

        @tool
        async def wait(n: int) -> None:
            if n == 2:
                all_begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(n)
                raise

        toolkit.register(wait)

        async def main() -> None:
            task = asyncio.create_task(toolkit.call_many([("wait", {"n": n}) for n in range(3)]))
            await all_begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(main())
        assert sorted(cancelled) == [0, 1, 2]


class TestStream:
    def test_chunks_then_result_of_each(self, toolkit: Toolkit) -> None:
        async def main() -> list[Any]:
            calls = [{"name": "count", "arguments": {"n": 3}, "id": str(i)} for i in range(3)]
            return [event async for event in toolkit.stream(calls)]

        events = asyncio.run(main())
        for i in range(3):
            own = [event for event in events if event.call_id == str(i)]
            assert [event.text for event in own[:-1]] == ["0", "1", "2"]
            assert all(isinstance(event, Chunk) for event in own[:-1])
            assert isinstance(own[-1], ToolResult)
            assert own[-1].value == "012"

    def test_results_as_they_come(self, toolkit: Toolkit) -> None:
        @tool
        async def wait(n: int) -> int:
            await asyncio.sleep(0.02 * n)
            return n

        toolkit.register(wait)

        async def main() -> list[Any]:
            events: Any = toolkit.stream([("wait", {"n": n}) for n in (2, 0, 1)])
            return [event.value async for event in events]

        assert asyncio.run(main()) == [0, 1, 2]

    def test_leaving_early_cancels_the_rest(self, toolkit: Toolkit) -> None:
        cancelled = waiting(toolkit)

        async def main() -> None:
            events: Any = toolkit.stream([("wait", {}), ("add", {"a": 1})])
            assert (await anext(events)).value == 3
            await events.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(main())
        assert cancelled == [1]

    def test_bad_calls_stream_their_results(self, toolkit: Toolkit) -> None:
        async def main() -> list[Status]:
            events: Any = toolkit.stream([("nope", {}), ("add", "{")])
            return [event.status async for event in events]

        assert sorted(asyncio.run(main())) == [Status.INVALID, Status.NOT_FOUND]

    def test_nothing(self, toolkit: Toolkit) -> None:
        async def main() -> list[Any]:
            return [event async for event in toolkit.stream([])]

        assert asyncio.run(main()) == []


class TestFromAnywhere:
    @pytest.mark.parametrize("name", ["add", "add_later"])
    def test_call_sync_inside_a_coroutine(self, toolkit: Toolkit, name: str) -> None:
        async def main() -> tuple[Any, ...]:
            first = toolkit.call_sync(name, {"a": 1}).value
            many = [each.value for each in toolkit.call_many_sync([(name, {"a": n}) for n in range(3)])]
            return first, many, toolkit.prepare(name, {"a": 1}).execute_sync().value

        assert within(lambda: asyncio.run(main())) == (3, [2, 3, 4], 3)

    def test_call_sync_of_a_sync_tool_stays_in_its_thread(self, toolkit: Toolkit) -> None:
        def where() -> int:
            return threading.get_ident()

        toolkit.register(where)
        assert toolkit.call_sync("where").value == threading.get_ident()

    def test_sync_tools_do_not_block_the_loop(self, toolkit: Toolkit) -> None:
        go = threading.Event()

        def wait() -> bool:
            return go.wait(PATIENCE)

        toolkit.register(wait)

        async def main() -> ToolResult:
            running = asyncio.create_task(toolkit.call("wait"))
            await asyncio.sleep(0.01)
            go.set()
            return await running

        assert asyncio.run(main()).value is True

    def test_what_is_bound_to_the_blocked_loop_says_what_to_do(self, toolkit: Toolkit) -> None:
        async def main() -> tuple[ToolResult, ToolResult]:
            future = asyncio.get_running_loop().create_future()

            async def wait() -> Any:
                return await future

            toolkit.register(wait)
            blocking = toolkit.call_sync("wait")
            future.set_result(1)
            return blocking, await toolkit.call("wait")

        blocking, awaited = within(lambda: asyncio.run(main()))
        assert blocking.status is Status.ERROR
        assert blocking.error is not None
        assert "await toolkit.call" in blocking.error.details["remedy"]
        assert awaited.value == 1

    def test_many_loops_one_after_the_other(self, toolkit: Toolkit) -> None:
        calls = [("add", {"a": 1}), ("add_later", {"a": 1}), ("count", {"n": 2})]
        for _ in range(3):
            assert [each.value for each in asyncio.run(toolkit.call_many(calls))] == [3, 3, "01"]

    def test_many_threads_at_once(self, toolkit: Toolkit) -> None:
        def work(seed: int) -> bool:
            plain = [toolkit.call_sync(name, {"a": seed}).value for name in ("add", "add_later") * 5]
            looped = asyncio.run(toolkit.call_many([(name, {"a": seed}) for name in ("add", "add_later") * 5]))
            return {*plain, *(each.value for each in looped)} == {seed + 2}

        with ThreadPoolExecutor(8) as pool:
            assert all(future.result(PATIENCE) for future in [pool.submit(work, seed) for seed in range(16)])

    def test_a_thousand_async_tools(self, toolkit: Toolkit) -> None:
        @tool
        async def rest() -> None:
            await asyncio.sleep(0.05)

        toolkit.register(rest)
        started = time.perf_counter()
        results = asyncio.run(toolkit.call_many([("rest", {})] * 1000))
        assert time.perf_counter() - started < 25  # one after the other would take 50 s
        assert {each.status for each in results} == {Status.SUCCESS}


def nest(toolkit: Toolkit) -> None:
    """Tools that call the toolkit again, `depth` times: each calls the first of `kinds`, which calls the second..."""

    def below(kinds: list[str], depth: int) -> tuple[str, dict[str, Any]]:
        return kinds[0], {"kinds": kinds[1:] + kinds[:1], "depth": depth - 1}

    @tool
    def sync_sync(kinds: list[str], depth: int) -> int:
        return 1 if depth == 0 else 1 + toolkit.call_sync(*below(kinds, depth)).value

    @tool
    async def async_sync(kinds: list[str], depth: int) -> int:
        await asyncio.sleep(0)
        return 1 if depth == 0 else 1 + toolkit.call_sync(*below(kinds, depth)).value

    @tool
    async def async_async(kinds: list[str], depth: int) -> int:
        await asyncio.sleep(0)
        return 1 if depth == 0 else 1 + (await toolkit.call(*below(kinds, depth))).value

    @tool
    def sync_run(kinds: list[str], depth: int) -> int:
        return 1 if depth == 0 else 1 + asyncio.run(toolkit.call(*below(kinds, depth))).value

    @tool(timeout=PATIENCE)
    def sync_thread(kinds: list[str], depth: int) -> int:
        return 1 if depth == 0 else 1 + toolkit.call_sync(*below(kinds, depth)).value

    @tool
    def sync_many(kinds: list[str], depth: int) -> int:
        return 1 if depth == 0 else 1 + max(each.value for each in toolkit.call_many_sync([below(kinds, depth)] * 2))

    toolkit.register(sync_sync, async_sync, async_async, sync_run, sync_thread, sync_many)


KINDS = ["sync_sync", "async_sync", "async_async", "sync_run", "sync_thread", "sync_many"]


class TestNested:
    @pytest.mark.parametrize("first", KINDS)
    @pytest.mark.parametrize("second", KINDS)
    def test_every_mix(self, first: str, second: str) -> None:
        if {first, second} == {"async_sync", "sync_run"}:
            pytest.skip("asyncio.run refuses to run on a thread whose loop is running")
        with Toolkit(plugins=(), max_threads=2) as toolkit:
            nest(toolkit)
            depth = 3 if "sync_many" in (first, second) else 5
            sent = {"kinds": [second, first], "depth": depth}
            assert within(lambda: toolkit.call_sync(first, sent)).value == depth + 1
            assert within(lambda: asyncio.run(toolkit.call(first, sent))).value == depth + 1

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_a_saturated_pool(self, size: int) -> None:
        with Toolkit(plugins=(), max_threads=size) as toolkit:
            nest(toolkit)
            calls = [(kind, {"kinds": KINDS[:5], "depth": 4}) for kind in KINDS[:5]] * 4
            results = within(lambda: asyncio.run(toolkit.call_many(calls)))
            assert [each.value for each in results] == [5] * 20
            results = within(lambda: toolkit.call_many_sync(calls))
            assert [each.value for each in results] == [5] * 20

    def test_a_queue_never_hides_a_lent_slot(self) -> None:
        # Busy, idle and busy again: what the pool believes to be idle must really be.
        with Toolkit(plugins=(), max_threads=2) as toolkit:
            nest(toolkit)
            leaf = ("sync_sync", {"kinds": ["sync_sync"], "depth": 0})
            deep = ("sync_thread", {"kinds": ["sync_thread"], "depth": 3})
            for _ in range(3):
                results = within(lambda: asyncio.run(toolkit.call_many([leaf] * 10 + [deep] * 6)))
                assert [each.value for each in results] == [1] * 10 + [4] * 6

    def test_contextvars_reach_nested_tools(self) -> None:
        import contextvars

        user = contextvars.ContextVar("user", default="nobody")
        with Toolkit(plugins=()) as toolkit:

            @tool
            async def inner() -> str:
                await asyncio.sleep(0)
                return user.get()

            @tool
            async def outer() -> str:
                user.set("ann")
                return toolkit.call_sync("inner").text

            toolkit.register(inner, outer)
            assert within(lambda: toolkit.call_sync("outer")).value == "ann"


def stop_when(condition: Callable[[], object], call: ToolCall) -> None:
    """Stop a call, from another thread, once something is so."""

    def stop() -> None:
        assert eventually(condition)
        call.stop()

    begin(stop)


class TestStop:
    def test_before_it_begins(self, toolkit: Toolkit) -> None:
        ran: list[int] = []
        toolkit.register(lambda: ran.append(1), name="once")
        call = toolkit.prepare("once")
        call.stop()
        assert call.status is Status.CANCELLED
        assert call.execute_sync().status is Status.CANCELLED
        assert asyncio.run(call.execute()).is_error
        assert ran == []

    def test_after_it_ended_changes_nothing(self, toolkit: Toolkit) -> None:
        call = toolkit.prepare("add", {"a": 1})
        result = call.execute_sync()
        call.stop()
        assert call.result is result
        assert call.status is Status.SUCCESS

    def test_an_async_tool_on_the_loop(self, toolkit: Toolkit) -> None:
        cancelled = waiting(toolkit)

        async def main() -> tuple[ToolResult, int]:
            call = toolkit.prepare("wait")
            asyncio.get_running_loop().call_later(0.01, call.stop)
            result = await call.execute()
            await asyncio.sleep(0.01)  # a late cancellation would strike here
            task = asyncio.current_task()
            assert task is not None
            return result, task.cancelling()

        result, cancelling = within(lambda: asyncio.run(main()))
        assert result.status is Status.CANCELLED
        assert cancelling == 0
        assert cancelled == [1]

    def test_a_tool_that_swallows_it_leaves_no_mark_on_the_caller(self, toolkit: Toolkit) -> None:
        @tool
        async def stubborn() -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return "done anyway"

        toolkit.register(stubborn)

        async def main() -> tuple[ToolResult, int]:
            call = toolkit.prepare("stubborn")
            asyncio.get_running_loop().call_later(0.01, call.stop)
            result = await call.execute()
            task = asyncio.current_task()
            assert task is not None
            return result, task.cancelling()

        result, cancelling = asyncio.run(main())
        assert result.value == "done anyway"
        assert cancelling == 0

    @pytest.mark.parametrize("timeout", [None, 10.0])
    def test_an_async_tool_from_plain_code(self, toolkit: Toolkit, timeout: float | None) -> None:
        @tool(timeout=timeout)
        async def wait() -> None:
            await asyncio.Event().wait()

        toolkit.register(wait)
        call = toolkit.prepare("wait")
        threading.Timer(0.02, call.stop).start()
        assert within(call.execute_sync).status is Status.CANCELLED

    def test_a_sync_tool_hears_of_it(self, toolkit: Toolkit) -> None:
        runs = threading.Event()

        def poll(token: CancelToken) -> str:
            runs.set()
            return "stopped" if token.wait(PATIENCE) else "never told"

        toolkit.register(poll)
        call = toolkit.prepare("poll")
        stop_when(runs.is_set, call)
        assert call.execute_sync().value == "stopped"

    def test_a_sync_tool_in_a_worker(self, toolkit: Toolkit) -> None:
        told: list[bool] = []
        runs = threading.Event()

        def poll(token: CancelToken) -> None:
            runs.set()
            told.append(token.wait(PATIENCE))

        toolkit.register(poll)

        async def main() -> ToolResult:
            call = toolkit.prepare("poll")
            task = asyncio.create_task(call.execute())
            await until(runs.is_set)
            call.stop()
            return await task

        assert asyncio.run(main()).status is Status.CANCELLED
        assert eventually(lambda: told == [True])

    def test_a_generator_ends_at_its_next_yield(self, toolkit: Toolkit) -> None:
        closed: list[int] = []
        runs = threading.Event()

        def forever() -> Iterator[str]:
            try:
                while True:
                    runs.set()
                    time.sleep(0.001)
                    yield "x"
            finally:
                closed.append(1)

        toolkit.register(forever)
        call = toolkit.prepare("forever")
        stop_when(runs.is_set, call)
        assert within(call.execute_sync).status is Status.CANCELLED
        assert closed == [1]

    def test_while_it_waits_for_the_next_attempt(self, toolkit: Toolkit) -> None:
        ran: list[int] = []

        def fail() -> None:
            ran.append(1)
            raise ValueError("no")

        toolkit.register(fail)
        policy = ExecutionPolicy(max_attempts=5, initial_backoff=PATIENCE, jitter=False)
        for sync in (True, False):
            call = toolkit.prepare("fail")
            stop_when(lambda: toolkit.stats["waiting"] == 1, call)
            run = (
                (lambda c=call: c.execute_sync(policy=policy))
                if sync
                else lambda c=call: asyncio.run(c.execute(policy=policy))
            )
            assert within(run).status is Status.CANCELLED
        assert ran == [1, 1]

    @pytest.mark.parametrize("sync", [True, False])
    def test_while_it_waits_for_approval(self, sync: bool) -> None:
        async def never(request: Any) -> bool:
            await asyncio.Event().wait()
            return True

        with Toolkit(plugins=(), approver=never) as toolkit:
            toolkit.register(tool(requires_approval=True)(lambda: 1), name="asks")
            call = toolkit.prepare("asks")
            stop_when(lambda: toolkit.stats["waiting"] == 1, call)
            result = within(call.execute_sync if sync else lambda: asyncio.run(call.execute()))
            assert result.status is Status.CANCELLED

    @pytest.mark.parametrize("sync", [True, False])
    def test_while_it_waits_for_a_lock(self, toolkit: Toolkit, sync: bool) -> None:
        go = threading.Event()

        @tool(exclusive=True)
        def hold() -> bool:
            return go.wait(PATIENCE)

        toolkit.register(hold)
        holder = threading.Thread(target=lambda: toolkit.call_sync("hold"))
        holder.start()
        assert eventually(lambda: toolkit.stats["running"] == 1)
        call = toolkit.prepare("hold")
        stop_when(lambda: toolkit.stats["waiting"] == 1, call)
        result = within(call.execute_sync if sync else lambda: asyncio.run(call.execute()))
        assert result.status is Status.CANCELLED
        go.set()
        holder.join(PATIENCE)
        assert toolkit.call_sync("hold").value is True  # the lock is free again


class TestChunks:
    def test_reach_on_chunk_and_never_the_result(self, toolkit: Toolkit) -> None:
        def work(emitter: Emitter) -> str:
            emitter.emit("half")
            return "done"

        toolkit.register(work)
        got: list[Chunk] = []
        result = toolkit.call_sync("work", call_id="c", on_chunk=got.append)
        assert [(chunk.call_id, chunk.name, chunk.text) for chunk in got] == [("c", "work", "half")]
        assert json.dumps(result.to_dict()).find("half") == -1


def test_a_hand_made_external_tool_is_callable_too(toolkit: Toolkit) -> None:
    toolkit.register(Tool.external("ask", "Ask.", {"type": "object", "properties": {}}))
    assert toolkit.call_sync("ask").status is Status.SUSPENDED
