"""Pages of an inspector in a headless browser."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.program import board
from tests.plugins.inspector.served import Client, served


@pytest.fixture
def inspected() -> Iterator[Callable[[Toolkit], Client]]:
    """Inspect a toolkit of a test's own, or what makes one: `inspected(toolkit)`."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def inspect(toolkit: Toolkit | Callable[[], Toolkit]) -> Client:
            if isinstance(toolkit, Toolkit):
                stack.enter_context(toolkit)
            return stack.enter_context(served(toolkit))

        yield inspect


@pytest.fixture
def open_page(browser: Any, inspected: Callable[[Toolkit], Client]) -> Iterator[Callable[..., Any]]:
    """Open the page of an inspector: `open_page(client)`. What goes wrong in the page fails the test.

    Pages close before what they inspect ends, which they would complain about.
    """
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(client: Client, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if _is_wrong(message) else None)
        page.goto(client.url)
        page.locator("#tools li").first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _is_wrong(message: Any) -> bool:
    """Whether something went wrong in the page; that a tool is not there any more is an answer, and nothing wrong.

    What an app's own page does wrong, in its frame, is no fault of this one.
    """
    if "/apps/" in message.location.get("url", ""):
        return False
    return message.type == "error" and "the server responded with a status of 404" not in message.text


@pytest.fixture
def page(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> Any:
    """The page of the program with a tool of every kind."""
    pytest.importorskip("pegboard_dataclasses")
    pytest.importorskip("pegboard_dialects")
    return open_page(inspected(board()))
