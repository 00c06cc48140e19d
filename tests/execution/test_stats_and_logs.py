"""Statistics and the log: what runs and waits, how calls ended, and one line for each of them."""

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pegboard import (
    Emitter,
    ExecutionPolicy,
    Secret,
    Status,
    Suspend,
    Tool,
    Toolkit,
    ToolResult,
    tool,
)
from pegboard._execution.telemetry import ToolStats
from tests.support.interpreters import printed
from tests.support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("path")

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
LATE = """
import sys
from pegboard import Toolkit

def hello() -> str:
    return "hello"

with Toolkit(plugins=()) as toolkit:
    toolkit.register(hello)
    toolkit.call_sync("hello", {}, call_id="first")
    assert "logging" not in sys.modules
    import logging
    logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(levelname)s %(message)s")
    toolkit.call_sync("hello", {}, call_id="second")
"""


def now(toolkit: Toolkit) -> tuple[int, int]:
    stats = toolkit.stats
    return stats["running"], stats["waiting"]


class TestRunning:
    @pytest.mark.parametrize("way", ["plain", "timed", "loop", "later", "later_loop", "drawn", "prepared"])
    def test_counts_every_kind_of_call(self, toolkit: Toolkit, way: str) -> None:
        go = threading.Event()

        @tool
        def work() -> None:
            go.wait(PATIENCE)

        @tool
        async def work_later() -> None:
            await asyncio.to_thread(go.wait, PATIENCE)

        @tool
        def work_drawn() -> Iterator[str]:
            yield "a"
            go.wait(PATIENCE)

        toolkit.register(work, work_later, work_drawn)
        ways: dict[str, Callable[[], Any]] = {
            "plain": lambda: toolkit.call_sync("work"),
            "timed": lambda: toolkit.call_sync("work", policy=ExecutionPolicy(timeout=PATIENCE)),
            "loop": lambda: asyncio.run(toolkit.call("work")),
            "later": lambda: toolkit.call_sync("work_later"),
            "later_loop": lambda: asyncio.run(toolkit.call("work_later")),
            "drawn": lambda: toolkit.call_sync("work_drawn"),
            "prepared": lambda: toolkit.prepare("work").execute_sync(),
        }
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(ways[way]) for _ in range(2)]
            assert eventually(lambda: now(toolkit) == (2, 0))
            go.set()
            for future in futures:
                future.result(PATIENCE)
        assert now(toolkit) == (0, 0)

    @pytest.mark.parametrize("how", ["raise", "exit", "suspend", "odd", "timeout", "cancel", "interrupt"])
    @pytest.mark.parametrize("stepped", [False, True])
    def test_comes_back_to_nothing(self, toolkit: Toolkit, how: str, stepped: bool) -> None:
        class Odd:
            def __repr__(self) -> str:
                raise ValueError("odd")

        @tool(locks="x" if stepped else ())
        async def end() -> Any:
            if how in ("timeout", "cancel"):
                await asyncio.Event().wait()
            if how == "odd":
                return Odd()
            raise {
                "raise": ValueError("x"),
                "exit": SystemExit(1),
                "suspend": Suspend(),
                "interrupt": KeyboardInterrupt(),
            }[how]

        toolkit.register(end)

        async def main() -> None:
            policy = ExecutionPolicy(timeout=0.01) if how == "timeout" else None
            task = asyncio.create_task(toolkit.call("end", policy=policy))
            await asyncio.sleep(0.02)
            if how == "cancel":
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(main())
        assert now(toolkit) == (0, 0)
        assert toolkit.stats["tools"]["end"]["calls"] == 1

    def test_bad_calls_never_run(self, toolkit: Toolkit) -> None:
        toolkit.register(lambda: 1, name="one")
        toolkit.set_permission("one", "never")
        for sent in (None, "{"):
            assert toolkit.call_sync("one", sent).is_error
        toolkit.call_sync("nothing of that name")
        stats = toolkit.stats
        assert now(toolkit) == (0, 0)
        assert stats["tools"] == {
            "one": {"calls": 2, "seconds": 0.0, "statuses": {"denied": 2}, "histogram": {}},
        }


