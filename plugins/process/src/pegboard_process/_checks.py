"""Checks at registration whether a function can run in another process."""

from __future__ import annotations

from functools import partial
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pegboard import RegistrationError, Session, Tool, Toolkit
from pegboard.inspection import function_kind

__all__ = ["check_portable"]


def check_portable(tool: Tool) -> None:
    """Raises `RegistrationError` for a tool that could never run in another process, saying why and what to do."""
    where = f'tool {tool.name!r} with backend="process"'
    if function_kind(tool.function) in ("async", "async_generator"):
        raise RegistrationError(
            f"{where} is async; a process runs plain functions and generators: write it with `def` (and asyncio.run "
            "inside), or leave the backend out"
        )
    path = _path(tool.function)
    if "<" in path:
        raise RegistrationError(
            f"{where}: {path} cannot be found by name in another process; define it at the top level of a module, or "
            "leave the backend out"
        )
    for parameter in tool.params:
        bound = _bound(parameter.annotation)
        if parameter.source == "injected" and bound is not None:
            raise RegistrationError(
                f"{where}: its parameter {parameter.name!r} is a {bound.__name__}, which cannot leave this process; "
                "take it out, or leave the backend out"
            )


def _path(function: Any) -> str:
    """The dotted name within its module: with `<locals>` or `<lambda>` in it, it cannot be imported."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _bound(annotation: Any) -> type | None:
    """The session or toolkit that a parameter asks for, which belong to this process."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return next(filter(None, map(_bound, get_args(annotation))), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, (Session, Toolkit)) else None
