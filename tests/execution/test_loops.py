"""Event loops: asyncio's debug mode, uvloop, several at once, one that runs already, one that is no more."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pegboard import CancelToken, ExecutionPolicy, Middleware, Status, ToolCall, Toolkit, ToolResult, hookimpl, tool
from tests.support.calls import without_arguments
from tests.support.interpreters import complained
from tests.support.waiting import PATIENCE, eventually, within

QUICK = ExecutionPolicy(max_attempts=2, initial_backoff=0.001, max_backoff=0.001)


class Surroundings:
    @hookimpl
    def provide_middleware(self) -> list[Middleware]:
        def around(call: Any, proceed: Any) -> Any:
            return proceed()

        async def around_later(call: Any, proceed: Any) -> Any:
            return await proceed()

        return [
            Middleware(around, applies=lambda each: "wrapped" in each.tags),
            Middleware(around_later, applies=lambda each: "wrapped" in each.tags, order=1),
        ]


async def approve(request: Any) -> bool:
    await asyncio.sleep(0)
    return True


def board() -> Toolkit:  # noqa: C901 - a table of functions
    """One tool for each way through the library; each returns its own name."""
    failed: set[str] = set()
    toolkit = Toolkit(plugins=[Surroundings()], approver=approve)

    @tool
    def plain() -> str:
        return "plain"

    @tool(timeout=PATIENCE)
    def threaded() -> str:
        return "threaded"

    @tool
    async def later() -> str:
        await asyncio.sleep(0.001)
        return "later"

    @tool
    def drawn() -> Iterator[str]:
        yield "dra"
        yield "wn"

    @tool
    async def drawn_later() -> AsyncIterator[str]:
        yield "drawn"
        await asyncio.sleep(0)
        yield "_later"

    @tool(exclusive=True)
    async def exclusive() -> str:
        await asyncio.sleep(0)
        return "exclusive"

    @tool(requires_approval=True)
    def approved() -> str:
        return "approved"

    @tool(tags="wrapped")
    async def wrapped() -> str:
        await asyncio.sleep(0)
        return "wrapped"

    @tool(policy=QUICK)
    async def flaky(token: CancelToken, call: ToolCall) -> str:
        if call.id not in failed:  # not by thread: a second attempt may run on a loop of its own
            failed.add(call.id)
            raise ConnectionError("once")
        return "flaky"

    @tool
    def calls_back() -> str:
        return toolkit.call_sync("later").text and "calls_back"

    @tool
    async def calls_back_later() -> str:
        toolkit.call_sync("threaded")
        return (await toolkit.call("later")).text and "calls_back_later"

    toolkit.register(
        plain, threaded, later, drawn, drawn_later, exclusive, approved, wrapped, flaky, calls_back, calls_back_later
    )
    return toolkit


async def use(toolkit: Toolkit) -> None:
    """Every way in, of every tool."""
    names = [each.name for each in toolkit.tools]
    for name in names:
        assert (await asyncio.wait_for(toolkit.call(name), PATIENCE)).text == name
    results = await asyncio.wait_for(toolkit.call_many(without_arguments(names * 3)), PATIENCE)
    assert [result.text for result in results] == names * 3
    ended = [event.name async for event in toolkit.stream(without_arguments(names)) if isinstance(event, ToolResult)]
    assert sorted(ended) == sorted(names)
    for name in names:
        result = toolkit.call_sync(name)
        # What another loop's call holds is not waited for here: this loop would stand still.
        assert result.text == name or (name == "exclusive" and result.error and result.error.kind == "deadlock")


async def misuse(toolkit: Toolkit) -> None:
    """What ends early leaves nothing behind that a loop could complain of."""
    stop = asyncio.Event()

    async def hang() -> None:
        await stop.wait()

    toolkit.register(hang)
    assert (await toolkit.call("hang", policy=ExecutionPolicy(timeout=0.01))).status is Status.TIMEOUT
    task = asyncio.create_task(toolkit.call_many([("hang", {}), ("later", {}), ("threaded", {})]))
    await asyncio.sleep(0.01)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    call = toolkit.prepare("hang")
    running = asyncio.create_task(call.execute())
    await asyncio.sleep(0.01)
    call.stop()
    assert (await running).status is Status.CANCELLED
    toolkit.unregister("hang")


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with board() as made:
        yield made


@pytest.fixture
def complaints(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What loops report: exceptions that were not fetched, tasks that were destroyed, calls from the wrong thread."""
    heard: list[str] = []
    made = asyncio.BaseEventLoop.call_exception_handler

    def hear(self: Any, context: dict[str, Any]) -> None:
        heard.append(str(context.get("message")))
        made(self, context)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_exception_handler", hear)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield heard
    assert heard == []


def both(toolkit: Toolkit) -> Coroutine[Any, Any, None]:
    async def main() -> None:
        await use(toolkit)
        await misuse(toolkit)
        await asyncio.sleep(0)

    return main()


