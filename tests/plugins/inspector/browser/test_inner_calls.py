"""A program with its calls as a tree in the page."""

from collections.abc import Callable
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.calling import PROGRAM, calling_toolkit
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow


def test_calls_of_a_program_stand_below_it(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
) -> None:
    page = open_page(inspected(calling_toolkit()))
    page.get_by_role("link", name="run_code").click()
    page.get_by_label("code", exact=True).fill(PROGRAM)
    page.get_by_role("button", name="Run", exact=True).click()
    card = page.locator("article").first
    card.get_by_label("Answer as JSON").wait_for()
    tree = card.get_by_role("list", name="Calls that it made").first
    own = tree.locator("> li")
    texts = [each.split("\n") for each in own.locator("> details > summary").all_inner_texts()]
    assert [(each[0], each[1]) for each in texts] == [
        ("forecast", "success"),
        ("plan", "success"),
        ("sign_in", "success"),
        ("ask_desk", "waits for an answer"),
    ]
    assert all("ms" in each[2] for each in texts)
    # Below what has called it, further to the right.
    inner = own.nth(1).locator("> ul > li")
    assert inner.locator("> details > summary").inner_text().startswith("ask_weather")
    assert inner.bounding_box()["x"] > own.nth(1).bounding_box()["x"]
    assert own.nth(1).locator("li li summary").inner_text().startswith("forecast")

    own.nth(2).locator("summary").press("Enter")
    own.nth(2).get_by_text("ann signed in with ***").wait_for()
    assert '"password": "***"' in own.nth(2).locator("pre").first.inner_text()
    assert "hunter22" not in page.content()

    card.get_by_label("Answer as JSON").fill('"now"')
    card.get_by_role("button", name="Send the answer").click()
    page.get_by_role("region", name="Approval of delete").wait_for()
    own.nth(4).get_by_text("waits for approval").wait_for()
    page.get_by_role("button", name="Approve").click()
    own.nth(5).get_by_text("error").wait_for()
    own.nth(3).get_by_text("success").wait_for()

    page.get_by_role("link", name="Calls", exact=True).click()
    assert page.locator("article").count() == 1
    page.locator("article li summary", has_text="ask_desk").wait_for()
    own = page.locator("article").get_by_role("list", name="Calls that it made").first.locator("> li")
    own.nth(5).locator("summary").click()
    own.nth(5).get_by_text("there is no weather in Atlantis").wait_for()
