"""The table of figures: what selects its rows, how it is printed, and what its exit code says."""

import importlib
import json
import os
from collections.abc import Iterator, Sequence

import pytest

from tests.benchmarks import figures
from tests.benchmarks.__main__ import main
from tests.benchmarks.measuring import Figure, Pace

REACHED = Figure("B1", "call", 1.25, 1.2, 1.3, 2.0, 1.5)
MISSED = Figure("B5", "raise", 312.0, 300.0, 330.0, 2.5, 1.5, "us")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[str], Pace]]:
    """Measure nothing, and tell what was asked for."""
    asked: list[tuple[Sequence[str], Pace]] = []

    def measure(names: Sequence[str], pace: Pace) -> Iterator[Figure]:
        asked.append((names, pace))
        yield from (REACHED, MISSED)

    monkeypatch.setattr(figures, "measure", measure)
    return asked


def test_every_benchmark_has_its_row() -> None:
    homes = {home: importlib.import_module(f"tests.benchmarks.{home}").BENCHMARKS for home in figures.HOMES}
    assert {home: set(names) for home, names in figures.HOMES.items()} == {k: set(v) for k, v in homes.items()}


def test_rows_come_in_the_order_of_their_numbers() -> None:
    assert figures.NAMES == (
        "B1",
        "B2",
        "B3",
        "B4",
        "B5",
        "B6",
        "B6N",
        "B7",
        "B8",
        "B9",
        "B10",
        "B11",
        "B12",
        "B13",
        "B14",
        "B15",
        "B16",
        "B17",
    )


def test_one_row_is_measured_by_its_name() -> None:
    (found,) = figures.measure(["B1"], Pace(rounds=2, seconds=1e-4, repeats=1))
    assert (found.key, found.unit) == ("B1", "x")
    assert found.low <= found.value <= found.high


def test_table_shows_median_range_limits_and_verdict(
    measured: list[tuple[Sequence[str], Pace]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["B1", "B5", "--quick"]) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert printed[2:] == [
        ["B1", "call", "1.25", "x", "1.20", "-", "1.30", "2", "x", "1.5", "x", "aim"],
        ["B5", "raise", "312", "us", "300", "-", "330", "2.5", "us", "1.5", "us", "MISSED"],
    ]
    assert measured == [(["B1", "B5"], Pace.quick())]


def test_json_is_an_array_of_figures(
    measured: list[tuple[Sequence[str], Pace]], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--json"])
    assert json.loads(capsys.readouterr().out)[0] == {
        "key": "B1",
        "work": "call",
        "value": 1.25,
        "low": 1.2,
        "high": 1.3,
        "must": 2.0,
        "aim": 1.5,
        "unit": "x",
        "verdict": "aim",
    }
    assert measured == [(figures.NAMES, Pace())]


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("options", "code"), [([], 0), (["--check"], 1)])
def test_check_fails_where_a_figure_is_missed(options: list[str], code: int) -> None:
    assert main(options) == code


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["B99"], "there is no benchmark B99; known: B1 B2"),
        (["--peers", "B1"], "there is no peer B1; known: agentscope"),
        (["--imports", "B1"], "names select rows of one table"),
        (["--figures", "--peers", "B1"], "names select rows of one table"),
        (["B1", "--write"], "the page shows every row: leave the names out"),
        (["--compare", "HEAD", "--peers"], "--compare goes with NAME, --quick and --json only"),
        (["--compare", "HEAD", "--write"], "--compare goes with NAME, --quick and --json only"),
    ],
)
def test_options_that_make_no_sense(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(options)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


class TestCoreAlone:
    def test_blocks_beside_what_is_blocked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD_BLOCK", "acme")
        with figures.core_alone():
            assert os.environ["PEGBOARD_BLOCK"] == "acme,otel"
        assert os.environ["PEGBOARD_BLOCK"] == "acme"

    def test_variable_is_unset_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PEGBOARD_BLOCK", raising=False)
        with figures.core_alone():
            assert os.environ["PEGBOARD_BLOCK"] == "otel"
        assert "PEGBOARD_BLOCK" not in os.environ
