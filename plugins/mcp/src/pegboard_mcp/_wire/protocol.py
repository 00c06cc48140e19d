"""The protocol: differences between its versions and between releases of the SDK, and data between two Pegboards."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

__all__ = [
    "APPS",
    "APPS_SHOWN",
    "APP_PAGE",
    "BLOCK",
    "SCOPES",
    "WRAPPED",
    "connection_of",
    "hears_progress",
    "is_newer",
    "known_options",
    "own_version",
]

APPS: Final = "io.modelcontextprotocol/ui"
"""The extension of MCP Apps: pages that a host shows beside the results of a tool."""
APP_PAGE: Final = "text/html;profile=mcp-app"
"""The media type of such a page."""
APPS_SHOWN: Final = {"mimeTypes": [APP_PAGE]}
"""What a client says that shows such pages, or passes them on to one that does."""
BLOCK: Final = "pegboard/block"
"""In `_meta` of content: the kind, the name and the media type of the block that it is here, for another board."""
SCOPES: Final = "pegboard/scopes"
"""In `_meta` of a tool: the list of scopes that a token must have to call it."""
WRAPPED: Final = "x-fastmcp-wrap-result"
"""In an output schema: the value is the member `result` of an object, since older clients take nothing but objects."""


@cache
def own_version() -> str:
    """The version that this pack introduces itself with."""
    try:
        return version("pegboard-mcp")
    except PackageNotFoundError:
        return "0"


def is_newer(protocol: str) -> bool:
    """Whether a version is of the newer protocol: no connections, results of any schema, questions as answers."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return protocol in MODERN_PROTOCOL_VERSIONS


def known_options(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """The options that this release of the SDK knows."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known}


def connection_of(context: Any) -> Any:
    """The connection of a request: its state, its end and its own channel, for which the context has no name."""
    return context.session._connection


def hears_progress(context: Any) -> bool:
    """Whether a request asks for progress, which most do not. Where the SDK does not say, it counts as asked for."""
    outbound = getattr(context.session, "_request_outbound", None)
    wanted = [getattr(outbound, name, ...) for name in ("_progress_token", "progress_token", "_on_progress")]
    return set(wanted) != {None, ...}
