"""Accessible to all users: axe-core finds nothing, everything goes by keyboard, in the dark, and on a telephone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.program import board
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow

PICTURES = Path(__file__).parents[4] / "docs" / "assets"
TELEPHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def states(page: Any) -> Iterator[str]:
    """The page in every state that it has, one after the other."""
    base = page.url.partition("#")[0]
    yield "start"
    for name in ("forecast", "plan_trip", "find_letter", "sign_in", "book"):
        page.goto(f"{base}#/tools/{name}")
        page.get_by_role("heading", name=name, level=1).wait_for()
        page.get_by_role("button", name="Run", exact=True).wait_for()
        for button in page.get_by_role("button", name="Add item").all():
            button.click()
        page.get_by_role("button", name="Run", exact=True).click()
        yield name
    page.goto(f"{base}#/tools/draw")
    page.get_by_role("heading", name="draw", level=1).wait_for()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("img").last.wait_for()
    page.evaluate("document.querySelectorAll('main details').forEach((each) => (each.open = true))")
    yield "draw"
    page.goto(f"{base}#/tools/delete_file")
    page.get_by_label("path").fill("a")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Approve").wait_for()
    yield "approval"
    page.get_by_role("button", name="Deny").click()
    for view in ("calls", "model", "board"):
        page.goto(f"{base}#/{view}")
        page.get_by_role("heading", level=1).wait_for()
        yield view
    page.get_by_label("archive").check()
    page.get_by_role("heading", name="Cost of the last change").wait_for()
    yield "cost"


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, TELEPHONE, {**TELEPHONE, "color_scheme": "dark"}],
    ids=["light", "dark", "telephone", "dark telephone"],
)  # fmt: skip
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client], options: dict[str, Any]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(inspected(board()), reduced_motion="reduce", **options)
    found = {}
    for state in states(page):
        for violation in axe.run(page).response["violations"]:
            found[state, violation["id"]] = [node["html"][:200] for node in violation["nodes"]]
        wide = """[document.documentElement, document.querySelector("main")].map((each) =>
          each.scrollWidth - each.clientWidth)"""
        assert max(page.evaluate(wide)) <= 0, f"{state} is too wide"
    assert found == {}


def test_everything_goes_by_keyboard(page: Any) -> None:
    def focused() -> str:
        return str(
            page.evaluate("document.activeElement.textContent || document.activeElement.labels?.[0]?.textContent")
        )

    def tab_to(wanted: str, most: int = 40) -> None:
        for _ in range(most):
            if focused().strip() == wanted:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{wanted!r} is not reached; at last {focused()!r}")

    page.keyboard.press("Tab")
    assert focused() == "Skip to content"
    page.keyboard.press("/")
    page.keyboard.type("delete")
    page.keyboard.press("ArrowDown")
    assert focused().startswith("delete_file")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="delete_file").wait_for()
    tab_to("path")
    page.keyboard.type("/tmp/x")
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Approve").wait_for()
    page.locator(".brand").focus()
    tab_to("Approve")
    page.keyboard.press("Enter")
    page.get_by_text("deleted /tmp/x").wait_for()
    page.locator(".brand").focus()
    tab_to("Model")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="What a model gets").wait_for()


def test_the_list_goes_by_arrow_keys(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> None:
    toolkit = Toolkit(plugins=())
    for number in range(300):
        toolkit.register(lambda: 1, name=f"tool_{number:03}")
    page = open_page(inspected(toolkit))
    page.get_by_role("searchbox").focus()
    at = "document.activeElement.dataset.name"
    for key, wanted in [
        ("ArrowDown", "tool_000"), ("ArrowDown", "tool_001"), ("End", "tool_299"), ("ArrowUp", "tool_298"),
        ("Home", "tool_000"),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate(at) == wanted
    page.keyboard.press("PageDown")
    assert page.evaluate(at) > "tool_005"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.type") == "search"


def test_a_row_that_is_pressed_stays_while_the_list_scrolls(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
) -> None:
    toolkit = Toolkit(plugins=())
    for number in range(100):
        toolkit.register(lambda: 1, name=f"tool_{number:03}")
    page = open_page(inspected(toolkit))
    link = page.locator('[data-name="tool_005"]')
    box = link.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.evaluate("""async () => {
      for (const at of [3, 6, 0]) {
        document.querySelector(".scroller").scrollTop = at;
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      }
    }""")
    page.mouse.up()
    page.get_by_role("heading", name="tool_005", level=1).wait_for()


def test_on_a_telephone_one_thing_at_a_time(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
) -> None:
    page = open_page(inspected(board()), **TELEPHONE)
    page.get_by_role("link", name="forecast").tap()
    page.get_by_label("city").fill("Oslo")
    assert not page.get_by_role("searchbox").is_visible()
    page.get_by_role("button", name="Run", exact=True).tap()
    page.get_by_role("table").wait_for()
    page.get_by_role("link", name="All tools").tap()
    page.get_by_role("searchbox").wait_for()
    page.get_by_role("link", name="Board", exact=True).tap()
    page.get_by_role("heading", name="Packs").wait_for()
    page.keyboard.press("/")
    page.wait_for_function("() => document.activeElement.type === 'search'")


def test_the_dark_is_dark(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> None:
    client = inspected(board())
    page = open_page(client)
    brightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b)"
    assert page.evaluate(brightness) > 600
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(brightness) < 150


def test_five_thousand_tools_without_a_pause(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
) -> None:
    toolkit = Toolkit(plugins=())

    def many(first: str, second: int = 1) -> str:
        """Do something that is said in a sentence of a usual length."""
        return first * second

    toolkit.register(many)
    registered = toolkit["many"]
    toolkit.register(*(registered.evolve(name=f"tool_{number}") for number in range(5_000)))
    page = open_page(inspected(toolkit))
    page.add_init_script(PAUSES)
    pauses: list[float] = []
    while len(pauses) < 10 and min(pauses, default=1000) > 100:  # a machine may be busy
        pauses.append(used(page))
    page.get_by_text("5,001 tools", exact=True).wait_for()
    assert page.locator("#tools li").count() < 60
    assert min(pauses) <= 100, pauses
    page.evaluate(
        "() => { setTimeout(() => { for (const end = performance.now() + 150; performance.now() < end;); }); }"
    )
    page.wait_for_function("() => Math.max(...window.pauses) >= 150")  # a pause would have been seen


PAUSES = """
  window.pauses = [0];
  new PerformanceObserver((list) => window.pauses.push(...list.getEntries().map((each) => each.duration)))
    .observe({ type: "longtask", buffered: true });
"""


def used(page: Any) -> float:
    """The longest pause, in milliseconds, while the board is loaded, searched and scrolled through."""
    page.reload()
    page.get_by_text("5,001 tools", exact=True).wait_for()
    search = page.get_by_role("searchbox")
    search.press_sequentially("tool_49")
    page.get_by_text("111 of 5,001 tools").wait_for()
    search.fill("usual length")
    page.get_by_text("5,001 tools", exact=True).wait_for()
    page.evaluate("""async () => {
      const list = document.querySelector(".scroller");
      for (let at = 0; at < list.scrollHeight; at += list.scrollHeight / 40) {
        list.scrollTop = at;
        await new Promise(requestAnimationFrame);
      }
    }""")
    page.locator("#tools a").last.click()
    page.get_by_label("first").wait_for()
    search.fill("")
    page.goto(page.url.partition("#")[0] + "#/")
    return float(page.evaluate("Math.max(...window.pauses)"))
