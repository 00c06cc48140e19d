"""NumPy arrays: nested JSON arrays, all rows of a dimension equally long."""

from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from pegboard import Check, Items, RegistrationError, TypePlan, Types, shaped
from pegboard_numpy._elements import concrete, element
from pegboard_numpy._nested import Nested

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
            f"it would arrive as a numpy.ndarray, not as a {cls.__name__}; register a TypeHandler for it"
        )
    shape, dtype = get_args(annotation) or (Any, Any)
    kind = concrete((get_args(dtype) or (Any,))[0])
    item = element(kind)
    sizes = _sizes(shape)
    inner = types.plan(Union[item, Nested[item]]) if sizes is None else types.plan(item)
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
            raise ValueError(_uneven(rows) or "there are more dimensions than NumPy supports") from error
        # Where an outer dimension is empty, nothing shows the inner ones.
        missing = (sizes or ())[found.ndim :]
        return found.reshape((*found.shape, *(size or 0 for size in missing))) if missing else found

    return read


def _uneven(rows: list[Any], path: str = "") -> str | None:
    """Where a row differs in length from the first beside it."""
    first = rows[0] if rows else None
    for index, row in enumerate(rows):
        if _length(row) != _length(first):
            where, wanted = f"{path}[{index}]", f"{path}[0]"
            return f"the rows are not equally long: {where} has {_length(row)} items, {wanted} has {_length(first)}"
        found = _uneven(row, f"{path}[{index}]") if isinstance(row, list) else None
        if found:
            return found
    return None


def _length(row: Any) -> int | str:
    return len(row) if isinstance(row, list) else "no"


def _writer(types: Types) -> Callable[[Any], Any]:
    def write(value: Any) -> Any:
        return _moments(value, types.plan(np.datetime64)) if value.dtype.kind == "M" else value.tolist()

    return write


def _moments(value: Any, plan: TypePlan) -> Any:
    return [_moments(row, plan) for row in value] if getattr(value, "ndim", 0) else plan.unstructure(value[()])
