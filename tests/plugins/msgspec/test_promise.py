"""What the schema accepts is what arrives, with jsonschema as the judge of the schema."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard._types.table import TypeTable
from tests.plugins.dataclasses.travel import schema
from tests.plugins.msgspec.structs import Box, Cat, Described, Dog, Item, Line, Node, One, Order, Point, Two
from tests.types.generate import values

ANNOTATIONS: list[Any] = [
    *(Item, Order, Node, Box[int], Box[list[Item]], Cat, Cat | Dog, One | Two, Point, Line, Described),
    *(Item | None, Cat | Item, dict[str, Order]),
]

examples = pytest.mark.parametrize("examples", [10, pytest.param(300, marks=pytest.mark.slow)])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@examples
@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_schema_and_structuring_accept_the_same(types: TypeTable, annotation: Any, examples: int) -> None:
    described = schema(types, annotation)
    validator = Draft202012Validator(described)
    plan = types.plan(annotation)

    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(values(described) | anything)
    def check(value: Any) -> None:
        try:
            plan.structure(value)
            arrived = True
        except ValueError:
            arrived = False
        assert arrived is validator.is_valid(value)

    check()


@examples
@pytest.mark.parametrize("annotation", [Item, Order, Node, Cat, Dog, Point, Line, Described], ids=str)
def test_msgspecs_own_schema_accepts_what_is_written(types: TypeTable, annotation: Any, examples: int) -> None:
    """What fits ours fits msgspec's; the other way round ours asks for the tag and for no surplus."""
    own = Draft202012Validator(msgspec.json.schema(annotation))
    described = schema(types, annotation)
    plan = types.plan(annotation)

    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(values(described))
    def check(value: Any) -> None:
        own.validate(value)
        own.validate(plan.unstructure(plan.structure(value)))

    check()
