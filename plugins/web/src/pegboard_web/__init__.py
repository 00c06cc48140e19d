"""Tools for the web: pages as text, part by part, and search.

Each name is imported on first use (PEP 562), the HTTP client and the parsers by the first call.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard_web._records import Hit, Page
    from pegboard_web._settings import Settings
    from pegboard_web._tools import WebTools

__all__ = ["Hit", "Page", "Settings", "WebTools", "provide_tools", "settings_type"]

_HOMES = {"Hit": "_records", "Page": "_records", "Settings": "_settings", "WebTools": "_tools"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    from pegboard_web._settings import Settings

    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Any]:
    """`web_fetch`, and `web_search` where the settings name a service."""
    from pegboard_web._tools import offers

    return list(offers(settings))
