"""Unions: exact JSON type first, then as written; what can never win is refused when the tool is registered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin

from attrs import evolve

from pegboard._base.errors import RegistrationError
from pegboard._model import shapes
from pegboard._model.shapes import Choice, Member, Nullable, Record, Tagged, TypePlan, identity
from pegboard._schema.nodes import SchemaRef
from pegboard._types.annotations import qualified_name, runtime_class, split
from pegboard._types.constraints import alternatives
from pegboard._types.json_kinds import arrives_raw, covers
from pegboard._types.plans import shaped
from pegboard.extension import Types

__all__ = ["union_plan"]


def union_plan(annotation: Any, types: Types) -> TypePlan:
    """The plan of `A | B`, `Union[A, B]` or `Optional[A]`.

    Records that a string Literal tells apart become `oneOf` with a discriminator, everything else `anyOf`; null comes
    last. Raises `RegistrationError` for an alternative that can never win, such as the second of `str | datetime`.
    """
    arguments = get_args(annotation)
    if NoneType in arguments:
        rest = tuple(argument for argument in arguments if argument is not NoneType)
        inner = types.plan(Union[rest])  # noqa: UP007 - a union of a tuple has no other spelling
        # A part of this union has no name of its own.
        is_named = len(rest) == 1 or isinstance(inner.schema, SchemaRef)
        return _nullable(inner if is_named else evolve(inner, schema={**inner.schema}))
    plans = [types.plan(argument) for argument in arguments]
    _refuse_unreachable(arguments, plans)
    return _combined(plans, _unstructurer(arguments, plans))


def _nullable(inner: TypePlan) -> TypePlan:
    if not inner.schema and inner.shape is not None:
        return inner  # `Any | None`, which accepts null anyway
    schema = alternatives([inner.schema, {"type": "null"}])
    write = inner.unstructure
    return shaped(schema, Nullable(inner), lambda value: None if value is None else write(value))


def _combined(plans: list[TypePlan], unstructure: Callable[[Any], Any]) -> TypePlan:
    tag = _tag(plans)
    if tag is None:
        return shaped(alternatives([plan.schema for plan in plans]), shapes.Union(tuple(plans)), unstructure)
    key, members = tag
    schema = {"oneOf": [plan.schema for plan in plans], "discriminator": {"propertyName": key}}
    return shaped(schema, Tagged(key, members), unstructure)


def _tag(plans: list[TypePlan]) -> tuple[str, dict[str | int | bool, TypePlan]] | None:
    """The member whose value tells these records apart, and the record for each of its values."""
    records = [plan.shape for plan in plans if isinstance(plan.shape, Record)]
    if len(records) < len(plans):
        return None
    for member in records[0].members:
        tags = [_tags(next((found for found in record.members if found.key == member.key), None)) for record in records]
        flat = [tag for group in tags for tag in group]
        if all(tags) and len(set(flat)) == len(flat):
            found = zip(tags, plans, strict=True)
            return member.key, {tag: plan for group, plan in found for tag in group}
    return None


def _tags(member: Member | None) -> list[str]:
    if member is None or not member.required or not isinstance(member.plan.shape, Choice):
        return []
    values = [value for value, _ in member.plan.shape.pairs]
    return [value for value in values if isinstance(value, str)] if all(isinstance(v, str) for v in values) else []


def _refuse_unreachable(annotations: Sequence[Any], plans: list[TypePlan]) -> None:
    for number, plan in enumerate(plans):
        winner = next((earlier for earlier in range(number) if covers(plans[earlier], plan)), None)
        # An alternative that would arrive as raw JSON anyway loses nothing: `Path | str` is a Path.
        if winner is None or arrives_raw(plan):
            continue
        name, first = qualified_name(annotations[number]), qualified_name(annotations[winner])
        whole = " | ".join(map(qualified_name, annotations))
        raise RegistrationError(
            f"in {whole}, {name} can never win: {first} stands before it and accepts everything that it accepts; "
            f"put {name} first, or narrow {first} with Annotated, or tell them apart by a Literal member"
        )


def _unstructurer(annotations: Sequence[Any], plans: list[TypePlan]) -> Callable[[Any], Any]:
    """Writes a value by the first alternative that it is an instance of."""
    if all(plan.unstructure is identity for plan in plans):
        return identity
    tests = [
        (runtime_class(annotation), _instance_test(annotation), plan.unstructure)
        for annotation, plan in zip(annotations, plans, strict=True)
    ]

    def unstructure(value: Any) -> Any:
        # The exact class first: a datetime is a date too.
        fitting = sorted((test for test in tests if test[1](value)), key=lambda test: test[0] is not type(value))
        for _, _, write in fitting[:-1]:
            try:
                return write(value)
            except Exception:  # noqa: BLE001, S112 - list[date] | list[int]: the next alternative may fit
                continue
        return fitting[-1][2](value) if fitting else value

    return unstructure


def _instance_test(annotation: Any) -> Callable[[Any], bool]:
    bare, _ = split(annotation)
    if get_origin(bare) is Literal:
        known = get_args(bare)
        return lambda value: any(type(value) is type(choice) and value == choice for choice in known)
    cls = runtime_class(bare)
    if cls is None or getattr(cls, "_is_protocol", False):
        return lambda value: True
    if issubclass(cls, dict) and hasattr(cls, "__total__"):
        cls = dict  # a TypedDict refuses isinstance
    return lambda value: isinstance(value, cls)
