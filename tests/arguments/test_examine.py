"""One walk repairs and explains: no part is checked twice."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pegboard._arguments.examine import examine, refusal
from pegboard._model.shapes import TypePlan
from pegboard._schema.problems import MOST_PROBLEMS
from tests.support.examining import explain
from tests.support.shapes import (
    ANYTHING,
    BOOLEAN,
    DAYS,
    INTEGER,
    NULL,
    NUMBER,
    TEXT,
    array,
    either,
    fixed,
    literal,
    mapping,
    opaque,
    optional,
    record,
    tree,
)


class Named(str):
    __slots__ = ()


class Asked:
    """A type without a shape that counts how often it is asked, and wants an odd number."""

    def __init__(self) -> None:
        self.times = 0
        self.plan = opaque({"type": "integer"}, self.structure)

    def structure(self, value: Any) -> Any:
        self.times += 1
        if value % 2 == 0:
            raise ValueError("even")
        return value


VALUES = [None, True, 0, 7, 10**400, 1.0, 1.5, float("inf"), float("nan"), "", "7", Named("x"), [], [1], {}, {"a": 1}]


@pytest.mark.parametrize("plan", [TEXT, INTEGER, NUMBER, BOOLEAN, NULL, ANYTHING, DAYS], ids=str)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{str(value)[:9]}-{type(value).__name__}")
def test_scalars_are_refused_as_the_compiled_check_does(plan: TypePlan, value: Any) -> None:
    try:
        plan.structure(value)
    except ValueError:
        assert refusal(plan, value) is not None
    else:
        assert refusal(plan, value) is None


def test_what_a_class_raises_is_the_refusal() -> None:
    error = refusal(Asked().plan, 2)
    assert isinstance(error, ValueError)
    assert str(error) == "even"


@pytest.mark.parametrize(
    ("around", "value"),
    [
        (array, [1, 2, 3, 4]),
        (mapping, {"a": 1, "b": 2, "c": 3, "d": 4}),
        (lambda plan: fixed(plan, plan, plan, plan), [1, 2, 3, 4]),
        (lambda plan: record(a=plan, b=plan, c=plan, d=plan), {"a": 1, "b": 2, "c": 3, "d": 4}),
        (lambda plan: record(bill=record(items=array(plan))), {"bill": {"items": [1, 2, 3, 4]}}),
    ],
    ids=["array", "mapping", "fixed", "record", "nested"],
)
def test_each_part_is_asked_once(around: Callable[[TypePlan], TypePlan], value: Any) -> None:
    asked = Asked()
    repaired, problems, notes = examine(around(asked.plan), value)
    assert repaired is value
    assert not notes
    assert problems == explain(around(Asked().plan), value)
    assert len(problems) == 2
    assert asked.times == 4


def test_a_part_beside_one_that_was_repaired_is_not_checked_again() -> None:
    asked = Asked()
    repaired, problems, notes = examine(record(odd=asked.plan, number=INTEGER), {"odd": 2, "number": "5"})
    assert repaired == {"odd": 2, "number": 5}
    assert [note.path for note in notes] == ["number"]
    assert [problem.path for problem in problems] == ["odd"]
    assert asked.times == 1


def test_the_same_value_under_two_types_is_judged_by_each() -> None:
    plan = record(numbers=array(INTEGER), texts=array(TEXT))
    shared = [1, "a"]
    problems = explain(plan, {"numbers": shared, "texts": shared})
    assert [problem.path for problem in problems] == ["numbers[1]", "texts[0]"]


def test_the_walk_ends_where_reading_stops() -> None:
    asked = Asked()
    _, problems, _ = examine(array(asked.plan), [0] * (MOST_PROBLEMS + 500))
    assert len(problems) == MOST_PROBLEMS
    assert asked.times <= MOST_PROBLEMS + 1


def picky(**members: Any) -> dict[str, Any]:
    """A class that wants more than its members say."""
    if members.get("low", 0) > members.get("high", 0):
        raise ValueError("low is above high")
    return members


@pytest.mark.parametrize("around", [record, array, optional], ids=["record", "array", "optional"])
def test_where_all_parts_fit_it_is_the_whole(around: Callable[..., TypePlan]) -> None:
    inner = record(picky, low=INTEGER, high=INTEGER)
    wrong, right = {"low": 3, "high": 1}, {"low": 1, "high": 3}
    value: Any
    fitting: Any
    if around is record:
        plan, value, fitting, path = record(span=inner), {"span": wrong}, {"span": right}, "span"
    elif around is optional:
        plan, value, fitting, path = optional(inner), wrong, right, ""
    else:
        plan, value, fitting, path = array(inner), [right, wrong], [right], "[1]"
    assert [(problem.path, problem.message) for problem in explain(plan, value)] == [(path, "low is above high")]
    assert not explain(plan, fitting)


def test_a_nested_member_beside_a_wrong_one_is_not_blamed() -> None:
    plan = record(number=INTEGER, items=array(INTEGER), more=array(INTEGER))
    assert [str(problem) for problem in explain(plan, {"number": [], "items": [1], "more": []})] == [
        "number: expected integer, got array []"
    ]
    assert [problem.path for problem in explain(plan, {"items": [1], "more": []})] == ["number"]


def test_a_nested_member_is_looked_into_when_something_is_surplus() -> None:
    plan = record(items=array(INTEGER))
    paths = [problem.path for problem in explain(plan, {"items": ["a"], "other": 1})]
    assert paths == ["items[0]", "other"]


@pytest.mark.parametrize(
    "plan", [array(INTEGER), mapping(INTEGER), record(a=INTEGER), fixed(INTEGER), either(array(INTEGER), NULL)], ids=str
)
def test_what_fits_is_returned_as_it_is(plan: TypePlan) -> None:
    value: Any = {"a": 1} if refusal(plan, {"a": 1}) is None else [1]
    repaired, problems, notes = examine(plan, value)
    assert repaired is value
    assert (problems, notes) == ([], [])


def test_a_problem_under_a_repaired_key_has_the_path_that_was_sent() -> None:
    plan = mapping(INTEGER, key=literal("C"))
    repaired, problems, notes = examine(plan, {"c": "x"})
    assert repaired == {"C": "x"}
    assert [note.path for note in notes] == ["c"]
    assert [str(problem) for problem in problems] == ['c: expected integer, got string "x"']


def test_as_deep_as_text_may_be_takes_half_of_the_stack() -> None:
    value: Any = {"name": []}
    for _ in range(49):
        value = {"name": "a", "children": [value]}
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(500 + len(inspect.stack(0)))
    try:
        _, problems, _ = examine(tree(), value)
    finally:
        sys.setrecursionlimit(before)
    assert [problem.path for problem in problems] == [".".join(["children[0]"] * 49 + ["name"])]
