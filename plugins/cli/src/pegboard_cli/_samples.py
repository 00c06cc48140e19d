"""Sample values that fit a JSON Schema, for an example call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["sample"]

_DEEPEST: Final = 6
_FORMATS: Final = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "12:00:00",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def sample(schema: Any, root: Mapping[str, Any], name: str = "", depth: int = 0) -> Any:
    """A plausible value. Whether it fits is for a toolkit to say: patterns are not read."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    for given in ("examples", "enum"):
        if schema.get(given):
            return schema[given][0]
    for given in ("default", "const"):
        if given in schema:
            return schema[given]
    if "$ref" in schema:
        return sample(_resolve(schema["$ref"], root), root, name, depth + 1)
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return sample(schema[several][0], root, name, depth + 1)
    kind = schema.get("type", "string")
    return _of_type(kind[0] if isinstance(kind, list) else kind, schema, root, name, depth)


def _of_type(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], name: str, depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties", {})
        return {key: sample(properties[key], root, key, depth + 1) for key in schema.get("required", ())}
    if kind == "array":
        first = schema.get("prefixItems")
        if first:
            return [sample(item, root, name, depth + 1) for item in first]
        wanted = max(1, schema.get("minItems", 1))
        return [sample(schema.get("items", {}), root, name, depth + 1)] * wanted
    if kind in ("integer", "number"):
        return _number(schema)
    return {"boolean": True, "null": None}.get(kind, _text(schema, name))


def _number(schema: Mapping[str, Any]) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high = schema.get("maximum", low)
    return min(low, high)


def _text(schema: Mapping[str, Any], name: str) -> str:
    text = str(_FORMATS.get(schema.get("format", ""), name or "text"))
    return text.ljust(int(schema.get("minLength", 0)), "x")


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    return found
