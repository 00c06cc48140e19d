"""Telling a library's classes without importing the library."""

import sys
from collections.abc import Callable
from typing import Any, get_origin

__all__ = ["derives_from"]


def derives_from(module: str, name: str) -> Callable[[Any], bool]:
    """A predicate over annotations: whether this is `module.name` or a class derived from it, subscripted or not."""

    def matches(annotation: Any) -> bool:
        base = getattr(sys.modules.get(module), name, None)
        cls = get_origin(annotation) or annotation
        return isinstance(base, type) and isinstance(cls, type) and issubclass(cls, base)

    return matches
