"""NamedTuple and `collections.namedtuple`: objects in JSON, because models name things better than they count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pegboard import MISSING, TypePlan, Types
from pegboard_dataclasses._hints import field_types
from pegboard_dataclasses._record import Field, class_of, record

__all__ = ["build", "matches"]


def matches(annotation: Any) -> bool:
    """Whether this is a named tuple, subscripted or not."""
    cls = class_of(annotation)
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def build(annotation: Any, types: Types) -> TypePlan:
    """The plan of a named tuple."""
    return record(annotation, types, _fields(annotation), class_of(annotation))


def _fields(annotation: Any) -> Iterator[Field]:
    cls = class_of(annotation)
    hints = field_types(annotation)
    for name in cls._fields:
        yield Field(name, hints.get(name, Any), cls._field_defaults.get(name, MISSING))
