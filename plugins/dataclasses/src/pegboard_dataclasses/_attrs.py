"""Classes made by attrs. The package is imported when the first such class is met."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_type_hints

from attrs import evolve

from pegboard import MISSING, TypePlan, Types
from pegboard_dataclasses._hints import field_types
from pegboard_dataclasses._record import Field, class_of, record

__all__ = ["build", "fields", "matches"]

_EMPTY = (dict, frozenset, list, set, tuple)


def matches(annotation: Any) -> bool:
    """Whether this is an attrs class, subscripted or not."""
    cls = class_of(annotation)
    return isinstance(cls, type) and hasattr(cls, "__attrs_attrs__")


def build(annotation: Any, types: Types) -> TypePlan:
    """The plan of an attrs class: members carry the names of the constructor, so `_token` is `token`."""
    found = list(fields(annotation))
    plan = record(annotation, types, found, class_of(annotation))
    return evolve(plan, one_way=any(field.read_as is not MISSING for field in found))


def fields(annotation: Any) -> Iterator[Field]:
    """The fields that the constructor takes."""
    import attrs

    hints = field_types(annotation)
    for attribute in attrs.fields(class_of(annotation)):
        if not attribute.init:
            continue
        stored = hints.get(attribute.name, attribute.type or Any)
        taken = _converter_input(attribute.converter)
        if taken == stored:
            taken = MISSING
        default, optional = _default(attribute.default)
        yield Field(
            attribute.name,
            stored if taken is MISSING else taken,
            default,
            not optional,
            key=attribute.alias,
            description=attribute.metadata.get("description"),
            read_as=MISSING if taken is MISSING else stored,
        )


def _converter_input(converter: Any) -> Any:
    """What a converter says that it takes; the field's own type holds where it says nothing."""
    converter = getattr(converter, "converter", converter)
    try:
        hints = get_type_hints(converter, include_extras=True)
    except (NameError, TypeError):
        return MISSING
    hints.pop("return", None)
    return next(iter(hints.values()), MISSING)


def _default(default: Any) -> tuple[Any, bool]:
    import attrs

    if default is attrs.NOTHING:
        return MISSING, False
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class, though its hints say a function
        return (default.factory() if default.factory in _EMPTY else MISSING), True
    return default, True
