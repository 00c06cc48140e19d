"""Overlapping unions in both orders, whatever was registered before: exact JSON type first, then as written."""

import dataclasses
import datetime as dt
import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Predicate
from typing_extensions import TypeAliasType

import pegboard_dataclasses
from pegboard import RegistrationError, Toolkit, tool
from pegboard._model.tool import Origin
from pegboard._types.table import TypeTable
from tests.support.thinning import one_in
from tests.types.table import refused, same, type_table


@dataclasses.dataclass
class Leaf:
    """A leaf."""

    weight: int


@dataclasses.dataclass
class Branch:
    """A branch: everything that a leaf has, and more."""

    weight: int
    leaves: list[Leaf]


@dataclasses.dataclass
class Spot:
    """Overlaps with a leaf in every value that a float takes from an integer."""

    weight: float


CASES: list[tuple[Any, Any, Any]] = [
    *((annotation, 1, 1) for annotation in (int | str, str | int, bool | int, int | bool, float | int, int | float)),
    *((annotation, "1", "1") for annotation in (int | str, str | int)),
    *((annotation, True, True) for annotation in (bool | int, int | bool)),
    *((annotation, 1.0, 1) for annotation in (int | str, str | int, bool | int, int | bool)),
    *((annotation, 1.0, 1.0) for annotation in (float | int, int | float)),
    *((annotation, 1.5, 1.5) for annotation in (float | int, int | float)),
    (list[int] | list[str], ["a"], ["a"]),
    (list[str] | list[int], [1], [1]),
    (list[int] | list[str], [], []),
    (list[int] | list[float], [1], [1]),
    (list[float] | list[int], [1], [1.0]),
    (list[int] | list[float], [1, 2.5], [1.0, 2.5]),
    (dt.datetime | str, "2024-05-06T07:08:09Z", dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)),
    (dt.datetime | str, "soon", "soon"),
    (Path | str, "a", Path("a")),
    (Leaf | Branch, {"weight": 1}, Leaf(1)),
    (Branch | Leaf, {"weight": 1}, Leaf(1)),
    (Leaf | Branch, {"weight": 1, "leaves": []}, Branch(1, [])),
    (Branch | Leaf, {"weight": 1, "leaves": []}, Branch(1, [])),
    (Leaf | Spot, {"weight": 1}, Leaf(1)),
    (Leaf | Spot, {"weight": 1.5}, Spot(1.5)),
    (Spot | Branch, {"weight": 2, "leaves": []}, Branch(2, [])),
    (Leaf | dict[str, int], {"weight": 1}, Leaf(1)),
    (Leaf | dict[str, int], {"height": 1}, {"height": 1}),
]
ANNOTATIONS = [annotation for annotation, _, _ in CASES]
REFUSED: list[tuple[Any, Any]] = [
    *((annotation, value) for annotation in (int | str, str | int) for value in (1.5, True, None, [1])),
    *((annotation, value) for annotation in (bool | int, int | bool) for value in (1.5, "1", None)),
    *((annotation, value) for annotation in (float | int, int | float) for value in (True, "1", None)),
    *((annotation, [1, "a"]) for annotation in (list[int] | list[str], list[str] | list[int])),
    *((annotation, "a") for annotation in (list[int] | list[str], list[str] | list[int])),
    *((annotation, {"weight": "1"}) for annotation in (Leaf | Branch, Branch | Leaf)),
]


def table(before: Sequence[Any]) -> TypeTable:
    """A type table that has planned other types before."""
    made = type_table()
    for handler in pegboard_dataclasses.provide_types():
        made.add(handler, Origin("dataclasses", "pegboard-dataclasses", "1.0"), "plugin")
    for annotation in before:
        made.plan(annotation)
    return made


@pytest.mark.parametrize("before", [[], ANNOTATIONS, ANNOTATIONS[::-1]], ids=["first", "after all", "after reversed"])
class TestWhateverCameBefore:
    @pytest.mark.parametrize(("annotation", "sent", "wanted"), one_in(2, CASES))
    def test_arrives_as(self, annotation: Any, sent: Any, wanted: Any, before: list[Any]) -> None:
        assert same(table(before).plan(annotation).structure(sent), wanted)
        assert same(table(before).plan(list[annotation]).structure([sent]), [wanted])

    @pytest.mark.parametrize(("annotation", "sent"), one_in(2, REFUSED))
    def test_is_refused(self, annotation: Any, sent: Any, before: list[Any]) -> None:
        assert refused(table(before).plan(annotation).structure, sent)

    @pytest.mark.parametrize("annotation", [str | dt.datetime, str | Path, dict[str, int] | Leaf, Spot | Leaf])
    def test_can_never_win(self, annotation: Any, before: list[Any]) -> None:
        with pytest.raises(RegistrationError, match="can never win"):
            table(before).plan(annotation)


