"""What injectors and computed presets give to a call: off the event loop, within its time, and closed to its end."""

import asyncio
import contextvars
import copy
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from pegboard import Computed, ExecutionPolicy, Injector, Middleware, Status, Toolkit, ToolResult, hookimpl, tool
from tests.support.waiting import PATIENCE, begin, eventually, until, within

CALLS = 20


class Session:
    """What is opened for a call and closed after it."""


class Desk:
    """A toolkit whose tools wait with something open, which takes several awaits to be closed."""

    def __init__(self, kind: str) -> None:
        self.opened = self.closed = 0
        self.go = threading.Event()
        self.toolkit = Toolkit(plugins=())

        async def later() -> AsyncIterator[Session]:
            await asyncio.sleep(0)
            self.opened += 1
            try:
                yield Session()
            finally:
                for _ in range(5):
                    await asyncio.sleep(0.002)
                self.closed += 1

        def plain() -> Iterator[Session]:
            self.opened += 1
            try:
                yield Session()
            finally:
                time.sleep(0.01)
                self.closed += 1

        async def waits(session: Session) -> str:
            await asyncio.sleep(PATIENCE)
            return "late"

        def blocks(session: Session) -> str:
            self.go.wait(PATIENCE)
            return "late"

        async def fine(session: Session) -> str:
            return "fine"

        self.toolkit.register_injector(Injector(Session, later if kind == "async" else plain))
        self.toolkit.register(waits, blocks, fine)


@pytest.fixture(params=["async", "sync"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    made = Desk(request.param)
    yield made
    made.go.set()
    made.toolkit.close()


async def _cancel(desk: Desk, name: str) -> None:
    tasks = [asyncio.create_task(desk.toolkit.call(name)) for _ in range(CALLS)]
    await until(lambda: desk.opened == CALLS)
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended)


async def _cancel_twice(desk: Desk, name: str) -> None:
    tasks = [asyncio.create_task(desk.toolkit.call(name)) for _ in range(CALLS)]
    await until(lambda: desk.opened == CALLS)
    for _ in range(4):
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0.003)
    await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_for(desk: Desk, name: str) -> None:
    async def impatient() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(desk.toolkit.call(name), 0.3)

    await asyncio.gather(*(impatient() for _ in range(CALLS)))


async def _group(desk: Desk, name: str) -> None:
    async def ends() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(CALLS):
                group.create_task(desk.toolkit.call(name))
            await until(lambda: desk.opened == CALLS)
            raise ValueError("the group ends")

    with pytest.raises(ExceptionGroup):
        await ends()


