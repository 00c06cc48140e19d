"""The ten pages that most readers open are accessible, and nothing on them is wider than the window."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.workspace.project import ROOT

pytestmark = pytest.mark.slow

PAGES = (
    "index",
    "quickstart",
    "installation",
    "declaring-tools",
    "types",
    "packs",
    "packs/agent",
    "packs/mcp",
    "reference/toolkit",
    "writing-a-pack",
)
WIDTHS = (390, 768, 1280)
HERE = ("http://127.0.0.1:", "data:", "blob:")
# Without all that is in order: gathering that takes the greater part of the time.
FAULTS_ALONE = {"resultTypes": ["violations"]}
# What reaches over the edge of the window and stands in nothing that scrolls or hides it.
TOO_WIDE = """() => {
  const edge = document.documentElement.clientWidth;
  const isOut = (box) => box.width > 0 && (box.right > edge + 1 || box.left < -1);
  const isFree = (node) => {
    for (let each = node; each !== document.body; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (style.position === "fixed" || (each !== node && style.overflowX !== "visible")) return false;
    }
    return true;
  };
  const found = [...document.body.querySelectorAll("*")].filter((each) => isOut(each.getBoundingClientRect()));
  const names = found.filter(isFree).map((each) => `${each.tagName}.${each.className}`);
  return document.documentElement.scrollWidth > edge ? ["the page", ...names] : names;
}"""


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open an address; what goes wrong in the page fails the test, and so does what is loaded from elsewhere."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(address: str, **options: Any) -> Any:
        context = browser.new_context(reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith(HERE) else wrong.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def test_the_ten_pages_are_there() -> None:
    assert [name for name in PAGES if not (ROOT / "docs" / f"{name}.md").is_file()] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    open_page: Callable[..., Any], site: str, name: str, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(site if name == "index" else f"{site}{name}/", color_scheme=scheme)
    found = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)  # for what follows the window's size
        for violation in axe.run(page, options=FAULTS_ALONE).response["violations"]:
            found[width, violation["id"]] = [node["html"][:200] for node in violation["nodes"]]
        assert page.evaluate(TOO_WIDE) == [], f"too wide at {width}"
    assert found == {}


def test_what_is_wrong_is_found(open_page: Callable[..., Any], site: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(f"{site}installation/", viewport={"width": 390, "height": 900})
    page.evaluate("""() => document.querySelector("article").insertAdjacentHTML(
      "beforeend", '<img src="data:,"><div style="width: 2000px">wide</div>')""")
    assert "image-alt" in {each["id"] for each in axe.run(page).response["violations"]}
    assert "DIV." in page.evaluate(TOO_WIDE)
