"""Which JSON types a plan accepts, and which alternatives of a union are tried for a value of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

from pegboard._model.shapes import (
    Choice,
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Nullable,
    Record,
    Scalar,
    Tagged,
    Text,
    TypePlan,
    Union,
)
from pegboard._schema.nodes import SchemaRef
from pegboard._types.exact import JSON_TYPES

__all__ = ["candidates", "is_one_way", "kinds", "passes_anything"]


def passes_anything(plan: TypePlan) -> bool:
    """Whether a plan may let through Python values that no JSON text has: NaN, keys that are no strings."""
    match plan.shape:
        case Scalar(type=kind):
            return kind is object
        case Text() | Choice():
            return False
        case Items(item=inner) | Nullable(inner=inner) | Mapped(value=inner):
            return passes_anything(inner)
        case FixedItems(items=several) | Union(members=several):
            return any(map(passes_anything, several))
        case Tagged(members=tagged):
            return any(map(passes_anything, tagged.values()))
        case Record(members=members, open=is_open):
            return is_open or any(passes_anything(member.plan) for member in members)
        case _:
            return True


def is_one_way(plan: TypePlan) -> bool:
    """Whether there is a record inside whose instances are written otherwise than they are read."""
    return not isinstance(plan.shape, Scalar) and _any_one_way([plan], set())


def _any_one_way(plans: Iterable[TypePlan], known: set[int]) -> bool:
    for plan in plans:
        if id(plan) in known:
            continue
        known.add(id(plan))
        if isinstance(plan.shape, Record) and plan.shape.one_way:
            return True
        if _any_one_way(_parts(plan), known):
            return True
    return False


def _parts(plan: TypePlan) -> Iterable[TypePlan]:
    match plan.shape:
        case Items(item=inner) | Nullable(inner=inner) | Mapped(value=inner):
            return (inner,)
        case FixedItems(items=several) | Union(members=several):
            return several
        case Tagged(members=tagged):
            return tagged.values()
        case Record(members=members):
            return (member.plan for member in members)
        case Deferred(resolve=resolve):
            return (resolve(),)
    return ()


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
        case Text():
            return _NAMES["string"]
        case Items() | FixedItems():
            return _NAMES["array"]
        case Record() | Mapped() | Tagged():
            return _NAMES["object"]
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
