"""Lazy tools: named by an import string, imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from pegboard._base.errors import PegboardError, RegistrationError, describe_exception
from pegboard._model.declare import declared_options
from pegboard._model.tool import Tool, ToolOptions
from pegboard._tools.definition import ToolDefinition, definition_of
from pegboard._tools.signature import Reading, TypeTables, read_function

__all__ = ["ImportString", "read_import"]


class ImportString(NamedTuple):
    """`"pkg.module:attribute"`: `adjust` gives the options of the registration, `check` refuses, `failed` is told."""

    target: str
    adjust: Callable[[ToolOptions], ToolOptions]
    check: Callable[[Tool], None]
    failed: Callable[[str, BaseException | None], None]


def read_import(source: ImportString, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    """Read what stands behind an import string. Raises `PegboardError` saying what is wrong with the pack."""
    try:
        reading = _load(source, name, options, tables)
        known = ToolDefinition(lambda *_: reading, None, name, reading.options, tables)
        source.check(Tool(name, known, reading.options))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = f"{source.target} could not be loaded: {describe_exception(error)}"
        source.failed(reason, error)
        raise PegboardError(reason) from error
    return reading


def _load(source: ImportString, name: str, options: ToolOptions | None, tables: TypeTables) -> Reading:
    module_name, _, path = source.target.partition(":")
    found: Any = importlib.import_module(module_name)
    for part in path.split("."):
        found = getattr(found, part)
    if isinstance(found, Tool):
        return definition_of(found).read(name, options or source.adjust(found.options), tables)
    if isinstance(found, type) or not callable(found):
        raise RegistrationError(f"{source.target} is {found!r}; an import string names one function or one Tool")
    return read_function(found, name, options or source.adjust(declared_options(found) or ToolOptions()), tables)
