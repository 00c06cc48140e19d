"""Type plans made by hand, so that explaining and repairing are tested without the table that usually makes them."""

from collections.abc import Callable, Mapping
from datetime import date
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
    Tagged,
    Text,
    TypePlan,
    Union,
)
from pegboard._schema.foreign import held
from pegboard._types.plans import plain_predicate, shaped

TEXT = shaped({"type": "string"}, Scalar(str))
INTEGER = shaped({"type": "integer"}, Scalar(int))
NUMBER = shaped({"type": "number"}, Scalar(float))
BOOLEAN = shaped({"type": "boolean"}, Scalar(bool))
NULL = shaped({"type": "null"}, Scalar(type(None)))
ANYTHING = shaped({}, Scalar(object))
DAYS = shaped({"type": "integer", "minimum": 1}, Scalar(int, (Check("minimum", 1, "{value} >= {limit}"),)))
DATE = shaped({"type": "string", "format": "date"}, Text(date.fromisoformat))
UNIT = shaped({"enum": ["C", "F"]}, Choice((("C", "C"), ("F", "F"))))


def array(item: TypePlan, *, least: int = 0, unique: bool = False) -> TypePlan:
    checks = (Check("minItems", least, "len({value}) >= {limit}"),) if least else ()
    bounds = {"minItems": least} if least else {}
    more = {"uniqueItems": True} if unique else {}
    return shaped({"type": "array", "items": item.schema, **bounds, **more}, Items(item, list, checks, unique))


def fixed(*items: TypePlan) -> TypePlan:
    return shaped({"type": "array"}, FixedItems(items))


def mapping(value: TypePlan, key: TypePlan | None = None) -> TypePlan:
    return shaped({"type": "object", "additionalProperties": value.schema}, Mapped(key, value))


def optional(inner: TypePlan) -> TypePlan:
    return shaped({"anyOf": [inner.schema, {"type": "null"}]}, Nullable(inner))


def either(*members: TypePlan) -> TypePlan:
    return shaped({"anyOf": [member.schema for member in members]}, Union(members))


def record(
    build: Callable[..., Any] = dict,
    /,
    *,
    defaults: Mapping[str, Any] | None = None,
    surplus: bool = False,
    **members: TypePlan,
) -> TypePlan:
    """A record; members in `defaults` are optional."""
    known = defaults or {}
    made = tuple(
        Member(name, name, plan, name not in known, known[name]) if name in known else Member(name, name, plan)
        for name, plan in members.items()
    )
    required = [member.key for member in made if member.required]
    return shaped({"type": "object", "required": required}, Record(build, made, "record", open=surplus))


def tagged(key: str, **members: TypePlan) -> TypePlan:
    plans: dict[str | int | bool, TypePlan] = {name: plan for name, plan in members.items()}  # noqa: C416 - the keys' type widens
    return shaped({"oneOf": [member.schema for member in members.values()]}, Tagged(key, plans))


def literal(*choices: Any) -> TypePlan:
    return shaped({"enum": list(choices)}, Choice(tuple((choice, choice) for choice in choices)))


def tree() -> TypePlan:
    """A record that contains itself: a name, and further ones in `children`."""
    plans: list[TypePlan] = []
    inner = shaped({"$ref": "#/$defs/Tree"}, Deferred(lambda: plans[0]))
    plans.append(record(name=TEXT, children=array(inner), defaults={"children": ()}))
    return plans[0]


def opaque(schema: dict[str, Any], structure: Callable[[Any], Any]) -> TypePlan:
    """A plan without a shape, as the type table makes it of what a third party gives."""
    return held(TypePlan(schema, structure), plain_predicate)
