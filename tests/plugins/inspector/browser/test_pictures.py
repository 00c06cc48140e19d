"""The pictures of the documentation: `PEGBOARD_PICTURES=docs/pictures nox -s inspector` takes them anew."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.program import board
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow

LARGEST = 150_000  # bytes
DOCS = Path(__file__).parents[4] / "docs"


def keep(page: Any, name: str, folder: Path) -> None:
    """Take a picture, with few colours: the page has few."""
    image = pytest.importorskip("PIL.Image")
    page.evaluate("document.activeElement.blur()")
    with image.open(io.BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(256, dither=0).save(folder / f"inspector-{name}.png", optimize=True)


def test_pictures(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client], tmp_path: Path) -> None:
    pytest.importorskip("pegboard_dataclasses")
    folder = Path(os.environ.get("PEGBOARD_PICTURES") or tmp_path)
    page = open_page(inspected(board()), viewport={"width": 1120, "height": 860}, reduced_motion="reduce")
    page.get_by_role("link", name="forecast").click()
    page.get_by_label("city").fill("Oslo")
    page.get_by_label("days").fill("4")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("table").wait_for()
    keep(page, "call", folder)
    page.get_by_role("link", name="delete_file").click()
    page.get_by_label("path").fill("letters/1901.txt")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Approve").wait_for()
    keep(page, "approval", folder)
    page.get_by_role("button", name="Approve").click()
    page.emulate_media(color_scheme="dark")
    page.get_by_role("link", name="draw").click()
    page.get_by_label("width").wait_for()
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("article").get_by_role("img").wait_for()
    page.locator("article").first.scroll_into_view_if_needed()
    keep(page, "dark", folder)
    page.set_viewport_size({"width": 390, "height": 760})
    page.get_by_role("link", name="All tools").click()
    page.get_by_role("link", name="plan_trip").click()
    page.get_by_role("button", name="Add item").last.click()
    page.evaluate("document.querySelector('main').scrollTop = 0")
    keep(page, "telephone", folder)
    assert max(path.stat().st_size for path in folder.glob("inspector-*.png")) < LARGEST


def test_the_documentation_has_them() -> None:
    shown = (DOCS / "packs" / "inspector.md").read_text("utf-8")
    kept = sorted((DOCS / "pictures").glob("inspector-*.png"))
    assert len(kept) == 4
    assert all(f"../pictures/{path.name}" in shown and path.stat().st_size < LARGEST for path in kept)
