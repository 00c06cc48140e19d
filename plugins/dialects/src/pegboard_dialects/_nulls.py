"""Nulls for omitted parameters: under a strict schema models send one for each parameter that they do not use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_dialects._pointers import resolved

__all__ = ["without_nulls"]

_DEEPEST = 64


def without_nulls(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """`value` without the nulls of optional members whose own schemas do not allow null."""
    if not isinstance(value, (dict, list)) or depth > _DEEPEST:
        return value
    schema = resolved(schema, root)
    for alternatives in ("anyOf", "oneOf"):
        for member in schema.get(alternatives) or ():
            cleaned = without_nulls(value, member, root, depth + 1)
            if may_be(cleaned, member, root):
                return without_nulls(cleaned, {**schema, alternatives: []}, root, depth + 1)
    for member in schema.get("allOf") or ():
        value = without_nulls(value, member, root, depth + 1)
    if isinstance(value, list):
        return _items(value, schema, root, depth)
    return _members(value, schema, root, depth)


def _items(values: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> list[Any]:
    first = schema.get("prefixItems") or []
    rest = [schema.get("items", {})] * max(0, len(values) - len(first))
    return [without_nulls(*pair, root, depth + 1) for pair in zip(values, [*first, *rest], strict=False)]


def _members(values: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    others = schema.get("additionalProperties", {})
    return {
        name: without_nulls(inner, properties.get(name, others), root, depth + 1)
        for name, inner in values.items()
        if inner is not None or name in required or name not in properties or may_be(None, properties[name], root)
    }


def may_be(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether a value may fit a schema: only its type, its constants and the names of its members are compared."""
    schema = resolved(schema, root)
    if depth > _DEEPEST or "not" in schema:
        return depth <= _DEEPEST
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives and not any(may_be(value, member, root, depth + 1) for member in alternatives):
        return False
    if not all(may_be(value, member, root, depth + 1) for member in schema.get("allOf") or ()):
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        return False
    return _is_of(value, schema.get("type")) and _has_members(value, schema, root, depth)


def _has_members(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties") or {}
    if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
        return False
    return set(schema.get("required") or ()) <= value.keys() and all(
        may_be(inner, properties[name], root, depth + 1) for name, inner in value.items() if name in properties
    )


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_of(value: Any, types: Any) -> bool:
    names = [types] if isinstance(types, str) else types
    if not names:
        return True
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fits = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "integer": number and value == value // 1,
        "number": number,
        "string": isinstance(value, str),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    return any(fits.get(name, True) for name in names)
