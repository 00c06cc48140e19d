"""Arrays in arrays, as deep as one likes: JSON's form of an array with any number of dimensions."""

from typing import Any, Generic, TypeVar, get_args, get_origin

from pegboard import TypePlan, Types

__all__ = ["is_nested", "nested", "row_or"]

T = TypeVar("T")


class Nested(Generic[T]):
    """An annotation for the type table, which knows how to refer from a type to itself."""


def row_or(item: Any) -> Any:
    """The annotation of what stands in such an array: an item, or an array of the same kind."""
    rows: Any = Nested
    return item | rows[item]


def is_nested(annotation: Any) -> bool:
    """Whether this is `Nested[T]`."""
    return get_origin(annotation) is Nested


def nested(annotation: Any, types: Types) -> TypePlan:
    """The plan of `Nested[T]`: lists of T, or of such lists."""
    lists: Any = list
    return types.plan(lists[row_or(*get_args(annotation))])
