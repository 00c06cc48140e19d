"""File tools for LLM agents that cannot leave their base directory."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

import pegboard
from pegboard_files._tools import DEFAULT_MAX_BYTES, FileTools

__all__ = ["FileTools", "Settings", "provide_tools", "settings_type"]


@attrs.frozen
class Settings:
    """The section `files` of the settings; `max_bytes` is the largest amount of text that one call shows."""

    base_dir: str = "."
    read_only: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES


@pegboard.hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@pegboard.hookimpl
def provide_tools(settings: Settings) -> Iterable[FileTools]:
    """File tools for the configured directory, by default the current one of the moment of assembly."""
    return [FileTools(settings.base_dir, read_only=settings.read_only, max_bytes=settings.max_bytes)]
