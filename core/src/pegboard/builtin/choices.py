"""Choices: Literal, enums, and unions of other types."""

from __future__ import annotations

import enum
from typing import Any, Final, Literal, get_args, get_origin

from pegboard._base.errors import RegistrationError
from pegboard._model.shapes import Choice, TypePlan
from pegboard._model.subschemas import TYPE_NAMES, JsonSchema
from pegboard._types.annotations import is_union, qualified_name
from pegboard._types.json_kinds import choice_table
from pegboard._types.plans import shaped
from pegboard.extension import TypeHandler, Types

__all__ = ["HANDLERS"]

_JSON_NAMES = {kind: name for kind, name in TYPE_NAMES.items() if kind not in (list, dict)}


def _union(annotation: Any, types: Types) -> TypePlan:
    from pegboard._types.unions import union_plan

    return union_plan(annotation, types)


def _is_literal(annotation: Any) -> bool:
    origin: Any = get_origin(annotation)
    return origin is Literal


def _literal(annotation: Any, types: Types) -> TypePlan:
    pairs = [(_raw(value), value) for value in get_args(annotation)]
    strange = next((value for raw, value in pairs if type(raw) not in _JSON_NAMES), None)
    if strange is not None:
        name = qualified_name(annotation)
        raise RegistrationError(f"{name} cannot be sent as JSON: {strange!r} is not a JSON scalar")
    names = {value.name: value for _, value in pairs if isinstance(value, enum.Enum)}
    return shaped(_schema(pairs), Choice(tuple(pairs), names), _raw)


def _raw(value: Any) -> Any:
    """The JSON value of a literal: an enum member stands for its value, or for its name if that is no JSON scalar."""
    if not isinstance(value, enum.Enum):
        return value
    return _plain(value.value) if _has_json_values(type(value)) else value.name


def _plain(value: Any) -> Any:
    # The value of a member of `class Color(str, Enum)` may itself be of a subclass of str.
    kind = next((kind for kind in _JSON_NAMES if isinstance(value, kind)), None)
    return value if kind in (None, type(value)) else kind.__new__(kind, value)


def _has_json_values(cls: Any) -> bool:
    return all(isinstance(member.value, tuple(_JSON_NAMES)) for member in cls)


def _enum(annotation: Any, types: Types) -> TypePlan:
    pairs = [(_raw(member), member) for member in annotation]
    if not pairs:
        raise RegistrationError(f"the enum {qualified_name(annotation)} has no members, so no value fits it")
    return shaped(_schema(pairs), Choice(tuple(pairs), dict(annotation.__members__)), _raw)


def _schema(pairs: list[tuple[Any, Any]]) -> JsonSchema:
    values = list(choice_table([(raw, raw) for raw, _ in pairs]).values())
    kinds = {type(value) for value in values}
    typed = {"type": _JSON_NAMES[kinds.pop()]} if len(kinds) == 1 else {}
    return {**typed, "const": values[0]} if len(values) == 1 else {**typed, "enum": values}


HANDLERS: Final = (
    TypeHandler(_is_literal, _literal),
    # A predicate, since StrEnum stands behind `str` in its own bases.
    TypeHandler(lambda annotation: isinstance(annotation, enum.EnumMeta), _enum),
    TypeHandler(is_union, _union),
)
