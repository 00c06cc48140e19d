"""The check of each keyword of a third-party schema: RE2 matches the patterns, and every check counts its steps."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from pegboard import spend
from pegboard_schemas._patterns import matches, steps

__all__ = ["NEGATIVE", "UNBOUNDED", "checked", "unpatterned", "weakly_checked"]

Checks: TypeAlias = Mapping[str, Any]
Weight: TypeAlias = Callable[[Any, Any, Any], int]

UNBOUNDED: Final = ("$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties")
"""Keywords that check the same value once for each schema inside them."""
NEGATIVE: Final = ("contains", "disallow", "if", "not")
"""Keywords that refuse more values if a schema inside them accepts more."""
_PATTERNED: Final = ("additionalProperties", "pattern", "patternProperties")
_CHARACTERS: Final = 512
"""Characters of a message that count as one step."""


def checked(checks: Checks, formats: Container[str]) -> Checks:
    """The check of each keyword, made from those of jsonschema."""
    kept = {word: check for word, check in checks.items() if word not in UNBOUNDED}
    kept |= {
        "additionalProperties": _additional_properties,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
    }
    weights: dict[str, Weight] = {**_WEIGHTS, "format": partial(_format_weight, formats)}
    return {word: partial(_counted, check, weights.get(word, _weight)) for word, check in kept.items()}


def weakly_checked(checks: Checks, formats: Container[str]) -> Checks:
    """The same for a schema with unchecked parts: it accepts all values that the schema accepts, and more."""
    kept = {word: check for word, check in checked(checks, formats).items() if word not in NEGATIVE}
    return {**kept, "oneOf": kept["anyOf"]} if "anyOf" in kept else kept


def unpatterned(checks: Checks, formats: Container[str]) -> Checks:
    """The same for a schema with too many patterns to compile."""
    return {word: check for word, check in weakly_checked(checks, formats).items() if word not in _PATTERNED}


def _counted(check: Callable[..., Any], weight: Weight, validator: Any, *args: Any) -> Iterator[Any]:
    spend(weight(*args))
    for error in check(validator, *args) or ():
        spend(1 + len(error.message) // _CHARACTERS)  # the message holds the value
        yield error


# Patterns --------------------------------------------------------------------------------------------------------


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(value, str) and matches(pattern, value) is False:
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, limit: Any, value: Any, schema: Any) -> Iterator[Any]:
    for pattern, inner in limit.items() if isinstance(value, dict) else ():
        for key in value:
            if matches(pattern, key):
                yield from validator.descend(value[key], inner, path=key, schema_path=pattern)


def _additional_properties(validator: Any, limit: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    surplus = {
        key: member
        for key, member in value.items()
        if key not in known and all(matches(pattern, key) is False for pattern in patterns)
    }
    if limit is False and surplus:
        # The patterns have been matched already.
        yield ValidationError("has members that are not known", instance=surplus, schema={"properties": known})
    for key, member in surplus.items() if isinstance(limit, dict) else ():
        yield from validator.descend(member, limit, path=key)


# Weights ---------------------------------------------------------------------------------------------------------


def _weight(limit: Any, value: Any, schema: Any) -> int:
    """The steps of one keyword, without those of the schemas inside it."""
    return 1 + (_length(limit) + _length(value)) // 8


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def _parts(value: Any) -> int:
    """The number of values in a value, itself included."""
    waiting, parts = [value], 0
    for each in waiting:  # the list grows in the loop
        parts += 1
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return parts


def _format_weight(known: Container[str], limit: Any, value: Any, schema: Any) -> int:
    """The steps of a format: some formats are patterns, or compile one."""
    return 1 + len(value) // 2 if isinstance(value, str) and limit in known else 1


def _pattern_weight(pattern: str, value: Any, schema: Any) -> int:
    return steps([pattern], len(value)) if isinstance(value, str) else 1


def _names_weight(limit: Any, value: Any, schema: Any) -> int:
    """The steps of matching each name against all patterns."""
    if not isinstance(value, dict):
        return 1
    patterns = schema.get("patternProperties", {})
    return 1 + len(value) // 8 + len(value) * len(patterns) + steps(patterns, sum(map(len, value)))


_WEIGHTS: Final[Mapping[str, Weight]] = {
    "$ref": lambda limit, value, schema: 2 + limit.count("/"),
    "additionalProperties": _names_weight,
    "const": lambda limit, value, schema: 1 + _parts(value),
    "enum": lambda limit, value, schema: 1 + len(limit) * _parts(value) // 4,
    "pattern": _pattern_weight,
    "patternProperties": _names_weight,
    "uniqueItems": lambda limit, value, schema: 1 + _parts(value),
}
