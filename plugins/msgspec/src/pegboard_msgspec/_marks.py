"""Telling Structs by the mark that they carry, without importing msgspec."""

from __future__ import annotations

from typing import Any, get_origin

__all__ = ["class_of", "matches"]


def class_of(annotation: Any) -> Any:
    """The class behind `Box[int]`, or the annotation itself."""
    return get_origin(annotation) or annotation


def matches(annotation: Any) -> bool:
    """Whether this is a Struct, subscripted or not."""
    cls = class_of(annotation)
    return isinstance(cls, type) and hasattr(cls, "__struct_config__")
