"""JSON as a browser reads it, whatever a program put into a result."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["dumps", "pretty"]


def dumps(value: Any) -> str:
    """JSON text. What is none stands there by its class; numbers that JSON does not have are text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_class_of)
    except (TypeError, ValueError):
        return json.dumps(_spelled(value, 0), ensure_ascii=False, separators=(",", ":"))


def pretty(value: Any) -> str:
    """JSON text to be read by people."""
    return json.dumps(json.loads(dumps(value)), ensure_ascii=False, indent=2)


def _class_of(value: Any) -> str:
    return f"<{type(value).__qualname__}>"


def _spelled(value: Any, depth: int) -> Any:
    """A copy with text for what JSON does not have: numbers, keys, and what leads to itself."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if depth < 100 and isinstance(value, dict):
        return {str(key): _spelled(each, depth + 1) for key, each in value.items()}
    if depth < 100 and isinstance(value, list | tuple):
        return [_spelled(each, depth + 1) for each in value]
    return _class_of(value)
