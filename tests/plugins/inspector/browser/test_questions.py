"""Questions with forms, answered in the page."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.asking import FORM, asking_toolkit
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow


@pytest.fixture
def asking(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> Callable[..., Any]:
    """A page where the form is asked."""

    def asking(form: Any = FORM, **options: Any) -> Any:
        page = open_page(inspected(asking_toolkit()), **options)
        page.get_by_role("link", name="ask").click()
        page.get_by_role("button", name="JSON", exact=True).click()
        page.get_by_label("Arguments as JSON").fill(json.dumps({"form": form}))
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_role("region", name="Question of ask").wait_for()
        return page

    return asking


def question(page: Any) -> Any:
    return page.get_by_role("region", name="Question of ask")


def answer(page: Any) -> Any:
    """What the server says that it was answered."""
    text = page.locator("article .outcome pre").last
    text.wait_for()
    return json.loads(text.inner_text())


def test_every_kind_of_field_is_sent(asking: Callable[..., Any]) -> None:
    page = asking()
    asked = question(page)
    assert "Who are you?" in asked.inner_text()
    assert "As in the passport." in asked.inner_text()
    asked.get_by_label("Full name").fill("Ada")
    asked.get_by_label("age", exact=True).fill("36")
    asked.get_by_label("weight", exact=True).fill("61.5")
    assert asked.get_by_label("vegetarian", exact=True).is_checked()
    asked.get_by_label("vegetarian", exact=True).uncheck()
    asked.get_by_label("color", exact=True).select_option("Blue")
    asked.get_by_label("size", exact=True).select_option("Large")
    days = asked.get_by_role("group", name="days")
    assert days.get_by_label("tue").is_checked()
    days.get_by_label("mon").check()
    asked.get_by_role("group", name="rooms").get_by_label("A hall").check()
    asked.get_by_label("mail", exact=True).fill("ann@example.com")
    asked.get_by_label("page", exact=True).fill("https://example.com")
    asked.get_by_label("from", exact=True).fill("2026-01-31")
    asked.get_by_label("at", exact=True).fill("2026-01-31T09:30:00Z")
    asked.get_by_label("code", exact=True).fill("hunter-1")
    asked.get_by_label("word", exact=True).fill("abc")
    types = {
        name: asked.get_by_label(name, exact=True).get_attribute("type") for name in ("mail", "page", "from", "code")
    }
    assert types == {"mail": "email", "page": "url", "from": "date", "code": "password"}
    asked.get_by_role("button", name="Send").click()
    assert answer(page) == {
        "action": "accept",
        "content": {
            "name": "Ada",
            "age": 36,
            "weight": 61.5,
            "vegetarian": False,
            "color": "b",
            "size": "l",
            "days": ["mon", "tue"],
            "rooms": ["a"],
            "mail": "ann@example.com",
            "page": "https://example.com",
            "from": "2026-01-31",
            "at": "2026-01-31T09:30:00Z",
            "code": "***",
            "word": "abc",
        },
    }
    assert question(page).count() == 0


def test_what_is_left_empty_is_left_out(asking: Callable[..., Any]) -> None:
    page = asking()
    question(page).get_by_label("age", exact=True).fill("36")
    question(page).get_by_label("age", exact=True).fill("")
    question(page).get_by_label("Full name").fill("Ada")
    question(page).get_by_role("button", name="Send").click()
    assert answer(page)["content"] == {"vegetarian": True, "days": ["tue"], "name": "Ada"}


@pytest.mark.parametrize(
    ("label", "wrong", "message"),
    [
        ("Full name", "", "a value is required"),
        ("Full name", "A", "out of bounds: characters, at least 2"),
        ("age", "x", "an integer is required"),
        ("age", "1.5", "an integer is required"),
        ("age", "-1", "out of bounds: at least 0"),
        ("weight", "much", "a number is required"),
        ("mail", "ann", "an e-mail address is required"),
        ("page", "example.com", "a URI such as https://example.com is required"),
        ("at", "tomorrow", "a date and time such as 2026-01-31T09:30:00Z is required"),
        ("word", "ABC", 'expected string matching "^[a-z]+$"'),  # the server's word
    ],
)
def test_what_is_wrong_stands_at_its_field(asking: Callable[..., Any], label: str, wrong: str, message: str) -> None:
    page = asking()
    asked = question(page)
    asked.get_by_label("Full name").fill("Ada")
    field = asked.get_by_label(label, exact=True)
    field.fill(wrong)
    asked.get_by_role("button", name="Send").click()
    asked.get_by_text(message).wait_for()
    assert field.get_attribute("aria-invalid") == "true"
    assert field.evaluate("(each) => each === document.activeElement")
    field.fill({"Full name": "Ada", "age": "3", "weight": "3", "word": "abc"}.get(label, ""))
    asked.get_by_role("button", name="Send").click()
    assert answer(page)["action"] == "accept"


def test_boxes_have_their_bounds_too(asking: Callable[..., Any]) -> None:
    page = asking()
    asked = question(page)
    asked.get_by_label("Full name").fill("Ada")
    rooms = asked.get_by_role("group", name="rooms")
    rooms.get_by_label("A hall").check()
    rooms.get_by_label("b", exact=True).check()
    asked.get_by_role("button", name="Send").click()
    asked.get_by_text("out of bounds: items, at most 1").wait_for()


def test_it_is_declined(asking: Callable[..., Any]) -> None:
    page = asking()
    question(page).get_by_role("button", name="Decline").click()
    assert answer(page) == {"action": "decline", "content": None}


def test_a_form_that_only_confirms(asking: Callable[..., Any]) -> None:
    page = asking({"type": "object", "properties": {}})
    question(page).get_by_role("button", name="Send").click()
    assert answer(page) == {"action": "accept", "content": {}}


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}])
def test_axe_finds_nothing_and_nothing_is_too_wide(asking: Callable[..., Any], options: dict[str, Any]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = asking(reduced_motion="reduce", **options)
    question(page).get_by_role("button", name="Send").click()
    question(page).get_by_text("a value is required").wait_for()
    assert axe.run(page).response["violations"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
