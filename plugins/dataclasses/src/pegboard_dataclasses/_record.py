"""What all kinds of records have in common: fields become members, and a class becomes a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_origin

from pegboard import (
    MISSING,
    ConflictError,
    Member,
    Record,
    RegistrationError,
    TypePlan,
    Types,
    parse_docstring,
    record_member,
    record_plan,
)
from pegboard_dataclasses._writing import Written, of_attributes, of_keys

__all__ = ["Field", "class_of", "record"]


@dataclass(frozen=True)
class Field:
    """A field of a record: `key` in JSON and for the constructor, `name` as an attribute."""

    name: str
    annotation: Any
    default: Any = MISSING
    required: bool | None = None
    key: str | None = None
    description: str | None = None
    read_as: Any = MISSING
    """The attribute's type, where the constructor takes another."""
    stored: bool = True
    """Whether instances have it as an attribute."""


def class_of(annotation: Any) -> Any:
    """The class behind `Box[int]`, or the annotation itself."""
    return get_origin(annotation) or annotation


def record(
    annotation: Any, types: Types, fields: Iterable[Field], build: Callable[..., Any], *, keyed: bool = False
) -> TypePlan:
    """The plan of a record: `build(**members)` makes an instance, which has its fields as attributes, or is `keyed`.

    Raises `RegistrationError` naming the class and the field whose type has no mapping.
    """
    cls = class_of(annotation)
    texts = _field_texts(cls)
    members: list[Member] = []
    written: list[Written] = []
    for field in fields:
        try:
            member = _member(types, field, texts)
            plan = member.plan if field.read_as is MISSING else types.plan(field.read_as)
        except RegistrationError as error:
            kind = ConflictError if isinstance(error, ConflictError) else RegistrationError
            raise kind(f"field {field.name!r} of {cls.__qualname__}: {error}") from error
        if any(member.key == other.key for other in members):
            raise RegistrationError(
                f"{cls.__qualname__} has two fields called {member.key!r}; rename one with Param(name=...)"
            )
        members.append(member)
        if field.stored:
            # `Optional[T] = None` has the schema of T, so None is left out, as a model leaves it out.
            written.append(Written(member.key, field.name, plan, omits_none=member.default is None))

    write = of_keys(written) if keyed else of_attributes(cls, written)
    shape = Record(build, tuple(members), cls.__name__)
    return record_plan(annotation, shape, write, description=_own_text(cls) or None)


def _member(types: Types, field: Field, texts: Mapping[str, str]) -> Member:
    member = record_member(
        types,
        field.name,
        field.annotation,
        default=field.default,
        required=field.required,
        key=field.key,
        description=field.description or texts.get(field.name),
    )
    # The constructor's name for it; a `Param(name=...)` renames it for the model alone.
    return Member(field.key or field.name, member.key, member.plan, member.required, member.default)


def _own_text(cls: type) -> str:
    """The class's own docstring, without sections about its fields; not one that was made for it."""
    text = cls.__dict__.get("__doc__") or ""
    return "" if text.startswith(f"{cls.__name__}(") else parse_docstring(text).description


def _field_texts(cls: type) -> dict[str, str]:
    """What docstrings say of fields, in `Attributes:` or `Args:`, those of base classes included."""
    written = (base.__doc__ for base in reversed(cls.__mro__) if base.__module__ not in ("builtins", "typing"))
    return {name: text for doc in written for name, text in parse_docstring(doc).params.items()}