class TestWaiting:
    def test_for_approval(self) -> None:
        decide = threading.Event()
        with Toolkit(plugins=(), approver=lambda request: decide.wait(PATIENCE)) as toolkit:
            toolkit.register(tool(requires_approval=True)(lambda: 1), name="asks")
            with ThreadPoolExecutor(1) as pool:
                future = pool.submit(toolkit.call_sync, "asks")
                assert eventually(lambda: now(toolkit) == (0, 1))
                decide.set()
                future.result(PATIENCE)
            assert now(toolkit) == (0, 0)

    def test_for_a_lock(self, toolkit: Toolkit) -> None:
        go = threading.Event()
        toolkit.register(tool(exclusive=True)(lambda: go.wait(PATIENCE)), name="alone")
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(toolkit.call_sync, "alone") for _ in range(3)]
            assert eventually(lambda: now(toolkit) == (1, 2))
            go.set()
            for future in futures:
                future.result(PATIENCE)
        assert now(toolkit) == (0, 0)

    def test_for_a_worker(self) -> None:
        go = threading.Event()
        with Toolkit(plugins=(), max_threads=2) as toolkit:
            toolkit.register(lambda: go.wait(PATIENCE), name="work")

            async def main() -> None:
                many = asyncio.create_task(toolkit.call_many([("work", {})] * 5))
                assert await asyncio.to_thread(eventually, lambda: now(toolkit) == (2, 3))
                go.set()
                await many

            asyncio.run(asyncio.wait_for(main(), PATIENCE))
            assert now(toolkit) == (0, 0)

    def test_for_the_next_attempt(self, toolkit: Toolkit) -> None:
        def fail() -> None:
            raise ConnectionError("down")

        toolkit.register(fail)

        async def main() -> None:
            policy = ExecutionPolicy(max_attempts=2, initial_backoff=3600, max_backoff=3600, jitter=False)
            task = asyncio.create_task(toolkit.call("fail", policy=policy))
            assert await asyncio.to_thread(eventually, lambda: now(toolkit) == (0, 1))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(asyncio.wait_for(main(), PATIENCE))
        assert now(toolkit) == (0, 0)


class TestCounts:
    def test_by_status(self, toolkit: Toolkit) -> None:
        @tool(policy=ExecutionPolicy(timeout=0.01))
        async def work(how: str) -> str:
            if how == "hang":
                await asyncio.Event().wait()
            if how == "fail":
                raise ValueError("x")
            return how

        toolkit.register(work)
        for how in ("fine", "fine", "hang", "fail"):
            toolkit.call_sync("work", {"how": how})
        toolkit.call_sync("work", {"how": 1, "x": 2})
        toolkit.prepare("work", {"how": "fine"}).stop()
        stats = toolkit.stats["tools"]["work"]
        assert stats["statuses"] == {"cancelled": 1, "error": 1, "invalid": 1, "success": 2, "timeout": 1}
        assert stats["calls"] == 6
        assert sum(stats["histogram"].values()) == 4  # those that ran
        json.dumps(toolkit.stats)

    def test_a_resumed_call_is_one_call(self, toolkit: Toolkit) -> None:
        toolkit.register(Tool.external("ask", "Ask.", NOTHING))
        for n in range(3):
            toolkit.call_sync("ask", call_id=f"c{n}")
        toolkit.resume("c0", 1)
        toolkit.resume("c1", ValueError("no"))
        stats = toolkit.stats["tools"]["ask"]
        assert (stats["calls"], stats["statuses"]) == (3, {"error": 1, "success": 1, "suspended": 1})

    def test_the_histogram(self, toolkit: Toolkit) -> None:
        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)

        toolkit.register(wait)
        taken = [toolkit.call_sync("wait", {"seconds": seconds}).duration for seconds in (0.0, 0.003, 0.02)]
        histogram = toolkit.stats["tools"]["wait"]["histogram"]
        assert sum(histogram.values()) == 3
        for seconds in taken:
            (bound,) = [bound for bound in histogram if bound / 2 <= seconds * 1e6 < bound]
            assert histogram[bound] >= 1
        assert toolkit.stats["tools"]["wait"]["seconds"] == pytest.approx(sum(taken))

    def test_of_a_session_are_the_toolkits(self, toolkit: Toolkit) -> None:
        toolkit.register(lambda: 1, name="one")
        toolkit.session().call_sync("one")
        toolkit.call_sync("one")
        assert toolkit.stats["tools"]["one"]["calls"] == 2

    def test_from_many_threads(self) -> None:
        """Each addition is one that CPython does not interrupt: nothing is lost, without a lock."""
        stats, rounds, threads = ToolStats(), 20_000, 4

        def work() -> None:
            for _ in range(rounds):
                stats.open += 1
                stats.ended(Status.ERROR, 1e-5)
                stats.open -= 1
                stats.waiting += 1
                stats.waiting -= 1

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(threads) as pool:
                for future in [pool.submit(work) for _ in range(threads)]:
                    future.result(60)
        finally:
            sys.setswitchinterval(interval)
        expected = rounds * threads
        assert (stats.calls, stats.by_status[Status.ERROR], sum(stats.histogram)) == (expected, expected, expected)
        assert (stats.open, stats.waiting) == (0, 0)


