"""A board with the tools of the web, which may fetch from this machine, and pages of HTML."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pegboard import Toolkit, ToolResult
from tests.plugins.net.servers import answer


@contextmanager
def board(**settings: Any) -> Iterator[Toolkit]:
    """A toolkit whose `web_fetch` is allowed to reach servers of the tests."""
    given = {"allow": ["127.0.0.1"], **settings}
    with Toolkit(plugins=["web", "dataclasses"], settings={"web": given}) as toolkit:
        assert toolkit.problems == []
        yield toolkit


def fetch(toolkit: Toolkit, url: str, **arguments: Any) -> ToolResult:
    return toolkit.call_sync("web_fetch", {"url": url, **arguments})


def page(toolkit: Toolkit, url: str, **arguments: Any) -> dict[str, Any]:
    result = fetch(toolkit, url, **arguments)
    assert result.status == "success", result.text
    data: dict[str, Any] = result.data
    return data


def html(body: str, head: str = "", status: int = 200, charset: str = "; charset=utf-8") -> list[bytes]:
    """An answer of HTML."""
    text = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return answer(text.encode(), status, Content_Type=f"text/html{charset}")
