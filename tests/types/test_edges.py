"""More edges that `nox -s mutants` found untested: unions, tags, sets, keys, and what is written back."""

import dataclasses
import datetime as dt
import enum
import typing
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypedDict, Unpack

import pytest
from annotated_types import MinLen, Predicate

import pegboard_dataclasses
from pegboard._base.errors import RegistrationError
from pegboard._model.shapes import Items, Mapped, Tagged, TypePlan
from pegboard._model.tool import Origin
from pegboard._schema.nodes import render
from pegboard._types.plans import shaped
from pegboard._types.table import TypeTable
from pegboard.extension import TypeHandler
from tests.support.examining import explain, repair
from tests.types.battery import Color, Size
from tests.types.table import plan, refused, same, schema, type_table


class Words(str):
    __slots__ = ()


class Tone(enum.Enum):
    LOUD = Words("loud")


class Day(dt.date):
    pass


class Named(Protocol):
    name: str


class Badge:
    name = "badge"


class Visit(TypedDict):
    """A visit."""

    day: dt.date


@dataclasses.dataclass(frozen=True)
class Fixed:
    """A frozen class."""

    number: int
    kind: Literal["fixed"]


@dataclasses.dataclass(frozen=True)
class Moved:
    """Another, told apart by a member that is not its first."""

    distance: float
    kind: Literal["moved"]


@dataclasses.dataclass
class Loose:
    """Not hashable, and of the same kind as another."""

    text: str
    kind: Literal["fixed"]


@pytest.fixture
def records() -> TypeTable:
    table = type_table()
    for handler in pegboard_dataclasses.provide_types():
        table.add(handler, Origin("dataclasses", "pegboard-dataclasses", "1.0"), "plugin")
    return table


def named(annotation: Any, types: Any) -> TypePlan:
    return TypePlan({"type": "string"}, str, lambda value: value.name)


class TestUnions:
    def test_a_type_that_says_nothing_is_still_optional(self) -> None:
        table = type_table(TypeHandler(Badge, lambda annotation, types: TypePlan({}, lambda value: value.strip())))
        assert table.plan(Badge | None).structure(None) is None

    def test_a_protocol_is_written_by_its_handler(self) -> None:
        table = type_table(TypeHandler(Named, named))
        assert table.plan(Named | None).unstructure(None) is None
        assert table.plan(Named | None).unstructure(Badge()) == "badge"
        assert table.plan(int | Named).unstructure(Badge()) == "badge"

    @pytest.mark.parametrize("annotation", [Color | dt.date, Literal["x"] | dt.date])
    def test_a_subclass_is_written_as_its_base(self, annotation: Any) -> None:
        assert plan(annotation).unstructure(Day(2024, 1, 1)) == "2024-01-01"

    def test_a_literal_member_is_written_as_its_value(self) -> None:
        assert plan(Literal[Color.RED] | dt.date).unstructure(Color.RED) == "red"

    def test_what_fits_no_alternative_is_left_as_it_is(self) -> None:
        assert plan(Color | dt.date).unstructure(1.5) == 1.5

    def test_a_typed_dict_is_written_by_its_members(self, records: TypeTable) -> None:
        written = records.plan(Visit | dt.date).unstructure
        assert written({"day": dt.date(2024, 1, 1)}) == {"day": "2024-01-01"}
        assert written(dt.date(2024, 1, 1)) == "2024-01-01"


class TestTags:
    def test_the_tag_may_stand_anywhere(self, records: TypeTable) -> None:
        found = records.plan(Fixed | Moved)
        assert isinstance(found.shape, Tagged)
        assert render(found.schema)["discriminator"] == {"propertyName": "kind"}
        assert found.structure({"distance": 1, "kind": "moved"}) == Moved(1.0, "moved")

    def test_a_tag_that_two_share_is_none(self, records: TypeTable) -> None:
        found = records.plan(Fixed | Loose)
        assert not isinstance(found.shape, Tagged)
        assert found.structure({"number": 1, "kind": "fixed"}) == Fixed(1, "fixed")
        assert found.structure({"text": "a", "kind": "fixed"}) == Loose("a", "fixed")


class TestSets:
    def test_objects_are_compared_by_their_members(self, records: TypeTable) -> None:
        structure = records.plan(set[Fixed]).structure
        one, two = ({"number": number, "kind": "fixed"} for number in (1, 2))
        assert structure([one, two]) == {Fixed(1, "fixed"), Fixed(2, "fixed")}
        assert refused(structure, [one, dict(reversed(one.items()))])
        assert refused(shaped({}, Items(plan(dict), list, unique=True)).structure, [{"a": {}}, {"a": {}}])

    @pytest.mark.parametrize("annotation", [set[Loose], set[tuple[list[int], ...]], set[tuple[Loose, ...]]])
    def test_what_cannot_be_hashed_is_refused(self, annotation: Any, records: TypeTable) -> None:
        with pytest.raises(RegistrationError, match="not hashable"):
            records.plan(annotation)

    def test_they_are_written_in_order_whatever_they_hold(self) -> None:
        written = plan(set[tuple[int | str, ...]]).unstructure
        assert written({(1,), ("a",), (2,)}) == written({("a",), (2,), (1,)})


