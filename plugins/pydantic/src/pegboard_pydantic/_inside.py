"""The types inside a type that pydantic reads as a whole, for Pegboard, which does not plan these parts."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["inside"]


def inside(annotation: Any, classes: Iterable[type] = ()) -> list[Any]:
    """Every annotation inside of one, at any depth, and those inside of `classes`."""
    waiting = [*_parts(annotation), *classes]
    found: dict[int, Any] = {}
    for each in waiting:  # which grows meanwhile
        if id(each) not in found and each is not ...:
            found[id(each)] = each
            waiting.extend(_parts(each))
    return list(found.values())


def _parts(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Literal:
        yield from (type(value) for value in get_args(annotation) if isinstance(value, enum.Enum))
    elif origin is Annotated:
        yield annotation.__origin__
    elif isinstance(annotation, TypeVar):
        yield from annotation.__constraints__ or (annotation.__bound__,)
    elif hasattr(annotation, "__supertype__"):  # a NewType
        yield annotation.__supertype__
    elif type(origin or annotation).__name__ == "TypeAliasType":
        yield (origin or annotation).__value__
        yield from get_args(annotation)
    else:
        yield from get_args(annotation)
        yield from _fields(origin if isinstance(origin, type) else annotation)


def _fields(cls: Any) -> Iterator[Any]:
    if not isinstance(cls, type):
        return
    fields = getattr(cls, "__pydantic_fields__", None)
    if fields is not None:
        for field in fields.values():
            if getattr(field, "init", None) is not False:
                yield Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    elif hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__total__") or hasattr(cls, "_field_defaults"):
        try:
            yield from get_type_hints(cls, include_extras=True).values()
        except NameError:  # what pydantic found otherwise is among the classes of its schema
            return