class TestDebugMode:
    def test_nothing_to_complain_of(self, toolkit: Toolkit, complaints: list[str]) -> None:
        within(lambda: asyncio.run(both(toolkit), debug=True))
        toolkit.close()

    @pytest.mark.slow
    def test_in_an_interpreter_of_its_own(self) -> None:
        """The library's own loop is in debug mode too."""
        script = (
            "import asyncio\n"
            "from tests.execution.test_loops import board, both\n"
            "with board() as toolkit:\n"
            "    asyncio.run(both(toolkit))\n"
            "    calls = [(name, {}) for name in ('later', 'threaded', 'flaky')]\n"
            "    print([result.text for result in toolkit.call_many_sync(calls)])\n"
        )
        command = [sys.executable, "-W", "error", "-X", "dev", "-c", script]
        environment = {**os.environ, "PYTHONASYNCIODEBUG": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert complained(done.stderr) == []
        assert (done.returncode, done.stdout.strip()) == (0, "['later', 'threaded', 'flaky']")


class TestUvloop:
    def test_is_a_loop_like_any_other(self, toolkit: Toolkit) -> None:
        uvloop = pytest.importorskip("uvloop")
        kinds: list[str] = []

        async def main() -> None:
            kinds.append(type(asyncio.get_running_loop()).__module__)
            await both(toolkit)

        for debug in (False, True):
            with asyncio.Runner(loop_factory=uvloop.new_event_loop, debug=debug) as runner:
                runner.run(main())
        assert kinds == ["uvloop", "uvloop"]
        assert toolkit.stats["running"] == toolkit.stats["waiting"] == 0


class TestSeveralLoops:
    def test_in_several_threads_share_a_toolkit(self, toolkit: Toolkit, complaints: list[str]) -> None:
        def work(n: int) -> None:
            if n % 2:
                asyncio.run(use(toolkit))
            else:
                for name in [each.name for each in toolkit.tools]:
                    assert toolkit.call_sync(name).text == name

        with ThreadPoolExecutor(6) as pool:
            for future in [pool.submit(work, n) for n in range(6)]:
                future.result(PATIENCE)
        stats = toolkit.stats
        assert (stats["running"], stats["waiting"], stats["abandoned_threads"]) == (0, 0, 0)

    def test_one_after_the_other(self, toolkit: Toolkit, complaints: list[str]) -> None:
        for _ in range(5):
            within(lambda: asyncio.run(use(toolkit)))

    def test_a_lock_is_held_across_them(self, toolkit: Toolkit) -> None:
        inside: list[int] = []
        most: list[int] = []

        @tool(exclusive=True)
        async def alone() -> None:
            inside.append(1)
            most.append(len(inside))
            await asyncio.sleep(0.001)
            inside.pop()

        toolkit.register(alone)
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(lambda: asyncio.run(toolkit.call_many([("alone", {})] * 5))) for _ in range(4)]
            for future in work:
                assert all(not result.is_error for result in future.result(PATIENCE))
        assert (len(most), max(most)) == (20, 1)

    def test_one_that_ends_while_its_tool_runs_in_a_thread(self, toolkit: Toolkit, complaints: list[str]) -> None:
        go = threading.Event()
        toolkit.register(lambda: go.wait(PATIENCE), name="slow")

        async def main() -> None:
            task = asyncio.create_task(toolkit.call("slow"))
            assert await asyncio.to_thread(eventually, lambda: toolkit.stats["running"])
            task.cancel()

        asyncio.run(main())
        go.set()
        assert within(lambda: toolkit.call_sync("threaded")).text == "threaded"


class TestALoopThatRunsAlready:
    """As in a notebook: plain code that a running loop calls."""

    def test_every_tool(self, toolkit: Toolkit, complaints: list[str]) -> None:
        async def cell() -> list[str]:
            names = [each.name for each in toolkit.tools]
            assert [toolkit.call_sync(name).text for name in names] == names
            assert [result.text for result in toolkit.call_many_sync(without_arguments(names))] == names
            return [toolkit.prepare(name).execute_sync().text for name in names]

        assert len(within(lambda: asyncio.run(cell()))) == len(toolkit.tools)

    def test_on_a_loop_that_never_stops(self, toolkit: Toolkit) -> None:
        loop = asyncio.new_event_loop()
        kernel = threading.Thread(target=loop.run_forever)
        kernel.start()

        async def cell(name: str) -> str:
            return toolkit.call_sync(name).text

        try:
            for name in ("later", "threaded", "drawn_later", "wrapped", "approved", "calls_back_later"):
                assert asyncio.run_coroutine_threadsafe(cell(name), loop).result(PATIENCE) == name
            with toolkit:
                pass
            assert asyncio.run_coroutine_threadsafe(cell("plain"), loop).result(PATIENCE) == "plain"
        finally:
            loop.call_soon_threadsafe(loop.stop)
            kernel.join(PATIENCE)
            loop.close()

    def test_what_belongs_to_that_loop_says_so(self, toolkit: Toolkit) -> None:
        async def cell() -> ToolResult:
            event = asyncio.Event()

            async def waits() -> None:
                await event.wait()

            toolkit.register(waits)
            running = asyncio.create_task(event.wait())  # binds the event to this loop
            await asyncio.sleep(0)
            result = toolkit.call_sync("waits")
            event.set()
            await running
            return result

        result = within(lambda: asyncio.run(cell()))
        assert result.status is Status.ERROR
        assert result.error is not None
        assert "await toolkit.call" in result.error.details["remedy"]


