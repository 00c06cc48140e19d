"""When another validator may be believed that a value fits a schema.

Only where both must agree: validators differ in regular expressions, in formats, in the arithmetic of large numbers and
of fractions, and the core bounds what jsonschema may do. Whatever is not in the tables below is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["Compile", "Predicate", "believed"]

JsonSchema: TypeAlias = dict[str, Any]
Predicate: TypeAlias = Callable[[Any], bool]
Compile: TypeAlias = Callable[[JsonSchema], Predicate]

_EXACT: Final = 2**53
"""Below it an integer and the float that is equal to it are the same number for every validator."""
_DEEPEST: Final = 32
_MOST: Final = 2_000
_DEEPEST_VALUE: Final = 100
_MOST_WORK: Final = 2_000_000
"""How often a part of the value may meet a part of the schema; some 50 ns each."""
_DRAFTS: Final = ("draft-06/", "draft-07/", "draft/2019-09/", "draft/2020-12/")
_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_SILENT: Final = frozenset(
    {
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)


def believed(schema: JsonSchema, compile_schema: Compile) -> Predicate | None:
    """A predicate that is true only for values that jsonschema accepts; None for a schema that may be read otherwise.

    `schema` has been vetted. Raises what `compile_schema` raises; the predicate raises for values that it leaves to
    jsonschema.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    cls: Any = validator_for(schema, default=Draft202012Validator)
    uri: str = cls.META_SCHEMA["$schema"]
    if not any(draft in uri for draft in _DRAFTS):
        return None
    survey = _Agreement(schema, frozenset(cls.VALIDATORS), frozenset(cls.FORMAT_CHECKER.checkers))
    try:
        survey.look(schema, 0)
    except _UnlikeError:
        return None
    plain = {keyword: value for keyword, value in schema.items() if keyword != "$id"}
    fits = compile_schema({**plain, "$schema": uri})
    most = _MOST_WORK // survey.weight
    return lambda value: _parts(value) <= most and fits(value)


def _parts(value: Any, depth: int = 0) -> int:
    """How many values a JSON value is made of, if its types are exact, its numbers small and its depth is that of text.

    Raises `_UnlikeError` where one of that is not so.
    """
    members = _members(value)
    parts = 1 + len(members)
    for each in members:
        kind = type(each)
        if kind in _NUMBERS:
            if not -_EXACT < each < _EXACT:
                raise _UnlikeError
        elif kind in _CONTAINERS and depth < _DEEPEST_VALUE:
            parts += _parts(each, depth + 1)
        elif kind not in _LEAVES:
            raise _UnlikeError
    return parts


def _members(value: Any) -> Collection[Any]:
    kind = type(value)
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise _UnlikeError
        members: Collection[Any] = value.values()
        return members
    return value if kind is list else (value,)


_NUMBERS: Final = frozenset({int, float})
_CONTAINERS: Final = frozenset({dict, list})
_LEAVES: Final = frozenset({str, bool, type(None)})


class _UnlikeError(Exception):
    """The schema may be read in two ways."""


class _Agreement:
    """Walks a schema as a validator would, through its references."""

    def __init__(self, root: JsonSchema, known: frozenset[str], formats: frozenset[str]) -> None:
        self.weight = 1
        self._root = root
        self._known = known
        self._formats = formats
        self._seen = 0

    def look(self, schema: Any, depth: int) -> None:
        """Raises `_UnlikeError`; a schema that leads back to itself is deeper than any."""
        if isinstance(schema, bool):
            return
        self._seen += 1
        if type(schema) is not dict or depth > _DEEPEST or self._seen > _MOST:
            raise _UnlikeError
        for keyword, value in schema.items():
            self._keyword(keyword, value, depth)

    def _keyword(self, keyword: str, value: Any, depth: int) -> None:
        if keyword == "$id" and depth:  # inside, it would change what references mean
            raise _UnlikeError
        if keyword in _SILENT or (keyword == "format" and value not in self._formats):
            return
        if keyword not in self._known and keyword not in ("then", "else"):
            raise _UnlikeError
        self.weight += len(value) if isinstance(value, (dict, list)) else 1
        if keyword in _PLAIN_VALUES:
            if not _PLAIN_VALUES[keyword](value):
                raise _UnlikeError
            return
        for inner in self._inside(keyword, value):
            self.look(inner, depth + 1)

    def _inside(self, keyword: str, value: Any) -> Collection[Any]:
        if keyword == "$ref":
            return (self._target(value),)
        if keyword in _ONE:
            return (value,)
        if keyword in _LISTS and type(value) is list:
            return value
        if keyword in _MAPS and type(value) is dict:
            return value.values()
        raise _UnlikeError

    def _target(self, reference: Any) -> Any:
        place, _, name = str(reference).removeprefix("#/").partition("/")
        if place not in ("$defs", "definitions") or any(sign in name for sign in "/~%"):
            raise _UnlikeError
        return self._root.get(place, {}).get(name)


_ONE: Final = frozenset(
    {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"},
)
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS: Final = frozenset({"dependentSchemas", "properties"})


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _EXACT


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS and -_EXACT < value < _EXACT


def _is_scalar(value: Any) -> bool:
    return type(value) in (str, bool, type(None)) or (type(value) is int and _is_number(value))


def _is_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value)


_PLAIN_VALUES: Final[Mapping[str, Predicate]] = {
    "const": _is_scalar,
    "dependentRequired": lambda value: type(value) is dict and all(map(_is_names, value.values())),
    "enum": lambda value: type(value) is list and all(map(_is_scalar, value)),
    "exclusiveMaximum": _is_number,
    "exclusiveMinimum": _is_number,
    "maxItems": _is_size,
    "maxLength": _is_size,
    "maxProperties": _is_size,
    "maximum": _is_number,
    "minItems": _is_size,
    "minLength": _is_size,
    "minProperties": _is_size,
    "minimum": _is_number,
    "required": _is_names,
    "type": lambda value: value in _TYPES if type(value) is str else _is_names(value) and _TYPES.issuperset(value),
    "uniqueItems": lambda value: type(value) is bool,
}
