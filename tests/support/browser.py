"""A headless browser for tests: Debian's Chromium, or the one that Playwright has installed."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser of Playwright's API; without one the tests are skipped."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser (nox -s inspector)")
    own = next(filter(None, map(shutil.which, BROWSERS)), None)
    with api.sync_playwright() as playwright:
        if own is None and not os.path.exists(playwright.chromium.executable_path):  # noqa: PTH110
            pytest.skip("no Chromium is installed here: apt-get install chromium, or playwright install chromium")
        # As root, as in a container, it refuses to start with a sandbox; the pages are our own.
        started = playwright.chromium.launch(executable_path=own, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()
