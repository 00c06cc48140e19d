"""Tools that cancel themselves, and tools that do not let themselves be cancelled: neither affects another call."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, ClassVar

import pytest

import pegboard
from pegboard import ExecutionPolicy, Middleware, Status, ToolCall, Toolkit, ToolResult
from pegboard._execution import timers
from tests.support.waiting import PATIENCE, begin, eventually, until, within

SOON = ExecutionPolicy(timeout=0.05)
# Seconds for which the stubborn go on, unless they are ended; and after which a caller would have waited for them.
LONG = PATIENCE
IN_TIME = PATIENCE / 2
# A timeout of a tool's own.
OWN = 0.4


class Stubborn:
    """Tools that swallow what ends others."""

    def __init__(self) -> None:
        self.thrown: list[str] = []
        self.began = self.over = False
        self.released = False

    def release(self) -> None:
        self.released = True

    async def hold_on(self, kinds: type[BaseException] | tuple[type[BaseException], ...]) -> str:
        self.began = True
        end = time.monotonic() + LONG
        try:
            while time.monotonic() < end and not self.released:
                try:
                    await asyncio.sleep(0.05 if self.thrown else LONG)
                except kinds as error:
                    self.thrown.append(type(error).__name__)
        finally:
            self.over = True
        return "at last"

    async def deaf(self) -> str:
        """Swallow cancellations."""
        return await self.hold_on(asyncio.CancelledError)

    async def immortal(self) -> str:
        """Swallow everything."""
        self.began = True
        while not self.released:
            try:
                await asyncio.sleep(0.05 if self.thrown else LONG)
            except BaseException as error:  # noqa: BLE001 - as people write it
                self.thrown.append(type(error).__name__)
        self.over = True
        return "at last"

    async def scoped(self) -> str:
        """Swallow cancellations within a timeout of its own, which belongs to the task that it began in."""
        async with asyncio.timeout(OWN):
            return await self.hold_on(asyncio.CancelledError)

    async def stream(self) -> AsyncIterator[str]:
        """Swallow cancellations between two pieces of text."""
        yield "first"
        yield await self.hold_on(asyncio.CancelledError)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end is given up at once, nearly."""
    monkeypatch.setattr(timers, "_STEP", 0.01)
    monkeypatch.setattr(timers, "GRACE", 0.05)


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    made = Stubborn()
    yield made
    made.released = True


@pytest.fixture
def toolkit(stubborn: Stubborn, soon: None) -> Iterator[Toolkit]:
    with Toolkit(plugins=()) as made:
        made.register(stubborn.deaf, stubborn.immortal, stubborn.scoped, stubborn.stream)
        yield made
        stubborn.released = True


def ways(toolkit: Toolkit, name: str, **options: Any) -> dict[str, Callable[[], ToolResult]]:
    async def stream() -> ToolResult:
        (result,) = [each async for each in toolkit.stream([(name, {})], **options) if isinstance(each, ToolResult)]
        return result

    return {
        "call": lambda: asyncio.run(toolkit.call(name, **options)),
        "call_sync": lambda: toolkit.call_sync(name, **options),
        "call_many": lambda: asyncio.run(toolkit.call_many([(name, {}), ("absent", {})], **options))[0],
        "call_many_sync": lambda: toolkit.call_many_sync([(name, {})], **options)[0],
        "stream": lambda: asyncio.run(stream()),
    }


