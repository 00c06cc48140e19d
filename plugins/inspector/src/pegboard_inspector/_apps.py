"""Pages of MCP Apps: what tools have shown beside their results, in a frame that reaches nothing but messages."""

from __future__ import annotations

import base64
import secrets
from collections import OrderedDict
from typing import Any, Final, final

from pegboard import PegboardError, Session, Tool, UnknownNameError

__all__ = ["FRAME_HEADERS", "Apps", "page_of", "read_page"]

KEPT: Final = 50
"""Pages that stay open; the oldest are closed."""
LARGEST: Final = 8 * 2**20
"""Characters of a page."""

FRAME_HEADERS: Final = {
    # Its own scripts, styles and pictures, and no network. The sandbox gives it an origin of its own, also where
    # its address is opened by itself; whatever else a page asks for in its `_meta` is not given.
    "content-security-policy": (
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data: blob:; media-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
    "x-frame-options": "SAMEORIGIN",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), clipboard-write=()",
}


@final
class Apps:
    """The pages that are open, each at an address that cannot be guessed, and the tool that it belongs to."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[str, Tool]] = OrderedDict()

    def open(self, html: str, tool: Tool) -> str:
        """Open a page. Returns its key."""
        key = secrets.token_urlsafe(24)
        self._open[key] = html, tool
        while len(self._open) > KEPT:
            self._open.popitem(last=False)
        return key

    def html(self, key: str) -> str | None:
        """A page that is open."""
        return self._open[key][0] if key in self._open else None

    def callable_tool(self, key: str, name: str, session: Session) -> str:
        """The name here of a tool that a page may call: one of its own server, under the server's name for it.

        Raises `UnknownNameError` for any other, and for one that is not for pages.
        """
        if key not in self._open:
            raise UnknownNameError("this page is not open any more")
        origin = self._open[key][1].origin
        for tool in session.all_tools:
            if tool.origin is origin and (tool.source_name or tool.name) == name and _is_for_pages(tool):
                return tool.name
        raise UnknownNameError(f"this page can call no tool {name!r}")


def page_of(tool: Tool) -> str | None:
    """The URI of the page that a tool names; None if it names none, or nothing here can read it."""
    ui = tool.meta.get("ui")
    uri = ui.get("resourceUri") if isinstance(ui, dict) else tool.meta.get("ui/resourceUri")
    readable = callable(getattr(_source(tool), "read", None))
    return uri if readable and isinstance(uri, str) and uri.startswith("ui://") else None


async def read_page(tool: Tool) -> str:
    """The page of a tool, by `read(uri)` of what it is made from: text, or an answer of MCP's SDK.

    Raises `PegboardError` for what cannot be read.
    """
    uri = page_of(tool)
    if uri is None:
        raise PegboardError(f"{tool.name} has no page that can be read here")
    try:
        answer = await _source(tool).read(uri)
        html = answer if isinstance(answer, str) else _text(answer.contents[0])
    except Exception as error:
        raise PegboardError(f"{uri} cannot be read: {error}") from error
    if len(html) > LARGEST:
        raise PegboardError(f"{uri} has more than {LARGEST:,} characters")
    return html


def _source(tool: Tool) -> Any:
    return getattr(tool.function, "__self__", None)


def _text(content: Any) -> str:
    if (text := getattr(content, "text", None)) is not None:
        return str(text)
    return base64.b64decode(content.blob).decode("utf-8")


def _is_for_pages(tool: Tool) -> bool:
    ui = tool.meta.get("ui")
    visible = ui.get("visibility") if isinstance(ui, dict) else None
    return not isinstance(visible, list) or "app" in visible
