"""Where a JSON Schema holds further schemas."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["JsonSchema", "copied", "has_subschemas", "map_subschemas", "packed", "subschemas", "unpacked"]

JsonSchema: TypeAlias = dict[str, Any]

# Asked first: whether a dict is one of the abstract Mappings takes ten times as long.
_MAPPING = (dict, Mapping)
_SCHEMA = (*_MAPPING, bool)
_ATOMS = frozenset({str, int, float, bool, type(None)})

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
        if kind is None:
            mapped[keyword] = value if type(value) in _ATOMS else copied(value)
        elif kind == "named" and isinstance(value, _MAPPING):
            mapped[keyword] = {name: convert(inner) for name, inner in value.items()}
        elif (kind == "list" or keyword == "items") and isinstance(value, list):
            mapped[keyword] = [convert(inner) for inner in value]
        elif kind == "one" and isinstance(value, _SCHEMA):
            mapped[keyword] = convert(value)
        else:
            mapped[keyword] = copied(value)
    return mapped


def subschemas(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas directly inside, booleans included."""
    found: list[Any] = []
    for keyword, value in schema.items():
        kind = _KIND.get(keyword)
        if kind is None:
            continue
        if kind == "named" and isinstance(value, _MAPPING):
            found.extend(value.values())
        elif (kind == "list" or keyword == "items") and isinstance(value, list):
            found.extend(value)
        elif kind == "one" and isinstance(value, _SCHEMA):
            found.append(value)
    return found


def has_subschemas(keywords: Mapping[str, Any]) -> bool:
    """Whether one of these keywords can hold a schema."""
    return not _KIND.keys().isdisjoint(keywords)


def copied(value: Any) -> Any:
    """A deep copy of JSON-able data, in plain dicts and lists."""
    if type(value) in _ATOMS:
        return value
    # Most members are atoms, which need no call of their own.
    if isinstance(value, _MAPPING):
        return {key: inner if type(inner) in _ATOMS else copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [inner if type(inner) in _ATOMS else copied(inner) for inner in value]
    return value


def packed(data: Any) -> Any:
    """JSON-able data put away for `unpacked`, which gives every reader a copy in half of the time of `copied`."""
    try:
        return marshal.dumps(data)
    except ValueError:  # not plain data alone: a hand-written schema may hold an enum's members, say
        return copied(data)


def unpacked(put_away: Any) -> Any:
    """A copy of what was `packed`."""
    return marshal.loads(put_away) if type(put_away) is bytes else copied(put_away)  # noqa: S302 - our own bytes
