from datetime import date
from typing import Annotated, Any, Generic, NotRequired, Required, TypedDict, TypeVar

import pytest

from pegboard._types.table import TypeTable
from tests.plugins.dataclasses import postponed
from tests.plugins.dataclasses.travel import arrive, is_refused_by_both, leave, schema

T = TypeVar("T")


class Event(TypedDict):
    """Something that happens.

    Attributes:
        name: what it is called
    """

    name: str
    when: NotRequired[date]


class Loose(TypedDict, total=False):
    a: Required[Annotated[int, "first"]]
    b: int


class Child(Loose):
    c: str


class Node(TypedDict):
    next: NotRequired["Node | None"]


class Page(TypedDict, Generic[T]):
    items: list[T]


class IntPage(Page[int]):
    total: int


def test_schema(types: TypeTable) -> None:
    assert schema(types, Event) == {
        "type": "object",
        "description": "Something that happens.",
        "properties": {
            "name": {"type": "string", "description": "what it is called"},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_values_arrive_and_leave(types: TypeTable) -> None:
    assert arrive(types, Event, {"name": "a", "when": "2024-01-02"}) == {"name": "a", "when": date(2024, 1, 2)}
    assert leave(types, Event, {"name": "a", "when": date(2024, 1, 2)}) == {"name": "a", "when": "2024-01-02"}


def test_keys_that_are_not_there_stay_away(types: TypeTable) -> None:
    assert arrive(types, Event, {"name": "a"}) == {"name": "a"}
    assert leave(types, Event, {"name": "a"}) == {"name": "a"}


@pytest.mark.parametrize("value", [{}, {"name": 1}, {"name": "a", "when": None}, {"name": "a", "x": 1}, []])
def test_what_does_not_fit_is_refused(types: TypeTable, value: Any) -> None:
    assert is_refused_by_both(types, Event, value)


@pytest.mark.parametrize(
    ("annotation", "required"),
    [
        (Loose, ["a"]),
        (Child, ["a", "c"]),
        (postponed.Loose, ["name"]),
        (postponed.Tight, ["name", "mail"]),
        (IntPage, ["items", "total"]),
    ],
)
def test_which_keys_are_required(types: TypeTable, annotation: Any, required: list[str]) -> None:
    assert schema(types, annotation)["required"] == required


def test_descriptions_stand_inside_the_wrappers(types: TypeTable) -> None:
    assert schema(types, Loose)["properties"]["a"] == {"type": "integer", "description": "first"}


def test_recursive(types: TypeTable) -> None:
    assert arrive(types, Node, {"next": {"next": None}}) == {"next": {"next": None}}
    assert is_refused_by_both(types, Node, {"next": {"next": 1}})


@pytest.mark.parametrize("annotation", [Page[date], postponed.Page[date]])
def test_generic(types: TypeTable, annotation: Any) -> None:
    assert arrive(types, annotation, {"items": ["2024-01-02"]}) == {"items": [date(2024, 1, 2)]}


def test_a_generic_base(types: TypeTable) -> None:
    assert arrive(types, IntPage, {"items": [1], "total": 1}) == {"items": [1], "total": 1}
    assert is_refused_by_both(types, IntPage, {"items": ["x"], "total": 1})


def test_the_functional_form_takes_any_key(types: TypeTable) -> None:
    headers = TypedDict("headers", {"content-type": str, "class": int})
    assert arrive(types, headers, {"content-type": "a", "class": 1}) == {"content-type": "a", "class": 1}


def test_read_only(types: TypeTable) -> None:
    extensions = pytest.importorskip("typing_extensions")
    fields = {"a": extensions.ReadOnly[int], "b": extensions.ReadOnly[extensions.NotRequired[str]]}
    frozen = extensions.TypedDict("frozen", fields)
    assert schema(types, frozen)["required"] == ["a"]
    assert arrive(types, frozen, {"a": 1, "b": "x"}) == {"a": 1, "b": "x"}
