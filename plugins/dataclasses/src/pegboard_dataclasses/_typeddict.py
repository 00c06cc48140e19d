"""TypedDict, of `typing` and of `typing_extensions`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

from pegboard import TypePlan, Types
from pegboard_dataclasses._hints import field_types
from pegboard_dataclasses._record import Field, class_of, record

__all__ = ["build", "matches"]


def matches(annotation: Any) -> bool:
    """Whether this is a TypedDict, subscripted or not."""
    cls = class_of(annotation)
    return isinstance(cls, type) and issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def build(annotation: Any, types: Types) -> TypePlan:
    """The plan of a TypedDict: optional keys are absent."""
    return record(annotation, types, _fields(annotation), dict, keyed=True)


def _fields(annotation: Any) -> Iterator[Field]:
    known = class_of(annotation).__required_keys__
    for name, hint in field_types(annotation).items():
        required = _says_required(hint)
        yield Field(name, hint, required=name in known if required is None else required)


def _says_required(hint: Any) -> bool | None:
    """What `Required` and `NotRequired` say, read here because Python misses them in string annotations."""
    while get_args(hint):
        name = getattr(get_origin(hint), "_name", None)
        if name in ("Required", "NotRequired"):
            return bool(name == "Required")
        if name != "ReadOnly" and get_origin(hint) is not Annotated:
            break
        hint = get_args(hint)[0]
    return None
