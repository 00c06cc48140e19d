"""JSON Schemas of all drafts and of all keywords, and values that may fit them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

DRAFTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
NAMES = ("a", "b", "c")
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
NUMBERS = (0, 1, 2, 3, -1, 1.0, 0.0, -0.0, 1.5, -3.0, 0.1, 1e-300, 1e300, 2**53 - 1, 2**53, 2**53 + 1, 2**64, 2**64 + 1)
TEXTS = ("", "a", "bb", "é😀", "2026-11-22", "a@b.c", "a\n", "1", "e\u0301")

scalars = st.sampled_from([None, True, False, *NUMBERS, *TEXTS])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from([*NAMES, "d", ""]), inner, max_size=4)
    ),
    max_leaves=8,
)
_sizes = st.sampled_from([0, 1, 2, 3, 1.0])
_numbers = st.sampled_from([0, 1, 2, -1, 1.5, 1.0, 0.0, -0.0, 0.1, 2**53 - 1, 2**53, 2**64])
_names = st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=2)
KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), unique=True, min_size=1, max_size=2),
    "const": scalars | st.just({"a": 1}),
    "enum": st.lists(scalars, min_size=1, max_size=3),
    "minimum": _numbers,
    "maximum": _numbers,
    "exclusiveMinimum": _numbers,
    "exclusiveMaximum": _numbers,
    "multipleOf": st.sampled_from([1, 2, 0.1, 0.5, 3.0]),
    "minLength": _sizes,
    "maxLength": _sizes,
    "minItems": _sizes,
    "maxItems": _sizes,
    "minProperties": _sizes,
    "maxProperties": _sizes,
    "minContains": _sizes,
    "maxContains": _sizes,
    "uniqueItems": st.booleans(),
    "required": _names,
    "dependentRequired": st.dictionaries(st.sampled_from(NAMES), _names, max_size=2),
    "pattern": st.sampled_from(["^a", "a$", r"^\w+$", r"^[a-z]{1,2}$"]),
    "format": st.sampled_from(["date", "email", "int32", "binary", "uri"]),
    "contentEncoding": st.just("base64"),
    "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y", "#/definitions/z", "#"]),
    "title": st.just("t"),
    "default": scalars,
    "x-unknown": scalars,
    "$comment": st.just("c"),
}


def _with(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    lists, maps = st.lists(inner, min_size=1, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)
    one = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
    rare = ("additionalItems", "unevaluatedItems", "unevaluatedProperties")
    return {
        **dict.fromkeys((*one, *rare), inner),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), lists),
        **dict.fromkeys(("dependentSchemas", "properties"), maps),
        "dependencies": maps | st.dictionaries(st.sampled_from(NAMES), _names, max_size=2),
        "patternProperties": st.dictionaries(st.just("^a"), inner, max_size=1),
    }


def _schema(members: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    # Often the usual keywords, so that many schemas are plain.
    usual = [name for name in ("anyOf", "items", "properties", "required", "type") if name in members]
    names = st.lists(st.sampled_from([*sorted(members), *usual * 4]), unique=True, min_size=1, max_size=3)
    made = names.flatmap(lambda chosen: st.fixed_dictionaries({name: members[name] for name in chosen}))
    return st.one_of(made, made, made, st.booleans())


_inner = st.recursive(_schema(KEYWORDS), lambda inner: _schema({**KEYWORDS, **_with(inner)}), max_leaves=6)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A schema with definitions, of some draft; not every one is valid in its draft."""
    schema = draw(_inner)
    schema = dict(schema) if isinstance(schema, dict) else {"allOf": [schema]}
    draft = draw(st.none() | st.sampled_from(DRAFTS))
    named = {"$defs": {"x": draw(_inner), "y": draw(_inner)}, "definitions": {"z": draw(_inner)}}
    return {**schema, **named, **({} if draft is None else {"$schema": draft})}
