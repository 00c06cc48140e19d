"""Plain third-party schemas are checked by generated code, which says yes only where jsonschema does."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pegboard import ForeignSchema, RegistrationError
from pegboard._types.plans import plain_predicate
from tests.support.schemas_of_all_kinds import NAMES, schemas, values


def agrees(schema: dict[str, Any], found: list[Any]) -> None:
    try:
        judge, fast = ForeignSchema(schema), ForeignSchema(schema, quick=plain_predicate)
    except RegistrationError:
        assume(False)
    for value in found:
        assert fast.problems(value) == judge.problems(value)


@given(schema=schemas(), found=st.lists(values, min_size=3, max_size=8))
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
def test_random_schemas(schema: dict[str, Any], found: list[Any]) -> None:
    agrees(schema, found)


_bounds = st.sampled_from([0, 1, 2, 1.0, 1.5, 2**53, 2**64])
_scalars: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("integer")},
        optional=dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bounds),
    ),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.just(1), "maxLength": st.just(2)}),
    st.fixed_dictionaries({"type": st.sampled_from(["null", "boolean", "number", ["integer", "null"]])}),
    st.fixed_dictionaries(
        {"enum": st.lists(values, max_size=3)}, optional={"type": st.sampled_from(["integer", "string", "number"])}
    ),
    st.fixed_dictionaries({"const": values}),
    st.just({}),
)
plain = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner, "maxItems": st.just(1)}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
            optional={
                "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=1),
                "additionalProperties": st.booleans(),
            },
        ),
        st.builds(lambda each: {"anyOf": [each, {"type": "null"}], "description": "d"}, inner),
        st.builds(lambda each: {"type": ["array", "null"], "items": each}, inner),
    ),
    max_leaves=6,
)


@given(schema=plain, found=st.lists(values, min_size=3, max_size=8))
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
def test_plain_schemas(schema: dict[str, Any], found: list[Any]) -> None:
    agrees(schema, found)


@pytest.mark.slow
@given(schema=schemas() | plain, found=st.lists(values, min_size=3, max_size=8))
@settings(max_examples=2_500, suppress_health_check=list(HealthCheck))
def test_many_schemas(schema: dict[str, Any], found: list[Any]) -> None:
    agrees(schema, found)


SEARCH: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to look for"},
        "limit": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 100}, {"type": "null"}], "default": None},
        "sort": {"type": "string", "enum": ["newest", "oldest"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"query": "x"}, True),
        ({"query": "x", "limit": None, "sort": "oldest", "tags": ["a"]}, True),
        ({"query": "x", "limit": 3.0}, True),
        ({"query": "x", "limit": True}, False),
        ({"query": "x", "limit": 101}, False),
        ({"query": ""}, False),
        ({"query": "x", "sort": "new"}, False),
        ({"query": "x", "tags": ["a", "b", "c"]}, False),
        ({"query": "x", "tags": ("a",)}, False),
        ({"query": "x", "more": 1}, False),
        ({}, False),
        ("x", False),
    ],
    ids=str,
)
def test_a_schema_as_servers_offer_them(value: Any, fits: bool) -> None:
    check = plain_predicate(SEARCH)
    assert check is not None
    assert check(value) is fits
    assert (ForeignSchema(SEARCH).problems(value) == []) is fits


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"},
        {"type": "number", "maximum": 3},
        {"type": "integer", "multipleOf": 2},
        {"type": "string", "pattern": "a"},
        {"type": "string", "format": "date"},
        {"type": "integer", "enum": [1.5]},
        {"enum": [1], "const": 2},
        {"items": {"type": "integer"}},
        {"type": "array", "items": False},
        {"type": "array", "items": [{"type": "integer"}]},
        {"type": "object", "properties": {"a": False}},
        {"type": "object", "required": ["a"]},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"oneOf": [{"type": "integer"}, {"type": "null"}]},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"x-unknown": 1},
    ],
    ids=str,
)
def test_what_says_more_is_left_to_jsonschema(schema: dict[str, Any]) -> None:
    assert plain_predicate(schema) is None


def test_a_call_that_fits_does_not_load_jsonschema() -> None:
    program = f"""
import json, sys
from pegboard import Toolkit
class Search:
    name, description, parameters = "search", "Search.", json.loads({json.dumps(SEARCH)!r})
    def call(self, call):
        return call.arguments["query"]
with Toolkit(plugins=()) as toolkit:
    toolkit.register(Search())
    assert toolkit.call_sync("search", '{{"query": "x", "limit": 2}}').text == "x"
    assert "jsonschema" not in sys.modules
    assert toolkit.call_sync("search", '{{"query": "x", "limit": "many"}}').status == "invalid"
    assert "jsonschema" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
