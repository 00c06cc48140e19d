from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import date
from typing import Annotated, Any, ClassVar, Generic, Literal, Optional, Self, TypeVar

import pytest

from pegboard import Param, RegistrationError
from pegboard._types.table import TypeTable
from tests.plugins.dataclasses import postponed
from tests.plugins.dataclasses.travel import arrive, is_refused_by_both, leave, schema, wrong

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the map.

    Attributes:
        x: how far east
    """

    x: float
    y: float = 0.0


@dataclass
class Node:
    name: str
    next: Optional["Node"] = None
    children: list["Node"] = field(default_factory=list)


@dataclass
class Selfish:
    other: Self | None = None


@dataclass
class Box(Generic[T]):
    item: T
    more: list[T] = field(default_factory=list)


class TestSchema:
    def test_of_a_plain_one(self, types: TypeTable) -> None:
        assert schema(types, Point) == {
            "type": "object",
            "description": "A place on the map.",
            "properties": {
                "x": {"type": "number", "description": "how far east"},
                "y": {"type": "number", "default": 0.0},
            },
            "required": ["x"],
            "additionalProperties": False,
        }

    def test_a_recursive_one_refers_to_itself(self, types: TypeTable) -> None:
        found = schema(types, Node)
        assert found["$ref"] == "#/$defs/Node"
        assert found["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}
        assert found["$defs"]["Node"]["required"] == ["name"]

    def test_the_docstring_that_python_makes_is_none(self, types: TypeTable) -> None:
        assert "description" not in schema(types, Box[int])

    def test_descriptions_from_everywhere(self, types: TypeTable) -> None:
        @dataclass
        class Base:
            """Base.

            Args:
                a: from the base
                b: from the base
            """

            a: int
            b: int

        @dataclass
        class Described(Base):
            """Described.

            Args:
                b: from the class
                c: not from the docstring
                d: not from the docstring
            """

            c: Annotated[int, "from Annotated"]
            d: int = field(metadata={"description": "from the metadata"})
            e: Annotated[int, Param("from Param", ge=1)]

        found = schema(types, Described)
        assert found["description"] == "Described."
        assert {name: member["description"] for name, member in found["properties"].items()} == {
            "a": "from the base",
            "b": "from the class",
            "c": "from Annotated",
            "d": "from the metadata",
            "e": "from Param",
        }
        assert found["properties"]["e"]["minimum"] == 1

    def test_defaults_that_json_can_carry(self, types: TypeTable) -> None:
        calls: list[int] = []

        def make() -> list[int]:
            calls.append(1)
            return calls

        @dataclass
        class Defaults:
            when: date = date(2024, 1, 2)
            names: list[str] = field(default_factory=list)
            made: list[int] = field(default_factory=make)
            strange: int = object()  # type: ignore[assignment]
            nothing: int | None = None

        found = schema(types, Defaults)
        shown = {name: member["default"] for name, member in found["properties"].items() if "default" in member}
        assert shown == {"when": "2024-01-02", "names": []}
        assert found["required"] == []
        assert calls == [], "a factory may have effects"


class TestValues:
    def test_arrive_as_instances(self, types: TypeTable) -> None:
        assert arrive(types, Point, {"x": 1}) == Point(1.0, 0.0)
        assert type(arrive(types, Point, {"x": 1}).x) is float

    def test_nested_and_recursive(self, types: TypeTable) -> None:
        value = {"name": "a", "next": {"name": "b", "children": []}, "children": [{"name": "c", "children": []}]}
        node = Node("a", Node("b"), [Node("c")])
        assert arrive(types, Node, value) == node
        assert leave(types, Node, node) == value

    def test_self(self, types: TypeTable) -> None:
        assert arrive(types, Selfish, {"other": {"other": {}}}) == Selfish(Selfish(Selfish()))

    def test_factories_run_for_each_instance(self, types: TypeTable) -> None:
        one, two = arrive(types, Box[int], {"item": 1}), arrive(types, Box[int], {"item": 1})
        assert one.more == []
        assert one.more is not two.more

    def test_leave_as_json(self, types: TypeTable) -> None:
        assert leave(types, dict[str, list[Point]], {"a": [Point(1.0, 2.0)]}) == {"a": [{"x": 1.0, "y": 2.0}]}
        assert leave(types, postponed.Trip, postponed.Trip(date(2024, 1, 2))) == {"date": "2024-01-02", "stops": []}

    @pytest.mark.parametrize(
        "value", [{}, {"x": "1"}, {"x": 1, "z": 2}, {"x": None}, {"x": 1, "y": None}, [], None, "x"]
    )
    def test_what_does_not_fit_is_refused(self, types: TypeTable, value: Any) -> None:
        assert is_refused_by_both(types, Point, value)

    def test_a_surplus_member_gets_the_nearest_name(self, types: TypeTable) -> None:
        @dataclass
        class Options:
            recursive: bool = False

        assert wrong(types, list[Options], [{"recursiv": True}]) == [
            "[0].recursiv: unknown member, did you mean 'recursive'?"
        ]


class TestForms:
    def test_init_var(self, types: TypeTable) -> None:
        @dataclass
        class Seeded:
            value: int = field(init=False)
            seed: InitVar[int]
            scale: InitVar[int] = 2

            def __post_init__(self, seed: int, scale: int) -> None:
                self.value = seed * scale

        assert sorted(schema(types, Seeded)["properties"]) == ["scale", "seed"]
        assert arrive(types, Seeded, {"seed": 3}).value == 6
        assert types.plan(Seeded).unstructure(Seeded(3)) == {}

    def test_keyword_only_and_class_variables(self, types: TypeTable) -> None:
        @dataclass
        class Keyed:
            a: int
            _: KW_ONLY
            b: int = 2
            c: ClassVar[int] = 3

        assert list(schema(types, Keyed)["properties"]) == ["a", "b"]
        assert arrive(types, Keyed, {"a": 1, "b": 5}) == Keyed(1, b=5)

    def test_a_member_renamed_for_the_model(self, types: TypeTable) -> None:
        @dataclass
        class Renamed:
            from_: Annotated[str, Param(name="from")]

        assert arrive(types, Renamed, {"from": "a"}) == Renamed("a")
        assert leave(types, Renamed, Renamed("a")) == {"from": "a"}

    def test_string_annotations(self, types: TypeTable) -> None:
        trip = postponed.Trip(date(2024, 1, 2), [postponed.Stop("a")])
        assert arrive(types, postponed.Trip, {"date": "2024-01-02", "stops": [{"name": "a"}], "seed": 1}) == trip

    def test_post_init_speaks_for_itself(self, types: TypeTable) -> None:
        @dataclass
        class Even:
            value: int

            def __post_init__(self) -> None:
                if self.value % 2:
                    raise ValueError("value must be even")

        assert arrive(types, Even, {"value": 2}) == Even(2)
        assert wrong(types, list[Even], [{"value": 1}]) == ["[0]: value must be even"]

    def test_a_constructor_of_its_own(self, types: TypeTable) -> None:
        @dataclass(init=False)
        class Own:
            a: int

            def __init__(self, b: int) -> None:
                self.a = b

        with pytest.raises(RegistrationError, match="'b', which is no field"):
            types.plan(Own)


class TestGenerics:
    def test_arguments_are_filled_in(self, types: TypeTable) -> None:
        assert arrive(types, Box[date], {"item": "2024-01-02", "more": ["2024-01-03"]}).more == [date(2024, 1, 3)]
        assert is_refused_by_both(types, Box[int], {"item": "x"})
        assert is_refused_by_both(types, Box[Box[int]], {"item": {"item": "x"}})

    def test_each_has_its_own_definition(self, types: TypeTable) -> None:
        found = schema(types, tuple[Box[int], Box[str], Box[int], Box[str]])
        assert len(found["$defs"]) == 2

    def test_a_base_is_filled_in_by_its_class(self, types: TypeTable) -> None:
        @dataclass
        class Dates(Box[date]):
            note: str = ""

        assert arrive(types, Dates, {"item": "2024-01-02"}) == Dates(date(2024, 1, 2))

    def test_a_variable_may_mean_something_else_in_the_base(self, types: TypeTable) -> None:
        @dataclass(kw_only=True)
        class Twice(Box[list[T]], Generic[T, S]):
            own: T
            other: Annotated[dict[str, S] | None, "text"] = None

        value = {"item": [1], "own": 2, "other": {"a": "x"}}
        assert arrive(types, Twice[int, str], value) == Twice(item=[1], own=2, other={"a": "x"})
        assert is_refused_by_both(types, Twice[int, str], {**value, "item": ["x"]})

    def test_a_variable_without_argument_is_its_bound(self, types: TypeTable) -> None:
        N = TypeVar("N", bound=int)

        @dataclass
        class Bounded(Generic[N]):
            value: N

        assert schema(types, Bounded)["properties"]["value"] == {"type": "integer"}


class TestUnions:
    @dataclass
    class Circle:
        kind: Literal["circle"]
        radius: float

    @dataclass
    class Square:
        kind: Literal["square"]
        side: float

    @dataclass
    class Named:
        name: str

    def test_a_literal_tells_them_apart(self, types: TypeTable) -> None:
        annotation: Any = self.Circle | self.Square
        found = schema(types, annotation)
        assert len(found["oneOf"]) == 2
        assert found["discriminator"] == {"propertyName": "kind"}
        assert arrive(types, annotation, {"kind": "square", "side": 1}) == self.Square("square", 1.0)
        assert leave(types, annotation, self.Square("square", 1.0)) == {"kind": "square", "side": 1.0}
        assert wrong(types, annotation, {"kind": "sqare", "side": 1}) == [
            'kind: expected one of "circle", "square", got string "sqare", did you mean "square"?'
        ]

    @pytest.mark.parametrize("backwards", [False, True])
    def test_else_their_members_do(self, types: TypeTable, backwards: bool) -> None:
        annotation: Any = self.Named | Point if backwards else Point | self.Named
        assert arrive(types, annotation, {"name": "a"}) == self.Named("a")
        assert arrive(types, annotation, {"x": 1}) == Point(1.0)
        assert leave(types, annotation, Point(1.0)) == {"x": 1.0, "y": 0.0}
        assert wrong(types, annotation, {"x": "a"}) == ['x: expected number, got string "a"']


class TestRefusals:
    def test_name_class_and_field(self, types: TypeTable) -> None:
        class Plain: ...

        @dataclass
        class Holder:
            inner: Plain

        with pytest.raises(RegistrationError, match=r"field 'inner' of .*Holder: .*Plain"):
            types.plan(Holder)

    def test_two_fields_of_one_name(self, types: TypeTable) -> None:
        @dataclass
        class Twins:
            a: int
            b: Annotated[int, Param(name="a")]

        with pytest.raises(RegistrationError, match="two fields called 'a'"):
            types.plan(Twins)

    def test_name_what_cannot_be_resolved(self, types: TypeTable) -> None:
        @dataclass
        class Lost:
            where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - that is the point

        with pytest.raises(RegistrationError, match=r"Lost cannot be resolved: name 'Nowhere' is not defined"):
            types.plan(Lost)
