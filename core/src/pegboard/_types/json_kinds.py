"""What plans accept: which types of JSON, whether one takes all that another does, and who is tried in a union."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from pegboard._model.shapes import (
    Check,
    Choice,
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Member,
    Nullable,
    Record,
    Scalar,
    Shape,
    Text,
    TypePlan,
    Union,
)
from pegboard._schema.nodes import SchemaRef
from pegboard._types.exact import JSON_TYPES

__all__ = ["arrives_raw", "candidates", "covers", "is_one_way", "kinds", "passes_anything"]


def passes_anything(plan: TypePlan) -> bool:
    """Whether a plan may let through Python values that no JSON text has: NaN, keys that are no strings."""
    match plan.shape:
        case None | Deferred() | Record(open=True):
            return True
        case Scalar(type=kind):
            return kind is object
        case shape:
            return any(map(passes_anything, shape.parts()))


def is_one_way(plan: TypePlan) -> bool:
    """Whether there is something inside whose instances are written otherwise than they are read."""
    waiting, known = [plan], set()
    for each in waiting:  # which grows meanwhile
        if getattr(each.shape or each, "one_way", False):  # a record, or a plan on a foreign schema
            return True
        if each.shape is not None and id(each) not in known:
            known.add(id(each))
            waiting.extend(each.shape.parts())
    return False


_ANNOTATIONS = frozenset({"title", "description", "examples", "default", "deprecated"})
_NAMES: Mapping[str, Mapping[type, bool]] = {
    "null": {NoneType: True},
    "boolean": {bool: True},
    "integer": {int: True, float: False},
    "number": {float: True, int: False},
    "string": {str: True},
    "array": {list: True},
    "object": {dict: True},
}
_SCALARS: Mapping[type, Mapping[type, bool]] = {
    NoneType: _NAMES["null"],
    bool: _NAMES["boolean"],
    int: _NAMES["integer"],
    float: _NAMES["number"],
    str: _NAMES["string"],
    object: dict.fromkeys(JSON_TYPES, True),
}


def kinds(plan: TypePlan) -> Mapping[type, bool]:
    """The JSON types (of `JSON_TYPES`) that a plan may accept; True where it is the exact type.

    An integer is also a number and an integral float also an integer: accepted, but not exact.
    """
    match plan.shape:
        case Scalar(type=kind):
            return _SCALARS[kind]
        case Choice(pairs=pairs):
            return _merged([_SCALARS[type(value)] for value, _ in pairs])
        case Nullable(inner=inner):
            return _merged([_NAMES["null"], kinds(inner)])
        case Union(members=members):
            return _merged([kinds(member) for member in members])
        case Deferred(resolve=resolve):
            plan = resolve()
            # A type that is still being planned may turn out to be anything.
            return _SCALARS[object] if isinstance(plan.shape, Deferred) else kinds(plan)
        case Shape(json=type() as kind):
            return {kind: True}
    return _schema_kinds(plan.schema)


def candidates(members: Sequence[TypePlan], kind: type) -> tuple[TypePlan, ...]:
    """The alternatives to try for a value of a JSON type: exact ones first, then the others, each as written.

    What stands behind an alternative that accepts every value of the type is never reached and left out.
    """
    found = [(member, kinds(member).get(kind)) for member in members]
    ordered = [member for member, exact in found if exact] + [member for member, exact in found if exact is False]
    for number, member in enumerate(ordered, start=1):
        if _accepts_all(member, kind):
            return tuple(ordered[:number])
    return tuple(ordered)


def _accepts_all(plan: TypePlan, kind: type) -> bool:
    shape = plan.shape
    return isinstance(shape, Scalar) and not shape.checks and shape.type in (kind, object)


def _schema_kinds(schema: Any) -> Mapping[type, bool]:
    """The types that a foreign schema allows; all of them where it does not say."""
    if isinstance(schema, SchemaRef):
        return _schema_kinds(schema.target)
    named = schema.get("type")
    if named is not None:
        return _merged([_NAMES.get(name, {}) for name in ([named] if isinstance(named, str) else named)])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return _merged([_SCALARS.get(type(value), {type(value): True}) for value in values])
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return _merged([_schema_kinds(member) for member in schema[keyword]])
    return _SCALARS[object]


def _merged(found: Sequence[Mapping[type, bool]]) -> Mapping[type, bool]:
    merged: dict[type, bool] = {}
    for exactness in found:
        for kind, exact in exactness.items():
            merged[kind] = exact or merged.get(kind, False)
    return merged


def covers(plan: TypePlan, other: TypePlan, *, inside: bool = False) -> bool:
    """Whether `plan` provably accepts every JSON value that `other` accepts, as its exact type. False when in doubt.

    `inside` an array or object exactness does not count: `list[float]` takes the integers of `list[int]` for itself.
    """
    shape, inner = plan.shape, other.shape
    if isinstance(inner, Deferred):
        return False
    if _accepts_anything(plan) or (_accepts_any_text(plan) and kinds(other).keys() == {str}):
        return True
    match shape, inner:
        case Union(members=members), _:
            return any(covers(member, other, inside=inside) for member in members)
        case _, Union(members=members):
            return all(covers(plan, member, inside=inside) for member in members)
        case Scalar(type=kind, checks=()), Scalar(type=other_kind):
            return _takes(kind, other_kind, inside)
        case Scalar(type=kind, checks=()), Choice(pairs=pairs):
            return all(_takes(kind, type(value), inside) for value, _ in pairs)
        case Text(parse=parse, checks=()), Text(parse=other_parse):
            return parse is other_parse
        case Choice(), Choice():
            return _values(inner) <= _values(shape)
        case Nullable(inner=optional), _:
            return kinds(other).keys() == {NoneType} or covers(optional, other, inside=inside)
    return _covers_container(shape, inner)


def arrives_raw(plan: TypePlan) -> bool:
    """Whether values of this type arrive as the JSON data that they were: then nothing is lost when another wins."""
    shape = plan.shape
    match shape:
        case Choice(pairs=pairs):
            return all(type(value) is type(meaning) for value, meaning in pairs)
        case Items(build=build):
            raw = build is list
        case Mapped(key=key, build=make):
            raw = key is None and make in (None, dict)
        case _:
            raw = isinstance(shape, (Scalar, Union, Nullable))
    return raw and shape is not None and all(map(arrives_raw, shape.parts()))


def _covers_container(shape: Any, inner: Any) -> bool:
    match shape, inner:
        case Items(checks=(), unique=False), Items():
            return covers(shape.item, inner.item, inside=True)
        case Items(checks=(), unique=False), FixedItems():
            return all(covers(shape.item, item, inside=True) for item in inner.items)
        case Mapped(key=None, checks=()), Mapped():
            return covers(shape.value, inner.value, inside=True)
        case Mapped(key=None, checks=()), Record(open=False):
            return all(covers(shape.value, member.plan, inside=True) for member in inner.members)
        case Record(), Record():
            return _covers_record(shape, inner)
    return False


def _covers_record(record: Record, other: Record) -> bool:
    members = {member.key: member for member in record.members}
    others = {member.key: member for member in other.members}
    if any(member.required and not _always_there(others.get(key)) for key, member in members.items()):
        return False
    if not record.open and (other.open or not others.keys() <= members.keys()):
        return False
    # An open record may be sent anything under a key that only this one knows.
    if other.open and not members.keys() <= others.keys():
        return False
    return all(covers(members[key].plan, others[key].plan, inside=True) for key in members.keys() & others.keys())


def _takes(kind: type, other: type, inside: bool) -> bool:
    return kind is other or (inside and (kind, other) == (float, int))


def _always_there(member: Member | None) -> bool:
    return member is not None and member.required


def _accepts_anything(plan: TypePlan) -> bool:
    return isinstance(plan.shape, Scalar) and plan.shape.type is object and not plan.shape.checks


def _accepts_any_text(plan: TypePlan) -> bool:
    if not isinstance(plan.shape, (Scalar, Text)) or _has_predicate(plan.shape.checks):
        return False
    return {key: value for key, value in plan.schema.items() if key not in _ANNOTATIONS} == {"type": "string"}


def _has_predicate(checks: tuple[Check, ...]) -> bool:
    return any(check.keyword == "predicate" for check in checks)


def _values(choice: Choice) -> set[tuple[type, Any]]:
    return {(type(value), value) for value, _ in choice.pairs}
