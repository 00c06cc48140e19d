"""Telling pydantic's types by the marks that they carry, without importing pydantic."""

from __future__ import annotations

from typing import Annotated, Any, get_origin

__all__ = ["matches"]

_MARKS = ("__pydantic_validator__", "__get_pydantic_core_schema__")
"""Models and pydantic's dataclasses have the first, its own and third parties' types the second."""
_EDITS = ("strip_whitespace", "to_lower", "to_upper")
"""What `StringConstraints` may do to a text; its bounds alone are understood without pydantic."""


def matches(annotation: Any) -> bool:
    """Whether pydantic itself must read this: a class of its kind, or `Annotated` with metadata only it understands."""
    if get_origin(annotation) is Annotated:
        return any(map(_is_pydantics, annotation.__metadata__))
    cls = get_origin(annotation) or annotation
    return isinstance(cls, type) and any(hasattr(cls, mark) for mark in _MARKS)


def _is_pydantics(item: Any) -> bool:
    return hasattr(item, _MARKS[1]) or any(getattr(item, name, None) is True for name in _EDITS)
