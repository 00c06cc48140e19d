from collections import namedtuple
from datetime import date
from typing import Any, Generic, NamedTuple, Optional, TypeVar

import pytest

from pegboard._types.table import TypeTable
from tests.plugins.dataclasses import postponed
from tests.plugins.dataclasses.travel import arrive, is_refused_by_both, leave, schema

T = TypeVar("T")


class Range(NamedTuple):
    """From one day to another.

    Args:
        start: the first day
    """

    start: date
    end: date | None = None


class Node(NamedTuple):
    name: str
    next: Optional["Node"] = None


class Box(NamedTuple, Generic[T]):
    item: T


def test_schema(types: TypeTable) -> None:
    assert schema(types, Range) == {
        "type": "object",
        "description": "From one day to another.",
        "properties": {
            "start": {"type": "string", "format": "date", "description": "the first day"},
            "end": {"type": "string", "format": "date"},
        },
        "required": ["start"],
        "additionalProperties": False,
    }


def test_values_arrive_and_leave(types: TypeTable) -> None:
    value = {"start": "2024-01-02", "end": "2024-01-03"}
    assert arrive(types, Range, value) == Range(date(2024, 1, 2), date(2024, 1, 3))
    assert leave(types, Range, Range(date(2024, 1, 2), date(2024, 1, 3))) == value


def test_are_no_arrays(types: TypeTable) -> None:
    assert is_refused_by_both(types, Range, ["2024-01-02"])


@pytest.mark.parametrize("value", [{}, {"start": 1}, {"start": "2024-01-02", "x": 1}, None])
def test_what_does_not_fit_is_refused(types: TypeTable, value: Any) -> None:
    assert is_refused_by_both(types, Range, value)


def test_recursive(types: TypeTable) -> None:
    assert arrive(types, Node, {"name": "a", "next": {"name": "b"}}) == Node("a", Node("b"))


def test_generic(types: TypeTable) -> None:
    assert arrive(types, Box[date], {"item": "2024-01-02"}) == Box(date(2024, 1, 2))


def test_string_annotations(types: TypeTable) -> None:
    assert arrive(types, postponed.Pair, {"left": 1, "right": "b"}) == postponed.Pair(1, "b")
    assert is_refused_by_both(types, postponed.Pair, {"left": 1, "right": "c"})


def test_without_annotations(types: TypeTable) -> None:
    Plain = namedtuple("Plain", ["a", "b"], defaults=[2])
    assert "description" not in schema(types, Plain)
    assert arrive(types, Plain, {"a": [1]}) == Plain([1], 2)
