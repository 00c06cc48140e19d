"""Types that JSON has itself: str, int, float, bool, None, and Any for whatever JSON there is."""

from __future__ import annotations

from functools import partial
from types import NoneType
from typing import Any, Final, LiteralString

from pegboard._model.shapes import Scalar, TypePlan
from pegboard._schema.nodes import SchemaNode
from pegboard._types.annotations import qualified_name, refuse_unknown
from pegboard._types.plans import shaped
from pegboard.extension import TypeHandler, Types

__all__ = ["HANDLERS"]

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


def _handler(scalar: Any, kind: type, schema: dict[str, Any]) -> TypeHandler:
    plan = shaped(SchemaNode(schema, partial(qualified_name, scalar)), Scalar(kind))

    def build(annotation: Any, types: Types) -> TypePlan:
        return plan if annotation is scalar else refuse_unknown(annotation)

    return TypeHandler(scalar if isinstance(scalar, type) else (lambda annotation: annotation is scalar), build)


HANDLERS: Final = tuple(_handler(*each) for each in _SCALARS)
"""One for each scalar; subclasses are refused, since they would arrive as their base."""
