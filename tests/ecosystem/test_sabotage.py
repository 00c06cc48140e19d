"""Bad plugins: each is named with what it did, and leaves every other one working."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ecosystem.sabotage import CASES, Case
from tests.ecosystem.sites import dump, fresh, install_good

FAST = [name for name, case in CASES.items() if not case.slow]
HARMLESS = ["apple", "pear"]


def check_good(found: Any) -> None:
    """The two good packs are as if nothing else were there."""
    assert [each for each in found["plugins"] if each[0] in HARMLESS] == [[name, "active", ""] for name in HARMLESS]
    assert found["tools"]["apple_tool"] == "acme-apple 1.0"
    assert found["calls"] == {"apple_tool": "hi", "pear_tool": "hi"}
    assert found["path"] is True
    assert not [problem for problem in found["problems"] if "apple" in problem or "pear" in problem]


def check(case: Case, found: Any) -> None:
    """The bad one is in its state, and what it did is said."""
    for name, state in case.states.items():
        (reason,) = [reason for each, its, reason in found["plugins"] if (each, its) == (name, state)]
        assert reason or state == "active", f"{name} says nothing"
    assert set(case.tools) <= set(found["tools"])
    for words in case.said:
        assert any(words in problem for problem in found["problems"]), found["problems"]
    failed = {name for name, state in case.states.items() if state == "failed"}
    assert failed <= {name for name, _ in found["errors"]}
    assert not [problem for problem in found["problems"] if "\n" in problem]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    site = tmp_path_factory.mktemp("site")
    install_good(site)
    for name in FAST:
        CASES[name].install(site)
    return dump(site)


class TestAllAtOnce:
    """Every bad plugin installed together: one interpreter, and nothing gets in the way of anything."""

    def test_the_others_work(self, found: Any) -> None:
        check_good(found)

    @pytest.mark.parametrize("name", FAST)
    def test_is_named(self, found: Any, name: str) -> None:
        check(CASES[name], found)

    def test_no_other_is_blamed(self, found: Any) -> None:
        known = {name for case in CASES.values() for name in case.states} | set(HARMLESS)
        strange = {name for name, state, _ in found["plugins"] if state != "blocked"} - known
        assert strange == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_alone(name: str, tmp_path: Path) -> None:
    install_good(tmp_path)
    CASES[name].install(tmp_path)
    found = dump(tmp_path)
    check_good(found)
    check(CASES[name], found)
    spoilt = {each for each, state, _ in found["plugins"] if state not in ("active", "blocked")}
    assert spoilt <= set(CASES[name].states)


@pytest.mark.parametrize("name", ["exit at import", "raises in a hook"])
def test_asking_for_a_tool_of_the_broken_one_says_so(name: str, tmp_path: Path) -> None:
    install_good(tmp_path)
    case = CASES[name]
    case.install(tmp_path)
    found = dump(tmp_path)
    (plugin,) = case.states
    assert f"It may belong to a plugin that is not active: {plugin} (failed)" in found["missing"]


@pytest.mark.slow
class TestCommandLine:
    """`pegboard plugins` and `pegboard doctor` say the same, with every bad plugin installed."""

    @pytest.fixture
    def shown(self, tmp_path: Path) -> tuple[list[Any], str]:
        pytest.importorskip("pegboard_cli")
        install_good(tmp_path)
        for name in FAST:
            CASES[name].install(tmp_path)
        run = "import sys; from pegboard_cli import main; sys.argv[1:] = {}; main()"
        plugins = fresh(tmp_path, run.format(["plugins", "--json"]))
        doctor = fresh(tmp_path, run.format(["doctor", "--json"]), codes=(0, 1, 2, 3, 4))
        findings = [f"{each['subject']}: {each['message']}" for each in json.loads(doctor)]
        return json.loads(plugins)["plugins"], "\n".join(findings)

    def test_everything_is_explained(self, shown: tuple[list[Any], str]) -> None:
        plugins, findings = shown
        for name in FAST:
            for plugin, state in CASES[name].states.items():
                assert (plugin, state) in [(each["name"], each["state"]) for each in plugins]
            for words in CASES[name].said:
                assert words in findings, f"{name}: {findings}"
