"""Telling pydantic's types by the marks that they carry, without importing pydantic."""

from __future__ import annotations

from typing import Annotated, Any, get_origin

__all__ = ["matches", "writes_otherwise"]

_MARKS = ("__pydantic_validator__", "__get_pydantic_core_schema__")
"""Models and pydantic's dataclasses have the first, its own and third parties' types the second."""
_EDITS = ("strip_whitespace", "to_lower", "to_upper")
"""What `StringConstraints` may do to a text; its bounds alone are understood without pydantic."""
_WRITERS = ("computed_fields", "field_serializers", "model_serializers")
"""The kinds of a class's own functions that make what is written."""


def matches(annotation: Any) -> bool:
    """Whether pydantic itself must read this: a class of its kind, or `Annotated` with metadata only it understands."""
    if get_origin(annotation) is Annotated:
        return any(map(_is_pydantics, annotation.__metadata__))
    cls = get_origin(annotation) or annotation
    return isinstance(cls, type) and any(hasattr(cls, mark) for mark in _MARKS)


def writes_otherwise(cls: type) -> bool:
    """Whether instances are written with members, names or values that the model does not read."""
    decorators = getattr(cls, "__pydantic_decorators__", None)
    fields = getattr(cls, "__pydantic_fields__", {}).items()
    if any((field.serialization_alias or name) != (field.validation_alias or name) for name, field in fields):
        return True
    return any(getattr(decorators, kind, None) for kind in _WRITERS)


def _is_pydantics(item: Any) -> bool:
    return hasattr(item, _MARKS[1]) or any(getattr(item, name, None) is True for name in _EDITS)
