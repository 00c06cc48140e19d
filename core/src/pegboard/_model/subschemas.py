"""JSON Schema's keywords, where schemas hold further schemas, and when two JSON values are the same."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

JsonSchema: TypeAlias = dict[str, Any]

# The Python types of decoded JSON values, each before those that it is a subclass of, and their names in schemas.
TYPE_NAMES: Final[Mapping[type, str]] = {
    NoneType: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}

# Asked first: whether a dict is one of the abstract Mappings takes ten times as long.
_MAPPING = (dict, Mapping)
_SCHEMA = (bool, *_MAPPING)
SCALARS = frozenset({str, int, float, bool, type(None)})

_SCHEMAS: Final = {
    "schema": "additionalItems additionalProperties contains contentSchema else if items not propertyNames then "
    "unevaluatedItems unevaluatedProperties",
    "schemas": "allOf anyOf oneOf prefixItems",
    "named schemas": "$defs definitions dependencies dependentSchemas patternProperties properties",
}
_DATA: Final = {
    "anything": "const default",
    "array": "enum examples",
    "count": "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties",
    "dialect": "$schema",
    "factor": "multipleOf",
    "flag": "deprecated readOnly uniqueItems writeOnly",
    "names": "required",
    "names by name": "dependentRequired",
    "number": "exclusiveMaximum exclusiveMinimum maximum minimum",
    "pattern": "pattern",
    "reference": "$dynamicRef $recursiveRef $ref",
    "text": "$comment contentEncoding contentMediaType description format title",
    "types": "type",
}


def _by_word(table: Mapping[str, str]) -> dict[str, str]:
    return {word: kind for kind, words in table.items() for word in words.split()}


_HOLDS: Final[Mapping[str, str]] = _by_word(_SCHEMAS)
# What the value of each keyword is: a schema, schemas, named schemas, or data of some kind. In old dialects `items` may
# be several schemas, and `dependencies` may name members instead of schemas.
KEYWORDS: Final[Mapping[str, str]] = {**_HOLDS, **_by_word(_DATA)}


def map_subschemas(schema: Mapping[str, Any], convert: Callable[[Any], Any]) -> JsonSchema:
    """A copy of `schema` with `convert` applied to each schema directly inside; data is copied.

    Schemas may be booleans; these reach `convert` too.
    """
    mapped: JsonSchema = {}
    for keyword, value in schema.items():
        holds = _HOLDS.get(keyword)
        if holds is None:
            mapped[keyword] = value if type(value) in SCALARS else copied(value)
        elif holds == "named schemas" and isinstance(value, _MAPPING):
            mapped[keyword] = {
                name: copied(inner) if type(inner) is list else convert(inner) for name, inner in value.items()
            }
        elif isinstance(value, list) and (holds == "schemas" or keyword == "items"):
            mapped[keyword] = [convert(inner) for inner in value]
        elif holds == "schema" and isinstance(value, _SCHEMA):
            mapped[keyword] = convert(value)
        else:
            mapped[keyword] = copied(value)
    return mapped


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, str | int | None, Any]]:
    """Each schema directly inside, booleans included, after its keyword and its name or number there, if it has one."""
    for keyword, value in schema.items():
        holds = _HOLDS.get(keyword)
        if holds is None:
            continue
        if holds == "named schemas" and isinstance(value, _MAPPING):
            for name, inner in value.items():
                if type(inner) is not list:
                    yield keyword, name, inner
        elif isinstance(value, list) and (holds == "schemas" or keyword == "items"):
            for index, inner in enumerate(value):
                yield keyword, index, inner
        elif holds == "schema" and isinstance(value, _SCHEMA):
            yield keyword, None, value


def comparable(value: Any) -> Any:
    """A hashable stand-in that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return (list, *map(comparable, value))
    if isinstance(value, _MAPPING):
        return (dict, frozenset((key, comparable(inner)) for key, inner in value.items()))
    return value


def distinct(values: list[Any]) -> list[Any]:
    """JSON values without repetitions; the first of two equal ones counts."""
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(comparable(value), value)
    return list(found.values())


def measured(value: Any, most: int, deepest: int) -> tuple[int, int]:
    """How many values a value is made of and how many levels deep it is; counting ends beyond `most` and `deepest`."""
    level, parts, depth = [value], 1, 0
    while parts <= most and depth <= deepest:
        below: list[Any] = []
        for each in level:
            if isinstance(each, _MAPPING):
                below.extend(each.values())
            elif isinstance(each, (list, tuple)):
                below.extend(each)
        if not below:
            break
        level, parts, depth = below, parts + len(below), depth + 1
    return parts, depth


def copied(value: Any) -> Any:
    """A deep copy of JSON-able data, in plain dicts and lists."""
    if type(value) in SCALARS:
        return value
    # Most members are atoms, which need no call of their own.
    if isinstance(value, (list, tuple)):
        return [inner if type(inner) in SCALARS else copied(inner) for inner in value]
    if isinstance(value, _MAPPING):
        return {key: inner if type(inner) in SCALARS else copied(inner) for key, inner in value.items()}
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
