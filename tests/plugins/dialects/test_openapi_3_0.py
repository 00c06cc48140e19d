"""JSON Schema as OpenAPI 3.0 writes it, keyword by keyword."""

from typing import Any

import pytest

from pegboard_dialects import write_schema

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"anyOf": [TEXT, {"type": "null"}]}, {"type": "string", "nullable": True}),
        (
            {"anyOf": [{"enum": ["a"], **TEXT}, {"type": "null"}]},
            {"enum": ["a", None], "type": "string", "nullable": True},
        ),
        (
            {"anyOf": [TEXT, WHOLE, {"type": "null"}], "description": "x"},
            {"anyOf": [{"type": "string", "nullable": True}, WHOLE], "description": "x"},
        ),
        ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [TEXT, WHOLE]}),
        ({"type": "null"}, {"nullable": True, "enum": [None]}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [TEXT, WHOLE]}),
        ({"const": "a", **TEXT}, {"enum": ["a"], "type": "string"}),
        ({"const": None}, {"enum": [None], "nullable": True}),
        ({"enum": ["a", None]}, {"enum": ["a", None], "nullable": True}),
        ({**WHOLE, "exclusiveMinimum": 1}, {**WHOLE, "minimum": 1, "exclusiveMinimum": True}),
        ({**WHOLE, "exclusiveMaximum": 9}, {**WHOLE, "maximum": 9, "exclusiveMaximum": True}),
        ({**WHOLE, "exclusiveMinimum": 1, "minimum": 5}, {**WHOLE, "minimum": 5}),
        (
            {**WHOLE, "exclusiveMaximum": 5, "maximum": 9},
            {**WHOLE, "maximum": 5, "exclusiveMaximum": True},
        ),
        ({**TEXT, "examples": ["a", "b"]}, {**TEXT, "example": "a"}),
        ({**TEXT, "contentEncoding": "base64"}, {**TEXT, "format": "byte"}),
        (
            {"type": "array", "prefixItems": [TEXT, WHOLE, TEXT], "minItems": 3, "maxItems": 3},
            {"type": "array", "items": {"anyOf": [TEXT, WHOLE]}, "minItems": 3, "maxItems": 3},
        ),
        ({"type": "array", "maxItems": 0}, {"type": "array", "items": {}, "maxItems": 0}),
        (
            {"type": "object", "propertyNames": {"pattern": "a"}, "additionalProperties": WHOLE},
            {"type": "object", "additionalProperties": WHOLE},
        ),
        ({"type": "object", "patternProperties": {"^a": WHOLE}}, {"type": "object", "additionalProperties": WHOLE}),
        ({"oneOf": [TEXT, WHOLE], "discriminator": {"propertyName": "k"}}, {"oneOf": [TEXT, WHOLE]}),
        ({"not": True}, {"not": {}}),
    ],
)
def test_keywords_are_rewritten(schema: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert write_schema(schema, "openapi-3.0") == wanted
    inside = {"type": "object", "properties": {"p": schema}, "required": [], "additionalProperties": False}
    assert write_schema(inside, "openapi-3.0") == {**inside, "properties": {"p": wanted}}


def test_the_schema_that_was_given_stays_as_it_is() -> None:
    schema = {"type": "array", "prefixItems": [{**WHOLE, "exclusiveMinimum": 1}], "examples": [[2]]}
    before = repr(schema)
    write_schema(schema, "openapi-3.0")
    assert repr(schema) == before


def test_another_dialect() -> None:
    with pytest.raises(ValueError, match=r"'openapi-3\.0', not as 'draft-4'"):
        write_schema(TEXT, "draft-4")
