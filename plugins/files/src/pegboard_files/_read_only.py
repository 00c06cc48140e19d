"""File tools that only read: the same class without the marks of the tools that write."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any, NoReturn, cast

from pegboard_files._errors import DeniedError

__all__ = ["bare_tools", "plain_kind"]


class _ReadOnly:
    """A base in front of a class of file tools: these methods are not marked as tools, so they are not registered."""

    def write_text_file(self, *_: Any, **__: Any) -> NoReturn:
        """Refuses."""
        raise DeniedError("These file tools are read-only.")

    insert_text_file = edit_text_file = write_text_file


def bare_tools(cls: type, only_reads: bool) -> Any:
    """An instance of `cls` that is not initialised yet, with or without the tools that write."""
    return object.__new__(_read_only_kind(cast("Hashable", cls)) if only_reads else cls)


def plain_kind(tools: object) -> type:
    """The class that `bare_tools` was called with."""
    cls = type(tools)
    return cls.__mro__[2] if issubclass(cls, _ReadOnly) else cls


@functools.cache
def _read_only_kind(cls: Any) -> type:
    return type(cls.__name__, (_ReadOnly, cls), {"__module__": cls.__module__, "__doc__": cls.__doc__})