async def _batch(desk: Desk, name: str) -> None:
    task = asyncio.create_task(desk.toolkit.call_many([(name, {})] * CALLS))
    await until(lambda: desk.opened == CALLS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("name", ["waits", "blocks"])
@pytest.mark.parametrize("leave", [_cancel, _cancel_twice, _wait_for, _group, _batch])
def test_what_is_open_is_closed_when_the_caller_leaves(desk: Desk, leave: Callable[..., Any], name: str) -> None:
    within(lambda: asyncio.run(leave(desk, name)))
    assert desk.opened == desk.closed == CALLS


def test_what_is_open_is_closed_when_the_caller_leaves_while_it_is_closed(desk: Desk) -> None:
    async def main() -> None:
        for pause in (0.0, 0.001, 0.003, 0.006, 0.009):
            task = asyncio.create_task(desk.toolkit.call("fine"))
            before = desk.opened
            await until(lambda before=before: desk.opened > before)  # type: ignore[misc]
            await asyncio.sleep(pause)
            task.cancel()
            await asyncio.wait([task])

    within(lambda: asyncio.run(main()))
    assert desk.opened == desk.closed == 5


def test_what_is_open_is_closed_after_a_timeout_or_a_stop(desk: Desk) -> None:
    soon = ExecutionPolicy(timeout=0.05)
    for name in ("waits", "blocks"):
        assert desk.toolkit.call_sync(name, policy=soon).status is Status.TIMEOUT
        assert within(lambda name=name: asyncio.run(desk.toolkit.call(name, policy=soon))).status is Status.TIMEOUT  # type: ignore[misc]
        call = desk.toolkit.prepare(name)
        before = desk.opened
        running = begin(lambda call=call: asyncio.run(call.execute()))  # type: ignore[misc]
        assert eventually(lambda before=before: desk.opened > before)  # type: ignore[misc]
        call.stop()
        assert running.result(PATIENCE).status is Status.CANCELLED
    assert desk.opened == desk.closed == 6


class Slow:
    """What takes its time."""


def everywhere(toolkit: Toolkit, name: str, policy: ExecutionPolicy) -> Iterator[ToolResult]:
    yield within(lambda: toolkit.call_sync(name, policy=policy))
    yield within(lambda: asyncio.run(toolkit.call(name, policy=policy)))
    yield within(lambda: toolkit.prepare(name).execute_sync(policy=policy))
    yield within(lambda: toolkit.call_many_sync([(name, {})], policy=policy))[0]


class Hanging:
    """Injectors of each kind, and a computed preset, that block until they are released."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def sync(self) -> Slow:
        self.go.wait(PATIENCE)
        return Slow()

    def generator(self) -> Iterator[Slow]:
        self.go.wait(PATIENCE)
        yield Slow()

    async def later(self) -> Slow:
        await asyncio.sleep(PATIENCE)
        return Slow()

    async def later_generator(self) -> AsyncIterator[Slow]:
        await asyncio.sleep(PATIENCE)
        yield Slow()

    def board(self, kind: str) -> Toolkit:
        def sync(slow: Slow) -> str:
            return "ran"

        async def later(slow: Slow) -> str:
            return "ran"

        def computed(n: int) -> int:
            return n

        async def computed_later(n: int) -> int:
            return n

        toolkit = Toolkit(plugins=())
        if kind == "computed":
            presets = {"n": Computed(lambda call: self.go.wait(PATIENCE) and 1)}
            toolkit.register(computed, name="sync", presets=presets)
            toolkit.register(computed_later, name="later", presets=presets)
        else:
            toolkit.register_injector(Injector(Slow, getattr(self, kind)))
            toolkit.register(sync, later)
        return toolkit


KINDS = ["sync", "generator", "later", "later_generator", "computed"]


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.go.set()


@pytest.mark.parametrize("name", ["sync", "later"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_timeout_covers_what_is_provided(hanging: Hanging, kind: str, name: str) -> None:
    with hanging.board(kind) as toolkit:
        for result in everywhere(toolkit, name, ExecutionPolicy(timeout=0.05)):
            assert (result.status, result.attempts) == (Status.TIMEOUT, 0)
            assert result.text == "Error: timed out after 0.05 s"
        hanging.go.set()


@pytest.mark.parametrize("name", ["sync", "later"])
@pytest.mark.parametrize("kind", ["sync", "generator", "computed"])
def test_the_loop_goes_on_meanwhile(hanging: Hanging, kind: str, name: str) -> None:
    async def main() -> ToolResult:
        task = asyncio.create_task(toolkit.call(name))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not task.done()
        hanging.go.set()
        return await task

    with hanging.board(kind) as toolkit:
        result = within(lambda: asyncio.run(main()))
        assert result.status is Status.SUCCESS, result


def test_the_time_is_that_of_the_whole_attempt() -> None:
    async def opened() -> Slow:
        await asyncio.sleep(0.15)
        return Slow()

    async def work(slow: Slow) -> str:
        await asyncio.sleep(0.15)
        return "ran"

    with Toolkit(plugins=()) as toolkit:
        toolkit.register_injector(Injector(Slow, opened))
        toolkit.register(work)
        result = within(lambda: asyncio.run(toolkit.call("work", policy=ExecutionPolicy(timeout=0.2))))
        assert (result.status, result.text) == (Status.TIMEOUT, "Error: timed out after 0.2 s")


@pytest.mark.parametrize("kind", ["sync", "generator", "later", "later_generator"])
def test_context_variables_reach_the_tool(kind: str) -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    class Login:
        """Sets who it is."""

        def sync(self) -> Slow:
            user.set("ann")
            return Slow()

        def generator(self) -> Iterator[Slow]:
            yield self.sync()

        async def later(self) -> Slow:
            return self.sync()

        async def later_generator(self) -> AsyncIterator[Slow]:
            yield self.sync()

    async def who(slow: Slow) -> str:
        return user.get()

    def who_sync(slow: Slow) -> str:
        return user.get()

    async def main(toolkit: Toolkit) -> list[str]:
        return [(await toolkit.call(name)).text for name in ("who", "who_sync")]

    with Toolkit(plugins=()) as toolkit:
        toolkit.register_injector(Injector(Slow, getattr(Login(), kind)))
        toolkit.register(who, who_sync)
        assert within(lambda: asyncio.run(main(toolkit))) == ["ann", "ann"]


class TestEachAttempt:
    """An attempt gets arguments and presets as they were sent, whatever another one has made of them."""

    RETRIES = ExecutionPolicy(max_attempts=3, initial_backoff=0.0)

    @pytest.mark.parametrize("kind", ["sync", "later"])
    @pytest.mark.parametrize("own", [True, False])
    @pytest.mark.parametrize("sent", ['{"items": [1, 2], "deep": {"a": [1]}}', {"items": [1, 2], "deep": {"a": [1]}}])
    def test_has_the_arguments_as_they_were_sent(self, kind: str, own: bool, sent: Any) -> None:
        seen: list[Any] = []

        def change(items: list[int], deep: dict[str, list[int]]) -> None:
            seen.append((list(items), {key: list(value) for key, value in deep.items()}))
            items.clear()
            deep["a"].append(2)
            raise ValueError("once more")

        async def change_later(items: list[int], deep: dict[str, list[int]]) -> None:
            change(items, deep)

        with Toolkit(plugins=()) as toolkit:
            policy = None if own else self.RETRIES
            function = change if kind == "sync" else change_later
            toolkit.register(tool(name="change", policy=self.RETRIES if own else None)(function))
            asking = toolkit.session(approver=lambda request: True)
            asking.set_permission("change", "prompt")
            ways: list[Callable[[Any], ToolResult]] = [
                lambda sent: toolkit.call_sync("change", sent, policy=policy),
                lambda sent: asyncio.run(toolkit.call("change", sent, policy=policy)),
                lambda sent: toolkit.prepare("change", sent).execute_sync(policy=policy),
                lambda sent: asking.call_sync("change", sent, policy=policy),
            ]
            for way in ways:
                seen.clear()
                given = sent if isinstance(sent, str) else copy.deepcopy(sent)
                assert within(partial(way, given)).attempts == 3
                assert seen == [([1, 2], {"a": [1]})] * 3

    def test_of_middleware_that_goes_on_twice(self) -> None:
        seen: list[list[int]] = []

        class Twice:
            @hookimpl
            def provide_middleware(self) -> list[Middleware]:
                def around(call: Any, proceed: Callable[[], ToolResult]) -> ToolResult:
                    proceed()
                    return proceed()

                return [Middleware(around)]

        def change(items: list[int]) -> None:
            seen.append(list(items))
            items.append(3)

        with Toolkit(plugins=[Twice()]) as toolkit:
            toolkit.register(change)
            toolkit.call_sync("change", '{"items": [1, 2]}')
            assert seen == [[1, 2], [1, 2]]

    @pytest.mark.parametrize("kind", ["sync", "later"])
    @pytest.mark.parametrize("value", [[1, 2], {"a": [1]}], ids=["list", "dict"])
    def test_has_json_presets_as_they_were_set(self, kind: str, value: Any) -> None:
        seen: list[str] = []

        def change(a: int, items: Any) -> None:
            seen.append(repr(items))
            items.clear()

        async def change_later(a: int, items: Any) -> None:
            change(a, items)

        with Toolkit(plugins=()) as toolkit:
            function = change if kind == "sync" else change_later
            toolkit.register(function, name="change", presets={"items": value})
            for board in (toolkit, toolkit, toolkit.session(), toolkit.session()):
                board.call_sync("change", {"a": 1})
                within(lambda board=board: asyncio.run(board.call("change", {"a": 1}, policy=self.RETRIES)))  # type: ignore[misc]
            assert set(seen) == {repr(value)}
            assert value

    def test_objects_that_a_preset_holds_are_shared(self) -> None:
        class Db:
            """A connection."""

        db = Db()
        got: list[Any] = []
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(lambda a, db: got.append(db), name="use", presets={"db": db})
            toolkit.call_sync("use", {"a": 1})
            toolkit.session().call_sync("use", {"a": 1})
        assert got == [db, db]
