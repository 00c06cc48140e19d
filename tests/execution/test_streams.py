"""Streams: chunks and results as they come, with bounded room between those who report and those who listen."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from pegboard import (
    CancelToken,
    Chunk,
    Emitter,
    ExecutionPolicy,
    LinkBlock,
    PegboardError,
    Status,
    Suspend,
    TextBlock,
    Toolkit,
    ToolResult,
    tool,
)
from pegboard._execution.streaming import ROOM, ChunkChannel
from tests.support.calls import both
from tests.support.thinning import first
from tests.support.waiting import PATIENCE, eventually, until, within

pytestmark = pytest.mark.usefixtures("path")

MANY = 3 * ROOM


class Flood:
    """Tools that report `MANY` chunks, each in another way, and how many they have reported so far."""

    kinds = ("sync", "generator", "async_generator", "draining")

    def __init__(self, toolkit: Toolkit, count: int = MANY) -> None:
        self.sent = 0
        self.count = count
        self.ended = threading.Event()

        def sync(emitter: Emitter) -> None:
            for n in self:
                emitter.emit(str(n))

        def generator() -> Iterator[str]:
            for n in self:
                yield f"{n},"

        async def async_generator() -> AsyncIterator[str]:
            for n in self:
                yield f"{n},"

        async def draining(emitter: Emitter) -> None:
            for n in self:
                emitter.emit(str(n))
                await emitter.drain()

        toolkit.register(sync, generator, async_generator, draining)

    def __iter__(self) -> Iterator[int]:
        try:
            for n in range(self.count):
                self.sent += 1
                yield n
        finally:
            self.ended.set()


async def settled(value: Callable[[], int], at_least: int = 1) -> int:
    """A count, once it no longer grows."""
    await until(lambda: value() >= at_least)
    before = -1
    while before != value():
        before = value()
        await asyncio.sleep(0.2)
    return before


class TestBackPressure:
    @pytest.mark.parametrize("kind", Flood.kinds)
    def test_who_reports_waits_for_who_iterates(self, toolkit: Toolkit, kind: str) -> None:
        flood = Flood(toolkit)

        async def main() -> list[Any]:
            events = toolkit.stream([(kind, {})])
            got = [await anext(events)]
            stood = await settled(lambda: flood.sent, ROOM)
            assert ROOM <= stood <= ROOM + 2
            got += [event async for event in events]
            return got

        events = within(lambda: asyncio.run(main()))
        assert flood.sent == MANY
        assert [event.text.strip(",") for event in events[:-1]] == [str(n) for n in range(MANY)]
        assert isinstance(events[-1], ToolResult)
        assert events[-1].status is Status.SUCCESS

    @pytest.mark.parametrize("kind", first(2, Flood.kinds))
    def test_of_many_tools_together(self, toolkit: Toolkit, kind: str) -> None:
        flood = Flood(toolkit, ROOM)
        calls = 8

        async def main() -> int:
            events = toolkit.stream([(kind, {})] * calls)
            await anext(events)
            assert await settled(lambda: flood.sent) <= ROOM + 2 * calls
            return 1 + len([event async for event in events])

        assert within(lambda: asyncio.run(main())) == calls * (ROOM + 1)

    @pytest.mark.parametrize("kind", ["sync", "generator"])
    def test_a_thread_that_waits_lends_its_slot(self, kind: str) -> None:
        with Toolkit(plugins=(), max_threads=1) as toolkit:
            Flood(toolkit)
            toolkit.register(lambda: "here", name="echo")

            async def main() -> None:
                events = toolkit.stream([(kind, {})])
                await anext(events)
                await asyncio.sleep(0.05)
                assert (await toolkit.call("echo")).value == "here"
                assert len([event async for event in events]) == MANY

            within(lambda: asyncio.run(main()))

    @pytest.mark.parametrize("kind", first(2, Flood.kinds))
    def test_leaving_wakes_who_waits(self, toolkit: Toolkit, kind: str) -> None:
        flood = Flood(toolkit)

        async def main() -> None:
            events: Any = toolkit.stream([(kind, {})])
            await anext(events)
            await settled(lambda: flood.sent)
            await events.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        within(lambda: asyncio.run(main()))
        assert flood.ended.wait(PATIENCE)
        assert eventually(lambda: toolkit.stats["abandoned_threads"] == 0)

    @pytest.mark.parametrize("kind", first(2, Flood.kinds))
    @pytest.mark.parametrize("cause", first(1, ["stop", "close", "timeout"]))
    def test_ending_wakes_who_waits(self, toolkit: Toolkit, kind: str, cause: str) -> None:
        flood = Flood(toolkit)

        async def main() -> Any:
            call = toolkit.prepare(kind)
            events = toolkit.stream([call], policy=ExecutionPolicy(timeout=0.3 if cause == "timeout" else 60))
            await anext(events)
            await settled(lambda: flood.sent)
            if cause == "stop":
                call.stop()
            if cause == "close":
                await toolkit.aclose()
            await until(lambda: call.result)
            await until(flood.ended.is_set)
            rest = [event async for event in events]
            assert all(isinstance(event, Chunk) for event in rest[:-1])
            return rest[-1]

        result = within(lambda: asyncio.run(main()))
        assert result.status is (Status.TIMEOUT if cause == "timeout" else Status.CANCELLED)
        assert flood.ended.wait(PATIENCE)

    @pytest.mark.parametrize("kind", Flood.kinds)
    def test_a_listener_that_is_slow_is_not_flooded(self, toolkit: Toolkit, kind: str) -> None:
        flood = Flood(toolkit)
        most: list[int] = []
        got: list[str] = []

        async def main() -> None:
            async def listen(chunk: Chunk) -> None:
                most.append(flood.sent - len(got))
                got.append(chunk.text.strip(","))
                await asyncio.sleep(0)

            assert (await toolkit.call(kind, on_chunk=listen)).status is Status.SUCCESS

        within(lambda: asyncio.run(main()))
        assert got == [str(n) for n in range(MANY)]
        assert max(most) <= ROOM + 2

    def test_an_async_tool_that_does_not_drain_is_not_held_up(self, toolkit: Toolkit) -> None:
        async def emits(emitter: Emitter) -> None:
            for n in range(MANY):
                emitter.emit(str(n))

        toolkit.register(emits)

        async def main() -> int:
            return len([event async for event in toolkit.stream([("emits", {})])])

        assert within(lambda: asyncio.run(main())) == MANY + 1

    def test_drain_without_a_listener_returns_at_once(self, toolkit: Toolkit) -> None:
        Flood(toolkit)
        for kind in Flood.kinds:
            assert [result.status for result in both(toolkit, kind)] == [Status.SUCCESS] * 2
        asyncio.run(Emitter().drain())

    def test_waiters_on_another_loop(self) -> None:
        async def main() -> None:
            got: list[Chunk] = []
            channel = ChunkChannel(got.append, room=1)
            chunk, token = Chunk("c", "n", TextBlock("x")), CancelToken()
            channel.send(chunk, token)
            with ThreadPoolExecutor(2) as pool:
                drained = pool.submit(lambda: asyncio.run(channel.drain(token)))
                sent = pool.submit(channel.send, chunk, token)
                await until(lambda: channel._waiters)
                assert not drained.done()
                channel.taken()
                await until(lambda: drained.done() or sent.done())
                channel.taken()  # whichever came first: the other one has its turn now
                await until(lambda: drained.done() and sent.done())
                await until(lambda: len(got) == 2)
            assert len(got) == 2

        within(lambda: asyncio.run(main()))


class TestListeners:
    @pytest.mark.parametrize("kind", Flood.kinds)
    def test_in_order_and_before_the_result(self, toolkit: Toolkit, kind: str) -> None:
        Flood(toolkit, 50)
        got: list[str] = []
        toolkit.call_sync(kind, on_chunk=lambda chunk: got.append(chunk.text.strip(",")))
        assert got == [str(n) for n in range(50)]
        got.clear()

        async def main() -> list[str]:
            await toolkit.call(kind, on_chunk=lambda chunk: got.append(chunk.text.strip(",")))
            return list(got)

        assert asyncio.run(main()) == [str(n) for n in range(50)]

    @pytest.mark.parametrize("kind", Flood.kinds)
    def test_of_an_async_caller_on_the_thread_of_its_loop(self, toolkit: Toolkit, kind: str) -> None:
        Flood(toolkit, 50)
        threads: set[int] = set()

        def listen(chunk: Chunk) -> None:
            threads.add(threading.get_ident())
            asyncio.get_running_loop()

        async def main() -> None:
            await toolkit.call(kind, on_chunk=listen)
            await toolkit.call_many([(kind, {})] * 3, on_chunk=listen)
            assert len([event async for event in toolkit.stream([(kind, {})] * 3)]) == 153

        asyncio.run(main())
        assert threads == {threading.get_ident()}

    @pytest.mark.parametrize("kind", Flood.kinds)
    @pytest.mark.parametrize("error", [ValueError("deaf"), SystemExit(1)])
    def test_a_listener_that_raises_is_harmless(self, toolkit: Toolkit, kind: str, error: BaseException) -> None:
        Flood(toolkit, 3)

        def listen(chunk: Chunk) -> None:
            raise error

        for result in both(toolkit, kind, on_chunk=listen):
            assert result.status is Status.SUCCESS

    def test_blocks_are_chunks_too(self, toolkit: Toolkit) -> None:
        block = LinkBlock("https://example.org")

        def emits(emitter: Emitter) -> None:
            emitter.emit(block)

        toolkit.register(emits)
        got: list[Chunk] = []
        toolkit.call_sync("emits", on_chunk=got.append)
        assert got[0].content is block

    def test_without_a_listener(self, toolkit: Toolkit) -> None:
        Flood(toolkit, 50)
        for kind in Flood.kinds:
            for result in both(toolkit, kind):
                assert result.status is Status.SUCCESS

    @pytest.mark.parametrize("kind", Flood.kinds)
    def test_an_async_one_is_awaited_before_the_result(self, toolkit: Toolkit, kind: str) -> None:
        Flood(toolkit, 20)
        got: list[str] = []

        async def listen(chunk: Chunk) -> None:
            await asyncio.sleep(0.001)
            got.append(chunk.text.strip(","))

        class Listener:
            async def __call__(self, chunk: Chunk) -> None:
                await listen(chunk)

        async def with_option(chunk: Chunk, option: int) -> None:
            await listen(chunk)

        for listener in (listen, Listener(), partial(with_option, option=1)):
            got.clear()
            asyncio.run(toolkit.call(kind, on_chunk=listener))
            assert got == [str(n) for n in range(20)]
        got.clear()
        toolkit.call_many_sync([(kind, {})] * 2, on_chunk=listen)
        assert sorted(got) == sorted(str(n) for n in range(20) for _ in range(2))

    def test_plain_code_cannot_await_one(self, toolkit: Toolkit) -> None:
        Flood(toolkit, 3)

        async def listen(chunk: Chunk) -> None:
            raise AssertionError

        call = toolkit.prepare("sync")
        with pytest.raises(PegboardError, match=r"await toolkit\.call"):
            call.execute_sync(on_chunk=listen)
        assert call.result is None
        assert call.execute_sync().status is Status.SUCCESS

    @pytest.mark.parametrize("kind", Flood.kinds)
    @pytest.mark.parametrize("error", [ValueError, SystemExit, asyncio.CancelledError])
    def test_an_async_one_that_raises_is_harmless(
        self, toolkit: Toolkit, kind: str, error: type[BaseException]
    ) -> None:
        Flood(toolkit, 20)
        heard: list[int] = []

        async def listen(chunk: Chunk) -> None:
            heard.append(1)
            raise error("deaf")

        result = within(lambda: asyncio.run(toolkit.call(kind, on_chunk=listen)))
        assert result.status is Status.SUCCESS
        assert len(heard) == 20

    def test_one_that_gives_a_coroutine_is_named(self, toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
        Flood(toolkit, 1)

        async def listen(chunk: Chunk) -> None:
            raise AssertionError

        for _ in both(toolkit, "sync", on_chunk=lambda chunk: listen(chunk)):  # noqa: PLW0108 - that is the mistake
            assert "pass the async function itself" in caplog.text
            caplog.clear()

    def test_a_caller_that_is_cancelled_leaves_no_pump(self, toolkit: Toolkit) -> None:
        Flood(toolkit)

        async def main() -> None:
            async def listen(chunk: Chunk) -> None:
                await asyncio.Event().wait()

            task = asyncio.create_task(toolkit.call("async_generator", on_chunk=listen))
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}

        within(lambda: asyncio.run(main()))


class TestIteration:
    def test_a_call_that_cannot_be_made_is_raised(self, toolkit: Toolkit) -> None:
        with pytest.raises(PegboardError, match="a call is"):
            toolkit.stream([3])

    def test_one_after_the_other(self, toolkit: Toolkit) -> None:
        Flood(toolkit, 3)

        async def main() -> list[str]:
            calls = [{"name": "async_generator", "id": str(n)} for n in range(3)]
            return [event.call_id async for event in toolkit.stream(calls, parallel=False)]

        assert asyncio.run(main()) == ["0"] * 4 + ["1"] * 4 + ["2"] * 4

    def test_the_caller_is_cancelled(self, toolkit: Toolkit) -> None:
        ended: list[str] = []

        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                ended.append("wait")

        toolkit.register(wait)

        async def main() -> None:
            async def iterate() -> None:
                async for _ in toolkit.stream([("wait", {})] * 3):
                    raise AssertionError

            task = asyncio.create_task(iterate())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}

        within(lambda: asyncio.run(main()))
        assert ended == ["wait"] * 3


class TestFinalValues:
    """A returned value is the result; else texts are joined, blocks appended, anything else is a list."""

    link = LinkBlock("https://example.org")

    @pytest.mark.parametrize(
        ("yielded", "text", "value"),
        [
            (["a", "b"], "ab", "ab"),
            ([], "null", None),
            ([1, 2], "[1, 2]", [1, 2]),
            (["a", 1], '["a", 1]', ["a", 1]),
            ([{"x": 1}], '[{"x": 1}]', [{"x": 1}]),
            ([""], "", ""),
            (["a", link, "b"], f"ab\n{link.text}", [TextBlock("ab"), link]),
            ([link], link.text, [link]),
        ],
    )
    @pytest.mark.parametrize("asynchronous", [True, False])
    def test_of_what_was_yielded(
        self, toolkit: Toolkit, yielded: list[Any], text: str, value: Any, asynchronous: bool
    ) -> None:
        def draw() -> Iterator[Any]:
            yield from yielded

        async def draw_later() -> AsyncIterator[Any]:
            for item in yielded:
                yield item

        toolkit.register(draw_later if asynchronous else draw, name="draw")
        for result in both(toolkit, "draw"):
            assert (result.text.strip(), result.value) == (text.strip(), value)

    def test_a_returned_value_wins(self, toolkit: Toolkit) -> None:
        def draw() -> Any:
            yield "half"
            return {"all": 1}

        toolkit.register(draw)
        for result in both(toolkit, "draw"):
            assert result.data == {"all": 1}

    def test_what_is_reported_is_no_part_of_it(self, toolkit: Toolkit) -> None:
        def draw(emitter: Emitter) -> Iterator[str]:
            emitter.emit("progress")
            yield "content"

        toolkit.register(draw)
        heard: list[str] = []
        for result in both(toolkit, "draw", on_chunk=lambda chunk: heard.append(chunk.text)):
            assert result.text == "content"
        assert heard == ["progress", "content"] * 2


class TestPartialOutput:
    """What a tool had yielded when it failed: for the model after the error, for the program in the metadata."""

    def register(self, toolkit: Toolkit, end: Callable[[], Any], *, asynchronous: bool, **options: Any) -> None:
        def draw() -> Iterator[str]:
            yield "one "
            yield "two"
            end()

        async def draw_later() -> AsyncIterator[str]:
            yield "one "
            yield "two"
            answer = end()
            if answer is not None:
                await answer

        toolkit.register(tool(**options)(draw_later if asynchronous else draw), name="draw")

    @pytest.mark.parametrize("asynchronous", [True, False])
    def test_of_one_that_raises(self, toolkit: Toolkit, asynchronous: bool) -> None:
        def end() -> None:
            raise ValueError("boom")

        self.register(toolkit, end, asynchronous=asynchronous)
        for result in both(toolkit, "draw"):
            assert result.status is Status.ERROR
            assert result.text == "Error: boom\nIts output until then:\none two"
            assert result.metadata["partial"] == "one two"
            assert result.error is not None
            assert result.error.message == "boom"

    @pytest.mark.parametrize("asynchronous", [True, False])
    def test_of_one_that_takes_too_long(self, toolkit: Toolkit, asynchronous: bool) -> None:
        go = threading.Event()

        def end() -> Any:
            return asyncio.Event().wait() if asynchronous else (go.wait(PATIENCE) and None)

        self.register(toolkit, end, asynchronous=asynchronous, timeout=0.05)
        for result in both(toolkit, "draw"):
            assert result.status is Status.TIMEOUT
            assert result.text.endswith("\none two")
            assert result.metadata["partial"] == "one two"
        go.set()

    @pytest.mark.parametrize("asynchronous", [True, False])
    @pytest.mark.parametrize("sync", [True, False])
    def test_of_one_that_is_stopped(self, toolkit: Toolkit, asynchronous: bool, sync: bool) -> None:
        go, there = threading.Event(), threading.Event()

        def end() -> Any:
            there.set()
            return asyncio.Event().wait() if asynchronous else (go.wait(PATIENCE) and None)

        self.register(toolkit, end, asynchronous=asynchronous, timeout=PATIENCE)
        call = toolkit.prepare("draw")
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(call.execute_sync if sync else lambda: asyncio.run(call.execute()))
            assert there.wait(PATIENCE)
            call.stop()
            result = running.result(PATIENCE)
        go.set()
        assert result.status is Status.CANCELLED
        assert result.metadata["partial"] == "one two"

    def test_is_that_of_the_last_attempt(self, toolkit: Toolkit) -> None:
        attempts: list[int] = []

        def draw() -> Iterator[str]:
            attempts.append(1)
            yield f"attempt {len(attempts)}"
            raise ValueError("no")

        toolkit.register(draw)
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.001)
        for last, result in zip((3, 6), both(toolkit, "draw", policy=policy), strict=True):
            assert result.metadata["partial"] == f"attempt {last}"

    def test_blocks_stay_blocks_and_others_become_json(self, toolkit: Toolkit) -> None:
        block = LinkBlock("https://example.org")

        def blocks() -> Iterator[Any]:
            yield "see "
            yield block
            raise ValueError("no")

        def numbers() -> Iterator[Any]:
            yield {"n": 1}
            raise ValueError("no")

        toolkit.register(blocks, numbers)
        result = toolkit.call_sync("blocks")
        assert result.content[1:] == (TextBlock("see "), block)
        result = toolkit.call_sync("numbers")
        assert result.text.endswith('[{"n": 1}]')
        assert result.metadata["partial"] == [{"n": 1}]

    def test_is_cut_like_any_output(self, toolkit: Toolkit) -> None:
        @tool(max_output=200)
        def draw() -> Iterator[str]:
            yield "x" * 5_000
            raise ValueError("no")

        toolkit.register(draw)
        result = toolkit.call_sync("draw")
        assert len(result.text) < 500
        assert "characters cut here" in result.text

    def test_hides_secrets(self) -> None:
        from pegboard import Secret

        def draw(key: str) -> Iterator[str]:
            yield f"key {key}"
            raise ValueError("no")

        toolkit = Toolkit(plugins=())
        toolkit.register(draw, presets={"key": Secret("s3cr3t-value")})
        result = toolkit.call_sync("draw")
        assert "s3cr3t" not in result.text
        assert "s3cr3t" not in str(result.metadata)

    def test_none_where_nothing_was_yielded_or_all_went_well(self, toolkit: Toolkit) -> None:
        def fails() -> Iterator[str]:
            if toolkit:
                raise ValueError("at once")
            yield "never"

        def suspends() -> Iterator[str]:
            yield "half"
            raise Suspend("later")

        toolkit.register(fails, suspends)
        assert toolkit.call_sync("fails").text == "Error: at once"
        assert toolkit.call_sync("suspends").text == "later"
        assert "partial" not in toolkit.call_sync("fails").metadata

    def test_progress_is_no_output(self, toolkit: Toolkit) -> None:
        def work(emitter: Emitter) -> None:
            emitter.emit("half")
            raise ValueError("no")

        toolkit.register(work)
        for result in both(toolkit, "work", on_chunk=lambda chunk: None):
            assert result.text == "Error: no"


@pytest.mark.slow
def test_a_stream_costs_about_what_its_calls_cost(toolkit: Toolkit) -> None:
    """A thousand tools of ten chunks each: no chunk is lost, and none comes after the result of its call."""
    Flood(toolkit, 10)

    async def main() -> None:
        ended: set[str] = set()
        chunks = 0
        async for event in toolkit.stream([("async_generator", {})] * 1_000):
            assert event.call_id not in ended
            if isinstance(event, ToolResult):
                ended.add(event.call_id)
            else:
                chunks += 1
        assert (len(ended), chunks) == (1_000, 10_000)

    started = time.monotonic()
    within(lambda: asyncio.run(main()))
    assert time.monotonic() - started < PATIENCE / 2
