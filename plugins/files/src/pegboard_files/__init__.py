"""File tools for LLM agents that cannot leave their base directory."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from pegboard import hookimpl
from pegboard_files._confined import ConfinedFolder
from pegboard_files._errors import (
    ChangedError,
    DeniedError,
    FileToolError,
    MissingError,
    OutsideError,
    RangeError,
    StorageError,
    UnsuitableError,
)
from pegboard_files._settings import DEFAULT_DENY, Settings
from pegboard_files._tools import FileTools

__all__ = [
    "DEFAULT_DENY",
    "ChangedError",
    "ConfinedFolder",
    "DeniedError",
    "FileToolError",
    "FileTools",
    "MissingError",
    "OutsideError",
    "RangeError",
    "Settings",
    "StorageError",
    "UnsuitableError",
    "provide_tools",
    "settings_type",
]


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[FileTools]:
    """File tools for the configured directory; the default is the current one when the toolkit is made."""
    return [FileTools(**attrs.asdict(settings))]
