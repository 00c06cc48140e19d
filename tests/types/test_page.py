"""The table of types is what the battery says."""

import pytest

from tests.types import page
from tests.types.battery import BATTERY


def test_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert page.main(["--check"]) == 0, "python -m tests.types.page > docs/reference/type-table.md"
    assert capsys.readouterr().out.startswith("docs/reference/type-table.md is as")


@pytest.mark.slow
def test_page_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert page.main([]) == 0
    assert capsys.readouterr().out == page.page()


def test_page_has_a_row_for_each_type() -> None:
    rows = [line for line in page.page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(BATTERY)


def test_battery_has_ninety_different_types() -> None:
    assert len({page.spelled(entry.annotation) for entry in BATTERY}) >= 90


@pytest.mark.slow
def test_difference_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(page, "BATTERY", BATTERY[1:])
    assert page.main(["--check"]) == 1
    assert "is not what" in capsys.readouterr().out
