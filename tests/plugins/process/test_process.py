"""Tools in processes of their own: they are found, fed, heard, and ended when they have to be."""

import asyncio
import gc
import logging
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pegboard import (
    Chunk,
    ExecutionPolicy,
    ImageBlock,
    RegistrationError,
    Secret,
    Session,
    SettingsError,
    Status,
    TextBlock,
    ToolError,
    Toolkit,
    ToolResult,
    TransferError,
    tool,
)
from pegboard_process import ProcessDiedError, RemoteError
from pegboard_process._child import Child
from tests.plugins.process import laborers
from tests.support.measuring import least, seconds
from tests.support.residue import held_in_circles
from tests.support.thinning import first
from tests.support.waiting import eventually, until, within
from tests.workspace.project import ROOT

SPECIAL = ("eclipsed", "misplaced", "spend")
LABORERS = [getattr(laborers, name) for name in sorted(vars(laborers))]
TOOLS = [each for each in LABORERS if hasattr(each, "__pegboard_tool__") and each.__name__ not in SPECIAL]

Call = Callable[..., ToolResult]


@pytest.fixture(scope="module")
def shared() -> Iterator[Toolkit]:
    """A toolkit for tests that leave its processes as they are."""
    with furnished() as made:
        yield made


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    """A toolkit for tests that end processes."""
    with furnished() as made:
        yield made


def furnished() -> Toolkit:
    made = Toolkit(plugins=["process"])
    made.register(*TOOLS)
    return made


def plain(toolkit: Toolkit, *call: Any, **options: Any) -> ToolResult:
    return toolkit.call_sync(*call, **options)


def looped(toolkit: Toolkit, *call: Any, **options: Any) -> ToolResult:
    return asyncio.run(toolkit.call(*call, **options))


each_way = pytest.mark.parametrize("call", first(1, [looped, plain]))
"""As `both`, where a call costs a process."""


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that was not waited for yet has too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def written(place: Path) -> str:
    assert eventually(lambda: place.exists() and place.read_text())
    return place.read_text()


