"""What holds tools together: groups, which are switched, and toolsets, which are written as one."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from pegboard._base.records import Compared
from pegboard._model.tool import Tool

__all__ = ["Group", "Manager", "Toolset"]

Manager: TypeAlias = Literal["model", "program"]


@frozen(eq=False, repr=False)
class Group(Compared):
    """A group: `managed_by` says whether the meta tool may switch it, `instructions` are for whoever uses its tools.

    At most `max_concurrency` calls of its tools run at once; None for no limit.
    """

    name: str
    description: str = ""
    active: bool = True
    managed_by: Manager = "model"
    instructions: str | None = None
    max_concurrency: int | None = None


@frozen(eq=False, repr=False)
class Toolset(Compared):
    """Tools that belong together: a class with `@tool` methods, or a pack."""

    name: str
    description: str
    tools: tuple[Tool, ...]
