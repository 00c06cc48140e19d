"""Batches: one result for each call, in the order of the calls, whatever becomes of the others."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pegboard import PegboardError, Status, ToolCall, Toolkit, ToolResult, tool
from tests.support.calls import without_arguments
from tests.support.waiting import PATIENCE, eventually, until, within

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(lambda: "fine", name="fine")
        yield made


def everywhere(toolkit: Toolkit, calls: Any, **options: Any) -> Iterator[list[ToolResult]]:
    yield within(lambda: toolkit.call_many_sync(without_arguments(calls()), **options))
    yield within(lambda: asyncio.run(toolkit.call_many(without_arguments(calls()), **options)))


class Turns:
    """Notes who begins and ends when."""

    def __init__(self, toolkit: Toolkit) -> None:
        self.seen: list[str] = []

        def sync(n: int) -> int:
            self.seen += [f"begin {n}", f"end {n}"]
            return n

        async def later(n: int) -> int:
            self.seen.append(f"begin {n}")
            await asyncio.sleep(0.002)
            self.seen.append(f"end {n}")
            return n

        toolkit.register(sync, later)

    @property
    def in_turn(self) -> bool:
        return all(
            first.replace("begin", "end") == second
            for first, second in zip(self.seen[::2], self.seen[1::2], strict=True)
        )


class TestOneAfterTheOther:
    @pytest.mark.parametrize("kind", ["sync", "later"])
    @pytest.mark.parametrize(("of_toolkit", "of_batch"), [(False, None), (True, False), (False, False)])
    def test_as_asked(self, kind: str, of_toolkit: bool, of_batch: bool | None) -> None:
        with Toolkit(plugins=(), parallel=of_toolkit) as toolkit:
            turns = Turns(toolkit)
            for results in everywhere(toolkit, lambda: [(kind, {"n": n}) for n in range(5)], parallel=of_batch):
                assert [result.value for result in results] == [0, 1, 2, 3, 4]
            assert turns.in_turn

    @pytest.mark.parametrize(("of_toolkit", "of_batch"), [(True, None), (False, True)])
    def test_not_otherwise(self, of_toolkit: bool, of_batch: bool | None) -> None:
        with Toolkit(plugins=(), parallel=of_toolkit) as toolkit:
            turns = Turns(toolkit)
            for _ in everywhere(toolkit, lambda: [("later", {"n": n}) for n in range(5)], parallel=of_batch):
                assert turns.seen[:5] == [f"begin {n}" for n in range(5)]

    def test_one_that_fails_does_not_end_the_rest(self, toolkit: Toolkit) -> None:
        def fail() -> None:
            raise SystemExit(3)

        toolkit.register(fail)
        for results in everywhere(toolkit, lambda: ["fine", "fail", "nope", "fine"], parallel=False):
            assert [result.status.value for result in results] == ["success", "error", "not_found", "success"]

    def test_a_cancelled_caller_begins_no_more(self, toolkit: Toolkit) -> None:
        begun: list[int] = []

        async def wait() -> None:
            begun.append(1)
            await asyncio.Event().wait()

        toolkit.register(wait)

        async def main() -> None:
            task = asyncio.create_task(toolkit.call_many([("wait", {})] * 3, parallel=False))
            await until(lambda: begun)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        within(lambda: asyncio.run(main()))
        assert begun == [1]


class TestShapes:
    @pytest.mark.parametrize("bad", [3, None, ("a", 1, 2), ("a",), {"arguments": {}}, {}, object(), b"fine"])
    @pytest.mark.parametrize("parallel", [True, False])
    def test_what_is_no_call_is_refused_before_any_runs(self, toolkit: Toolkit, bad: Any, parallel: bool) -> None:
        ran: list[int] = []
        toolkit.register(lambda: ran.append(1), name="runs")
        with pytest.raises(PegboardError, match="a call is"):
            toolkit.call_many_sync([("runs", {}), bad], parallel=parallel)
        with pytest.raises(PegboardError, match="a call is"):
            asyncio.run(toolkit.call_many([("runs", {}), bad], parallel=parallel))
        with pytest.raises(PegboardError, match="a call is"):
            toolkit.stream([("runs", {}), bad], parallel=parallel)
        assert ran == []

    @pytest.mark.parametrize(
        "calls",
        [("wipe", '{"folder": "tmp"}'), ["wipe", "wipe"], ["wipe"], ("wipe",), [("wipe", {}), "wipe"], ["wipe", None]],
    )
    @pytest.mark.parametrize("parallel", [True, False])
    def test_names_alone_are_no_calls(self, toolkit: Toolkit, calls: Any, parallel: bool) -> None:
        """A lone pair that was not put into a list must not run the tool that it names with its defaults."""
        ran: list[str] = []

        @tool(destructive=True)
        def wipe(folder: str = "/") -> None:
            ran.append(folder)

        toolkit.register(wipe)
        for start in (
            lambda: toolkit.call_many_sync(calls, parallel=parallel),
            lambda: asyncio.run(toolkit.call_many(calls, parallel=parallel)),
            lambda: toolkit.stream(calls, parallel=parallel),
            lambda: toolkit.session().call_many_sync(calls, parallel=parallel),
        ):
            with pytest.raises(PegboardError, match=r"a call is .*; got the text 'wipe': write \[\('wipe', \{\}\)\]"):
                start()
        assert ran == []

    def test_a_bad_call_is_a_result(self, toolkit: Toolkit) -> None:
        calls = [("fine", "{"), ("nope", {}), ({"x": 1}, {}), {"name": "fine", "arguments": 3}, "fine"]
        for results in everywhere(toolkit, lambda: calls):
            statuses = [result.status.value for result in results]
            assert statuses == ["invalid", "not_found", "not_found", "invalid", "success"]

    def test_one_call_twice_runs_once(self, toolkit: Toolkit) -> None:
        ran: list[int] = []
        toolkit.register(lambda: ran.append(1), name="runs")
        for _ in range(2):
            call = toolkit.prepare("runs")
            first, second = toolkit.call_many_sync([call, call])
            assert first is second is call.result
        assert ran == [1, 1]

    def test_ids_that_come_twice_are_kept(self, toolkit: Toolkit) -> None:
        for results in everywhere(toolkit, lambda: [{"name": "fine", "id": "same"}] * 3):
            assert [result.call_id for result in results] == ["same"] * 3


class TestSiblings:
    def test_slow_failing_blocked_cancelled_and_fine(self, toolkit: Toolkit) -> None:
        go = threading.Event()

        async def fails() -> None:
            raise ValueError("no")

        @tool(timeout=0.05)
        def hangs() -> bool:
            return go.wait(PATIENCE)

        @tool(timeout=0.05)
        async def hangs_later() -> None:
            await asyncio.Event().wait()

        async def cancels_itself() -> None:
            task = asyncio.current_task()
            assert task is not None
            raise asyncio.CancelledError

        async def slow() -> str:
            await asyncio.sleep(0.1)
            return "slow"

        toolkit.register(fails, hangs, hangs_later, cancels_itself, slow)
        names = ["slow", "fails", "hangs", "hangs_later", "cancels_itself", "fine"]
        for results in everywhere(toolkit, lambda: names):
            statuses = [result.status.value for result in results]
            assert statuses == ["success", "error", "timeout", "timeout", "cancelled", "success"]
        go.set()

    def test_one_that_is_stopped(self, toolkit: Toolkit) -> None:
        async def wait(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return seconds

        toolkit.register(wait)

        async def main() -> list[ToolResult]:
            calls: list[ToolCall] = [toolkit.prepare("wait", {"seconds": each}) for each in (0.05, 60, 0.05)]
            asyncio.get_running_loop().call_later(0.02, calls[1].stop)
            return await toolkit.call_many(without_arguments(calls))

        statuses = [result.status for result in within(lambda: asyncio.run(main()))]
        assert statuses == [Status.SUCCESS, Status.CANCELLED, Status.SUCCESS]

    @pytest.mark.parametrize("kind", ["async", "straight", "thread"])
    def test_cancelling_the_caller_leaves_when_all_have_ended(self, toolkit: Toolkit, kind: str) -> None:
        begun: list[int] = []
        ended: list[int] = []
        go = threading.Event()

        async def wait(n: int) -> None:
            begun.append(n)
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.002 * n)  # each cleans up longer than the one before
                ended.append(n)

        def block(n: int) -> None:
            begun.append(n)
            go.wait(PATIENCE)
            ended.append(n)

        toolkit.register(tool(exclusive=False, timeout=PATIENCE if kind == "async" else None)(wait))
        toolkit.register(block)
        name = "block" if kind == "thread" else "wait"

        async def main() -> None:
            task = asyncio.create_task(toolkit.call_many([(name, {"n": n}) for n in range(5)]))
            await until(lambda: len(begun) == 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}
            if kind != "thread":
                assert sorted(ended) == [0, 1, 2, 3, 4]

        within(lambda: asyncio.run(main()))
        go.set()
        assert eventually(lambda: sorted(ended) == [0, 1, 2, 3, 4])
        assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)

    @pytest.mark.parametrize("sync", [True, False])
    def test_a_real_interrupt_leaves_after_the_others_have_cleaned_up(
        self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch, sync: bool
    ) -> None:
        """What a Ctrl-C raises inside of one call; its siblings are cancelled and heard out before it leaves."""
        ended: list[int] = []

        class Interrupt(BaseException):
            """Stands for one that no driver may keep to itself."""

        async def interrupted(*_: Any, **__: Any) -> Any:
            await asyncio.sleep(0.01)
            raise Interrupt

        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                ended.append(1)

        toolkit.register(wait)
        call = toolkit.prepare("fine")
        monkeypatch.setattr(type(toolkit._core.runner), "execute", _instead_of(call, interrupted))
        batch: Callable[[], Any] = (
            (lambda: toolkit.call_many_sync([("wait", {}), call, ("wait", {})]))
            if sync
            else (lambda: asyncio.run(toolkit.call_many([("wait", {}), call, ("wait", {})])))
        )
        with pytest.raises(Interrupt):
            within(batch)
        assert ended == [1, 1]


def _instead_of(call: ToolCall, instead: Callable[..., Any]) -> Callable[..., Any]:
    from pegboard._execution.prepared import CallRunner

    execute = CallRunner.execute

    def patched(self: Any, given: ToolCall, *options: Any) -> Any:
        return instead() if given is call else execute(self, given, *options)

    return patched


class TestWhatIsNoCall:
    """It is refused before anything runs, and the error says what was meant."""

    @pytest.mark.parametrize(
        ("call", "meant"),
        [
            ({"name": "ping", "input": {}}, "'input' is called 'arguments' here"),
            (
                {"tool": "ping", "args": {}, "call_id": "a"},
                "'tool' is called 'name' here, 'args' is called",
            ),
            ({"name": "ping", "argument": {}}, "'argument' is called 'arguments' here"),
            ({"name": "ping", "argumnets": {}}, "got one with 'name', 'argumnets'"),
            (
                {"id": "a", "type": "function", "function": {"name": "ping"}},
                r"toolkit.dialect\(...\).calls\(response\)",
            ),
            ({"type": "tool_use", "id": "a", "name": "ping", "input": {}}, r"toolkit.dialect\(...\).calls"),
            (("ping",), "got a tuple"),
            (1, "got a int"),
        ],
    )
    def test_names_what_was_meant(self, call: Any, meant: str) -> None:
        ran = []
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: ran.append(1), name="ping", description="")
        with pytest.raises(PegboardError, match=meant):
            toolkit.call_many_sync([("ping", {}), call])
        assert ran == []

    @pytest.mark.parametrize("calls", ["ping", {"name": "ping"}, ToolCall("", "ping"), b"ping"])
    def test_a_lone_call(self, calls: Any) -> None:
        with pytest.raises(PegboardError, match="put it into a list"):
            Toolkit(plugins=()).call_many_sync(calls)

    def test_all_members_of_a_mapping(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: "pong", name="ping", description="")
        (result,) = toolkit.call_many_sync([{"name": "ping", "arguments": {}, "id": "call_7"}])
        assert (result.call_id, result.text) == ("call_7", "pong")