class TestWork:
    @each_way
    def test_comes_back(self, shared: Toolkit, call: Call) -> None:
        result = call(shared, "add", {"a": 1, "b": 2})
        assert (result.status, result.value, result.data, result.text) == (Status.SUCCESS, None, 3, "3")
        assert call(shared, "add", {"a": 1}).data == 11

    @each_way
    @pytest.mark.slow
    def test_leaves_nothing_to_the_garbage_collector(self, shared: Toolkit, call: Call) -> None:
        assert not held_in_circles(lambda: call(shared, "add", {"a": 1, "b": 2}))

    def test_is_done_elsewhere_in_a_process_that_is_kept(self, shared: Toolkit) -> None:
        first, second = (shared.call_sync("pid").data for _ in range(2))
        assert first == second != os.getpid()

    def test_at_once_is_in_different_processes(self, shared: Toolkit) -> None:
        results = asyncio.run(shared.call_many([("pid", {"seconds": 0.2})] * 2))
        assert len({result.data for result in results}) == 2

    def test_is_decided_anew_when_its_turn_comes(self, tmp_path: Path) -> None:
        place = tmp_path / "place"

        async def main(toolkit: Toolkit) -> ToolResult:
            first = toolkit.prepare("stop_when_told", {"place": str(place)})
            busy = asyncio.create_task(first.execute())
            await until(place.with_suffix(".began").exists)
            second = asyncio.create_task(toolkit.call("add", {"a": 1}))
            await until(lambda: toolkit.stats["running"] == 2)
            toolkit.set_permission("add", "never")
            first.stop()
            await busy
            return await second

        with Toolkit(plugins=["process"], settings={"process": {"processes": 1}}) as toolkit:
            toolkit.register(laborers.stop_when_told, laborers.add)
            assert within(lambda: asyncio.run(main(toolkit))).status is Status.DENIED

    @pytest.mark.parametrize("many", [Toolkit.call_many_sync, lambda *given: asyncio.run(Toolkit.call_many(*given))])
    def test_fifty_come_back_in_order(self, shared: Toolkit, many: Any) -> None:
        results = many(shared, [("add", {"a": n, "b": 0}) for n in range(50)])
        assert [result.data for result in results] == list(range(50))

    def test_many_threads_and_loops_share_the_processes(self, shared: Toolkit) -> None:
        def one(n: int) -> Any:
            return (plain, looped)[n % 2](shared, "add", {"a": n, "b": 0}).data

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(one, range(40))) == list(range(40))

    def test_takes_any_shape_of_arguments(self, shared: Toolkit) -> None:
        sent = {"name": "Ada", "rest": ["and", "Bob"], "mark": "?"}
        assert shared.call_sync("greet", sent).data == "Hello Ada and Bob?!"

    def test_of_a_method_takes_its_object_along(self, toolkit: Toolkit) -> None:
        shop = laborers.Shop("Corner")
        toolkit.register(shop)
        values = [toolkit.call_sync("visit", {"times": 2}).data for _ in range(2)]
        assert (values, shop.visits) == (["Corner 2", "Corner 2"], 0)  # a copy each time

    def test_gets_context_and_presets_as_copies(self, toolkit: Toolkit) -> None:
        toolkit.set_presets("pay", {"key": Secret("s3cret")})
        account = laborers.Account(100)
        result = toolkit.call_sync("pay", {"amount": 30}, context=account)
        assert (result.data, account.balance) == ("70 s3cret", 100)

    def test_of_a_lazy_tool(self, toolkit: Toolkit) -> None:
        toolkit.register("tests.plugins.process.laborers:add", name="sum")
        assert toolkit.call_sync("sum", {"a": 1, "b": 1}).data == 2

    @pytest.mark.slow
    def test_of_a_tool_by_hand(self, toolkit: Toolkit) -> None:
        toolkit.register(laborers.ByHand())
        by_hand = toolkit["by_hand"]
        toolkit.register(by_hand.evolve(name="elsewhere", options=laborers.PROCESS))
        result = toolkit.call_sync("elsewhere", {"word": "hi"})
        assert (result.data["word"], result.logs) == ("hi", ("by hand",))
        assert result.data["pid"] != os.getpid()

    def test_sees_no_context_variables(self, shared: Toolkit) -> None:
        laborers.VARIABLE.set("the parent's")
        assert shared.call_sync("variable").data == "the child's"

    def test_may_use_processes_itself(self, shared: Toolkit) -> None:
        assert shared.call_sync("square_all", {"numbers": [-2, 3]}).data == [2, 3]

    def test_prints_at_once(
        self, toolkit: Toolkit, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
        toolkit.call_sync("shout", {"text": "aloud"})
        assert capfd.readouterr().out == "aloud\n"

    def test_goes_on_when_an_idle_process_has_died(self, toolkit: Toolkit) -> None:
        victim = toolkit.call_sync("pid").data
        os.kill(victim, signal.SIGKILL)
        assert eventually(lambda: is_gone(victim))
        result = toolkit.call_sync("pid")
        assert (result.status, result.data != victim) == (Status.SUCCESS, True)

    @each_way
    def test_a_warm_call_wakes_no_other_thread(
        self, toolkit: Toolkit, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pegboard_process._pool import ProcessPool

        handed: list[Any] = []
        hand_over = ProcessPool.hand_over

        def noted(self: ProcessPool, run: Any) -> None:
            handed.append(run)
            hand_over(self, run)

        assert call(toolkit, "add", {"a": 1}).data == 11
        monkeypatch.setattr(ProcessPool, "hand_over", noted)
        assert [call(toolkit, "add", {"a": number}).data for number in range(5)] == list(range(10, 15))
        assert handed == []


class TestStream:
    def test_so_does_how_far_it_has_come(self, toolkit: Toolkit) -> None:
        heard: list[Any] = []
        toolkit.register(tool(backend="process")(laborers.reporting))

        def listen(chunk: Chunk) -> None:
            heard.append((chunk.progress, chunk.text))

        assert toolkit.call_sync("reporting", {"n": 2}, on_chunk=listen).text == "done"
        assert heard == [((1, 2), "part"), ((2, 2), "part"), ((0.5, None), ""), (None, "nearly")]

    @each_way
    def test_chunks_come_back_in_order(self, shared: Toolkit, call: Call) -> None:
        heard: list[str] = []
        result = call(shared, "count", {"n": 3}, on_chunk=lambda chunk: heard.append(chunk.text))
        assert heard == ["e0", "y0 ", "e1", "y1 ", "e2", "y2 "]
        assert result.text == "y0 y1 y2 "

    def test_result_is_the_same_without_a_listener(self, shared: Toolkit) -> None:
        assert shared.call_sync("count", {"n": 3}).text == "y0 y1 y2 "

    def test_carries_blocks(self, shared: Toolkit) -> None:
        heard: list[Any] = []
        result = shared.call_sync("paint", on_chunk=lambda chunk: heard.append(chunk.content))
        assert heard == [ImageBlock.from_bytes(b"draft", "image/png")]
        assert result.content == (TextBlock("a picture"), ImageBlock.from_bytes(b"done", "image/png"))

    def test_carries_what_the_tool_leaves_with_the_call(self, shared: Toolkit) -> None:
        result = shared.call_sync("describe", {"a": "1"}, call_id="c1")
        assert result.data == {"id": "c1", "name": "describe", "sent": {"a": "1"}, "typed": {"a": 1}}
        assert result.logs == ("logged",)
        assert result.attachments == (ImageBlock.from_bytes(b"attached", "image/png"),)

    def test_of_one_job_is_not_heard_in_the_next(self, toolkit: Toolkit) -> None:
        heard: list[str] = []
        toolkit.call_sync("speak_later", {"seconds": 0.5}, on_chunk=lambda chunk: None)
        toolkit.call_sync("listen", {"seconds": 0.05}, on_chunk=lambda chunk: heard.append(chunk.text))
        assert heard == ["now"]

    def test_can_end_in_a_value_and_in_nothing(self, shared: Toolkit) -> None:
        values = [
            shared.call_sync("conclude", {"n": n, "value": value}).data for n in (0, 2) for value in ("end", None)
        ]
        assert values == ["end", None, "end", [0, 1]]

    @each_way
    def test_that_failed_leaves_what_it_gave(self, shared: Toolkit, call: Call) -> None:
        result = call(shared, "break_off", {"n": 2})
        assert result.status is Status.ERROR
        assert "y0 y1" in result.text

    @each_way
    def test_with_an_item_that_cannot_be_sent_names_it(self, shared: Toolkit, call: Call) -> None:
        result = call(shared, "stream_locks")
        assert "what this tool gave (a lock) cannot be sent back from its process" in result.text

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["flood", "flow"])
    def test_to_a_listener_that_takes_nothing_has_a_time(self, toolkit: Toolkit, name: str) -> None:
        toolkit.call_sync("add", {"a": 1})  # how long a process takes to start is not what this is about
        resumed = time.monotonic() + 5

        async def listen(chunk: Any) -> None:
            await asyncio.sleep(max(0.0, resumed - time.monotonic()))

        policy = ExecutionPolicy(timeout=0.3)
        result = within(lambda: looped(toolkit, name, policy=policy, on_chunk=listen))
        assert (result.status, result.duration < 4.5) == (Status.TIMEOUT, True)

    def test_that_raises_in_the_listener_does_not_stop_the_tool(self, shared: Toolkit) -> None:
        def listen(chunk: Any) -> None:
            raise ValueError(chunk)

        assert shared.call_sync("count", {"n": 2}, on_chunk=listen).text == "y0 y1 "


class TestEnding:
    @each_way
    def test_timeout_kills(self, toolkit: Toolkit, call: Call, tmp_path: Path) -> None:
        place = tmp_path / "pid"
        result = call(toolkit, "spin", {"place": str(place)}, policy=ExecutionPolicy(timeout=0.2))
        assert (result.status, result.error and result.error.message) == (Status.TIMEOUT, "timed out after 0.2 s")
        assert is_gone(int(place.read_text()))  # already: who waits goes on only then
        assert result.duration < 10
        assert toolkit.stats["abandoned_threads"] == 0
        assert toolkit.call_sync("add", {"a": 1}).data == 11

    def test_time_counts_from_when_the_function_is_called(self, toolkit: Toolkit) -> None:
        # Starting the process takes longer than this, and so does waiting for one.
        calls = [("pid", {"seconds": 0.03})] * 12
        results = asyncio.run(toolkit.call_many(calls, policy=ExecutionPolicy(timeout=0.5)))
        assert [result.status for result in results] == [Status.SUCCESS] * 12

    @each_way
    def test_a_killed_attempt_is_followed_by_another(self, toolkit: Toolkit, call: Call, tmp_path: Path) -> None:
        policy = ExecutionPolicy(timeout=0.2, max_attempts=2, initial_backoff=0)
        result = call(toolkit, "spin_once", {"place": str(tmp_path / "pid")}, policy=policy)
        assert (result.status, result.data, result.attempts) == (Status.SUCCESS, "done", 2)

    def test_what_the_tool_has_started_is_killed_too(self, toolkit: Toolkit, tmp_path: Path) -> None:
        place = tmp_path / "pid"
        toolkit.call_sync("parent_of", {"place": str(place)}, policy=ExecutionPolicy(timeout=0.3))
        assert eventually(lambda: is_gone(int(place.read_text())))

    @pytest.mark.slow
    def test_of_a_thousand_that_are_killed_none_survives(self, toolkit: Toolkit, tmp_path: Path) -> None:
        # Forty calls, with 24 programs that each has started: starting a thousand interpreters takes minutes.
        def kill(number: int) -> ToolResult:
            place = tmp_path / str(number)
            call = toolkit.prepare("swarm", {"place": str(place), "helpers": 24})
            with ThreadPoolExecutor(1) as thread:
                running = thread.submit(call.execute_sync)
                assert eventually(place.exists)
                call.stop()
                return running.result(60)

        with ThreadPoolExecutor(2) as threads:
            results = list(threads.map(kill, range(40)))
        pids = [int(pid) for number in range(40) for pid in (tmp_path / str(number)).read_text().split()]
        assert [each.status for each in results] == [Status.CANCELLED] * 40
        assert len(set(pids)) == 1000
        assert eventually(lambda: all(map(is_gone, pids)))

    def test_a_tool_that_never_stops_talking_has_a_time_too(self, toolkit: Toolkit) -> None:
        heard: list[Any] = []

        def listen(chunk: Any) -> None:
            heard.append(chunk)
            time.sleep(0.001)  # there is always something more to hear

        policy = ExecutionPolicy(timeout=0.1)
        result = within(lambda: toolkit.call_sync("flood", policy=policy, on_chunk=listen))
        assert result.status is Status.TIMEOUT
        assert heard

    @each_way
    def test_token_is_set_first(self, toolkit: Toolkit, call: Call, tmp_path: Path) -> None:
        place = tmp_path / "reason"
        result = call(toolkit, "stop_when_told", {"place": str(place)}, policy=ExecutionPolicy(timeout=0.1))
        assert (result.status, place.read_text()) == (Status.TIMEOUT, "timed out")

    def test_generator_is_closed_first(self, toolkit: Toolkit, tmp_path: Path) -> None:
        place = tmp_path / "tidied"
        toolkit.call_sync("tidy", {"place": str(place)}, policy=ExecutionPolicy(timeout=0.1))
        assert place.read_text() == "tidied"

    def test_stop_kills_from_plain_code(self, toolkit: Toolkit, tmp_path: Path) -> None:
        place = tmp_path / "pid"
        call = toolkit.prepare("spin", {"place": str(place)})
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(call.execute_sync)
            victim = int(written(place))
            call.stop()
            assert future.result(20).status is Status.CANCELLED
        assert eventually(lambda: is_gone(victim))

    def test_stop_kills_from_a_loop(self, tmp_path: Path) -> None:
        # A busy machine may need longer for its last words.
        toolkit = Toolkit(plugins=["process"], settings={"process": {"grace": 20.0}})
        toolkit.register(laborers.stop_when_told)
        place = tmp_path / "reason"
        call = toolkit.prepare("stop_when_told", {"place": str(place)})

        async def stopped() -> ToolResult:
            running = asyncio.create_task(call.execute())
            assert await asyncio.to_thread(lambda: eventually(place.with_suffix(".began").exists))
            call.stop()
            return await running

        assert asyncio.run(stopped()).status is Status.CANCELLED
        assert "cancel" in written(place)
        toolkit.close()

    def test_cancelled_caller_kills(self, toolkit: Toolkit, tmp_path: Path) -> None:
        place = tmp_path / "pid"

        async def cancelled() -> int:
            running = asyncio.create_task(toolkit.call("spin", {"place": str(place)}))
            victim = await asyncio.to_thread(written, place)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            return int(victim)

        victim = asyncio.run(cancelled())
        assert eventually(lambda: is_gone(victim))

    def test_one_that_waits_for_its_turn_never_runs(self, toolkit: Toolkit, tmp_path: Path) -> None:
        place = tmp_path / "never"

        async def crowded() -> None:
            many = 2 + (os.cpu_count() or 1)
            busy = [asyncio.create_task(toolkit.call("pid", {"seconds": 0.1})) for _ in range(many)]
            await asyncio.sleep(0.01)
            waiting = asyncio.create_task(toolkit.call("end_once", {"place": str(place)}))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.gather(*busy)

        asyncio.run(crowded())
        assert not place.exists()

    @each_way
    def test_closing_kills(self, toolkit: Toolkit, call: Call, tmp_path: Path) -> None:
        place = tmp_path / "pid"
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(call, toolkit, "spin", {"place": str(place)})
            victim = int(written(place))
            toolkit.close()
            assert is_gone(victim)
            assert future.result(20).status is Status.CANCELLED
        after = toolkit.call_sync("add", {"a": 1})
        assert (after.status, "closed" in after.text) == (Status.ERROR, True)

    @each_way
    def test_what_is_decided_while_its_process_starts_holds_for_a_call(
        self, toolkit: Toolkit, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def start() -> Any:
            child = Child()
            toolkit.set_permission("add", "never")
            return child

        monkeypatch.setattr("pegboard_process._pool.Child", start)
        assert call(toolkit, "add", {"a": 1}).status is Status.DENIED
        monkeypatch.undo()
        first = call(toolkit, "pid").data  # the process that was started for it
        assert call(toolkit, "pid").data == first

    @pytest.mark.slow
    def test_closing_leaves_nothing(self) -> None:
        with furnished() as first:  # multiprocessing keeps a helper of its own once it was used
            first.call_sync("add", {"a": 1})
        gc.collect()
        before = resources()
        with furnished() as toolkit:
            asyncio.run(toolkit.call_many([("pid", {"seconds": 0.01})] * 6))
            toolkit.call_sync("add", {"a": 1}, policy=ExecutionPolicy(timeout=0.001))
            assert resources() != before
        assert eventually(lambda: resources() == before), (before, resources())

    def test_toolkit_that_was_not_closed_leaves_no_process(self) -> None:
        toolkit = furnished()
        victim = toolkit.call_sync("pid").data
        del toolkit
        gc.collect()
        assert eventually(lambda: is_gone(victim))


def resources() -> tuple[int, list[int], list[str]]:
    """Open files, children and threads."""
    children = sorted(child.pid or 0 for child in multiprocessing.active_children())
    threads = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("pegboard"))
    return len(list(Path("/proc/self/fd").iterdir())), children, threads


class TestDeath:
    @each_way
    @pytest.mark.parametrize(
        ("name", "arguments", "code", "words"),
        [
            ("end", {"code": 3}, 3, "ended with exit code 3"),
            ("end", {"code": 0}, 0, "ended with exit code 0"),
            ("kill", {"signal_name": "SIGSEGV"}, -11, "killed by SIGSEGV (exit code -11)"),
            (
                "kill",
                {"signal_name": "SIGKILL"},
                -9,
                "killed by SIGKILL (exit code -9), perhaps because memory ran out",
            ),
        ],
    )
    def test_is_an_error_with_the_exit_code(
        self, shared: Toolkit, call: Call, name: str, arguments: Any, code: int, words: str
    ) -> None:
        result = call(shared, name, arguments)
        assert (result.status, words in result.text) == (Status.ERROR, True), result.text
        assert result.error is not None
        assert isinstance(result.error.exception, ProcessDiedError)
        assert result.error.exception.exit_code == code
        assert shared.call_sync("add", {"a": 1}).data == 11

    def test_of_an_idempotent_tool_is_followed_by_another_attempt(self, shared: Toolkit, tmp_path: Path) -> None:
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0)
        result = shared.call_sync("end_once", {"place": str(tmp_path / "began")}, policy=policy)
        assert (result.data, result.attempts) == ("done", 2)

    def test_of_any_other_is_the_end_whatever_its_policy_says(self, shared: Toolkit) -> None:
        policy = ExecutionPolicy(max_attempts=3, initial_backoff=0, retry_on=ProcessDiedError)
        result = shared.call_sync("end", {"code": 1}, policy=policy)
        assert (result.status, result.attempts) == (Status.ERROR, 1)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_is_noticed_though_a_fork_holds_the_pipes(self, toolkit: Toolkit) -> None:
        result = within(lambda: toolkit.call_sync("fork_and_end"), 30)
        assert (result.status, "exit code 4" in result.text) == (Status.ERROR, True)


