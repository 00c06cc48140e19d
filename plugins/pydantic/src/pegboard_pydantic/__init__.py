"""Pydantic models, dataclasses and types as types of tool parameters and results."""

from collections.abc import Iterable
from typing import Any

from pegboard import TypeHandler, TypePlan, Types, hookimpl
from pegboard_pydantic._marks import matches

__all__ = ["provide_types"]


@hookimpl
def provide_types() -> Iterable[TypeHandler]:
    """One handler for everything that carries pydantic's marks, metadata in `Annotated` included."""
    # Before `pegboard-dataclasses`: a dataclass of pydantic is a dataclass too.
    return [TypeHandler(matches, _build, priority=1, whole=True)]


def _build(annotation: Any, types: Types) -> TypePlan:
    # Pydantic is imported when the first such type is met.
    from pegboard_pydantic._plan import build

    return build(annotation, types)
