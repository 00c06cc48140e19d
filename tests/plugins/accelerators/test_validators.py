"""jsonschema-rs says yes only where jsonschema does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pegboard import Accelerator, ForeignSchema, RegistrationError
from pegboard._arguments.decode import Accelerators
from pegboard_accelerators._libraries import jsonschema_rs_validator
from tests.plugins.accelerators.schemas import schemas, values
from tests.plugins.accelerators.sides import both

pytest.importorskip("jsonschema_rs")


def quick(schema: dict[str, Any]) -> Callable[[Any], bool] | None:
    accelerators = Accelerators()
    accelerators.use([Accelerator("validator", "jsonschema-rs", jsonschema_rs_validator)])
    return accelerators.quick(schema)


def agrees(schema: dict[str, Any], found: list[Any]) -> None:
    try:
        plain, fast = ForeignSchema(schema), ForeignSchema(schema, quick=quick)
    except RegistrationError:
        assume(False)
    for value in found:
        assert fast.problems(value) == plain.problems(value)


@given(schema=schemas(), found=st.lists(values, min_size=3, max_size=8))
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_random_schemas(schema: dict[str, Any], found: list[Any]) -> None:
    agrees(schema, found)


@pytest.mark.slow
@given(schema=schemas(), found=st.lists(values, min_size=3, max_size=8))
@settings(max_examples=3_000, suppress_health_check=list(HealthCheck))
def test_many_random_schemas(schema: dict[str, Any], found: list[Any]) -> None:
    agrees(schema, found)


SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "limit": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 100}, {"type": "null"}], "default": None},
        "sort": {"enum": ["newest", "oldest"]},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/filter"}, "maxItems": 20, "uniqueItems": True},
    },
    "required": ["query"],
    "additionalProperties": False,
    "$defs": {"filter": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}},
}


class Search:
    name = "search"
    description = "Search."
    parameters = SEARCH

    def call(self, call: Any) -> Any:
        return call.arguments


class TestSearch:
    """A schema as servers offer them."""

    def test_is_one_of_those_that_are_checked_quickly(self) -> None:
        check = quick(SEARCH)
        assert check is not None
        assert check({"query": "x", "limit": 3, "filters": [{"key": "a"}, {"key": "b", "more": None}]})
        assert not check({"query": ""})

    @pytest.mark.parametrize(
        "sent",
        [
            {"query": "x"},
            {"query": "x", "limit": None},
            {"query": "x", "limit": 3.0},
            {"query": "x", "limit": 101},
            {"query": "x", "limit": "3"},
            {"query": "x", "limit": True},
            {"query": "", "sort": "newset"},
            {"query": "\ud800"},
            {"query": "x", "filters": [{"key": "a"}, {"key": "a"}]},
            {"query": "x", "filters": ({"key": "a"},)},
            {"query": "x", "filters": [{"key": "a", 1: 2}]},
            {"query": "x", "filters": [{"key": "a", "more": 10**400}]},
            {"query": "x", "filters": [{"key": "a", "more": object}]},
            {"query": "x", "surplus": 1},
            '{"query": "x", "limit": 2}',
            '{"query": "x", "query": "y"}',
            '{"query": "x", "filters": [{"key": "a"}, {"key": "b"}]}',
            '{"query": "x", "filters": "[{\\"key\\": \\"a\\"}]"}',
        ],
        ids=lambda sent: ascii(sent)[:40],
    )
    def test_every_call_ends_as_it_would_without(self, sent: Any) -> None:
        with both("jsonschema-rs", Search()) as call:
            call("search", sent)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"multipleOf": 0.1}, 0.3),
        ({"type": "array"}, (1, 2)),
        ({"type": "string", "format": "date"}, "no date"),
    ],
    ids=str,
)
def test_where_they_would_differ(schema: dict[str, Any], value: Any) -> None:
    """The reasons for the caution: the library accepts what jsonschema, as it is used here, refuses."""
    from jsonschema_rs import validator_for

    assert validator_for(schema, validate_formats=False).is_valid(value)
    fast = ForeignSchema(schema, quick=quick)
    assert fast.problems(value)
    assert fast.problems(value) == ForeignSchema(schema).problems(value)
