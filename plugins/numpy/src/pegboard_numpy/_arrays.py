"""NumPy arrays: nested JSON arrays, all rows of a dimension equally long."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin

import numpy as np

from pegboard import Check, Items, Mismatch, RegistrationError, TypePlan, Types, qualified_name, shaped
from pegboard_numpy._elements import concrete, element
from pegboard_numpy._nested import row_or

__all__ = ["array"]

Size = int | None
"""The length of a dimension; None where it is free."""


def array(annotation: Any, types: Types) -> TypePlan:
    """The plan of `np.ndarray`, alone or with its shape and dtype. An array without a dtype holds `np.float64`.

    Raises `RegistrationError` for a dtype or a shape that cannot be sent, and for subclasses.
    """
    cls = get_origin(annotation) or annotation
    if cls is not np.ndarray:
        raise RegistrationError(
            f"{qualified_name(annotation)} would arrive as a numpy.ndarray; annotate that, or register a TypeHandler"
        )
    shape, dtype = get_args(annotation) or (Any, Any)
    kind = concrete((get_args(dtype) or (Any,))[0])
    item = element(kind)
    sizes = _sizes(shape)
    inner = types.plan(row_or(item) if sizes is None else item)
    for size in reversed((sizes or ())[1:]):
        inner = _rows(inner, size, list)
    first = sizes[0] if sizes else None
    return _rows(inner, first, _reader(kind, sizes), _writer(types))


def _sizes(shape: Any) -> tuple[Size, ...] | None:
    """The lengths of the dimensions; None where not even their number is said."""
    dimensions = get_args(shape)
    if get_origin(shape) is not tuple or ... in dimensions:
        return None
    if not dimensions:
        raise RegistrationError("an array without dimensions is a scalar; annotate the scalar class instead")
    return tuple(map(_size, dimensions))


def _size(dimension: Any) -> Size:
    if get_origin(dimension) is not Literal:
        return None
    sizes = get_args(dimension)
    if len(sizes) != 1 or type(sizes[0]) is not int or sizes[0] < 0:
        raise RegistrationError(f"{dimension!r} is not the length of a dimension; write int, or one as in Literal[3]")
    return sizes[0]


def _rows(
    item: TypePlan,
    size: Size,
    build: Callable[[list[Any]], Any],
    write: Callable[[Any], Any] = list,
) -> TypePlan:
    """The plan of one dimension."""
    bounds = () if size is None else (("minItems", ">="), ("maxItems", "<="))
    checks = tuple(Check(keyword, size, f"len({{value}}) {relation} {{limit}}") for keyword, relation in bounds)
    schema = {"type": "array", "items": item.schema, **{check.keyword: check.limit for check in checks}}
    return shaped(schema, Items(item, build, checks), write)


def _reader(kind: type[np.generic], sizes: tuple[Size, ...] | None) -> Callable[[list[Any]], Any]:
    dtype = np.dtype("datetime64[us]") if kind is np.datetime64 else np.dtype(kind)

    def read(rows: list[Any]) -> Any:
        try:
            found = np.array(rows, dtype)
        except ValueError as error:
            located = list(_uneven(rows, _extents(rows)))
            raise Mismatch(*(() if located else [str(error)]), located=located) from error
        # Where an outer dimension is empty, nothing shows the inner ones.
        missing = (sizes or ())[found.ndim :]
        return found.reshape((*found.shape, *(size or 0 for size in missing))) if missing else found

    return read


def _extents(rows: Any) -> list[int | None]:
    """The lengths along the first row of each dimension; None at the end, where a single value stands."""
    if not isinstance(rows, list):
        return [None]
    return [len(rows), *(_extents(rows[0]) if rows else ())]


def _uneven(row: Any, extents: list[int | None], path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], str]]:
    """The rows that are not as long as the first of their dimension: where they stand, and what is wrong."""
    length = len(row) if isinstance(row, list) else None
    if length != extents[0]:
        yield path, f"expected {_described(extents[0])} as in the first row, got {_described(length)}"
        return
    for index, inner in enumerate(row if length else ()):
        yield from _uneven(inner, extents[1:], (*path, index))


def _described(length: int | None) -> str:
    return "a single value" if length is None else f"array of exactly {length} items"


def _writer(types: Types) -> Callable[[Any], Any]:
    def write(value: Any) -> Any:
        return _moments(value, types.plan(np.datetime64)) if value.dtype.kind == "M" else value.tolist()

    return write


def _moments(value: Any, plan: TypePlan) -> Any:
    return [_moments(row, plan) for row in value] if getattr(value, "ndim", 0) else plan.unstructure(value[()])
