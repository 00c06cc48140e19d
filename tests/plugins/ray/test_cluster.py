"""Two nodes: tools land where their resources are, and calls of a dead node are reported, or done again."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Secret, Status, ToolResult, tool
from tests.plugins.ray import laborers
from tests.plugins.ray.conftest import Board
from tests.support.residue import held_in_circles

pytestmark = pytest.mark.ray

MANY = 2_000
"""Calls of which one in a hundred kills its worker; by hand 10,000 were made."""
TWICE = ExecutionPolicy(max_attempts=3, initial_backoff=0)


class TestPlaces:
    def test_tools_run_where_their_resources_are(self, board: Board) -> None:
        toolkit = board(laborers.at_first, laborers.at_second)
        first, second = toolkit.call_sync("at_first"), toolkit.call_sync("at_second")
        assert first.status is second.status is Status.SUCCESS
        assert first.data != second.data

    def test_what_no_node_has_is_told_with_what_there_is(self, board: Board) -> None:
        toolkit = board(laborers.greedy)
        began = time.monotonic()
        result = toolkit.call_sync("greedy")
        assert time.monotonic() - began < 30
        assert result.status is Status.ERROR
        assert "(CPU 1, GPU 3, unicorns 1); there is" in result.text
        assert "second 1" in result.text

    def test_doctor_says_what_the_cluster_is(self, board: Board) -> None:
        from pegboard.inspection import plugins_of

        (backend,) = (
            each.value
            for each in plugins_of(board(laborers.add)).contributions("provide_backends")
            if each.value.name == "ray"
        )
        assert [(level, what) for level, what, _ in backend.diagnosis()] == [
            ("note", f"the cluster at {backend._settings.address} has 2 nodes with 2 CPUs and 0 GPUs")
        ]


@pytest.mark.parametrize("listed", ["ray", "pegboard-ray"])
def test_workers_obey_the_list_of_packs_that_may_be_loaded(board: Board, listed: str) -> None:
    environment = {"PEGBOARD_PLUGINS": listed}
    toolkit = board(laborers.add, runtime_env={"env_vars": environment})
    result = toolkit.call_sync("add", {"a": 1, "b": 2})
    assert result.data == 3, result.error and result.error.details


@pytest.mark.parametrize("name", ["add", "add_for_good", "count"])
def test_a_call_leaves_nothing_to_the_garbage_collector(board: Board, name: str) -> None:
    toolkit = board(getattr(laborers, name))
    arguments = {"n": 2} if name == "count" else {"a": 1, "b": 2}
    assert not held_in_circles(lambda: toolkit.call_sync(name, arguments))
    assert not held_in_circles(lambda: asyncio.run(toolkit.call_many([(name, arguments)] * 3)))


class TestWhatTravels:
    def test_presets_do(self, board: Board) -> None:
        toolkit = board(laborers.measure)
        toolkit.set_presets("measure", {"unit": "ft"})
        assert toolkit.call_sync("measure", {"key": "abc"}).data == {"length": 3, "unit": "ft"}

    def test_secrets_do_where_the_settings_say_so(self, board: Board) -> None:
        toolkit = board(laborers.measure, secrets=True)
        toolkit.set_presets("measure", {"key": Secret("abcdef")})
        assert toolkit.call_sync("measure").data == {"length": 6, "unit": "m"}

    def test_no_worker_runs_another_tool_than_the_program_means(self, board: Board) -> None:
        def add(a: int, b: int, c: int) -> int:
            """Add."""
            return a + b + c

        add.__module__, add.__qualname__ = laborers.__name__, "add"
        result = board(tool(backend="ray")(add)).call_sync("add", {"a": 1, "b": 2, "c": 3})
        assert result.text.startswith("Error: add cannot run in the cluster: its worker has the program and pegboard 0")
        assert "while the program has the program and pegboard 0" in result.text

    def test_a_span_in_a_worker_is_below_that_of_the_call(self, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("pegboard_otel")
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        from tests.plugins.otel.conftest import provide, traces_to

        exporter = InMemorySpanExporter()
        provide(monkeypatch, traces_to(exporter))
        data = board(laborers.span, plugins=("otel",)).call_sync("span").data
        (span,) = exporter.get_finished_spans()
        assert span.context is not None
        assert data == {"trace": f"{span.context.trace_id:032x}", "span": f"{span.context.span_id:016x}"}


class TestCrowds:
    def test_of_many_calls_few_are_at_ray(self, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
        from pegboard_ray._dispatch import Dispatcher

        toolkit, most = board(laborers.add, in_flight=8), 0
        over = Dispatcher._over

        def watched(self: Dispatcher, run: Any) -> None:
            nonlocal most
            most = max(most, len(self._flying))
            over(self, run)

        monkeypatch.setattr(Dispatcher, "_over", watched)
        results = asyncio.run(toolkit.call_many([("add", {"a": number, "b": 1}) for number in range(100)]))
        assert [each.data for each in results] == [number + 1 for number in range(100)]
        assert 1 < most <= 8

    def test_killed_workers_lose_no_answer_of_an_idempotent_tool(self, board: Board, tmp_path: Path) -> None:
        calls = [("fall", {"number": number, "place": str(tmp_path)}) for number in range(1, MANY + 1)]
        results = asyncio.run(board(laborers.fall).call_many(calls, policy=TWICE))
        assert [each.data for each in results] == [2 * number for number in range(1, MANY + 1)]

    def test_killed_workers_of_others_are_told_and_no_more(self, board: Board, tmp_path: Path) -> None:
        calls = [("fall_for_good", {"number": number, "place": str(tmp_path)}) for number in range(1, 301)]
        results = asyncio.run(board(laborers.fall_for_good).call_many(calls, policy=TWICE))
        lost = [index + 1 for index, each in enumerate(results) if each.is_error]
        assert lost == [100, 200, 300]
        assert {raised(results[number - 1]) for number in lost} == {"WorkerLostError"}
        assert {results[number - 1].attempts for number in lost} == {1}


class TestAdversity:
    def test_many_calls_that_cannot_be_sent_end_each_with_its_error(self, board: Board) -> None:
        toolkit = board(laborers.weigh, laborers.add, in_flight=8)
        assert toolkit.call_sync("weigh").data == 4
        broken = toolkit.session()
        broken.set_presets("weigh", {"thing": object()})

        async def crowd() -> list[ToolResult]:
            running = asyncio.create_task(toolkit.call_many([("add", {"a": 1, "b": 2})] * 300))
            await asyncio.sleep(0)
            return [*await broken.call_many([("weigh", {})] * 3_000), *await running]

        results = asyncio.run(asyncio.wait_for(crowd(), 120))
        assert {each.status for each in results[:3_000]} == {Status.ERROR}
        assert {raised(each) for each in results[:3_000]} == {"TransferError"}
        assert {each.data for each in results[3_000:]} == {3}

    def test_a_cluster_that_does_not_say_what_it_has_leaves_no_call_waiting(
        self, board: Board, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import ray

        toolkit = board(laborers.greedy, laborers.add)
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
        with monkeypatch.context() as patch:
            patch.setattr(ray, "nodes", lambda: 1 / 0)
            result = toolkit.call_sync("greedy")
            assert "does not say what nodes it has: ZeroDivisionError" in result.text
            many = asyncio.run(toolkit.call_many([("add", {"a": number, "b": 1}) for number in range(100)]))
            assert [each.data for each in many] == [number + 1 for number in range(100)]
        assert "there is" in toolkit.call_sync("greedy").text

    def test_a_timeout_kills_what_holds_the_lock_of_the_interpreter(
        self, board: Board, capfd: pytest.CaptureFixture[str]
    ) -> None:
        toolkit = board(laborers.hold, laborers.add)
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
        began = time.monotonic()
        result = toolkit.call_sync("hold", {"seconds": 100})
        assert result.status is Status.TIMEOUT, result.text
        assert time.monotonic() - began < 50
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
        assert "(raylet)" not in capfd.readouterr().out


def test_a_worker_is_as_the_call_before_found_it(board: Board, tmp_path: Path) -> None:
    toolkit = board(laborers.leave_traces, laborers.find_traces)
    before = toolkit.call_sync("find_traces", {"seconds": 0.0}).data
    workers = set()
    for _ in range(5):
        assert toolkit.call_sync("leave_traces", {"place": str(tmp_path)}).text == "left"
        found = toolkit.call_sync("find_traces", {"seconds": 1.5}).data
        workers.add(found.pop("pid"))
        assert found == {name: value for name, value in before.items() if name != "pid"}
    assert before["pid"] in workers or len(workers) < 5, "some call had a worker that had been used"


class TestOwnership:
    def test_a_ray_of_the_program_stays(self, board: Board, cluster: Any) -> None:
        import ray

        ray.init(address=cluster.address, configure_logging=False, log_to_driver=False)
        try:
            with board(laborers.add) as toolkit:
                assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
            assert ray.is_initialized()
        finally:
            ray.shutdown()

    def test_ours_stays_until_the_last_toolkit(self, board: Board) -> None:
        import ray

        first, second = board(laborers.add), board(laborers.add)
        for toolkit in (first, second):
            assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
        first.close()
        assert second.call_sync("add", {"a": 1, "b": 2}).data == 3
        second.close()
        assert not ray.is_initialized()


class TestDeadNode:
    """The last test: it kills a node."""

    def test_what_ran_there_is_done_again_or_told(self, board: Board, cluster: Any, tmp_path: Path) -> None:
        toolkit = board(laborers.wait_anywhere, laborers.wait_for_good)
        go, begun = tmp_path / "go", tmp_path / "begun"
        begun.mkdir()
        arguments = {"go": str(go), "begun": str(begun)}
        calls = [(name, arguments) for name in ("wait_anywhere", "wait_for_good") for _ in range(4)]
        doomed = cluster.list_all_nodes()[-1]

        async def run() -> list[ToolResult]:
            running = asyncio.create_task(toolkit.call_many(calls, policy=TWICE))
            end = time.monotonic() + 90
            while len(list(begun.iterdir())) < len(calls) and time.monotonic() < end:  # noqa: ASYNC110 - files
                await asyncio.sleep(0.05)
            await asyncio.to_thread(cluster.remove_node, doomed, allow_graceful=False)
            gone = [each.name.rpartition("-")[2] for each in begun.iterdir() if doomed.node_id in each.name]
            await asyncio.to_thread(ended, gone, end)  # a worker outlives its node by a moment
            go.touch()
            return await running

        results = asyncio.run(run())
        there = sum(each.name.startswith(f"{doomed.node_id}-") for each in begun.iterdir())
        assert 0 < there < len(calls)
        assert {each.data for each in results[:4]} == {results[0].data}, "each idempotent call ended on the other node"
        lost = [each for each in results[4:] if each.is_error]
        assert {raised(each) for each in lost} <= {"WorkerLostError"}
        retried = sum(each.attempts > 1 for each in results[:4])
        assert len(lost) + retried == there


def ended(pids: list[str], deadline: float) -> None:
    """Wait until these processes have ended."""
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)


def is_running(pid: str) -> bool:
    """Whether a process has not ended; its status is not fetched."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def raised(result: ToolResult) -> str:
    """The class of what a call ended in."""
    assert result.error is not None
    return type(result.error.exception).__name__
