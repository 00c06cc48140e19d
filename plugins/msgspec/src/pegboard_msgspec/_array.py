"""Structs that travel as arrays (`array_like=True`): fields by position, trailing ones optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from pegboard import FixedItems, Member, Mismatch, SchemaRef, TypePlan, qualified_name, shaped

__all__ = ["array_plan"]


def array_plan(
    annotation: Any, cls: type, members: tuple[Member, ...], tag: Member | None, description: str | None
) -> TypePlan:
    """The plan of an array whose items are the fields, after the tag if there is one."""
    items = members if tag is None else (tag, *members)
    body = _schema(items, description)
    schema = SchemaRef(qualified_name(annotation), lambda: body)
    build = _builder(cls, members, tag is not None)
    plans = tuple(item.plan for item in items)
    write = _writer(members, tag)
    if all(item.required for item in items):
        return shaped(schema, FixedItems(plans, build), write)
    # How many trailing items there are is something that no shape says.
    return TypePlan(schema, _structurer(plans, body["minItems"], build), write)


def _schema(items: tuple[Member, ...], description: str | None) -> dict[str, Any]:
    required = next((number for number, item in enumerate(items) if not item.required), len(items))
    schema: dict[str, Any] = {"type": "array", "prefixItems": [item.plan.schema for item in items]}
    if description:
        schema["description"] = description
    return {**schema, "minItems": required, "maxItems": len(items)}


def _builder(cls: type, members: tuple[Member, ...], tagged: bool) -> Callable[[list[Any]], Any]:
    names = [member.name for member in members]

    def build(values: list[Any]) -> Any:
        given = values[1:] if tagged else values
        return cls(**dict(zip(names, given, strict=False)))

    return build


def _structurer(plans: tuple[TypePlan, ...], fewest: int, build: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def structure(value: Any) -> Any:
        if not isinstance(value, list) or not fewest <= len(value) <= len(plans):
            raise Mismatch
        return build([plan.structure(item) for plan, item in zip(plans, value, strict=False)])

    return structure


def _writer(members: tuple[Member, ...], tag: Member | None) -> Callable[[Any], list[Any]]:
    start = [] if tag is None else [next(iter(tag.plan.schema.values()))]

    def unstructure(instance: Any) -> list[Any]:
        values = [getattr(instance, member.name) for member in members]
        while values and values[-1] is UNSET:
            values.pop()
        if UNSET in values:
            unset = members[values.index(UNSET)].name
            raise ValueError(f"{unset} is unset, but an array cannot leave out what has something behind it")
        return start + [member.plan.unstructure(value) for member, value in zip(members, values, strict=False)]

    return unstructure