class TestNoThread:
    """As at the end of the interpreter, or where the system has no more to give."""

    @pytest.fixture
    def no_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def start(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", start)

    @pytest.mark.usefixtures("no_thread")
    @pytest.mark.parametrize("name", ["threaded", "later", "drawn_later", "exclusive", "approved", "wrapped"])
    def test_is_an_error_of_the_call(self, toolkit: Toolkit, name: str) -> None:
        result = toolkit.call_sync(name)
        assert result.is_error
        assert "can't start new thread" in result.text
        assert toolkit.stats["running"] == toolkit.stats["waiting"] == 0

    @pytest.mark.usefixtures("no_thread")
    def test_on_a_loop(self, toolkit: Toolkit) -> None:
        async def main() -> list[ToolResult]:
            return await toolkit.call_many(
                [("plain", {}), ("threaded", {}), ("later", {}), ("approved", {}), ("drawn", {})]
            )

        plain, threaded, later, approved, drawn = asyncio.run(main())
        assert (later.text, approved.status) == ("later", Status.ERROR)
        for result in (plain, threaded, drawn):
            assert (result.status, "can't start new thread" in result.text) == (Status.ERROR, True)

    @pytest.mark.usefixtures("no_thread")
    def test_of_many(self, toolkit: Toolkit) -> None:
        results = toolkit.call_many_sync([("plain", {}), ("later", {})])
        assert [result.status for result in results] == [Status.SUCCESS, Status.ERROR]

    def test_afterwards_all_is_well(self, toolkit: Toolkit) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no thread")))
            assert toolkit.call_sync("later").is_error
            assert toolkit.call_sync("threaded").is_error
        assert toolkit.call_sync("later").text == "later"
        assert toolkit.call_sync("threaded").text == "threaded"


LATE = """
import asyncio, atexit, sys, threading
sys.path[:0] = {path!r}
from tests.execution.test_loops import board
toolkit = board()
{before}
@atexit.register
def late():
    for name in [each.name for each in toolkit.tools]:
        result = toolkit.call_sync(name)
        assert result.is_error or result.text == name, result
    for result in toolkit.call_many_sync([("later", {{}}), ("threaded", {{}}), ("plain", {{}})]):
        assert result.status.value in ("success", "error"), result
    try:
        results = asyncio.run(toolkit.call_many([("later", {{}}), ("threaded", {{}}), ("plain", {{}})]))
        assert results[0].text == "later"
    except RuntimeError as error:  # Python may start no loop any more
        assert "shutdown" in str(error)
    {after}
    print("late")
"""


class TestAtTheEndOfTheInterpreter:
    @pytest.mark.slow
    @pytest.mark.parametrize("after", ["", "toolkit.close()"])
    @pytest.mark.parametrize(
        "before",
        [
            "",
            "toolkit.call_many_sync([('later', {}), ('threaded', {})])",
            "asyncio.run(toolkit.call_many([('later', {}), ('threaded', {})]))",
            "toolkit.close()",
            "threading.Thread(target=lambda: toolkit.call_sync('later'), daemon=True).start()",
        ],
    )
    def test_calls_end_in_results(self, before: str, after: str) -> None:
        script = LATE.format(path=sys.path, before=before, after=after)
        command = [sys.executable, "-W", "error", "-X", "dev", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout.strip(), complained(done.stderr)) == (0, "late", [])


class TestAfterClose:
    def test_every_way_in_ends_in_results(self, toolkit: Toolkit, complaints: list[str]) -> None:
        names = [each.name for each in toolkit.tools]
        toolkit.call_many_sync(without_arguments(names))
        prepared = {name: toolkit.prepare(name) for name in names}
        toolkit.close()
        for name in names:
            for result in (toolkit.call_sync(name), prepared[name].execute_sync()):
                assert result.text == name or (result.is_error and "closed" in result.text), name

        async def main() -> None:
            for result in await toolkit.call_many(without_arguments(names)):
                assert result.text == result.name or (result.is_error and "closed" in result.text)
            events = [
                event async for event in toolkit.stream(without_arguments(names)) if isinstance(event, ToolResult)
            ]
            assert len(events) == len(names)

        within(lambda: asyncio.run(main()))
        assert toolkit.stats["running"] == toolkit.stats["waiting"] == 0

    def test_a_session_is_closed_with_its_toolkit(self, toolkit: Toolkit) -> None:
        session = toolkit.session()
        toolkit.close()
        assert "closed" in session.call_sync("later").text
