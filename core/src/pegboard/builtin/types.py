"""The built-in type handlers, as a plugin."""

from __future__ import annotations

from pegboard.builtin.choices import choice_handlers
from pegboard.builtin.containers import container_handlers
from pegboard.builtin.scalars import scalar_handlers
from pegboard.builtin.texts import text_handlers
from pegboard.extension import TypeHandler
from pegboard.hookspecs import hookimpl

__all__ = ["provide_types"]


@hookimpl
def provide_types() -> list[TypeHandler]:
    """Scalars, types written as text, choices and unions, containers."""
    return [*scalar_handlers(), *text_handlers(), *choice_handlers(), *container_handlers()]
