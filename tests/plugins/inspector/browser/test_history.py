"""The history of the page begins with what a journal has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.inspector.history import journaled

pytestmark = pytest.mark.slow


def test_earlier_calls_stand_below_those_of_the_page(
    tmp_path: Path, inspected: Callable[..., Any], open_page: Callable[..., Any]
) -> None:
    pytest.importorskip("pegboard_journal")
    toolkit = journaled(tmp_path)
    for _ in range(2):
        toolkit.call_sync("forecast", {"city": "Bern"})
    page = open_page(inspected(toolkit))
    page.get_by_role("link", name="Calls", exact=True).click()
    page.get_by_role("heading", name="Earlier calls").wait_for()
    again, first = page.get_by_role("article").all()
    assert "given the answer of an earlier call" in again.inner_text()
    assert "earlier call" not in first.inner_text()
    first.get_by_text("Result").click()
    first.get_by_text('"sky": "blue"').wait_for()
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    assert axe.run(page).response["violations"] == []
    page.goto(f"{page.url.partition('#')[0]}#/tools/forecast")
    page.get_by_label("city").fill("Oslo")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("article").wait_for()
    page.get_by_role("link", name="Calls", exact=True).click()
    page.get_by_role("article").nth(2).wait_for()
    assert "Oslo" in page.get_by_role("article").first.inner_text()
