"""Arrays in arrays, as deep as one likes: JSON's form of an array whose number of dimensions nobody says."""

from typing import Any, Generic, TypeVar, Union, get_args, get_origin

from pegboard import TypePlan, Types

__all__ = ["Nested", "is_nested", "nested"]

T = TypeVar("T")


class Nested(Generic[T]):
    """An annotation for the type table, which knows how to refer from a type to itself."""


def is_nested(annotation: Any) -> bool:
    """Whether this is `Nested[T]`."""
    return get_origin(annotation) is Nested


def nested(annotation: Any, types: Types) -> TypePlan:
    """The plan of lists of T, or of such lists."""
    (item,) = get_args(annotation)
    return types.plan(list[Union[item, annotation]])  # type: ignore[valid-type]  # noqa: UP007 - known only now