def test_two_tools_with_both_orders_on_one_board() -> None:
    @tool
    def narrow(value: list[int] | list[float]) -> str:
        return repr(value)

    @tool
    def wide(value: list[float] | list[int]) -> str:
        return repr(value)

    for order in ([narrow, wide], [wide, narrow]):
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(*order)
            found = [toolkit.call_sync(name, {"value": [1]}).text for name in ("narrow", "wide")]
        assert found == ["[1]", "[1.0]"]


def test_a_type_that_is_still_being_planned_may_win() -> None:
    loop = TypeAliasType("loop", "list[Any | loop]")  # type: ignore[misc]  # mypy wants recursive ones at module level
    assert type_table().plan(loop).structure([1, [2]]) == [1, [2]]


@pytest.mark.parametrize("annotation", [Any | int, Any | list[int], list[Any | int]])
def test_any_before_what_arrives_raw_takes_everything(annotation: Any) -> None:
    structure = type_table().plan(annotation).structure
    for value in ([1], ["a", None], [[1.5]]):
        assert structure(value) == value


class Only(enum.Enum):
    A = "a"


@pytest.mark.parametrize("annotation", [Literal["a"] | Only, dict[str, Any] | dict[int, int]])
def test_what_would_lose_its_type_to_an_equal_one_is_refused(annotation: Any) -> None:
    with pytest.raises(RegistrationError, match="can never win"):
        type_table().plan(annotation)


def test_what_arrives_as_the_same_json_loses_nothing() -> None:
    assert type_table().plan(dict[str, Any] | dict[str, int]).structure({"a": 1}) == {"a": 1}


def test_text_that_a_check_of_the_author_may_refuse_leaves_the_rest_to_others() -> None:
    structure = type_table().plan(Annotated[str, Predicate(str.isalpha)] | dt.date).structure
    assert structure("abc") == "abc"
    assert structure("2024-05-06") == dt.date(2024, 5, 6)
    with pytest.raises(RegistrationError, match="can never win"):
        type_table().plan(str | dt.date)


@dataclasses.dataclass
class Counted:
    """A node of a list whose nodes nothing but their last member tells apart."""

    next: "Node | None"
    tag: int


@dataclasses.dataclass
class Named:
    """The other kind of node."""

    next: "Node | None"
    tag: str


Node = Counted | Named
DEPTH = 60


def chain(tags: Sequence[Any]) -> Any:
    """Nodes inside one another, the last tag outside."""
    node = None
    for tag in tags:
        node = {"next": node, "tag": tag}
    return node


def tags_of(node: Node | None) -> list[Any]:
    """The tags of a chain, from outside to inside."""
    return [] if node is None else [node.tag, *tags_of(node.next)]


@pytest.fixture
def reading() -> Toolkit:
    """A toolkit with the tool `read(node)`, which gives the tags of a chain."""
    toolkit = Toolkit(plugins=[pegboard_dataclasses])

    @toolkit.tool
    def read(node: Node) -> list[int | str]:
        return tags_of(node)

    return toolkit


@pytest.mark.parametrize("inside", [["x"], [1], [1, "x"], ["x", "x", 1]])
def test_alternatives_inside_alternatives_are_each_read_once(reading: Toolkit, inside: list[Any]) -> None:
    """Each level that tried both kinds again would take twice as long as the one inside."""
    tags = (inside * DEPTH)[:DEPTH]
    assert reading.call_sync("read", {"node": chain(tags)}).value == tags[::-1]


@pytest.mark.parametrize("wrong", one_in(4, [1.5, True, None, []]))
def test_what_is_wrong_inside_alternatives_is_found_as_soon(reading: Toolkit, wrong: Any) -> None:
    result = reading.call_sync("read", {"node": chain([wrong, *["x"] * (DEPTH - 1)])})
    assert result.status == "invalid"
    assert result.error is not None
    assert "node" + ".next" * (DEPTH - 1) + ".tag: expected integer" in result.error.details["problems"][0]


def test_what_can_be_repaired_inside_alternatives_is_found_as_soon(reading: Toolkit) -> None:
    node = chain(["x"] * DEPTH)
    result = reading.call_sync(
        "read", {"node": {**node, "next": str(node["next"]).replace("'", '"').replace("None", "null")}}
    )
    assert result.value == ["x"] * DEPTH
    assert len(result.notes) == 1


def test_the_same_object_twice_arrives_twice(reading: Toolkit) -> None:
    @reading.tool
    def apart(nodes: list[Node]) -> bool:
        return nodes[0] is not nodes[1]

    node = chain([1, "x"])
    assert reading.call_sync("apart", {"nodes": [node, node]}).value is True
