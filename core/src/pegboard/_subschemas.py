"""Where a JSON Schema holds further schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["JsonSchema", "map_subschemas"]

JsonSchema: TypeAlias = dict[str, Any]

# Everything else is data and must be left alone (`const`, `default`, ...).
_ONE = ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else")
_ONE_RARE = ("unevaluatedItems", "unevaluatedProperties", "contentSchema")
_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_KIND = {**dict.fromkeys(_ONE + _ONE_RARE, "one"), **dict.fromkeys(_LIST, "list"), **dict.fromkeys(_NAMED, "named")}


def map_subschemas(schema: Mapping[str, Any], convert: Callable[[Any], Any]) -> JsonSchema:
    """A copy of `schema` with `convert` applied to each schema directly inside; data is copied.

    Schemas may be booleans; these reach `convert` too.
    """
    mapped: JsonSchema = {}
    for keyword, value in schema.items():
        kind = _KIND.get(keyword)
        if kind == "named" and isinstance(value, Mapping):
            mapped[keyword] = {name: convert(inner) for name, inner in value.items()}
        elif (kind == "list" or keyword == "items") and isinstance(value, list):
            mapped[keyword] = [convert(inner) for inner in value]
        elif kind == "one" and isinstance(value, (Mapping, bool)):
            mapped[keyword] = convert(value)
        else:
            mapped[keyword] = _copied(value)
    return mapped


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(inner) for inner in value]
    return value
