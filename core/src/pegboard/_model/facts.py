"""What a tool shows of itself: parameters, hints, schema. Loaded when somebody looks."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import frozen

from pegboard._base.markers import MISSING
from pegboard._base.records import Compared

Source: TypeAlias = Literal["model", "preset", "context", "injected"]
"""Where a parameter's value comes from."""


@frozen(eq=False, repr=False)
class Parameter(Compared):
    """One parameter of a tool's function. `source` says who provides it: only `model` parameters are in the schema."""

    name: str
    description: str
    annotation: Any
    required: bool
    default: Any = MISSING
    source: Source = "model"


@frozen(eq=False, repr=False)
class Hints(Compared):
    """What a tool says about its effects; None where it says nothing. Hints are advice, not enforcement."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@frozen(eq=False, repr=False)
class ToolSchema(Compared):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None = None
    strict: bool | None = None
    examples: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """`name`, `description` and `parameters`, the three members that every provider has."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}