class TestLog:
    @pytest.fixture
    def log(self, caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
        with caplog.at_level(logging.DEBUG, logger="pegboard"):
            yield caplog

    def board(self, toolkit: Toolkit) -> None:
        def fine() -> str:
            return "an answer that is private"

        async def later() -> str:
            await asyncio.sleep(0)
            return "later"

        def fail() -> None:
            raise ValueError("bad day")

        @tool(exclusive=True)
        def stepped() -> None:
            return None

        async def hang() -> None:
            await asyncio.Event().wait()

        toolkit.register(fine, later, fail, stepped, hang, Tool.external("ask", "Ask.", NOTHING))

    def test_one_record_for_each_call(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        self.board(toolkit)
        short = ExecutionPolicy(timeout=0.01)

        async def leave() -> None:
            for policy in (None, ExecutionPolicy()):
                task = asyncio.create_task(toolkit.call("hang", call_id="left", policy=policy))
                await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        calls: list[tuple[str, int, Callable[[], Any]]] = [
            ("fine c: success", logging.DEBUG, lambda: toolkit.call_sync("fine", call_id="c")),
            ("later c: success", logging.DEBUG, lambda: toolkit.call_sync("later", call_id="c")),
            ("later c: success", logging.DEBUG, lambda: asyncio.run(toolkit.call("later", call_id="c"))),
            ("stepped c: success", logging.DEBUG, lambda: toolkit.call_sync("stepped", call_id="c")),
            ("fail c: error", logging.INFO, lambda: toolkit.call_sync("fail", call_id="c")),
            ("fine c: invalid", logging.INFO, lambda: toolkit.call_sync("fine", {"x": 1}, call_id="c")),
            ("fin c: not_found", logging.INFO, lambda: toolkit.call_sync("fin", call_id="c")),
            ("hang c: timeout", logging.INFO, lambda: toolkit.call_sync("hang", call_id="c", policy=short)),
            ("ask c: suspended", logging.DEBUG, lambda: toolkit.call_sync("ask", call_id="c")),
            ("ask c: success", logging.DEBUG, lambda: toolkit.resume("c", 1)),
        ]
        for begin, level, call in calls:
            log.clear()
            call()
            (record,) = log.records
            assert record.name == "pegboard"
            assert (record.levelno, record.getMessage().startswith(f"{begin} in 0.")) == (level, True)
            assert "\n" not in record.getMessage()
            assert "business" not in log.text
        log.clear()
        asyncio.run(leave())
        assert [record.getMessage()[:21] for record in log.records] == ["hang left: cancelled "] * 2

    def test_a_batch_is_its_calls(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        self.board(toolkit)
        toolkit.call_many_sync([("fine", {}), ("later", {}), ("fail", {})])
        assert sorted(record.getMessage().split()[0] for record in log.records) == ["fail", "fine", "later"]

    def test_for_programs(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        self.board(toolkit)
        result = toolkit.call_sync("fail", call_id="c1", policy=ExecutionPolicy(max_attempts=2, initial_backoff=0))
        facts = vars(log.records[0])
        assert {name: facts[name] for name in ("tool", "call_id", "status", "duration", "attempts")} == {
            "tool": "fail",
            "call_id": "c1",
            "status": "error",
            "duration": result.duration,
            "attempts": 2,
        }

    def test_an_exception_has_its_traceback(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        self.board(toolkit)
        toolkit.call_sync("fail")
        assert log.text.rstrip().endswith("ValueError: bad day")
        assert "Traceback (most recent call last)" in log.text

    def test_what_a_model_sends_begins_no_line(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        self.board(toolkit)
        forged = "x\nINFO pegboard delete_everything: success\x1b[2J\u2028"
        toolkit.call_sync(forged, call_id=forged)
        toolkit.call_sync("fine", {forged: 1})
        toolkit.call_sync("fine", call_id=forged)
        toolkit.call_sync("n" * 100_000, call_id="i" * 100_000)
        for record in log.records:
            message = record.getMessage()
            assert message.isprintable()
            assert len(message) < 3_000
        assert len(log.records) == 4

    def test_no_secret(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        def use(key: str) -> None:
            raise ConnectionError(f"refused {key}")

        toolkit.register(use, presets={"key": Secret("s3cr3t-value")})
        toolkit.call_sync("use", policy=ExecutionPolicy(max_attempts=2, initial_backoff=0))
        asyncio.run(toolkit.call("use"))
        toolkit.call_sync("use", {"k": "s3cr3t-value"})
        assert len(log.records) == 3
        assert "***" in log.text
        assert "s3cr3t" not in log.text
        assert not any("s3cr3t" in str(vars(record)) for record in log.records)

    def test_an_exception_that_cannot_be_shown(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        class Broken(Exception):
            def __str__(self) -> str:
                raise SystemExit(1)

        def fail() -> None:
            raise Broken

        toolkit.register(fail)
        assert toolkit.call_sync("fail").status is Status.ERROR
        assert len(log.records) == 1

    @pytest.mark.parametrize("level", [logging.WARNING, logging.INFO])
    def test_what_is_not_read_is_not_written(
        self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch, level: int
    ) -> None:
        self.board(toolkit)
        logger = logging.getLogger("pegboard")
        monkeypatch.setattr(logger, "level", level)
        logger.manager._clear_cache()  # type: ignore[attr-defined]

        def refuse(*args: object, **kwargs: object) -> None:
            raise AssertionError("a record was made")

        monkeypatch.setattr(logger, "makeRecord", refuse)
        monkeypatch.setattr(logger, "handle", refuse)
        for name in ("fine", "later", "stepped") + (("fail",) if level > logging.INFO else ()):
            toolkit.call_sync(name)
            asyncio.run(toolkit.call(name))
        logger.manager._clear_cache()  # type: ignore[attr-defined]

    def test_program_that_loads_logging_late(self) -> None:
        assert [line.split()[:3] for line in printed(LATE).splitlines()] == [["DEBUG", "hello", "second:"]]

    def test_says_nothing_where_the_program_set_up_no_log(self, toolkit: Toolkit) -> None:
        logger = logging.getLogger("pegboard")
        assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)
        assert logger.level == logging.NOTSET
        assert logger.propagate

    def test_of_a_listener_that_fails(self, toolkit: Toolkit, log: pytest.LogCaptureFixture) -> None:
        def report(emitter: Emitter) -> str:
            emitter.emit("x")
            return "done"

        def listen(chunk: Any) -> None:
            raise ValueError("deaf")

        toolkit.register(report)
        result: ToolResult = toolkit.call_sync("report", on_chunk=listen)
        assert result.text == "done"
        assert [record.levelno for record in log.records] == [logging.WARNING, logging.DEBUG]
        assert "deaf" in log.text
