"""Dataclasses."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

from attrs import evolve

from pegboard import MISSING, RegistrationError, TypePlan, Types
from pegboard_dataclasses._hints import field_types
from pegboard_dataclasses._record import Field, class_of, record

__all__ = ["build", "fields", "matches"]

_EMPTY = (dict, frozenset, list, set, tuple)
"""Factories that always give the same, so that the schema may show it."""


def matches(annotation: Any) -> bool:
    """Whether this is a dataclass, subscripted or not."""
    cls = class_of(annotation)
    return isinstance(cls, type) and dataclasses.is_dataclass(cls)


def build(annotation: Any, types: Types) -> TypePlan:
    """The plan of a dataclass: what its constructor takes, `InitVar`s included."""
    found = list(fields(annotation))
    plan = record(annotation, types, found, class_of(annotation))
    # An `InitVar` has to be sent, but no instance has it.
    return evolve(plan, one_way=any(not field.stored and field.default is MISSING for field in found))


def fields(annotation: Any) -> Iterator[Field]:
    """The fields that the constructor takes."""
    cls = class_of(annotation)
    stored = {field.name: field for field in dataclasses.fields(cls)}
    hints = field_types(annotation)
    for name, parameter in inspect.signature(cls).parameters.items():
        if name not in hints:
            raise RegistrationError(f"{cls.__qualname__}.__init__ takes {name!r}, which is no field of the dataclass")
        hint = hints[name]
        field = stored.get(name)
        if field is None:
            hint = hint.type if isinstance(hint, dataclasses.InitVar) else hint
            default = MISSING if parameter.default is parameter.empty else parameter.default
            yield Field(name, hint, default, stored=False)
        else:
            default, optional = _default(field)
            yield Field(name, hint, default, not optional, description=field.metadata.get("description"))


def _default(field: dataclasses.Field[Any]) -> tuple[Any, bool]:
    if field.default is not dataclasses.MISSING:
        return field.default, True
    if field.default_factory is dataclasses.MISSING:
        return MISSING, False
    return (field.default_factory() if field.default_factory in _EMPTY else MISSING), True
