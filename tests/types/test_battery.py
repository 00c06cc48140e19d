"""For every core type: the schema accepts a JSON value if and only if structuring does, and nothing arrives raw.

The oracle is jsonschema with the format checks of its own extra; none of them calls our code.
"""

import functools
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard._schema.nodes import render
from tests.support.thinning import one_in
from tests.types.battery import BATTERY, Entry
from tests.types.generate import values
from tests.types.table import plan, refused, same, type_table

TABLE = type_table()
each = pytest.mark.parametrize("entry", one_in(3, BATTERY), ids=str)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@functools.cache
def oracle(entry: Entry) -> Draft202012Validator:
    schema = render(TABLE.plan(entry.annotation).schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def test_the_battery_is_large() -> None:
    assert len(BATTERY) >= 90


@each
def test_schema_is_valid_and_says_what_it_should(entry: Entry) -> None:
    schema = render(TABLE.plan(entry.annotation).schema)
    Draft202012Validator.check_schema(schema)
    assert {key: schema.get(key) for key in entry.fragment} == entry.fragment


@each
def test_good_values_arrive_as_the_python_type(entry: Entry) -> None:
    structure = TABLE.plan(entry.annotation).structure
    for sent, wanted in entry.good:
        found = structure(sent)
        assert same(found, wanted), f"{sent!r} became {found!r}"
        assert entry.fits(found)
        assert oracle(entry).is_valid(sent)


@each
def test_bad_values_are_refused(entry: Entry) -> None:
    structure = TABLE.plan(entry.annotation).structure
    for sent in entry.bad:
        assert refused(structure, sent), f"{sent!r} became {structure(sent)!r}"
        assert not oracle(entry).is_valid(sent)


@each
def test_values_travel_back_and_forth(entry: Entry) -> None:
    found = TABLE.plan(entry.annotation)
    for _, value in entry.good:
        sent = found.unstructure(value)
        assert oracle(entry).is_valid(sent)
        assert same(found.structure(sent), value)


def agrees(entry: Entry, value: Any) -> None:
    """The promise, for one value."""
    if beyond_floats(value):
        return
    structure = TABLE.plan(entry.annotation).structure
    if oracle(entry).is_valid(value):
        assert entry.fits(structure(value)), f"{value!r} arrived at {entry} as {structure(value)!r}"
    else:
        assert refused(structure, value), f"{value!r} became {structure(value)!r} at {entry}"


def beyond_floats(value: Any) -> bool:
    """A documented exception: an integer that no float can hold is a JSON number, but not a `float`."""
    if isinstance(value, list):
        return any(map(beyond_floats, value))
    if isinstance(value, dict):
        return any(map(beyond_floats, value.values()))
    return isinstance(value, int) and abs(value) > int(1.7976931348623157e308)


@pytest.mark.parametrize("examples", [40, pytest.param(1_000, marks=pytest.mark.slow)])
def test_random_json_is_accepted_by_both_or_by_neither(examples: int) -> None:
    """Each value is shown to every type: to make one costs more than to judge it."""

    @given(value=JSON)
    @settings(max_examples=examples)
    def check(value: Any) -> None:
        for entry in BATTERY:
            agrees(entry, value)

    check()


def generated(entry: Entry, examples: int) -> None:
    schema = render(TABLE.plan(entry.annotation).schema)

    @given(value=values(schema))
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def check(value: Any) -> None:
        agrees(entry, value)

    check()


@pytest.mark.slow
@each
def test_values_made_from_the_schema_are_accepted(entry: Entry) -> None:
    generated(entry, 250)


def test_an_integer_beyond_floats_is_the_one_exception() -> None:
    value = 10**400
    assert oracle(Entry(float, lambda found: True, (), ())).is_valid(value)
    assert refused(plan(float).structure, value)
    assert refused(plan(float).structure, math.inf)
    assert refused(plan(float).structure, math.nan)


@each
def test_structuring_is_the_same_inside_a_generated_function(entry: Entry) -> None:
    """Inlined into a larger function, counted or not, a type accepts and gives the same."""
    wrapped = TABLE.plan(dict[str, list[entry.annotation]]).structure  # type: ignore[name-defined]  # built at run time
    for sent, wanted in entry.good:
        assert same(wrapped({"a": [sent, sent]}), {"a": [wanted, wanted]})
    for sent in entry.bad:
        assert refused(wrapped, {"a": [sent]})