class TestErrors:
    @each_way
    def test_comes_back_by_its_name_with_message_notes_and_traceback(self, shared: Toolkit, call: Call) -> None:
        result = call(shared, "fail", {"kind": "rude", "text": "go away"})
        assert (result.status, result.text) == (Status.ERROR, "Error: go away")
        assert result.error is not None
        assert result.error.details == {"type": "Rude"}
        error = result.error.exception
        assert isinstance(error, RemoteError)
        assert error.__notes__ == ["a note"]
        assert 'laborers.py", line' in str(error.__cause__)
        assert "in fail" in str(error.__cause__)

    def test_is_logged_with_the_traceback_of_the_process(
        self, shared: Toolkit, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, "pegboard"):
            shared.call_sync("fail", {"kind": "rude"})
        assert "raise error" in caplog.text

    @each_way
    @pytest.mark.parametrize(
        ("kind", "name", "text"), [("two", "TwoPartsError", "no and no"), ("locked", "LockedError", "no")]
    )
    def test_needs_no_pickling(self, shared: Toolkit, call: Call, kind: str, name: str, text: str) -> None:
        result = call(shared, "fail", {"kind": kind})
        assert (result.status, result.text) == (Status.ERROR, f"Error: {text}")
        assert result.error is not None
        assert result.error.exception is not None
        assert result.error.details == {"type": name}
        assert "raise error" in str(result.error.exception.__cause__)

    @pytest.mark.parametrize(("kind", "base"), [("key", KeyError), ("disk", OSError), ("tool", ToolError)])
    def test_is_of_the_kinds_that_every_process_knows(self, shared: Toolkit, kind: str, base: type[Exception]) -> None:
        result = shared.call_sync("fail", {"kind": kind})
        assert result.error is not None
        assert isinstance(result.error.exception, base)

    def test_is_of_the_kinds_that_the_policy_names(self, shared: Toolkit) -> None:
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0, retry_on=laborers.Rude)
        assert shared.call_sync("fail", {"kind": "rude"}, policy=policy).attempts == 2
        assert shared.call_sync("fail", {"kind": "locked"}, policy=policy).attempts == 1

    def test_says_when_to_try_again(self, shared: Toolkit) -> None:
        policy = ExecutionPolicy(max_attempts=2, initial_backoff=0, max_backoff=0.5)
        assert shared.call_sync("fail", {"kind": "later"}, policy=policy).attempts == 1  # it asks for an hour

    @each_way
    @pytest.mark.parametrize(
        ("kind", "status", "text"),
        [
            ("tool", Status.ERROR, "no"),
            ("suspend", Status.SUSPENDED, "no"),
            ("exit", Status.ERROR, "Error: SystemExit: 3"),
            ("interrupt", Status.ERROR, "Error: KeyboardInterrupt: no"),
            ("stop", Status.ERROR, "Error: no"),
        ],
    )
    def test_ends_in_a_result(self, shared: Toolkit, call: Call, kind: str, status: Status, text: str) -> None:
        result = call(shared, "fail", {"kind": kind})
        assert (result.status, result.text) == (status, text)


