"""The operations of an OpenAPI document as tools: `toolkit.register(OpenApi("petstore.yaml", base_url=...))`."""

# Each name is imported on first use (PEP 562), the HTTP client by the first request.

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard_openapi._settings import Settings
    from pegboard_openapi._source import OpenApi

__all__ = ["OpenApi", "Settings", "provide_tools", "settings_type"]

_HOMES = {"OpenApi": "_source", "Settings": "_settings"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    from pegboard_openapi._settings import Settings

    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Any]:
    """The operations of the documents that the settings name; a program registers further ones itself."""
    from pegboard_openapi._settings import offers

    return list(offers(settings))
