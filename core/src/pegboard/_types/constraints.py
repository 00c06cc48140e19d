"""Bounds on values: from metadata to schema keywords and checks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from attrs import evolve

from pegboard._base.errors import BareMismatch, RegistrationError
from pegboard._model.shapes import (
    Check,
    FixedItems,
    Items,
    Mapped,
    Nullable,
    Scalar,
    Shape,
    Text,
    TypePlan,
    Union,
    identity,
)
from pegboard._model.subschemas import distinct
from pegboard._schema.nodes import JsonSchema, SchemaNode, extend
from pegboard._types.annotations import Metadata, qualified_name
from pegboard._types.codegen import structurer

__all__ = ["alternatives", "bounded"]

_NUMBER = {
    "ge": ("minimum", "{value} >= {limit}"),
    "gt": ("exclusiveMinimum", "{value} > {limit}"),
    "le": ("maximum", "{value} <= {limit}"),
    "lt": ("exclusiveMaximum", "{value} < {limit}"),
    "multiple_of": ("multipleOf", "{value} % {limit} == 0"),
}


def _lengths(noun: str) -> dict[str, tuple[str, str]]:
    return {
        "min_length": (f"min{noun}", "len({value}) >= {limit}"),
        "max_length": (f"max{noun}", "len({value}) <= {limit}"),
    }


_TEXT = {**_lengths("Length"), "pattern": ("pattern", "{limit}.search({value}) is not None")}
_ARRAY, _OBJECT = _lengths("Items"), _lengths("Properties")
_BY_TYPE = {"integer": _NUMBER, "number": _NUMBER, "string": _TEXT, "array": _ARRAY, "object": _OBJECT}
"""Bound -> schema keyword and condition, for each JSON type that can be bounded."""


def bounded(plan: TypePlan, metadata: Metadata, annotation: Any) -> TypePlan:
    """`plan` with the bounds of `metadata` in its schema and enforced.

    Alternatives of a union are bounded where the bound fits them. Raises `RegistrationError` for a bound that fits
    nothing here, naming the type, the bound and what it fits.
    """
    fitting = _bound_alternatives(plan, metadata) if metadata.bounds else plan
    if fitting is None:
        names = ", ".join(f"{name}={limit!r}" for name, limit in metadata.bounds)
        raise RegistrationError(
            f"the bound {names} does not fit {qualified_name(annotation)}: ge, gt, le, lt and multiple_of bound "
            "numbers, min_length and max_length bound strings, arrays and objects, pattern bounds strings"
        )
    return _with_predicates(fitting, metadata.predicates) if metadata.predicates else fitting


def _bound_alternatives(plan: TypePlan, metadata: Metadata) -> TypePlan | None:
    shape = plan.shape
    if isinstance(shape, Nullable):
        inner = _bound_alternatives(shape.inner, metadata)
        return inner and _rebuilt(plan, Nullable(inner), [inner, _NULL])
    if isinstance(shape, Union):
        found = [_bound_alternatives(member, metadata) for member in shape.members]
        if not any(found):
            return None
        members = tuple(new or old for new, old in zip(found, shape.members, strict=True))
        return _rebuilt(plan, Union(members), list(members))
    return _bound_one(plan, metadata)


def _rebuilt(plan: TypePlan, shape: Shape, members: list[TypePlan]) -> TypePlan:
    title = plan.schema.title if isinstance(plan.schema, SchemaNode) else None
    named = None if title is None else (lambda: title)
    schema = SchemaNode(alternatives([member.schema for member in members]), named)
    return evolve(plan, schema=schema, structure=structurer(shape), shape=shape)


def alternatives(schemas: list[JsonSchema]) -> JsonSchema:
    """`anyOf`, flattened and without repetitions."""
    flat: list[JsonSchema] = []
    for schema in schemas:
        flat += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    different = distinct(flat)
    return different[0] if len(different) == 1 else {"anyOf": different}


def _bound_one(plan: TypePlan, metadata: Metadata) -> TypePlan | None:
    fitting = _BY_TYPE.get(str(plan.schema.get("type")), {})
    if not all(name in fitting for name, _ in metadata.bounds) or _is_written_form(plan):
        return None
    shape = plan.shape
    if shape is not None and not isinstance(shape, (Scalar, Text, Items, Mapped)):
        return None
    checks = tuple(_check(*fitting[name], limit) for name, limit in metadata.bounds)
    schema = extend(plan.schema, {check.keyword: check.limit for check in checks})
    if shape is None:
        return evolve(plan, schema=schema, structure=_checked(plan.structure, checks))
    shape = evolve(shape, checks=shape.checks + checks)
    return evolve(plan, schema=schema, structure=structurer(shape), shape=shape)


def _is_written_form(plan: TypePlan) -> bool:
    """Whether JSON text only spells the value (a date, base64): its length is not the value's length."""
    return isinstance(plan.shape, Text) and not plan.schema.keys().isdisjoint({"format", "contentEncoding", "pattern"})


def _check(keyword: str, expression: str, limit: Any) -> Check:
    if keyword == "pattern":
        return Check(keyword, _compilable(limit), expression)
    number = limit if type(limit) in (int, float) else float(limit)
    if not math.isfinite(number):
        raise RegistrationError(f"the bound {keyword} is {limit!r}; JSON numbers are finite")
    if keyword == "multipleOf" and isinstance(number, float):
        # Division is how validators decide it for floats; the remainder only serves where division overflows.
        expression = "({value} / {limit}).is_integer() or {value} % {limit} == 0"
    return Check(keyword, number, expression)


def _compilable(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise RegistrationError(f"the pattern {pattern!r} is not a regular expression: {error}") from error
    return pattern


def _checked(structure: Callable[[Any], Any], checks: tuple[Check, ...]) -> Callable[[Any], Any]:
    check = structurer(Scalar(object, checks))
    return lambda value: structure(check(value))


def _with_predicates(plan: TypePlan, predicates: tuple[Callable[[Any], Any], ...]) -> TypePlan:
    """`plan` with functions of the author's that the structured value must pass; no schema can say them."""

    def passed(value: Any) -> Any:
        for predicate in predicates:
            if not predicate(value):
                raise BareMismatch(f"refused by {_called(predicate)}")
        return value

    shape: Shape
    match plan.shape:
        case Scalar() as scalar:
            # Not the value itself, which may be falsy.
            check = Check("predicate", lambda value: (passed(value),), "{limit}({value})")
            shape = evolve(scalar, checks=(*scalar.checks, check))
        case Text(parse=parse) as text:
            shape = evolve(text, parse=lambda value: passed(parse(value)))
        case Items(build=build) | FixedItems(build=build) as array:
            shape = evolve(array, build=lambda items: passed(build(items)))
        case Mapped(build=make) as mapping:
            finish = make or identity
            shape = evolve(mapping, build=lambda members: passed(finish(members)))
        case _:
            structure = plan.structure
            return evolve(plan, structure=lambda value: passed(structure(value)), shape=None)
    return evolve(plan, structure=structurer(shape), shape=shape)


def _called(predicate: Callable[[Any], Any]) -> str:
    """The name of a check, if it has one that says something."""
    name = str(getattr(predicate, "__name__", "<"))
    return "a check of the tool's own" if name.startswith("<") else f"the check {name}"


_NULL = TypePlan({"type": "null"}, structurer(Scalar(type(None))), shape=Scalar(type(None)))
