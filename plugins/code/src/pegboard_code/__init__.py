"""Code mode: a model writes one checked program instead of ten calls: `toolkit.register(CodeMode(toolkit))`.

Each name is imported on first use (PEP 562), the sandbox by the first program.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard_code._mode import CodeMode, stubs
    from pegboard_code._settings import Settings

__all__ = ["CodeMode", "Settings", "provide_tools", "settings_type", "stubs"]

_HOMES = {"CodeMode": "_mode", "Settings": "_settings", "stubs": "_mode"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    from pegboard_code._settings import Settings

    return Settings


@hookimpl
def provide_tools(settings: Settings, toolkit: Any) -> Iterable[Any]:
    """`run_code` over the tools that the settings name; nothing without them."""
    if not settings.tools:
        return []
    from pegboard_code._mode import CodeMode
    from pegboard_code._settings import view_of

    return [CodeMode(partial(view_of, toolkit, settings.tools))]
