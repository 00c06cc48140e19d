"""Schemas that are well-formed at a glance: jsonschema would say the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator, FormatChecker

from pegboard import RegistrationError
from pegboard._model.subschemas import KEYWORDS as KNOWN
from pegboard._schema.foreign import ForeignSchema
from pegboard._schema.vet import is_surely_valid

DIALECTS = (Draft7Validator, Draft201909Validator, Draft202012Validator)
KEYWORDS = sorted({*KNOWN, "$anchor", "$id", "$recursiveAnchor", "$vocabulary", "id", "x-mine"})
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats()
    | st.sampled_from(["", "a", "string", "object", "#", "#/a b", "#/$defs/a", "(", "^a+$", "a:b", *KEYWORDS[:3]])
    | st.sampled_from(["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "(", "b"]), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=4))
def test_what_is_surely_valid_is_valid_in_every_dialect(schema: dict[str, Any]) -> None:
    if is_surely_valid(schema):
        for dialect in DIALECTS:
            dialect.check_schema(schema, format_checker=FormatChecker(()))  # patterns are read by who matches them


KINDS: list[Any] = [
    *(None, True, 0, -1, 1.5, "", "string", "(", [], ["a"], ["a", "a"], [1], ["string"], [{}], [{"type": 1}]),
    *({}, {"type": "string"}, {"type": 1}, {"a": {}}, {"a": 1}, {"a": {"type": 1}}, {"(": {}}, {"a": ["b"]}),
]


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_each_keyword_with_each_kind_of_value(keyword: str) -> None:
    for schema in ({keyword: value} for value in KINDS):
        if is_surely_valid(schema):
            for dialect in DIALECTS:
                dialect.check_schema(schema, format_checker=FormatChecker(()))  # patterns are read by who matches them


@pytest.mark.parametrize(
    "schema",
    [
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"type": "string"}},
        },
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": ["object", "null"],
            "title": "Search",
            "properties": {
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10, "examples": [5]},
                "sort": {"enum": ["newest", "oldest"], "description": "Order"},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True, "minItems": 1},
                "either": {"anyOf": [{"type": "string", "pattern": "^a", "minLength": 1}, {"const": None}]},
            },
            "required": ["sort"],
            "additionalProperties": False,
            "$defs": {"tag": {"type": "string", "format": "uri"}},
            "x-mcp-header": "Region",
        },
    ],
)
def test_everyday_schemas_are_told_at_a_glance(schema: dict[str, Any]) -> None:
    assert is_surely_valid(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"$id": "#x"},
        {"dependencies": {"a": 1}},
        {1: 2},
        {"type": "objekt"},
        {"type": []},
        {"properties": {"a": ()}},
        {"required": ("a",)},
    ],
)
def test_whatever_is_not_plain_is_left_to_jsonschema(schema: dict[str, Any]) -> None:
    assert not is_surely_valid(schema)


def test_a_schema_that_passed_passes_no_other() -> None:
    passing: dict[str, Any] = {"properties": {"a": {"required": ["b"], "minimum": 1}}}
    ForeignSchema(passing)
    for changed in ({"required": ("b",)}, {"minimum": "1"}, {"minimum": True}, {"required": "b"}):
        with pytest.raises(RegistrationError):
            ForeignSchema({"properties": {"a": {**passing["properties"]["a"], **changed}}})


def test_a_schema_that_was_refused_is_refused_again() -> None:
    for where in ("first", "second"):
        with pytest.raises(RegistrationError, match=where):
            ForeignSchema({"properties": {"a": {"$ref": "#/nowhere"}}}, where)
