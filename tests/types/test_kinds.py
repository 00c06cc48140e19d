"""Which JSON types a plan accepts, told by its shape or by its schema."""

from types import NoneType
from typing import Any

import pytest

from pegboard._model.shapes import (
    Choice,
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Member,
    Nullable,
    Record,
    Scalar,
    Shape,
    Tagged,
    Text,
    TypePlan,
    Union,
)
from pegboard._schema.nodes import SchemaRef
from pegboard._types.json_kinds import candidates, kinds
from pegboard._types.plans import shaped
from pegboard._types.unions import covers
from tests.types.table import plan

TEXT, WHOLE = shaped({}, Scalar(str)), shaped({}, Scalar(int))


@pytest.mark.parametrize(
    ("shape", "exact"),
    [
        (Scalar(str), {str: True}),
        (Scalar(int), {int: True, float: False}),
        (Scalar(float), {float: True, int: False}),
        (Scalar(bool), {bool: True}),
        (Scalar(NoneType), {NoneType: True}),
        (Text(str), {str: True}),
        (Choice((("a", 1), (1, 2))), {str: True, int: True, float: False}),
        (Choice(((1, 1), (2.5, 2))), {int: True, float: True}),
        (Items(TEXT), {list: True}),
        (FixedItems(()), {list: True}),
        (Mapped(None, TEXT), {dict: True}),
        (Record(dict, ()), {dict: True}),
        (Tagged("k", {}), {dict: True}),
        (Nullable(TEXT), {NoneType: True, str: True}),
        (Union((TEXT, WHOLE)), {str: True, int: True, float: False}),
        (Deferred(lambda: TEXT), {str: True}),
    ],
)
def test_a_shape_tells(shape: Shape, exact: dict[type, bool]) -> None:
    assert kinds(shaped({}, shape)) == exact


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "string"}, {str}),
        ({"type": "number"}, {float, int}),
        ({"type": ["string", "null"]}, {str, NoneType}),
        ({"enum": ["a", 1]}, {str, int, float}),
        ({"const": [1]}, {list}),
        ({"anyOf": [{"type": "array"}, {"type": "object"}]}, {list, dict}),
        ({"oneOf": [{"type": "boolean"}]}, {bool}),
        (SchemaRef("x", lambda: {"type": "array"}), {list}),
        ({}, {NoneType, bool, int, float, str, list, dict}),
    ],
)
def test_without_a_shape_the_schema_tells(schema: dict[str, Any], found: set[type]) -> None:
    assert set(kinds(TypePlan(schema, lambda value: value))) == found


def test_a_type_that_is_still_being_planned_may_be_anything() -> None:
    unready: TypePlan = shaped({}, Deferred(lambda: unready))
    assert len(kinds(unready)) == 7


def test_exact_types_are_tried_first_and_then_as_written() -> None:
    real, whole, words = plan(float), plan(int), plan(str)
    assert candidates([real, whole, words], int) == (whole,)
    assert candidates([whole, real], float) == (real,)
    assert candidates([whole, words], float) == (whole,)
    assert candidates([whole], str) == ()
    date = shaped({}, Text(str))
    assert candidates([date, words, date], str) == (date, words)


@pytest.mark.parametrize(
    ("first", "first_open", "second", "second_open", "wins"),
    [
        ("a", False, "a", False, True),
        ("ab", False, "a", False, True),
        ("a", False, "ab", False, False),
        ("a", False, "a", True, False),
        ("a", True, "a", True, True),
        ("a", True, "ab", True, True),
        ("ab", True, "a", True, False),
        ("a", True, "ab", False, True),
    ],
)
def test_open_records_may_be_sent_anything_under_other_keys(
    first: str, first_open: bool, second: str, second_open: bool, wins: bool
) -> None:
    def record(keys: str, is_open: bool) -> TypePlan:
        integer = shaped({"type": "integer"}, Scalar(int))
        members = tuple(Member(key, key, integer, required=False) for key in keys)
        return shaped({"type": "object"}, Record(dict, members, open=is_open))

    assert covers(record(first, first_open), record(second, second_open)) is wins
