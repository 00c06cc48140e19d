"""File tools for LLM agents that cannot leave their base directory."""

# Each name is imported on first use (PEP 562): a pack that uses `ConfinedFolder` loads none of the tools.

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard_files._confined import ConfinedFolder, FolderNames
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
    "FolderNames",
    "MissingError",
    "OutsideError",
    "RangeError",
    "Settings",
    "StorageError",
    "UnsuitableError",
    "provide_tools",
    "settings_type",
]

_HOMES = {
    "DEFAULT_DENY": "_settings",
    "ConfinedFolder": "_confined",
    "FileTools": "_tools",
    "FolderNames": "_confined",
    "Settings": "_settings",
}


def __getattr__(name: str) -> Any:
    home = "_errors" if name.endswith("Error") and name in __all__ else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    from pegboard_files._settings import Settings

    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[FileTools]:
    """File tools for the configured directory; the default is the current one when the toolkit is made."""
    import attrs

    from pegboard_files._tools import FileTools

    return [FileTools(**attrs.asdict(settings))]
