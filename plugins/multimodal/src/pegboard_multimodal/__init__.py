"""Images, speech and videos for LLM agents: OpenAI, DashScope, and the engines of this machine."""

# Each name is imported on first use (PEP 562), and the HTTP client by the first request.

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard_multimodal._dashscope import DashScopeTools
    from pegboard_multimodal._local import LocalTools
    from pegboard_multimodal._openai import OpenAITools
    from pegboard_multimodal._settings import Settings

__all__ = ["DashScopeTools", "LocalTools", "OpenAITools", "Settings", "provide_tools", "settings_type"]

_HOMES = {
    "DashScopeTools": "_dashscope",
    "LocalTools": "_local",
    "OpenAITools": "_openai",
    "Settings": "_settings",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    from pegboard_multimodal._settings import Settings

    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Any]:
    """The tools of the providers that there is a key for, and of the engines that are here."""
    from pegboard_multimodal._settings import offers

    return list(offers(settings))
