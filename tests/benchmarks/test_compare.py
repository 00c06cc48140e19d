"""Two revisions side by side: which revision, whose packages, what counts as a change."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import compare
from tests.benchmarks.__main__ import main
from tests.benchmarks.compare import Comparison
from tests.workspace.project import tracked


@pytest.fixture(autouse=True)
def _checkout() -> None:
    """Skip where there is no repository."""
    tracked()


def figure(value: float, low: float, high: float, work: str = "call") -> dict[str, Any]:
    return {"work": work, "unit": "x", "value": value, "low": low, "high": high}


class TestRevision:
    def test_is_named_in_full(self) -> None:
        assert len(compare.commit("HEAD")) == 40

    @pytest.mark.parametrize("revision", ["no-such-branch", "--all", " ", "HEAD:README.md"])
    def test_that_is_none(self, revision: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            main([f"--compare={revision}", "B1"])
        assert stopped.value.code == 2
        assert f"there is no revision {revision!r}" in capsys.readouterr().err

    @pytest.mark.slow
    def test_is_unpacked_into_a_folder_that_is_removed(self) -> None:
        with compare.unpacked(compare.commit("HEAD")) as folder:
            assert (folder / "core" / "src" / "pegboard" / "__init__.py").is_file()
        assert not folder.exists()


class TestComparison:
    def test_pools_runs_by_their_medians(self) -> None:
        before = [[figure(2, 1.9, 2.1)], [figure(9, 8, 10)], [figure(2.2, 2.1, 2.3)]]
        (row,) = compare.pooled("B1", before, [[figure(1.1, 1.0, 1.2)]])
        assert row == Comparison("B1", "call", "x", (2.2, 2.1, 2.3), (1.1, 1.0, 1.2))
        assert row.change == pytest.approx(-0.5)

    @pytest.mark.parametrize(
        ("now", "verdict"),
        [((1.0, 0.9, 1.1), "better"), ((2.1, 2.0, 2.2), "same"), ((3.0, 2.9, 3.1), "worse"), (None, "")],
    )
    def test_says_nothing_of_ranges_that_overlap(self, now: compare.Spread | None, verdict: str) -> None:
        assert Comparison("B1", "call", "x", (2.0, 1.9, 2.1), now).verdict == verdict

    def test_row_that_one_side_does_not_have(self) -> None:
        first, second = compare.pooled("B1", [[figure(2, 1, 3)]], [[figure(2, 1, 3), figure(4, 3, 5, "new")]])
        assert (first.change, second.before, second.change) == (0.0, None, None)

    def test_cells(self) -> None:
        rows = [
            Comparison("B1", "call", "x", (2.0, 1.9, 2.1), (1.5, 1.4, 1.6)),
            Comparison("B9", "", "", None, None, "before: ImportError: no"),
        ]
        assert compare.cells(rows) == [
            ("B1", "call", "2.00 x", "1.90 - 2.10", "1.50 x", "1.40 - 1.60", "-25% better"),
            ("B9", "", "-", "", "-", "", "before: ImportError: no"),
        ]

    def test_side_that_cannot_run_is_shown_with_its_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        order: list[str] = []

        def measured(name: str, place: Path, temporary: Path, quick: bool) -> list[dict[str, Any]]:
            order.append("before" if place == temporary else "now")
            if place == temporary:
                raise subprocess.CalledProcessError(1, "python", stderr="Traceback\nImportError: no such name\n")
            return [figure(2, 1, 3)]

        monkeypatch.setattr(compare, "_measured", measured)
        (row,) = compare.compared(["B1"], compare.commit("HEAD"), quick=False)
        assert (row.before, row.now, row.reason) == (None, (2, 1, 3), "before: ImportError: no such name")
        assert order == ["before", "now", "now", "before", "before", "now"]


@pytest.mark.slow
def test_head_against_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["--compare", "HEAD", "--quick", "--json", "B1"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["reason"] == ""
    assert row["before"][0] > 0
    assert row["now"][0] > 0
    assert list(tmp_path.iterdir()) == []