class TestTuples:
    @pytest.mark.parametrize("annotation", [tuple, typing.Tuple])  # noqa: UP006 - the old spelling counts too
    def test_one_that_says_nothing_holds_anything(self, annotation: Any) -> None:
        assert plan(annotation).structure([1, "a"]) == (1, "a")

    def test_one_inside_another_is_refused(self) -> None:
        with pytest.raises(RegistrationError, match="unpacks a tuple"):
            plan(tuple[int, Unpack[tuple[str, ...]]])  # noqa: UP044 - the old spelling counts too


class TestKeys:
    def test_they_may_be_bounded(self) -> None:
        structure = plan(dict[Annotated[str, MinLen(1)], int]).structure
        assert structure({"a": 1}) == {"a": 1}
        assert refused(structure, {"": 1})

    def test_they_are_text_or_integers(self) -> None:
        with pytest.raises(RegistrationError, match="cannot be the key"):
            plan(dict[Literal["a", 1], int])

    def test_any_value_is_said_shortly(self) -> None:
        assert schema(dict[str, Any]) == {"type": "object", "additionalProperties": True}


class TestTexts:
    @pytest.mark.parametrize(
        ("span", "written"),
        [
            (dt.timedelta(seconds=5), "PT5S"),
            (dt.timedelta(days=1), "P1D"),
            (dt.timedelta(0), "PT0S"),
            (dt.timedelta(hours=1), "PT1H"),
        ],
    )
    def test_a_duration_says_no_zeros(self, span: dt.timedelta, written: str) -> None:
        assert plan(dt.timedelta).unstructure(span) == written

    @pytest.mark.parametrize("annotation", [bytes, dt.timedelta, Decimal])
    def test_patterns_are_anchored(self, annotation: Any) -> None:
        found = schema(annotation)["pattern"]
        assert (found[0], found[-1]) == ("^", "$")

    def test_an_enum_of_a_subclass_of_text_is_plain_text(self) -> None:
        found = plan(Tone)
        assert (type(schema(Tone)["const"]), schema(Tone)["type"]) == (str, "string")
        assert found.structure("loud") is Tone.LOUD
        assert type(found.unstructure(Tone.LOUD)) is str

    def test_a_path_is_told_from_what_is_no_class(self) -> None:
        assert plan(list[Path]).structure(["a"]) == [Path("a")]


def is_short(value: Any) -> bool:
    return len(value) < 2


class TestPredicates:
    """A predicate is asked about the value that arrives, inside whatever builds it, and says its name to the model."""

    @pytest.mark.parametrize(
        ("annotation", "good", "bad", "wanted"),
        [
            (list[int], [1], [1, 2], [1]),
            (set[int], [1.0], [1, 2], {1}),
            (tuple[int, ...], [1], [1, 2], (1,)),
            (dict[str, int], {"a": 1}, {"a": 1, "b": 2}, {"a": 1}),
            (dict[Color, int], {"red": 1}, {"red": 1, "blue": 2}, {Color.RED: 1}),
            (bytes, "QQ==", "QUI=", b"A"),
            (str, "a", "ab", "a"),
        ],
    )
    def test_of_whole_values(self, annotation: Any, good: Any, bad: Any, wanted: Any) -> None:
        found = plan(Annotated[annotation, Predicate(is_short)])
        assert same(found.structure(good), wanted)
        (problem,) = explain(found, bad)
        assert "refused by the check is_short" in problem.message
        assert found.schema == plan(annotation).schema

    def test_of_a_mapping_that_is_built(self) -> None:
        def build(annotation: Any, types: Any) -> TypePlan:
            schema = {"type": "object", "additionalProperties": {"type": "integer"}}
            return shaped(schema, Mapped(None, types.plan(int), Settings))

        table = type_table(TypeHandler(Settings, build))
        found = table.plan(Annotated[Settings, Predicate(lambda settings: settings.known["a"] > 1)])
        assert found.structure({"a": 2}).known == {"a": 2}
        (problem,) = explain(found, {"a": 1})
        assert problem.message == "refused by a check of the tool's own"

    def test_what_is_inside_is_still_repaired(self) -> None:
        assert repair(plan(Annotated[list[int], Predicate(is_short)]), ["1"])[0] == [1]

    def test_one_that_raises_speaks(self) -> None:
        def positive(value: int) -> bool:
            raise ValueError("only positive ones")

        (problem,) = explain(plan(Annotated[int, Predicate(positive)]), -1)
        assert problem.message == "expected integer, got integer -1: only positive ones"


class Settings:
    def __init__(self, known: dict[str, int]) -> None:
        self.known = known


@pytest.mark.parametrize(("sent", "wanted"), [("SMALL", 1), ("small", 1), ("LARGE", "LARGE"), ("X", "x")])
def test_members_in_a_literal_are_known_by_name(sent: str, wanted: Any) -> None:
    assert repair(plan(Literal[Size.SMALL, "x"]), sent)[0] == wanted
