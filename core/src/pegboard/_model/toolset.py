"""Toolsets: tools that belong together."""

from __future__ import annotations

from attrs import frozen

from pegboard._base.records import Compared
from pegboard._model.tool import Tool

__all__ = ["Toolset"]


@frozen(eq=False, repr=False)
class Toolset(Compared):
    """Tools that belong together: a class with `@tool` methods, or a pack."""

    name: str
    description: str
    tools: tuple[Tool, ...]
