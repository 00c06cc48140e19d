"""Portable tools: what a function has to be like to run in another process, told when it is registered."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pegboard._base.errors import RegistrationError
from pegboard._injection.injectors import unwrap
from pegboard._types.hints import function_kind

__all__ = ["check_portable"]


def check_portable(name: str, definition: Any, bound: Iterable[type]) -> None:
    """Raises `RegistrationError` for a tool that could never run in another process, saying why and what to do.

    `bound` are the classes whose instances cannot leave this one.
    """
    function = definition.function
    where = f'tool {name!r} with backend="process"'
    if function_kind(function) in ("async", "async_generator"):
        raise RegistrationError(
            f"{where} is async; a process runs plain functions and generators: write it with `def` (and asyncio.run "
            "inside), or leave the backend out"
        )
    path = _path(function)
    if "<" in path:
        raise RegistrationError(
            f"{where}: {path} cannot be found by name in another process; define it at the top level of a module, or "
            "leave the backend out"
        )
    for slot in getattr(definition, "slots", ()):
        wanted = unwrap(slot.annotation)[0]
        if slot.provider is not None and wanted in tuple(bound):
            raise RegistrationError(
                f"{where}: its parameter {slot.name!r} is a {wanted.__name__}, which cannot leave this process; take "
                "it out, or leave the backend out"
            )


def _path(function: Any) -> str:
    """The dotted name within its module: with `<locals>` or `<lambda>` in it, nobody can import it."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
