"""Unions: exact JSON type first, then as written; what can never win is refused when the tool is registered."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attrs import evolve

from pegboard._base.errors import RegistrationError
from pegboard._model import shapes
from pegboard._model.shapes import Convert
from pegboard._schema.nodes import SchemaRef
from pegboard._types.annotations import qualified_name, runtime_class, split
from pegboard._types.json_kinds import accepts_all, first_of, kinds
from pegboard._types.plans import ANNOTATIONS, alternatives, shaped
from pegboard.extension import Types


def union_plan(annotation: Any, types: Types) -> shapes.TypePlan:
    """The plan of `A | B`, `Union[A, B]` or `Optional[A]`.

    Records that a string Literal tells apart become `oneOf` with a discriminator, everything else `anyOf`; null comes
    last. Raises `RegistrationError` for an alternative that can never win, such as the second of `str | datetime`.
    """
    arguments = get_args(annotation)
    if NoneType in arguments:
        rest = tuple(argument for argument in arguments if argument is not NoneType)
        inner = types.plan(typing.Union[rest])  # noqa: UP007 - a union of a tuple has no other spelling
        # A part of this union has no name of its own.
        is_named = len(rest) == 1 or isinstance(inner.schema, SchemaRef)
        return _nullable(inner if is_named else evolve(inner, schema={**inner.schema}))
    plans = [types.plan(argument) for argument in arguments]
    _refuse_unreachable(arguments, plans)
    return _combined(plans, _unstructurer(arguments, plans))


def _nullable(inner: shapes.TypePlan) -> shapes.TypePlan:
    if not inner.schema and inner.shape is not None:
        return inner  # `Any | None`, which accepts null anyway
    schema = alternatives([inner.schema, {"type": "null"}])
    write = inner.unstructure
    return shaped(schema, shapes.Nullable(inner), lambda value: None if value is None else write(value))


def _combined(plans: list[shapes.TypePlan], unstructure: Convert) -> shapes.TypePlan:
    tag = _tag(plans)
    if tag is None:
        return shaped(alternatives([plan.schema for plan in plans]), shapes.Union(tuple(plans)), unstructure)
    key, members = tag
    schema = {"oneOf": [plan.schema for plan in plans], "discriminator": {"propertyName": key}}
    return shaped(schema, shapes.Tagged(key, members), unstructure)


def _tag(plans: list[shapes.TypePlan]) -> tuple[str, dict[str | int | bool, shapes.TypePlan]] | None:
    """The member whose value tells these records apart, and the record for each of its values."""
    records = [plan.shape for plan in plans if isinstance(plan.shape, shapes.Record)]
    if len(records) < len(plans):
        return None
    for member in records[0].members:
        tags = [_tags(next((found for found in record.members if found.key == member.key), None)) for record in records]
        flat = [tag for group in tags for tag in group]
        if all(tags) and len(set(flat)) == len(flat):
            found = zip(tags, plans, strict=True)
            return member.key, {tag: plan for group, plan in found for tag in group}
    return None


def _tags(member: shapes.Member | None) -> list[str]:
    if member is None or not member.required or not isinstance(member.plan.shape, shapes.Choice):
        return []
    values = [value for value, _ in member.plan.shape.pairs]
    return [value for value in values if isinstance(value, str)] if all(isinstance(v, str) for v in values) else []


def _refuse_unreachable(annotations: Sequence[Any], plans: list[shapes.TypePlan]) -> None:
    for number, plan in enumerate(plans):
        winner = next((earlier for earlier in range(number) if covers(plans[earlier], plan)), None)
        # An alternative that would arrive as raw JSON anyway loses nothing: `Path | str` is a Path.
        if winner is None or _arrives_raw(plan):
            continue
        name, first = qualified_name(annotations[number]), qualified_name(annotations[winner])
        whole = " | ".join(map(qualified_name, annotations))
        why = f"{first} stands before it and accepts everything that it accepts"
        remedy = f"put {name} first, or narrow {first} with Annotated, or tell them apart by a Literal member"
        raise RegistrationError(f"in {whole}, {name} can never win: {why}; {remedy}")


def _unstructurer(annotations: Sequence[Any], plans: list[shapes.TypePlan]) -> Convert:
    """Writes a value by the first alternative that it is an instance of."""
    if all(plan.unstructure is shapes.identity for plan in plans):
        return shapes.identity
    tests = [
        (runtime_class(annotation), _instance_test(annotation), plan.unstructure)
        for annotation, plan in zip(annotations, plans, strict=True)
    ]

    def unstructure(value: Any) -> Any:
        # The exact class first: a datetime is a date too.
        fitting = sorted((test for test in tests if test[1](value)), key=lambda test: test[0] is not type(value))
        # Of list[date] | list[int], the next alternative may fit.
        return first_of([write for _, _, write in fitting], value) if fitting else value

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


def covers(plan: shapes.TypePlan, other: shapes.TypePlan, *, inside: bool = False) -> bool:
    """Whether `plan` provably accepts every JSON value that `other` accepts, as its exact type. False when in doubt.

    `inside` an array or object exactness does not count: `list[float]` takes the integers of `list[int]` for itself.
    """
    shape, inner = plan.shape, other.shape
    if isinstance(inner, shapes.Deferred):
        return False
    if accepts_all(plan, object) or (_accepts_any_text(plan) and kinds(other).keys() == {str}):
        return True
    match shape, inner:
        case shapes.Union(members=members), _:
            return any(covers(member, other, inside=inside) for member in members)
        case _, shapes.Union(members=members):
            return all(covers(plan, member, inside=inside) for member in members)
        case shapes.Scalar(type=kind, checks=()), shapes.Scalar() | shapes.Choice():
            others = {inner.type} if isinstance(inner, shapes.Scalar) else {type(value) for value, _ in inner.pairs}
            return others <= ({float, int} if inside and kind is float else {kind})
        case shapes.Text(parse=parse, checks=()), shapes.Text(parse=other_parse):
            return parse is other_parse
        case shapes.Choice(), shapes.Choice():
            first, second = ({(type(value), value) for value, _ in each.pairs} for each in (shape, inner))
            return second <= first
        case shapes.Nullable(inner=optional), _:
            return kinds(other).keys() == {NoneType} or covers(optional, other, inside=inside)
    return _covers_container(shape, inner)


def _arrives_raw(plan: shapes.TypePlan) -> bool:
    """Whether values of this type arrive as the JSON data that they were: then nothing is lost when another wins."""
    shape = plan.shape
    match shape:
        case shapes.Choice(pairs=pairs):
            return all(type(value) is type(meaning) for value, meaning in pairs)
        case shapes.Items(build=build):
            raw = build is list
        case shapes.Mapped(key=key, build=make):
            raw = key is None and make in (None, dict)
        case _:
            raw = isinstance(shape, (shapes.Scalar, shapes.Union, shapes.Nullable))
    return raw and shape is not None and all(map(_arrives_raw, shape.parts()))


def _covers_container(shape: Any, inner: Any) -> bool:
    match shape, inner:
        case shapes.Items(checks=(), unique=False), shapes.Items() | shapes.FixedItems():
            return all(covers(shape.item, item, inside=True) for item in inner.parts())
        case shapes.Mapped(key=None, checks=()), shapes.Mapped() | shapes.Record(open=False):
            values = (inner.value,) if isinstance(inner, shapes.Mapped) else inner.parts()
            return all(covers(shape.value, value, inside=True) for value in values)
        case shapes.Record(), shapes.Record():
            return _covers_record(shape, inner)
    return False


def _covers_record(record: shapes.Record, other: shapes.Record) -> bool:
    members = {member.key: member for member in record.members}
    others = {member.key: member for member in other.members}
    if any(member.required and not (key in others and others[key].required) for key, member in members.items()):
        return False
    # An open record may be sent anything under a key that only this one knows.
    if other.open and not (record.open and members.keys() <= others.keys()):
        return False
    if not record.open and not others.keys() <= members.keys():
        return False
    return all(covers(members[key].plan, others[key].plan, inside=True) for key in members.keys() & others.keys())


def _accepts_any_text(plan: shapes.TypePlan) -> bool:
    shape = plan.shape
    if not isinstance(shape, (shapes.Scalar, shapes.Text)) or any(each.keyword == "predicate" for each in shape.checks):
        return False
    return {key: value for key, value in plan.schema.items() if key not in ANNOTATIONS} == {"type": "string"}
