"""Structs as plans: each field by its own handler, so that a Struct nests in anything and anything in a Struct."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from attrs import frozen
from msgspec import NODEFAULT, UNSET, UnsetType
from msgspec.structs import FieldInfo, fields

from pegboard import (
    MISSING,
    Choice,
    Member,
    Record,
    RegistrationError,
    TypePlan,
    Types,
    parse_docstring,
    record_member,
    record_plan,
    shaped,
)
from pegboard_msgspec._array import array_plan
from pegboard_msgspec._marks import class_of

__all__ = ["build"]

_EMPTY = (dict, frozenset, list, set, tuple)
"""Factories that always give the same, so that the schema may show it."""


@frozen(eq=False)
class _Tag:
    """The member, or first item, that tells a Struct from others."""

    key: str
    value: str | int

    @property
    def member(self) -> Member:
        plan = shaped({"const": self.value}, Choice(((self.value, self.value),)))
        return Member(self.key, self.key, plan)


def build(annotation: Any, types: Types) -> TypePlan:
    """The plan of a Struct. Raises `RegistrationError` naming the class and the field whose type has no mapping."""
    cls = class_of(annotation)
    config = cls.__struct_config__
    members = _members(annotation, types)
    tag = None if config.tag is None else _Tag(config.tag_field, config.tag)
    text = _own_text(cls) or None
    if config.array_like:
        return array_plan(annotation, cls, members, None if tag is None else tag.member, text)
    shape = Record(cls if tag is None else _untagged(cls, tag.key), _tagged(members, tag), cls.__name__)
    return record_plan(annotation, shape, _writer(members, tag), description=text)


def _members(annotation: Any, types: Types) -> tuple[Member, ...]:
    cls = class_of(annotation)
    texts = _field_texts(cls)
    return tuple(_member(cls, field, types, texts.get(field.name)) for field in _fields(annotation))


def _fields(annotation: Any) -> tuple[FieldInfo, ...]:
    try:
        return fields(annotation)
    except NameError as error:
        raise RegistrationError(
            f"an annotation of {class_of(annotation).__qualname__} cannot be resolved: {error}; "
            "define or import the name at the top of the module (not only under TYPE_CHECKING)"
        ) from error


def _member(cls: Any, field: FieldInfo, types: Types, text: str | None) -> Member:
    default = _default(field)
    try:
        member = record_member(
            types,
            field.name,
            _without_unset(field.type),
            # In an array None has its place; only an object can leave it out.
            default=MISSING if default is None and cls.__struct_config__.array_like else default,
            required=field.required,
            key=field.encode_name,
            description=text,
        )
    except RegistrationError as error:
        raise RegistrationError(f"field {field.name!r} of {cls.__qualname__}: {error}") from error
    return Member(field.name, member.key, member.plan, member.required, member.default)


def _without_unset(annotation: Any) -> Any:
    """The type without `UnsetType`, which is no value: a member that may be unset may be left out."""
    inner = get_args(annotation)
    if UnsetType not in inner:
        return annotation
    kept = tuple(each for each in inner if each is not UnsetType)
    found = kept[0]
    for each in kept[1:]:
        found = found | each
    return found


def _default(field: FieldInfo) -> Any:
    if field.default_factory is not NODEFAULT:
        return field.default_factory() if field.default_factory in _EMPTY else MISSING
    return MISSING if field.default in (NODEFAULT, UNSET) else field.default


def _tagged(members: tuple[Member, ...], tag: _Tag | None) -> tuple[Member, ...]:
    return members if tag is None else (tag.member, *members)


def _untagged(cls: type, key: str) -> Callable[..., Any]:
    def make(**members: Any) -> Any:
        del members[key]
        return cls(**members)

    return make


def _writer(members: tuple[Member, ...], tag: _Tag | None) -> Callable[[Any], dict[str, Any]]:
    start: Mapping[str, Any] = {} if tag is None else {tag.key: tag.value}

    def unstructure(instance: Any) -> dict[str, Any]:
        written = dict(start)
        for member in members:
            value = getattr(instance, member.name)
            # `Optional[T] = None` has the schema of T, so None is left out, as a model leaves it out.
            if value is not UNSET and not (value is None and member.default is None):
                written[member.key] = member.plan.unstructure(value)
        return written

    return unstructure


def _own_text(cls: type) -> str:
    """The class's own docstring, without sections about its fields."""
    return parse_docstring(cls.__dict__.get("__doc__") or "").description


def _field_texts(cls: type) -> dict[str, str]:
    """What docstrings say of fields, in `Attributes:` or `Args:`, those of base classes included."""
    written = (base.__doc__ for base in reversed(cls.__mro__) if base.__module__ not in ("builtins", "msgspec"))
    return {name: text for doc in written for name, text in parse_docstring(doc).params.items()}
