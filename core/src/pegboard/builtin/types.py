"""The built-in type handlers, as a plugin."""

from __future__ import annotations

from pegboard.builtin import choices, containers, scalars, texts
from pegboard.extension import TypeHandler
from pegboard.hookspecs import hookimpl

__all__ = ["provide_types"]


@hookimpl
def provide_types() -> tuple[TypeHandler, ...]:
    """Scalars, types written as text, choices and unions, containers."""
    return *scalars.HANDLERS, *texts.HANDLERS, *choices.HANDLERS, *containers.HANDLERS
