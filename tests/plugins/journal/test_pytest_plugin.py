"""The plugin of pytest: in tests that are marked, tools answer from a cassette."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TEST = """
import pytest
from pegboard import Toolkit, tool

RAN = []

@tool(read_only=True)
def weather(city: str) -> str:
    "Forecast."
    RAN.append(city)
    open("ran.txt", "a").write(city)
    return f"sunny in {city}"

@pytest.fixture
def toolkit():
    with Toolkit(plugins=["journal"]) as made:
        made.register(weather)
        yield made

@pytest.mark.tool_cassette
def test_one(toolkit):
    assert toolkit.call_sync("weather", {"city": CITY}).text == f"sunny in {CITY}"
    with Toolkit(plugins=["journal"]) as other:
        other.register(weather)
        assert other.call_sync("weather", {"city": CITY}).text == f"sunny in {CITY}"

@pytest.mark.tool_cassette("shared/two.jsonl")
def test_two(toolkit):
    toolkit.call_sync("weather", {"city": CITY})

def test_plain(toolkit):
    assert toolkit.call_sync("weather", {"city": "plain"}).notes == ()

CITY = "Bern"
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with tests of a tool."""
    pytester.makepyfile(test_weather=TEST)
    return pytester


def ran(project: pytest.Pytester) -> str:
    file = project.path / "ran.txt"
    text = file.read_text("utf-8") if file.exists() else ""
    file.unlink(missing_ok=True)
    return text


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", *arguments)


def test_recorded_once_and_then_strict(project: pytest.Pytester) -> None:
    run(project, "--tool-calls=record").assert_outcomes(passed=3)
    assert ran(project) == "BernBernBernplain"
    files = sorted(str(path.relative_to(project.path)) for path in project.path.rglob("*.jsonl"))
    assert files == [str(Path("cassettes", "test_weather", "test_one.jsonl")), str(Path("shared", "two.jsonl"))]
    run(project).assert_outcomes(passed=3)
    assert ran(project) == "plain"


def test_what_is_missing_fails_the_test_whatever_it_asserts(project: pytest.Pytester) -> None:
    result = run(project, "-k", "two or plain")
    result.assert_outcomes(failed=1, passed=1, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "*two.jsonl: calls were refused; run it once with --tool-calls=record, and keep the file",
            "- there is no recorded call of weather like this one; none of this tool was recorded",
        ]
    )
    assert ran(project) == "plain"


@pytest.mark.slow
def test_what_has_changed_is_named(project: pytest.Pytester) -> None:
    run(project, "--tool-calls=record")
    ran(project)
    source = project.path / "test_weather.py"
    source.write_text(source.read_text("utf-8").replace('CITY = "Bern"', 'CITY = "Rome"'), "utf-8")
    result = run(project, "-k", "two")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(['*differs: city: recorded "Bern", now "Rome"'])
    run(project, "--tool-calls=replay").assert_outcomes(passed=3)
    assert ran(project) == "RomeRomeRomeplain"


@pytest.mark.slow
def test_the_marker_is_described(project: pytest.Pytester) -> None:
    run(project, "--markers").stdout.fnmatch_lines(["@pytest.mark.tool_cassette(path): *"])


@pytest.mark.slow
def test_the_option_is_described_and_turns_it_off(project: pytest.Pytester) -> None:
    run(project, "--help").stdout.fnmatch_lines(["*--tool-calls={record,replay,strict,off}*"])
    run(project, "--tool-calls=off").assert_outcomes(passed=3)
    assert ran(project) == "BernBernBernplain"
    assert list(project.path.rglob("*.jsonl")) == []


@pytest.mark.slow
def test_a_damaged_file_fails_its_test_alone(project: pytest.Pytester) -> None:
    run(project, "--tool-calls=record")
    (project.path / "shared" / "two.jsonl").write_text("{\n", "utf-8")
    result = run(project)
    result.assert_outcomes(errors=1, passed=2)
    result.stdout.fnmatch_lines(["*two.jsonl, line 1: it is no recorded call; record it again*"])
