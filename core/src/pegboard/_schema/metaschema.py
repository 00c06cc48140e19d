"""Well-formed schemas: most can be told at a glance, without asking jsonschema about the schema of schemas."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["is_surely_valid"]

_DIALECTS: Final = frozenset(
    f"{scheme}://json-schema.org/{draft}{end}"
    for scheme in ("http", "https")
    for draft in ("draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema")
    for end in ("", "#")
)
_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_PLAIN_REFERENCE: Final = re.compile(r"#(/[\w$.-]*)*", re.ASCII)


def is_surely_valid(schema: Any) -> bool:
    """Whether a schema of draft 7 to 2020-12 is surely what its meta-schema asks for; False where that is not plain.

    What nests endlessly must have been refused before.
    """
    if schema is True or schema is False:
        return True
    if type(schema) is not dict:
        return False
    for keyword, value in schema.items():
        check = _CHECKS.get(keyword)
        # What no dialect knows may be anything; what begins with a dollar, some dialect may know.
        if check is None and (type(keyword) is not str or keyword in _NEVER or keyword[:1] == "$"):
            return False
        if check is not None and not check(value):
            return False
    return True


def _text(value: Any) -> bool:
    return type(value) is str


def _flag(value: Any) -> bool:
    return type(value) is bool


def _anything(value: Any) -> bool:
    return True


def _number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _factor(value: Any) -> bool:
    return _number(value) and value > 0


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _array(value: Any) -> bool:
    return type(value) is list


def _names(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value) and len(set(value)) == len(value)


def _kind(value: Any) -> bool:
    return value in _TYPES if type(value) is str else _names(value) and len(value) > 0 and _TYPES.issuperset(value)


def _dialect(value: Any) -> bool:
    return type(value) is str and value in _DIALECTS


def _reference(value: Any) -> bool:
    return type(value) is str and _PLAIN_REFERENCE.fullmatch(value) is not None


def _pattern(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _several(value: Any) -> bool:
    return type(value) is list and len(value) > 0 and all(map(is_surely_valid, value))


def _by_name(value: Any) -> bool:
    return (
        type(value) is dict and all(type(name) is str for name in value) and all(map(is_surely_valid, value.values()))
    )


def _by_pattern(value: Any) -> bool:
    return _by_name(value) and all(map(_pattern, value))


_WORDS: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (_text, "$comment title description format contentEncoding contentMediaType"),
    (_flag, "deprecated readOnly uniqueItems writeOnly"),
    (_anything, "const default"),
    (_array, "enum examples"),
    (_number, "exclusiveMaximum exclusiveMinimum maximum minimum"),
    (_factor, "multipleOf"),
    (_count, "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties"),
    (_names, "required"),
    (_kind, "type"),
    (_dialect, "$schema"),
    (_reference, "$ref"),
    (_pattern, "pattern"),
    (_several, "allOf anyOf oneOf prefixItems"),
    (_by_name, "$defs definitions dependentSchemas properties"),
    (_by_pattern, "patternProperties"),
    (is_surely_valid, "additionalItems additionalProperties contains else if items not propertyNames then"),
    (is_surely_valid, "unevaluatedItems unevaluatedProperties"),
)
_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {word: check for check, words in _WORDS for word in words.split()}
_NEVER: Final = frozenset({"contentSchema", "dependencies", "dependentRequired", "id"})
"""Seldom used, or of another form in each dialect."""
