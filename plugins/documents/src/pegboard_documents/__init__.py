"""Tools for documents: their text part by part, their tables and pictures of their pages."""

# Each name is imported on first use (PEP 562), the parsers in the processes that use them alone.

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from pegboard import hookimpl

if TYPE_CHECKING:
    from pegboard_documents._reading import ReadDocument, read_document
    from pegboard_documents._records import DocumentInfo, DocumentTable, DocumentText
    from pegboard_documents._tools import DocumentTools

__all__ = [
    "DocumentInfo",
    "DocumentTable",
    "DocumentText",
    "DocumentTools",
    "ReadDocument",
    "Settings",
    "provide_tools",
    "read_document",
    "settings_type",
]

_HOMES = {
    "DocumentInfo": "_records",
    "DocumentTable": "_records",
    "DocumentText": "_records",
    "DocumentTools": "_tools",
    "ReadDocument": "_reading",
    "read_document": "_reading",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


@attrs.frozen
class Settings:
    """The section `documents` of the settings.

    Args:
        base_dir: Directory that no path leaves. None: the one that is current when the toolkit is made.
    """

    base_dir: str | None = None


@hookimpl
def settings_type() -> type[Settings]:
    """The pack's settings."""
    return Settings


@hookimpl
def provide_tools(settings: Settings) -> Iterable[Any]:
    """The tools for the documents below `base_dir`, and what is missing without the extras."""
    from pegboard_documents._tools import offers

    return list(offers(settings.base_dir))
