"""Whether one type accepts everything that another accepts: what makes an alternative of a union unreachable."""

from __future__ import annotations

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
    Text,
    TypePlan,
    Union,
)
from pegboard._types.json_kinds import kinds

__all__ = ["arrives_raw", "covers"]

_ANNOTATIONS = frozenset({"title", "description", "examples", "default", "deprecated"})


def covers(plan: TypePlan, other: TypePlan, *, inside: bool = False) -> bool:
    """Whether `plan` provably accepts every JSON value that `other` accepts, as its exact type. False when in doubt.

    `inside` an array or object exactness does not count: `list[float]` takes the integers of `list[int]` for itself.
    """
    shape, inner = plan.shape, other.shape
    if isinstance(shape, Deferred) or isinstance(inner, Deferred):
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
    match plan.shape:
        case Scalar():
            return True
        case Choice(pairs=pairs):
            return all(type(value) is type(meaning) for value, meaning in pairs)
        case Items(item=item, build=build):
            return build is list and arrives_raw(item)
        case Mapped(key=key, value=value, build=build):
            return key is None and build in (None, dict) and arrives_raw(value)
        case Union(members=members):
            return all(map(arrives_raw, members))
        case Nullable(inner=inner):
            return arrives_raw(inner)
    return False


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
