"""A tool in a process of its own gives data: nothing of it runs here, and nothing of it answers for another call."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import ExecutionPolicy, Status, Toolkit
from pegboard_process import UnexpectedAnswerError
from tests.plugins.process import forgers
from tests.support.thinning import one_in
from tests.support.waiting import eventually, within

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks for pipes in /proc")


def some(ways: Iterable[str], *quick: str) -> list[Any]:
    """All ways, each of which costs a process; those that are not `quick` to tell are for the slow session."""
    return [pytest.param(way, marks=() if way in quick else pytest.mark.slow) for way in ways]


TOOLS = [each for _, each in sorted(vars(forgers).items()) if hasattr(each, "__pegboard_tool__")]


def furnished(**settings: float) -> Toolkit:
    made = Toolkit(plugins=["process", "dataclasses"], settings={"process": {"processes": 1, **settings}})
    made.register(*TOOLS)
    return made


@pytest.fixture(scope="module")
def shared() -> Iterator[Toolkit]:
    """A toolkit with one process at a time."""
    with furnished() as made:
        yield made


class TestNothingRunsHere:
    WAYS = ("returned", "inside", "metadata", "raised", "note", "logged", "attached", "emitted")

    @pytest.mark.parametrize("how", WAYS)
    def test_of_what_a_call_leaves(self, shared: Toolkit, tmp_path: Path, how: str) -> None:
        place = tmp_path / "sprung"
        result = shared.call_sync("give_trap", {"place": str(place), "how": how}, on_chunk=lambda chunk: None)
        assert result.status in (Status.SUCCESS, Status.ERROR)
        assert str(os.getpid()) not in (place.read_text() if place.exists() else "")

    def test_of_what_is_yielded(self, shared: Toolkit, tmp_path: Path) -> None:
        place = tmp_path / "sprung"
        shared.call_sync("yield_trap", {"place": str(place)}, on_chunk=lambda chunk: None)
        assert str(os.getpid()) not in (place.read_text() if place.exists() else "")


class TestNothingAnswersForAnother:
    @pytest.mark.parametrize("how", some(forgers.SPOILED, "an answer of another", "half a frame"))
    def test_after_a_tool_that_wrote_into_the_pipe(self, shared: Toolkit, how: str) -> None:
        first = shared.call_sync("whoami").data
        spoiling = within(lambda: shared.call_sync("spoil", {"how": how}, policy=ExecutionPolicy(timeout=1)), 20)
        assert "stolen" not in spoiling.text
        after = within(lambda: shared.session().call_sync("whoami"), 20)
        assert (after.status, after.data != first) == (Status.SUCCESS, True)

    @pytest.mark.parametrize("how", some(forgers.SPOILED, "an answer of another", "half a frame"))
    def test_while_a_tool_is_blocked_time_is_kept(self, shared: Toolkit, how: str) -> None:
        policy = ExecutionPolicy(timeout=0.3)
        result = within(lambda: shared.call_sync("spoil_and_hang", {"how": how}, policy=policy), 20)
        assert result.status in (Status.TIMEOUT, Status.ERROR)
        assert "stolen" not in result.text

    @pytest.mark.parametrize("how", some(forgers.SPOILED, "an answer"))
    def test_between_calls(self, shared: Toolkit, tmp_path: Path, how: str) -> None:
        place = tmp_path / "go"
        spoiled = shared.call_sync("spoil_later", {"how": how, "place": str(place)}).data
        place.touch()
        assert eventually(place.with_suffix(".done").exists, 20)
        after = within(lambda: shared.call_sync("whoami"), 20)
        assert (after.status, after.data != spoiled) == (Status.SUCCESS, True)

    @pytest.mark.parametrize(
        "how", some(["an answer", "an answer of another", "an answer as once, begun", "noise"], "noise")
    )
    def test_while_another_call_runs(self, shared: Toolkit, tmp_path: Path, how: str) -> None:
        place = tmp_path / "go"
        spoiled = shared.call_sync("spoil_later", {"how": how, "place": str(place)}).data
        call = shared.prepare("whoami", {"seconds": 2})

        def run() -> object:
            from threading import Timer

            timer = Timer(0.2, place.touch)
            timer.start()
            return call.execute_sync(policy=ExecutionPolicy(max_attempts=3, initial_backoff=0))

        within(run, 20)
        assert call.result is not None
        assert call.result.error is not None
        assert isinstance(call.result.error.exception, UnexpectedAnswerError)
        assert call.result.attempts == 1  # it may have done what it does
        assert shared.call_sync("whoami").data != spoiled


@pytest.mark.slow
def test_a_process_that_reads_nothing_blocks_no_longer_than_patience(tmp_path: Path) -> None:
    place = tmp_path / "go"
    with furnished(patience=15.0) as toolkit:
        wedged = toolkit.call_sync("wedge_later", {"place": str(place)}).data
        place.touch()
        assert eventually(place.with_suffix(".done").exists, 20)
        stuck = within(lambda: toolkit.call_sync("length", {"text": "x" * 8_000_000}), 50)
        assert (stuck.status, "was not ready after 15 s" in stuck.text) == (Status.ERROR, True)
        after = within(lambda: toolkit.call_sync("whoami"), 50)
        assert (after.status, after.data != wedged) == (Status.SUCCESS, True)


class TestOutOfTurn:
    @pytest.mark.parametrize("how", some(forgers.FORGED, "an unknown record", "two answers", "begun again"))
    def test_ends_the_process(self, shared: Toolkit, how: str) -> None:
        before = shared.call_sync("whoami").data
        result = within(lambda: shared.call_sync("forge", {"how": how}, on_chunk=lambda chunk: None), 20)
        if how == "two answers":
            assert result.text == "one"  # it is this call's own affair
        else:
            assert result.error is not None
            assert isinstance(result.error.exception, UnexpectedAnswerError), result
        assert shared.call_sync("whoami").data != before


class TestAnswersAreData:
    @pytest.mark.parametrize("name", one_in(2, forgers.values()))
    def test_that_are_what_they_are_in_a_thread(self, shared: Toolkit, name: str) -> None:
        there, here = (shared.call_sync(each, {"name": name}) for each in ("give", "give_here"))
        assert (there.status, there.text, there.content) == (here.status, here.text, here.content)
        assert repr(there.data) == repr(here.data)
        assert (there.attachments, there.metadata, there.logs) == (here.attachments, here.metadata, here.logs)
        assert there.value is None
        assert (there.error and there.error.kind) == (here.error and here.error.kind)

    def test_that_keep_what_the_annotation_promises(self, shared: Toolkit) -> None:
        there, here = (shared.call_sync(name) for name in ("give_box", "give_box_here"))
        assert (there.data, there.text) == (here.data, here.text)

    def test_that_meet_the_tools_own_converter(self, shared: Toolkit) -> None:
        assert shared.call_sync("give_converted").text == "Point of 3.0"


def test_without_keeping_each_call_has_a_process_of_its_own(tmp_path: Path) -> None:
    with furnished(keep_warm=0) as toolkit:
        assert len({toolkit.call_sync("whoami").data for _ in range(3)}) == 3