class TestSwallowing:
    @pytest.mark.parametrize("name", ["deaf", "immortal", "scoped", "stream"])
    @pytest.mark.parametrize("way", ["call_sync", "call_many_sync"])
    def test_the_timeout_comes_in_time(self, toolkit: Toolkit, stubborn: Stubborn, way: str, name: str) -> None:
        started = time.monotonic()
        result = within(ways(toolkit, name, policy=SOON)[way])
        assert (result.status, time.monotonic() - started < IN_TIME) == (Status.TIMEOUT, True)
        assert toolkit.stats["abandoned_tasks"] == 1
        assert toolkit.stats["running"] == 0

    @pytest.mark.parametrize("name", ["deaf", "immortal", "scoped"])
    @pytest.mark.parametrize("way", ["call", "call_many", "stream"])
    def test_on_a_loop(self, toolkit: Toolkit, stubborn: Stubborn, way: str, name: str) -> None:
        async def main() -> ToolResult:
            if way == "call":
                result = await toolkit.call(name, policy=SOON)
            elif way == "call_many":
                result, _ = await toolkit.call_many([(name, {}), ("absent", {})], policy=SOON)
            else:
                events = [each async for each in toolkit.stream([(name, {})], policy=SOON)]
                result = next(each for each in events if isinstance(each, ToolResult))
            assert own().cancelling() == 0
            assert not stubborn.released
            stubborn.released = True
            return result

        assert within(lambda: asyncio.run(main())).status is Status.TIMEOUT
        assert toolkit.stats["abandoned_tasks"] == 1

    def test_what_it_had_open_does_not_reach_the_caller_later(self, toolkit: Toolkit, stubborn: Stubborn) -> None:
        """`asyncio.timeout` cancels the task that it was entered in, whatever runs there by then."""

        async def main() -> str:
            result = await toolkit.call("scoped", policy=SOON)
            assert (result.status, stubborn.over) == (Status.TIMEOUT, True)
            await asyncio.sleep(2 * OWN)  # past the moment at which that timeout would have come
            return "undisturbed"

        assert within(lambda: asyncio.run(main())) == "undisturbed"

    def test_it_is_told_more_than_once_and_then_closed(self, toolkit: Toolkit, stubborn: Stubborn) -> None:
        assert toolkit.call_sync("deaf", policy=SOON).status is Status.TIMEOUT
        assert (stubborn.thrown, stubborn.over) == (["CancelledError", "CancelledError"], True)

    @pytest.mark.parametrize("on_loop", [False, True])
    def test_what_survives_goes_on_and_is_reminded_at_the_end(
        self, stubborn: Stubborn, soon: None, on_loop: bool
    ) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(stubborn.immortal)

            async def main() -> ToolResult:
                result = await toolkit.call("immortal", policy=SOON)
                asyncio.get_running_loop().call_later(0.1, stubborn.release)
                return result

            def plain() -> ToolResult:
                result = toolkit.call_sync("immortal", policy=SOON)
                threading.Timer(0.1, stubborn.release).start()
                toolkit.close()
                return result

            result = within((lambda: asyncio.run(main())) if on_loop else plain)
            assert (result.status, toolkit.stats["abandoned_tasks"]) == (Status.TIMEOUT, 1)
        assert eventually(lambda: stubborn.over)
        assert stubborn.thrown[:2] == ["CancelledError", "CancelledError"]
        assert stubborn.thrown[-3:] == ["GeneratorExit", "GeneratorExit", "CancelledError"]

    def test_no_second_attempt_beside_one_that_goes_on(self, toolkit: Toolkit, stubborn: Stubborn) -> None:
        policy = ExecutionPolicy(timeout=0.05, max_attempts=3, initial_backoff=0)
        result = toolkit.call_sync("immortal", policy=policy)
        assert (result.status, result.attempts) == (Status.TIMEOUT, 1)

    def test_cleaning_up_in_time_is_waited_for(self) -> None:
        cleaned: list[str] = []

        async def tidy() -> None:
            """Take a moment to clean up."""
            try:
                await asyncio.sleep(LONG)
            finally:
                await asyncio.sleep(timers.GRACE / 10)
                cleaned.append("all")

        with Toolkit(plugins=()) as toolkit:
            toolkit.register(tidy)
            assert toolkit.call_sync("tidy", policy=SOON).status is Status.TIMEOUT
            assert (cleaned, toolkit.stats["abandoned_tasks"]) == (["all"], 0)

    @pytest.mark.slow
    def test_in_time_means_about_two_seconds(self, stubborn: Stubborn) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(stubborn.deaf)
            started = time.monotonic()
            assert toolkit.call_sync("deaf", policy=SOON).status is Status.TIMEOUT
            assert timers.GRACE <= time.monotonic() - started < IN_TIME

    @pytest.mark.parametrize("name", ["deaf", "immortal", "stream"])
    @pytest.mark.parametrize("from_plain_code", [False, True])
    def test_stop(self, toolkit: Toolkit, stubborn: Stubborn, from_plain_code: bool, name: str) -> None:
        call = toolkit.prepare(name)
        stop = within  # in a thread of its own

        async def main() -> ToolResult:
            running = asyncio.create_task(call.execute())
            await until(lambda: stubborn.began)
            call.stop()
            result = await running
            stubborn.released = True
            return result

        def plain() -> ToolResult:
            running = begin(call.execute_sync)
            assert eventually(lambda: stubborn.began)
            call.stop()
            return running.result()

        result = stop(plain if from_plain_code else lambda: asyncio.run(main()))
        assert result.status is Status.CANCELLED
        assert toolkit.stats["abandoned_tasks"] == 1

    @pytest.mark.parametrize("name", ["deaf", "immortal"])
    def test_close(self, toolkit: Toolkit, stubborn: Stubborn, name: str) -> None:
        async def main() -> ToolResult:
            running = asyncio.create_task(toolkit.call(name))
            await until(lambda: stubborn.began)
            await toolkit.aclose()
            result = await running
            stubborn.released = True
            return result

        assert within(lambda: asyncio.run(main())).status is Status.CANCELLED

    @pytest.mark.parametrize("parallel", [False, True])
    def test_a_batch_whose_caller_leaves(self, toolkit: Toolkit, stubborn: Stubborn, parallel: bool) -> None:
        async def main() -> None:
            calls: list[Any] = [("immortal", {}), ("absent", {})]
            running = asyncio.create_task(toolkit.call_many(calls, parallel=parallel))
            await until(lambda: stubborn.began)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert toolkit.stats["abandoned_tasks"] == 1
            stubborn.released = True

        within(lambda: asyncio.run(main()))

    @pytest.mark.parametrize("on_loop", [False, True])
    def test_middleware_that_swallows(self, soon: None, on_loop: bool) -> None:
        released: list[bool] = []
        began: list[bool] = []

        class Plugin:
            @staticmethod
            @pegboard.hookimpl
            def provide_middleware() -> list[Middleware]:
                return [Middleware(around)]

        async def around(call: ToolCall, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
            began.append(True)
            while not released:
                with suppress(BaseException):
                    await asyncio.sleep(0.05)
            return await proceed()

        def work() -> None:
            """Work."""

        with Toolkit(plugins=[Plugin]) as toolkit:
            toolkit.register(work)
            call = toolkit.prepare("work")

            def stop() -> None:
                assert eventually(lambda: began)
                call.stop()

            stopping = begin(stop)
            result = within(call.execute_sync if not on_loop else lambda: asyncio.run(awaited(call, released)))
            released.append(True)
            stopping.result()
        assert result.status is Status.CANCELLED


async def awaited(call: ToolCall, released: list[bool]) -> ToolResult:
    result = await call.execute()
    released.append(True)
    return result


class TestCancellingItself:
    @pytest.fixture
    def toolkit(self) -> Iterator[Toolkit]:
        async def at_once() -> str:
            """Cancel the own task, and return."""
            own().cancel()
            return "returned"

        async def then_wait() -> str:
            """Cancel the own task, and wait."""
            own().cancel()
            await asyncio.sleep(LONG)
            return "never"

        async def later() -> str:
            """Cancel the own task after a while."""
            await asyncio.sleep(0.001)
            own().cancel()
            await asyncio.sleep(LONG)
            return "never"

        async def fine() -> str:
            """Take a moment."""
            await asyncio.sleep(0.01)
            return "fine"

        with Toolkit(plugins=()) as made:
            made.register(at_once, then_wait, later, fine)
            yield made

    CALLS: ClassVar[list[Any]] = [("fine", {}), ("at_once", {}), ("then_wait", {}), ("later", {}), ("fine", {})]
    ENDED: ClassVar[list[Status]] = [
        Status.SUCCESS,
        Status.CANCELLED,
        Status.CANCELLED,
        Status.CANCELLED,
        Status.SUCCESS,
    ]

    @pytest.mark.parametrize("parallel", [False, True])
    def test_in_call_many(self, toolkit: Toolkit, parallel: bool) -> None:
        async def main() -> list[ToolResult]:
            results = await toolkit.call_many(self.CALLS, parallel=parallel)
            assert own().cancelling() == 0
            return results

        results = within(lambda: asyncio.run(main()))
        assert [result.status for result in results] == self.ENDED
        assert [result.name for result in results] == [name for name, _ in self.CALLS]
        assert len({result.call_id for result in results}) == len(results)

    @pytest.mark.parametrize("calls", [CALLS, CALLS[1:2], CALLS[2:3], CALLS[3:4]], ids=len)
    def test_in_call_many_from_plain_code(self, toolkit: Toolkit, calls: list[Any]) -> None:
        results = within(lambda: toolkit.call_many_sync(calls))
        assert [result.status for result in results] == [self.ENDED[self.CALLS.index(call)] for call in calls]

    @pytest.mark.parametrize("calls", [CALLS, CALLS[1:2], CALLS[2:3], CALLS[3:4]], ids=len)
    def test_in_a_stream(self, toolkit: Toolkit, calls: list[Any]) -> None:
        async def main() -> list[Any]:
            events = [event async for event in toolkit.stream(calls)]
            assert own().cancelling() == 0
            return events

        results = within(lambda: asyncio.run(main()))
        assert sorted(result.status for result in results) == sorted(self.ENDED[self.CALLS.index(c)] for c in calls)

    @pytest.mark.parametrize("name", ["then_wait", "later"])
    def test_alone_from_plain_code(self, toolkit: Toolkit, name: str) -> None:
        assert within(lambda: toolkit.call_sync(name)).status is Status.CANCELLED

    def test_a_prepared_call_has_one_result(self, toolkit: Toolkit) -> None:
        call = toolkit.prepare("later")
        results = within(lambda: asyncio.run(toolkit.call_many([call, ("fine", {})])))
        assert results[0] is call.result
        assert toolkit.stats["tools"]["later"]["calls"] == 1


def own() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task
