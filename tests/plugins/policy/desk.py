"""A desk for tests of limits and flow rules: tools of each kind, and toolkits that hold them to a policy."""

from __future__ import annotations

from typing import Any

from pegboard import Toolkit, ToolResult, tool
from pegboard_policy import Policy

__all__ = ["board", "fetch", "look", "made", "send", "statuses"]


@tool(read_only=True, open_world=True)
def fetch(url: str = "https://example.com") -> str:
    """Read a page."""
    return f"page of {url}"


@tool(destructive=True)
def send(to: str) -> str:
    """Send a message."""
    return f"sent to {to}"


@tool(read_only=True, open_world=False)
def look(folder: str = "home") -> str:
    """Look into a folder."""
    return f"files of {folder}"


def made(name: str, **options: Any) -> Any:
    """A tool of that name."""

    @tool(name=name, **options)
    def run(to: str = "") -> str:
        """Run."""
        return f"{name} {to}"

    return run


def board(
    *more: Any, approver: Any = None, settings: Any = None, plugins: tuple[Any, ...] = (), **policy: Any
) -> Toolkit:
    """A toolkit with the three tools, further ones, and a policy."""
    toolkit = Toolkit(plugins=[Policy(**policy), *plugins], approver=approver, settings=settings or {})
    toolkit.register(fetch, send, look, *more)
    return toolkit


def statuses(results: list[ToolResult]) -> list[str]:
    """How calls ended."""
    return [result.status.value for result in results]
