"""Peers: what is found out about a path, how it is measured, and that one that fails stops no other."""

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath
from typing import Any

import pytest

from tests.benchmarks.measuring import Pace
from tests.benchmarks.peers import environments, ours, table
from tests.benchmarks.peers.environments import PEERS, Unavailable
from tests.benchmarks.peers.harness import Answer, Carry, Function, Path, Row, measure

# A harness that is run by hand, seldom: its tests take as long as those of a room of the core.
pytestmark = pytest.mark.slow

PACE = Pace(rounds=2, seconds=1e-4, repeats=1)
ANSWER = {
    "peer": "acme",
    "version": "1.2",
    "how": {"narrow": "run", "agent": "loop"},
    "validates": {"narrow": False, "agent": True},
    "floor": 2e-6,
    "rows": [
        {"work": "B1", "path": "narrow", "value": 5.0, "low": 4.5, "high": 5.5, "threaded": True},
        {"work": "B3", "path": "narrow", "reason": "the tool gets a dict"},
        {"work": "B3", "path": "agent", "reason": "the tool gets a dict"},
        {"work": "B7", "path": "schema", "value": 123.4, "low": 120.0, "high": 125.0},
    ],
}


def schema(function: Function) -> Any:
    return {"title": function.__name__}


def trusting(function: Function) -> Carry:
    """Call the function with whatever the text says."""

    def carry(texts: tuple[str, ...]) -> Any:
        results = [function(**json.loads(text)) for text in texts]

        async def finish() -> None:
            for result in results:
                await result

        return finish() if hasattr(results[0], "__await__") else None

    return carry


def measured(narrow: Callable[[Function], Carry], agent: Callable[[Function], Carry] = trusting) -> Answer:
    paths = Path("run", narrow), Path("loop", agent, turns=True)
    return measure("acme", *paths, schema, PACE, version="1.2")


def row(answer: Answer, work: str, path: str) -> Row:
    (found,) = (row for row in answer.rows if (row.work, row.path) == (work, path))
    return found


class TestHarness:
    def test_every_work_goes_both_paths(self) -> None:
        works = [(row.work, row.path) for row in measured(trusting).rows]
        paths = [(work, path) for path in ("narrow", "agent") for work in ("B1", "B2", "B3")]
        assert works == [*paths, ("B7", "schema")]

    def test_peer_that_checks_nothing_is_found_out(self) -> None:
        assert measured(trusting).validates == {"narrow": False, "agent": False}

    def test_peer_that_makes_no_records_has_no_figure_for_them(self) -> None:
        answer = measured(trusting)
        assert row(answer, "B1", "narrow").value is not None
        assert (row(answer, "B3", "narrow").value, row(answer, "B3", "narrow").reason) == (None, "the tool gets a dict")

    def test_peer_whose_agent_drops_calls_has_no_figure(self) -> None:
        def first_only(function: Function) -> Carry:
            carry = trusting(function)
            return lambda texts: carry(texts[:1])

        answer = measured(trusting, first_only)
        assert row(answer, "B1", "agent").reason == "the tool ran 1 times, not 3"

    def test_path_that_reaches_nothing_is_not_called_validating(self) -> None:
        def broken(function: Function) -> Carry:
            raise LookupError("no such function\nand more")

        answer = measured(broken)
        assert answer.validates == {"narrow": None, "agent": False}
        assert row(answer, "B1", "narrow").reason == "no such function"

    def test_thread_is_noticed(self) -> None:
        with ThreadPoolExecutor(1) as pool:

            def elsewhere(function: Function) -> Carry:
                if inspect.iscoroutinefunction(function):
                    return trusting(function)
                return lambda texts: [pool.submit(function, **json.loads(text)).result() for text in texts]

            answer = measured(elsewhere)
        assert row(answer, "B1", "narrow").threaded
        assert not row(answer, "B1", "agent").threaded

    def test_pegboard_goes_both_paths_and_refuses_wrong_types(self) -> None:
        paths = Path("call", ours.narrow), Path("call_many", ours.agent, turns=True)
        answer = measure("pegboard", *paths, ours.schema, PACE)
        assert answer.validates == {"narrow": True, "agent": True}
        assert [row.reason for row in answer.rows] == [""] * 7
        assert row(answer, "B3", "agent").model == "dataclasses"

    def test_nothing_is_fetched(self) -> None:
        code = (
            "from tests.benchmarks.peers.harness import stay_at_home\n"
            "import socket, urllib.request\n"
            "stay_at_home()\n"
            "try: urllib.request.urlopen('http://127.0.0.1:9/')\n"
            "except Exception as error: print(error)\n"
        )
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert "a benchmark needs no network" in run.stdout


class TestEnvironments:
    def test_every_peer_has_a_module_and_a_guard(self) -> None:
        for name in PEERS:
            source = FilePath(environments.__file__).with_name(f"{name.replace('-', '_')}.py").read_text("utf-8")
            assert source.startswith(f'"""{name.removesuffix("-slim")}: ')
            assert f'"{name}",' in source

    def test_answer_is_the_last_line(self) -> None:
        answer = environments.parsed(f"a warning\n{json.dumps(ANSWER)}\n")
        assert (answer.peer, answer.rows[0].value, answer.rows[0].reason) == ("acme", 5.0, "")

    @pytest.mark.parametrize("text", ["", "a warning\n", "{}", '{"rows": [{"unknown": 1}]}', "[]"])
    def test_anything_else_is_no_answer(self, text: str) -> None:
        with pytest.raises(Unavailable, match="printed no answer"):
            environments.parsed(text)

    def test_peer_that_fails_is_shown_and_the_next_is_measured(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            if "llm" in command:
                raise subprocess.CalledProcessError(1, command, stderr="tried\nERROR: nothing at https://a.test/llm/\n")
            answered = json.dumps(ANSWER) if "-m" in command and "venv" not in command else ""
            return subprocess.CompletedProcess(command, 0, answered, "")

        monkeypatch.setattr(subprocess, "run", run)
        _, failed, next_one = environments.answers(["llm", "fastmcp"], quick=True)
        assert (failed.peer, failed.reason, failed.rows) == ("llm", "ERROR: nothing at (address)", [])
        assert next_one.version == "1.2"

    def test_without_a_registry_an_older_install_will_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            if "--upgrade" in command:
                raise subprocess.CalledProcessError(1, command, stderr="ERROR: no network\n")
            return subprocess.CompletedProcess(command, 0, json.dumps(ANSWER), "")

        monkeypatch.setattr(subprocess, "run", run)
        _, answer = environments.answers(["llm"], quick=True)
        assert (answer.version, answer.reason) == ("1.2", "")


class TestTable:
    def test_two_rows_for_each_library(self) -> None:
        first, second = table.cells([environments.parsed(json.dumps(ANSWER))])
        schema = "123 (120-125)"
        assert first == ("acme 1.2", "narrow", "run", "5.00 (4.50-5.50) thread", "-", "-", schema, "VALIDATES NOTHING")
        assert second == ("acme 1.2", "agent", "loop", "-", "-", "-", "", "refused")

    def test_reasons_are_told_once(self) -> None:
        gone = Answer("gone", "", {}, {}, 0.0, [], "no such release")
        assert table.notes([environments.parsed(json.dumps(ANSWER)), gone]) == [
            "acme: the tool gets a dict (B3 narrow, B3 agent)",
            "gone could not be measured: no such release",
        ]
        assert table.cells([gone]) == [("gone", "", "", "-", "-", "-", "-", "")]