class TestWhatCannotTravel:
    @each_way
    def test_result(self, shared: Toolkit, call: Call) -> None:
        result = call(shared, "unsendable")
        message = "what this tool gave (a lock) cannot be sent back from its process"
        assert (result.status, result.text) == (Status.ERROR, f"Error: {message}")
        assert result.error is not None
        assert isinstance(result.error.exception, TransferError)
        assert "cannot pickle '_thread.lock' object" in result.error.details["reason"]
        assert 'backend="thread"' in result.error.details["remedy"]

    @pytest.mark.parametrize("how", ["returned", "yielded", "raised"])
    def test_more_than_a_message_may_have_is_named_with_both_sizes(self, toolkit: Toolkit, how: str) -> None:
        result = toolkit.call_sync("give_too_much", {"limit": 20_000, "size": 50_000, "how": how})
        assert result.status is Status.ERROR
        assert re.search(r"\(\d+,\d{3} bytes, and a message has at most 20,000 bytes\)", result.text), result.text
        assert toolkit.call_sync("add", {"a": 1}).data == 11

    @each_way
    def test_argument_is_named(self, shared: Toolkit, call: Call) -> None:
        result = call(shared, "colour", {"hue": "red"}, policy=ExecutionPolicy(max_attempts=3))
        assert result.text == "Error: the value of 'hue' (a Hue) cannot be sent to the process of this tool"
        assert result.error is not None
        assert (result.error.kind, result.attempts) == ("transfer", 1)
        assert (result.error.details["parameter"], result.error.details["type"]) == ("hue", "Hue")
        assert "top level of a module" in result.error.details["remedy"]

    def test_what_the_program_provides_is_named_to_the_program_alone(
        self, toolkit: Toolkit, caplog: pytest.LogCaptureFixture
    ) -> None:
        toolkit.set_presets("pay", {"key": "k"})
        with caplog.at_level(logging.DEBUG, "pegboard"):
            result = toolkit.call_sync("pay", {"amount": 1}, context=laborers.Account(1, threading.Lock()))
        assert result.text == "Error: a value that the program provides cannot be sent to the process of this tool"
        assert "account" not in caplog.text
        assert result.error is not None
        assert (result.error.details["parameter"], result.error.details["type"]) == ("account", "Account")

    def test_secret_is_shown_nowhere(self, toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
        toolkit.register(laborers.spend)
        toolkit.set_presets("spend", {"key": Secret(laborers.Telltale("s3cret"))})
        with caplog.at_level(logging.DEBUG, "pegboard"):
            result = toolkit.call_sync("spend")
        assert result.error is not None
        assert result.error.details["parameter"] == "key"
        assert "s3cret" not in f"{result.text} {result.error} {result.error.details} {result.to_dict()} {caplog.text}"

    def test_secret_in_an_exception_is_masked(self, toolkit: Toolkit, caplog: pytest.LogCaptureFixture) -> None:
        toolkit.set_presets("fail", {"text": Secret("s3cret")})
        with caplog.at_level(logging.DEBUG, "pegboard"):
            results = [toolkit.call_sync("fail", {"kind": kind}) for kind in ("rude", "locked", "two")]
        assert [result.text for result in results] == [
            "Error: ***",
            "Error: ***",
            "Error: *** and ***",
        ]
        assert "s3cret" not in caplog.text

    def test_function_that_its_name_does_not_lead_to(self, toolkit: Toolkit) -> None:
        toolkit.register(laborers.ECLIPSED, name="eclipsed")
        result = toolkit.call_sync("eclipsed")
        assert result.text == "Error: the function of this tool cannot be sent to a process"
        assert result.error is not None
        assert "finds it by name" in result.error.details["remedy"]


async def ready() -> int:
    """Is async."""
    return 1


async def steps() -> Any:
    """Is an async generator."""
    yield 1


def within_session(session: Session) -> None:
    """Take a session."""


def within_toolkit(a: int, toolkit: Toolkit | None = None) -> None:
    """Take a toolkit."""


@pytest.mark.slow
def test_a_call_finds_its_process_as_the_one_before_it_did(tmp_path: Path) -> None:
    with Toolkit(plugins=["process"], settings={"process": {"processes": 1}}) as toolkit:
        toolkit.register(laborers.leave_traces, laborers.find_traces)
        before = toolkit.call_sync("find_traces", {"seconds": 0}).data
        assert toolkit.call_sync("leave_traces", {"place": str(tmp_path)}).data == before["pid"]
        assert toolkit.call_sync("find_traces", {"seconds": 1.5}).data == before


FORKING = """
import asyncio, os, sys
from pegboard import Toolkit
from tests.plugins.process.laborers import add, pid

def call(toolkit, *call):
    result = toolkit.call_sync(*call) if sys.argv[1] == "plain" else asyncio.run(toolkit.call(*call))
    return result.data if result.error is None else result.text

if __name__ == "__main__":
    toolkit = Toolkit(plugins=["process"], settings={"process": {"processes": 1}})
    toolkit.register(add, pid)
    first = call(toolkit, "pid")
    child = os.fork()
    if child == 0:
        told = call(toolkit, "add", {"a": 1}), call(toolkit, "pid") != first
        toolkit.close()
        print("child", *told, flush=True)
        sys.exit()  # and not os._exit: what ends at exit must leave the parent's processes alone
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print("parent", call(toolkit, "pid") == first)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("how", ["plain", pytest.param("looped", marks=pytest.mark.slow)])
def test_a_program_that_forks_begins_anew_in_the_child(how: str, tmp_path: Path) -> None:
    script = tmp_path / "forking.py"
    script.write_text(FORKING, encoding="utf-8")
    made = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), how],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.stdout.splitlines() == ["child 11 True", "0", "parent True"], made.stderr
    assert made.stderr == ""


class TestRefusedAtRegistration:
    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (ready, "is async; a process runs plain functions and generators: write it with `def`"),
            (steps, "is async"),
            (within_session, "its parameter 'session' is a Session, which cannot leave this process; take it out"),
            (within_toolkit, "its parameter 'toolkit' is a Toolkit, which cannot leave this process"),
            (lambda: 1, r"<lambda> cannot be found by name in another process; define it at the top level"),
        ],
    )
    def test_says_what_to_do(self, toolkit: Toolkit, function: Any, words: str) -> None:
        with pytest.raises(RegistrationError, match=words) as raised:
            toolkit.register(tool(name="refused", backend="process")(function))
        assert "tool 'refused' with backend=\"process\"" in str(raised.value)

    def test_nested_function(self, toolkit: Toolkit) -> None:
        @tool(backend="process")
        def nested() -> None: ...

        with pytest.raises(RegistrationError, match=r"test_nested_function\.<locals>\.nested cannot be found by name"):
            toolkit.register(nested)

    def test_lazy_tool_is_refused_when_it_is_read(self, toolkit: Toolkit) -> None:
        toolkit.register("tests.plugins.process.laborers:misplaced")
        result = toolkit.call_sync("misplaced")
        assert result.status is Status.ERROR
        assert result.error is not None
        assert "there is no backend 'proces'. Did you mean 'process'?" in result.error.details["reason"]


@pytest.mark.slow
def test_whatever_happens_every_call_is_answered_and_nothing_stays(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    with furnished() as first:
        first.call_sync("add", {"a": 1})
    gc.collect()
    before = resources()
    choices: list[Any] = [
        ("add", {"a": 1}),
        ("end", {"code": 1}),
        ("kill", {"signal_name": "SIGSEGV"}),
        ("count", {"n": 5}),
        ("fail", {"kind": "rude"}),
        ("unsendable", {}),
        ("flood", {}),
        ("spin", {"place": str(tmp_path / "pid")}),
        ("stop_when_told", {"place": str(tmp_path / "told")}),
    ]

    async def one(toolkit: Toolkit, name: str, arguments: Any) -> str:
        call = toolkit.prepare(name, arguments)
        policy = ExecutionPolicy(timeout=chance.uniform(0.01, 0.2))
        running = asyncio.create_task(call.execute(on_chunk=lambda chunk: None, policy=policy))
        if chance.random() < 0.3:
            await asyncio.sleep(chance.uniform(0, 0.5))
            ends: list[Callable[[], Any]] = [call.stop, running.cancel]
            chance.choice(ends)()
        with suppress(asyncio.CancelledError):
            await running
        assert call.result is not None, name
        return call.result.status.value

    async def everything(toolkit: Toolkit) -> list[str]:
        return await asyncio.gather(*(one(toolkit, *chance.choice(choices)) for _ in range(200)))

    with furnished() as toolkit:
        statuses = within(lambda: asyncio.run(everything(toolkit)), 300)
        assert {"success", "error", "timeout", "cancelled"} == set(statuses)
        assert toolkit.call_sync("add", {"a": 1}).data == 11
    assert eventually(lambda: resources() == before), (seed, before, resources())


def script(place: Path, text: str) -> Path:
    place.write_text(text, encoding="utf-8")
    return place


def run(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, **options
    )


TOOL = """
import os, sys, time
from pegboard import Toolkit, tool

class OwnError(Exception): ...

@tool(backend="process")
def divide(a: int, b: int) -> float:
    "Divide."
    if b == 0:
        raise OwnError("by nothing")
    return a / b

@tool(backend="process")
def hang() -> None:
    "Block."
    import subprocess
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(os.getpid(), helper.pid, flush=True)
    open(__file__ + ".began", "w").close()
    while True:
        pass

toolkit = Toolkit(plugins=["process"])
toolkit.register(divide, hang)
print("imported", __name__)
"""
CALLS = """
print(toolkit.call_sync("divide", {"a": 1, "b": 4}))
print(repr(toolkit.call_sync("divide", {"a": 1, "b": 0}).error.exception))
"""


class TestPrograms:
    def test_example(self) -> None:
        ran = run(ROOT / "docs" / "examples" / "processes.py")
        assert ran.stdout.splitlines() == ["8", "Error: timed out after 0.5 s"]

    def test_example_is_what_a_page_quotes(self) -> None:
        source = (ROOT / "docs" / "examples" / "processes.py").read_text(encoding="utf-8")
        pages = [page for page in sorted((ROOT / "docs").rglob("*.md")) if ".site" not in page.parts]
        assert sum(f"```py\n{source}```" in page.read_text(encoding="utf-8") for page in pages) == 1

    def test_script_with_a_guard(self, tmp_path: Path) -> None:
        guarded = "if __name__ == '__main__':" + CALLS.replace("\n", "\n    ")
        ran = run(script(tmp_path / "script.py", TOOL + guarded))
        lines = ["imported __main__", "imported __mp_main__"]
        assert sorted(ran.stdout.splitlines()[:2]) == lines
        assert ran.stdout.splitlines()[2:] == ["ToolResult('divide', success, '0.25')", "OwnError('by nothing')"]
        assert (ran.returncode, ran.stderr) == (0, "")

    def test_script_without_a_guard_is_told(self, tmp_path: Path) -> None:
        call = "print(toolkit.call_sync('divide', {'a': 1, 'b': 4}).text)"
        ran = run(script(tmp_path / "script.py", TOOL + call))
        assert 'put what the main script does under `if __name__ == "__main__":`' in ran.stdout
        assert ran.stdout.count("Error:") == 1
        assert (ran.returncode, ran.stderr) == (0, "")

    @pytest.mark.slow
    def test_interactive_program_is_told(self) -> None:
        call = "r = toolkit.call_sync('divide', {'a': 1, 'b': 4}); print(r.text); print(r.error.details['remedy'])"
        ran = run("-c", TOOL + call)
        assert "this tool cannot be called in its process" in ran.stdout
        assert "interactive session" in ran.stdout

    def test_thread_calls_do_not_load_multiprocessing(self) -> None:
        code = (
            "import sys, asyncio\nfrom pegboard import Toolkit, tool\n"
            "@tool(timeout=5)\ndef f() -> int: return 1\n"
            "t = Toolkit(); t.register(f); t.call_sync('f'); asyncio.run(t.call('f')); t.close()\n"
            "print(sorted(name for name in sys.modules if name in ('multiprocessing', 'pegboard_process._pool')))"
        )
        assert run("-I", "-c", code).stdout == "[]\n"

    @pytest.mark.parametrize(
        "how", [signal.SIGKILL, *(pytest.param(how, marks=pytest.mark.slow) for how in (signal.SIGTERM, signal.SIGINT))]
    )
    def test_processes_end_with_their_parent(self, tmp_path: Path, how: signal.Signals) -> None:
        guarded = "if __name__ == '__main__':\n    toolkit.call_sync('hang')"
        place = script(tmp_path / "script.py", TOOL + guarded)
        with subprocess.Popen(
            [sys.executable, str(place)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as parent:
            assert parent.stdout is not None
            victims = ""
            while not victims[:1].isdigit():
                victims = parent.stdout.readline()
            parent.send_signal(how)
            parent.wait(20)
        try:
            assert eventually(lambda: all(is_gone(int(victim)) for victim in victims.split()))
        finally:
            for victim in victims.split():
                with suppress(ProcessLookupError):
                    os.kill(int(victim), signal.SIGKILL)

    @pytest.mark.slow
    def test_program_that_closes_nothing_ends_at_once(self, tmp_path: Path) -> None:
        calls = "if __name__ == '__main__':" + CALLS.replace("\n", "\n    ")
        blocked = (
            "\n    import threading; threading.Thread(target=toolkit.call_sync, args=('hang',), daemon=True).start()"
        )
        waiting = "\n    while not os.path.exists(__file__ + '.began'):\n        time.sleep(0.01)"

        def end() -> None:
            (tmp_path / "script.py.began").unlink(missing_ok=True)
            ran = run(script(tmp_path / "script.py", TOOL + calls + blocked + waiting))
            victims = ran.stdout.splitlines()[-1].split()
            assert (ran.returncode, ran.stderr) == (0, "")
            assert eventually(lambda: all(is_gone(int(victim)) for victim in victims))

        assert least(lambda: seconds(end), enough=9) < 9  # what waits for the blocked one takes 10


class TestSettings:
    def test_bound_how_many_work_at_once(self) -> None:
        with Toolkit(plugins=["process"], settings={"process": {"processes": 1}}) as toolkit:
            toolkit.register(laborers.pid)
            results = asyncio.run(toolkit.call_many([("pid", {"seconds": 0.05})] * 3))
            assert len({result.data for result in results}) == 1

    def test_let_an_idle_process_go(self) -> None:
        with Toolkit(plugins=["process"], settings={"process": {"keep_warm": 0.1}}) as toolkit:
            toolkit.register(laborers.pid)
            victim = toolkit.call_sync("pid").data
            assert eventually(lambda: is_gone(victim))
            assert toolkit.call_sync("pid").data != victim

    @pytest.mark.parametrize("settings", [{"processes": 0}, {"grace": -1.0}, {"patience": 0.0}])
    def test_have_bounds(self, settings: dict[str, Any]) -> None:
        with pytest.raises(SettingsError, match=next(iter(settings))):
            Toolkit(plugins=["process"], settings={"process": settings})


def test_listener_may_call_another_tool_of_the_kind() -> None:
    with Toolkit(plugins=["process"], settings={"process": {"processes": 1}}) as toolkit:
        toolkit.register(laborers.count, laborers.add)
        heard: list[Any] = []
        within(
            lambda: toolkit.call_sync(
                "count", {"n": 1}, on_chunk=lambda chunk: heard.append(toolkit.call_sync("add", {"a": 1}).data)
            )
        )
        assert heard == [11, 11]


def test_without_the_pack_a_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit = Toolkit(plugins=())
    with pytest.raises(
        RegistrationError, match=r"no backend 'process'.*pegboard-process is installed, but not selected"
    ):
        toolkit.register(laborers.add)
    monkeypatch.setattr("pegboard._base.known_packs.find_spec", lambda name: None)
    with pytest.raises(RegistrationError, match=r"no backend 'process'.*pip install pegboard-process"):
        toolkit.register(laborers.add)
