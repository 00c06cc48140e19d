"""Tool groups as records."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from pegboard._base.records import Compared

__all__ = ["Group", "Manager"]

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
