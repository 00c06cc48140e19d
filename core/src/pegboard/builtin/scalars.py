"""Types that JSON has itself: str, int, float, bool, None, and Any for whatever JSON there is."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, LiteralString

from pegboard._model.shapes import Scalar, TypePlan
from pegboard._types.plans import shaped
from pegboard._types.unsupported import refuse_unknown
from pegboard.extension import TypeHandler, Types

__all__ = ["scalar_handlers"]

_SCALARS: tuple[tuple[Any, type, dict[str, Any]], ...] = (
    (str, str, {"type": "string"}),
    (int, int, {"type": "integer"}),
    (float, float, {"type": "number"}),
    (bool, bool, {"type": "boolean"}),
    (NoneType, NoneType, {"type": "null"}),
    (object, object, {}),
    (Any, object, {}),
    (None, NoneType, {"type": "null"}),
    (LiteralString, str, {"type": "string"}),
)


def scalar_handlers() -> list[TypeHandler]:
    """One handler for each scalar; subclasses are refused, since they would arrive as their base."""
    return [_handler(annotation, shaped(schema, Scalar(kind))) for annotation, kind, schema in _SCALARS]


def _handler(scalar: Any, plan: TypePlan) -> TypeHandler:
    def build(annotation: Any, types: Types) -> TypePlan:
        return plan if annotation is scalar else refuse_unknown(annotation)

    return TypeHandler(scalar if isinstance(scalar, type) else _is(scalar), build)


def _is(scalar: Any) -> Callable[[Any], bool]:
    return lambda annotation: annotation is scalar
