"""Sketches: roughly which shape a schema describes, so that arguments are mended where a type comes without a shape.

A sketch only suggests repairs; whether a mended value fits is always for the schema itself to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard._base.markers import MISSING
from pegboard._model.shapes import Choice, Items, Member, Nullable, Record, Scalar, Shape, TypePlan, Union
from pegboard._schema.foreign import ForeignPlan
from pegboard._schema.vet import follow

__all__ = ["shape_of"]

_SCALARS: Final[Mapping[Any, type]] = {
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": float,
    "string": str,
}


def shape_of(plan: TypePlan) -> Shape | None:
    """The plan's shape, or a sketch of it."""
    if not isinstance(plan, ForeignPlan):
        return plan.shape or _scalar(plan.schema)
    schema = follow(plan.whole.schema, plan.part)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list):
        scalars = [choice for choice in choices if choice is None or isinstance(choice, str | int | float)]
        return Choice(tuple((choice, choice) for choice in scalars))
    several = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(several, list):
        return _union([plan.whole.plan(member) for member in several if isinstance(member, dict)])
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        return _union([plan.whole.plan({**schema, "type": each}) for each in kind])
    if kind == "array":
        items = schema.get("items", True)
        return Items(plan.whole.plan(items if isinstance(items, dict) else {}))
    return _record(plan, schema) if kind == "object" else Scalar(_SCALARS[kind]) if kind in _SCALARS else None


def _scalar(schema: Mapping[str, Any]) -> Shape | None:
    """What a handler that gives no shape reads; text is its own affair, as it is where there is a shape."""
    kind = schema.get("type")
    return Scalar(_SCALARS[kind]) if kind in ("boolean", "integer", "null", "number") else None


def _union(members: list[TypePlan]) -> Shape:
    rest = [member for member in members if member.schema.get("type") != "null"]
    if len(rest) == 1 and len(members) == 2:
        return Nullable(rest[0])
    return Union(tuple(members))


def _record(plan: ForeignPlan, schema: Mapping[str, Any]) -> Record:
    required = schema.get("required", ())
    members = (
        Member(key, key, plan.whole.plan(part), key in required, part.get("default", MISSING))
        for key, part in schema.get("properties", {}).items()
        if isinstance(part, dict)
    )
    return Record(dict, tuple(members), open=True)
