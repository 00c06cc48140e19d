"""What a user does with the resources, the prompts and the log of an MCP server."""

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit
from pegboard_inspector._command import toolkit_of
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[1] / "library_server.py"
COMMAND = shlex.join([sys.executable, str(SERVER)])


@pytest.fixture
def library(open_page: Callable[..., Any], inspected: Callable[..., Client]) -> Any:
    pytest.importorskip("pegboard_mcp")
    return open_page(inspected(partial(toolkit_of, None, [COMMAND])))


def view(page: Any, name: str) -> None:
    page.get_by_label("Views").get_by_role("link", name=name, exact=True).click()
    page.get_by_role("heading", name=name, level=1).wait_for()


class TestViews:
    def test_are_there_where_a_source_has_them(self, library: Any) -> None:
        library.get_by_label("Views").get_by_role("link", name="Log").wait_for()
        links = library.get_by_label("Views").get_by_role("link").all_inner_texts()
        assert links == ["Tools", "Calls", "Model", "Board", "Resources", "Prompts", "Log"]

    def test_are_not_there_without(self, open_page: Callable[..., Any], inspected: Callable[..., Client]) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: None, name="nothing", description="It does nothing.")
        page = open_page(inspected(toolkit))
        page.get_by_text("1 tools are offered").wait_for()
        assert page.get_by_label("Views").get_by_role("link").all_inner_texts() == ["Tools", "Calls", "Model", "Board"]

    def test_fit_a_telephone(self, open_page: Callable[..., Any], inspected: Callable[..., Client]) -> None:
        pytest.importorskip("pegboard_mcp")
        page = open_page(inspected(partial(toolkit_of, None, [COMMAND])), viewport={"width": 390, "height": 800})
        for name in ("Resources", "Prompts", "Log"):
            view(page, name)
            assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_resources_are_read(library: Any) -> None:
    view(library, "Resources")
    library.get_by_text("A book about <b>sand</b>.").wait_for()
    library.get_by_role("button", name="Read dune").click()
    library.get_by_text("A beginning is a very delicate time.").wait_for()
    library.get_by_role("button", name="Read cover").click()
    picture = library.get_by_role("img", name="Image, image/png")
    picture.wait_for()
    assert picture.evaluate("image => image.naturalWidth") == 1
    library.get_by_label("URI of shelf").fill("shelf://12")
    library.get_by_role("button", name="Read shelf").click()
    library.get_by_text("Shelf 12 is full.").wait_for()


def test_prompts_are_filled_in(library: Any) -> None:
    view(library, "Prompts")
    library.get_by_label("topic").fill("sand")
    library.get_by_role("button", name="Get recommend").click()
    library.get_by_label("user").get_by_text("Which book about sand fits a calm evening?").wait_for()
    library.get_by_label("mood").fill("wild")
    library.get_by_role("button", name="Get recommend").click()
    library.get_by_text("fits a wild evening?").wait_for()


def test_the_log_follows_the_server(library: Any) -> None:
    view(library, "Log")
    log = library.get_by_role("log", name="Log")
    log.get_by_text("the library opens").wait_for()
    assert not log.get_by_text("lent dune").count()
    library.evaluate(
        """async () => {
            const { post } = await import("/page/api.js");
            await post("calls", { name: "lend", arguments: '{"book": "dune"}' });
        }"""
    )
    log.get_by_text("lent dune").wait_for()
    error = log.locator("p.failed")
    error.wait_for()
    assert error.inner_text().endswith("shelf: dune is lent")
    library.get_by_text("4 lines.").wait_for()


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}}])
def test_axe_finds_nothing(
    open_page: Callable[..., Any], inspected: Callable[..., Client], options: dict[str, Any]
) -> None:
    pytest.importorskip("pegboard_mcp")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(inspected(partial(toolkit_of, None, [COMMAND])), reduced_motion="reduce", **options)
    found = {}
    for name, act in (("Resources", "Read dune"), ("Prompts", None), ("Log", None)):
        view(page, name)
        if act is not None:
            page.get_by_role("button", name=act).click()
            page.get_by_text("A beginning is a very delicate time.").wait_for()
        for violation in axe.run(page).response["violations"]:
            found[name, violation["id"]] = [node["html"][:200] for node in violation["nodes"]]
    assert found == {}
