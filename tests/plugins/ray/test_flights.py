"""Short calls of a tool that may run twice share a task; what becomes of the others when it fails."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Status, ToolCall, Toolkit, ToolResult
from tests.plugins.ray import laborers
from tests.plugins.ray.conftest import Board

pytestmark = pytest.mark.ray

MANY = 200
WARM = 5


def crowd(toolkit: Toolkit, name: str, **arguments: Any) -> list[ToolResult]:
    return asyncio.run(toolkit.call_many([(name, {"number": number, **arguments}) for number in range(MANY)]))


def known(toolkit: Toolkit, name: str, **arguments: Any) -> Toolkit:
    """Once the pack has heard how long the tool takes."""
    for _ in range(WARM):
        assert toolkit.call_sync(name, {"number": -1, **arguments}).status is Status.SUCCESS
    return toolkit


def tasks(results: list[ToolResult]) -> Counter[str]:
    return Counter(each.text for each in results)


class TestSharing:
    @pytest.mark.parametrize("tool", [laborers.task, laborers.task_of_reading])
    def test_short_calls_that_may_run_twice_do(self, board: Board, tool: Any) -> None:
        results = crowd(known(board(tool), tool.__name__), tool.__name__)
        assert {each.status for each in results} == {Status.SUCCESS}
        assert len(tasks(results)) < MANY / 2
        assert max(tasks(results).values()) <= 64

    def test_others_do_not(self, board: Board) -> None:
        results = crowd(known(board(laborers.task_for_good), "task_for_good"), "task_for_good")
        assert len(tasks(results)) == MANY

    def test_calls_that_take_long_do_not(self, board: Board, tmp_path: Path) -> None:
        arguments = {"seconds": 0.05, "place": str(tmp_path)}
        toolkit = known(board(laborers.doze), "doze", **arguments)
        calls = [("doze", {"number": number, **arguments}) for number in range(10)]
        assert len(tasks(asyncio.run(toolkit.call_many(calls)))) == 10

    def test_calls_with_a_listener_do_not(self, board: Board) -> None:
        toolkit = known(board(laborers.task), "task")
        calls = [("task", {"number": number}) for number in range(10)]
        heard: list[Any] = []
        assert len(tasks(asyncio.run(toolkit.call_many(calls, on_chunk=heard.append)))) == 10

    def test_a_call_that_takes_longer_than_known_leaves_the_others_to_other_tasks(
        self, board: Board, tmp_path: Path
    ) -> None:
        toolkit = known(board(laborers.doze, in_flight=8), "doze", seconds=0.0, place=str(tmp_path))
        calls = [
            ("doze", {"number": number, "seconds": 0.2 if number == 1 else 0.0, "place": str(tmp_path)})
            for number in range(9)
        ]
        results = asyncio.run(toolkit.call_many(calls))
        assert {each.status for each in results} == {Status.SUCCESS}
        assert ran(tmp_path) == {number: WARM if number == -1 else 1 for number in range(-1, 9)}

    def test_short_calls_do_not_wait_for_room_that_long_ones_take(self, board: Board, tmp_path: Path) -> None:
        toolkit = known(board(laborers.task, laborers.wait_anywhere, in_flight=4), "task")
        go, begun = tmp_path / "go", tmp_path / "begun"
        begun.mkdir()

        async def run() -> list[ToolResult]:
            waiting = {"go": str(go), "begun": str(begun)}
            long = asyncio.create_task(toolkit.call_many([("wait_anywhere", waiting)] * 3))
            while len(list(begun.iterdir())) < 3:  # noqa: ASYNC110 - files
                await asyncio.sleep(0.05)
            short = await toolkit.call_many([("task", {"number": number}) for number in range(12)])
            assert not long.done()
            go.touch()
            return [*short, *await long]

        assert {each.status for each in asyncio.run(run())} == {Status.SUCCESS}

    def test_each_call_has_its_own_result(self, board: Board) -> None:
        toolkit = board(laborers.add)
        assert toolkit.call_sync("add", {"a": 1, "b": 2}).data == 3
        calls = [("add", {"a": number, "b": "no" if number % 7 == 3 else 1}) for number in range(MANY)]
        results = asyncio.run(toolkit.call_many(calls))
        expected = [None if number % 7 == 3 else number + 1 for number in range(MANY)]
        assert [each.data for each in results] == expected


class TestLosing:
    def test_what_shared_a_task_with_a_call_whose_time_is_up_ends_well(self, board: Board, tmp_path: Path) -> None:
        toolkit = known(board(laborers.doze), "doze", seconds=0.0, place=str(tmp_path))
        calls = [
            ("doze", {"number": number, "seconds": 60.0 if number == 20 else 0.0, "place": str(tmp_path)})
            for number in range(40)
        ]
        results = asyncio.run(toolkit.call_many(calls))
        assert results[20].status is Status.TIMEOUT
        assert {each.status for index, each in enumerate(results) if index != 20} == {Status.SUCCESS}

    def test_what_shared_a_task_with_a_call_that_was_stopped_ends_well(self, board: Board, tmp_path: Path) -> None:
        toolkit = known(board(laborers.doze), "doze", seconds=0.0, place=str(tmp_path))
        policy = ExecutionPolicy(timeout=60)

        async def run() -> list[ToolResult]:
            calls = [
                toolkit.prepare("doze", {"number": number, "seconds": 30.0 if number == 20 else 0.0, "place": place})
                for number in range(40)
            ]
            running = [asyncio.create_task(call.execute(policy=policy)) for call in calls]
            await stopped_in_time(calls[20], running)
            return await asyncio.gather(*running)

        place = str(tmp_path)
        begun = time.monotonic()
        results = asyncio.run(run())
        assert results[20].status is Status.CANCELLED
        assert {each.status for index, each in enumerate(results) if index != 20} == {Status.SUCCESS}
        assert time.monotonic() - begun < 25

    def test_a_close_ends_all_of_them(self, board: Board, tmp_path: Path) -> None:
        toolkit = known(board(laborers.doze), "doze", seconds=0.0, place=str(tmp_path))
        policy = ExecutionPolicy(timeout=60)

        async def run() -> list[ToolResult]:
            calls = [("doze", {"number": number, "seconds": 30.0, "place": str(tmp_path)}) for number in range(40)]
            running = asyncio.create_task(toolkit.call_many(calls, policy=policy))
            await asyncio.sleep(1)
            await asyncio.to_thread(toolkit.close)
            return await running

        results = asyncio.run(run())
        assert {each.status for each in results} == {Status.CANCELLED}
        assert len(results) == 40


async def stopped_in_time(call: ToolCall, running: list[asyncio.Task[ToolResult]]) -> None:
    """Stop a call once some of the others have ended."""
    while sum(each.done() for each in running) < 2:  # noqa: ASYNC110 - tasks of another process
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    call.stop()


def ran(place: Path) -> dict[int, int]:
    """How often each number did."""
    return dict(Counter(int(each.name.rpartition("-")[0]) for each in place.iterdir()))


def test_calls_of_a_program_run_where_their_backend_says(board: Board) -> None:
    code = pytest.importorskip("pegboard_code")
    toolkit = board(laborers.add, laborers.task_for_good)
    toolkit.register(code.CodeMode(toolkit))
    program = "import asyncio\nsums = await asyncio.gather(*(add(a=n, b=n) for n in range(5)))\nsums"
    result = toolkit.call_sync("run_code", {"code": program})
    assert result.data == [0, 2, 4, 6, 8]
    there = toolkit.call_sync("run_code", {"code": "await task_for_good(number=1)"})
    assert there.status is Status.SUCCESS
    assert there.data not in ("", "None", None)
