"""The type table: who maps what, what is cached, what is refused, and what a plan is made of."""

import dataclasses
import datetime as dt
import enum
import importlib
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NewType, Optional, Protocol, TypeVar

import attrs
import pytest
from annotated_types import Ge, Len, Predicate
from typing_extensions import TypeAliasType

from pegboard._base.errors import Mismatch, RegistrationError
from pegboard._base.markers import MISSING, Param
from pegboard._model.shapes import Nullable, Record, Scalar, Tagged, Text, TypePlan
from pegboard._model.shapes import Union as UnionShape
from pegboard._model.tool import Origin, SchemaRequest
from pegboard._schema.nodes import render
from pegboard._types.annotations import qualified_name, read_metadata, runtime_class, split, structural_key, substitute
from pegboard._types.plans import json_default, optional_member, record_member, record_plan, shaped
from pegboard._types.table import TypeTable
from pegboard.extension import TypeHandler, Types
from tests.types.battery import Color, Json, Names, Pair, Size, UserId
from tests.types.table import BUILTIN, plan, refused, same, schema, type_table

T = TypeVar("T")
ACME = Origin("acme", "pegboard-acme", "1.2")
OTHER = Origin("other", "pegboard-other", "0.9")


class Money:
    def __init__(self, amount: str) -> None:
        self.amount = amount


class Euro(Money):
    pass


class Crate(Generic[T]):
    pass


def gives(mark: str) -> Callable[[Any, Types], TypePlan]:
    """A handler's `build` whose plans say where they come from."""
    return lambda annotation, types: TypePlan({"type": "string", "$comment": mark}, lambda value: (mark, value))


def winner(table: TypeTable, annotation: Any) -> Any:
    return table.plan(annotation).schema["$comment"]


def records(annotation: Any, types: Types) -> TypePlan:
    """A minimal handler for dataclasses."""
    fields = dataclasses.fields(annotation)
    namespace = {cls.__name__: cls for cls in (Node, Cat, Dog, Leaf, Branch)}
    hints = {
        field.name: eval(field.type, globals(), namespace) if isinstance(field.type, str) else field.type
        for field in fields
    }
    members = tuple(
        record_member(
            types,
            field.name,
            hints[field.name],
            default=MISSING if field.default is dataclasses.MISSING else field.default,
        )
        for field in fields
    )
    writers = {member.key: (member.name, member.plan.unstructure) for member in members}

    def unstructure(value: Any) -> Any:
        return {key: write(getattr(value, name)) for key, (name, write) in writers.items()}

    return record_plan(
        annotation, Record(annotation, members, annotation.__name__), unstructure, description=annotation.__doc__
    )


@dataclasses.dataclass
class Node:
    """A node."""

    value: int
    children: "list[Node]"
    twin: "Node | None" = None


@dataclasses.dataclass
class Cat:
    """A cat."""

    kind: Literal["cat"]
    lives: int = 9


@dataclasses.dataclass
class Dog:
    """A dog."""

    kind: Literal["dog", "puppy"]
    name: str = ""


@dataclasses.dataclass
class Leaf:
    """A leaf."""

    weight: int


@dataclasses.dataclass
class Branch:
    """A branch."""

    weight: int
    leaves: list[Leaf]


def with_records() -> TypeTable:
    table = type_table()
    table.add(TypeHandler(dataclasses.is_dataclass, records), ACME, "plugin")
    return table


class TestLookup:
    def test_the_program_wins_over_plugins_and_they_over_the_core(self) -> None:
        table = type_table()
        assert table.plan(dt.datetime).schema == {"type": "string", "format": "date-time"}
        table.add(TypeHandler(dt.datetime, gives("plugin")), ACME, "plugin")
        assert winner(table, dt.datetime) == "plugin"
        table.add(TypeHandler(dt.datetime, gives("program")), Origin(), "program")
        assert winner(table, dt.datetime) == "program"

    def test_origin_decides_before_specificity(self) -> None:
        table = type_table(TypeHandler(lambda annotation: annotation is Money, gives("program")))
        table.add(TypeHandler(Money, gives("plugin")), ACME, "plugin")
        assert winner(table, Money) == "program"

    def test_exact_class_then_predicate_then_base(self) -> None:
        table = type_table(TypeHandler(Money, gives("base")))
        assert winner(table, Euro) == "base"
        table.add(TypeHandler(lambda annotation: annotation is Euro, gives("predicate")), Origin(), "program")
        assert winner(table, Euro) == "predicate"
        table.add(TypeHandler(Euro, gives("exact")), Origin(), "program")
        assert winner(table, Euro) == "exact"

    def test_the_nearest_base_wins(self) -> None:
        class Cent(Euro):
            pass

        table = type_table(TypeHandler(Euro, gives("near")), TypeHandler(Money, gives("far")))
        assert winner(table, Cent) == "near"

    def test_a_generic_type_is_found_by_its_origin(self) -> None:
        class Big(Crate[T]):
            pass

        table = type_table(TypeHandler(Crate, gives("crate")))
        assert winner(table, Crate[int]) == winner(table, Big[int]) == winner(table, Crate) == "crate"
        table.add(TypeHandler(Big, gives("big")), Origin(), "program")
        assert winner(table, Big[int]) == "big"

    def test_a_predicate_comes_before_a_generic_origin(self) -> None:
        table = type_table(
            TypeHandler(Crate, gives("origin")), TypeHandler(lambda found: found == Crate[int], gives("predicate"))
        )
        assert (winner(table, Crate[int]), winner(table, Crate[str])) == ("predicate", "origin")

    def test_a_higher_priority_wins_within_an_origin(self) -> None:
        table = type_table()
        table.add(TypeHandler(Money, gives("exact")), ACME, "plugin")
        table.add(TypeHandler(Money, gives("urgent"), priority=1), OTHER, "plugin")
        assert winner(table, Money) == "urgent"

    def test_of_two_plugins_the_first_counts_and_both_are_named(self) -> None:
        table = type_table()
        table.add(TypeHandler(Money, gives("a")), OTHER, "plugin")
        table.add(TypeHandler(Money, gives("b")), ACME, "plugin")
        assert winner(table, Money) == "a"
        both = r"pegboard-acme 1\.2 and pegboard-other 0\.9 both map .*Money; pegboard-other 0\.9 counts; "
        assert re.match(both, table.problems[0])
        table.add(TypeHandler(Money, gives("program")), Origin(), "program")
        assert winner(table, Money) == "program"

    def test_different_specificity_is_no_overlap(self) -> None:
        table = type_table()
        table.add(TypeHandler(Money, gives("base")), OTHER, "plugin")
        table.add(TypeHandler(Euro, gives("exact")), ACME, "plugin")
        assert winner(table, Euro) == "exact"

    def test_within_a_plugin_the_first_wins_and_in_the_program_the_last(self) -> None:
        table = type_table()
        for mark in ("first", "second"):
            table.add(TypeHandler(Money, gives(mark)), ACME, "plugin")
        assert winner(table, Money) == "first"
        table = type_table(TypeHandler(Money, gives("first")), TypeHandler(Money, gives("second")))
        assert winner(table, Money) == "second"

    def test_an_annotation_can_be_matched_itself(self) -> None:
        matched: list[Any] = [UserId, list[int], Names]
        table = type_table(*(TypeHandler(found, gives(f"{found}")) for found in matched))
        assert [winner(table, found) for found in matched] == list(map(str, matched))
        assert table.plan(list[str]).structure(["a"]) == ["a"]
        assert table.plan(int).structure(1) == 1

    def test_a_handler_for_object_maps_nothing_else(self) -> None:
        table = type_table(TypeHandler(object, gives("object")))
        assert winner(table, object) == "object"
        with pytest.raises(RegistrationError):
            table.plan(Money)

    def test_a_predicate_that_raises_does_not_match(self) -> None:
        table = type_table(TypeHandler(lambda annotation: issubclass(annotation, Money), gives("money")))
        assert winner(table, Euro) == "money"
        assert table.plan(list[int]).structure([1]) == [1]

    def test_one_parameter_can_have_its_own_handler(self) -> None:
        own = Annotated[dt.date, TypeHandler(dt.date, gives("own")), "When"]
        table = type_table()
        assert table.plan(own).schema == {"type": "string", "$comment": "own", "description": "When"}
        assert table.plan(dt.date).schema == {"type": "string", "format": "date"}
        assert table.plan(list[own]).structure(["x"]) == [("own", "x")]

    def test_a_handler_added_later_is_seen_by_later_plans(self) -> None:
        table = type_table()
        before = table.plan(list[dt.date])
        table.add(TypeHandler(dt.date, gives("new")), Origin(), "program")
        assert table.plan(list[dt.date]).structure(["x"]) == [("new", "x")]
        assert before.structure(["2024-01-01"]) == [dt.date(2024, 1, 1)]

    def test_something_else_than_a_handler_is_refused(self) -> None:
        with pytest.raises(RegistrationError, match=r"pegboard-acme 1\.2 offers .* wrap it in pegboard\.TypeHandler"):
            type_table().add(gives("x"), ACME, "plugin")  # type: ignore[arg-type]  # the mistake

    def test_a_handler_that_fails_is_named(self) -> None:
        def fails(annotation: Any, types: Types) -> TypePlan:
            raise ZeroDivisionError("oops")

        table = type_table()
        table.add(TypeHandler(Money, fails), ACME, "plugin")
        with pytest.raises(RegistrationError, match=r"pegboard-acme 1\.2 failed for .*Money: ZeroDivisionError"):
            table.plan(Money)

    def test_a_handler_that_gives_no_plan_is_named(self) -> None:
        table = type_table()
        table.add(TypeHandler(Money, lambda annotation, types: {}), ACME, "plugin")  # type: ignore[arg-type,return-value]  # the mistake
        with pytest.raises(RegistrationError, match=r"pegboard-acme 1\.2 failed for .*Money: it must give a TypePlan"):
            table.plan(Money)


class TestWhoWins:
    def test_the_winner_and_what_it_shadows(self) -> None:
        table = type_table()
        mine, theirs = TypeHandler(dt.date, gives("mine")), TypeHandler(dt.date, gives("theirs"))
        table.add(theirs, ACME, "plugin")
        table.add(mine, Origin(), "program")
        handler, origin, shadowed = table.handler_for(dt.date)
        assert (handler, origin) == (mine, Origin())
        assert [found for _, found in shadowed] == [ACME, BUILTIN]

    def test_a_handler_of_the_parameter_shadows_all(self) -> None:
        own = TypeHandler(dt.date, gives("own"))
        handler, _, shadowed = type_table().handler_for(Annotated[dt.date, own])
        assert handler is own
        assert [origin for _, origin in shadowed] == [BUILTIN]

    def test_names_lead_to_what_they_stand_for(self) -> None:
        assert type_table().handler_for(UserId)[0].matches is int

    def test_an_unknown_type_is_refused(self) -> None:
        with pytest.raises(RegistrationError, match="Money"):
            type_table().handler_for(Money)


class TestCache:
    def test_a_plan_is_built_once(self) -> None:
        table = type_table()
        assert table.plan(dict[str, list[int]]) is table.plan(dict[str, list[int]])

    @pytest.mark.parametrize(
        ("left", "right", "value"),
        [
            (float | Size, Size | float, 3),
            (dt.datetime | str, Annotated[str, Len(3)] | dt.datetime, "abc"),
            (list[int] | list[float], list[float] | list[int], [1]),
            (Literal[1], Literal[True], 1),
            (Literal[0, 1], Literal[False, True], 0),
        ],
    )
    def test_annotations_that_python_calls_equal_have_their_own_plans(self, left: Any, right: Any, value: Any) -> None:
        def answer(table: TypeTable, annotation: Any) -> Any:
            structure = table.plan(annotation).structure
            return MISSING if refused(structure, value) else structure(value)

        alone = answer(type_table(), left), answer(type_table(), right)
        table = type_table()
        assert same([answer(table, left), answer(table, right)], list(alone))
        table = type_table()
        assert same([answer(table, right), answer(table, left)], list(reversed(alone)))

    def test_keys_keep_order_and_types(self) -> None:
        assert structural_key(int | str) != structural_key(str | int)
        assert structural_key(list[int | str]) != structural_key(list[str | int])
        assert structural_key(Literal[1]) != structural_key(Literal[True])
        assert structural_key(Literal["red"]) != structural_key(Literal[Color.RED])
        assert structural_key(Annotated[int, "a"]) != structural_key(Annotated[int, "b"])
        assert structural_key(tuple[int, ...]) != structural_key(tuple[int])
        assert structural_key(Optional[int]) == structural_key(int | None)  # noqa: UP045 - the old spelling is the point
        assert structural_key(dict[str, int]) == structural_key(dict[str, int])

    def test_a_failed_plan_leaves_nothing_behind(self) -> None:
        @dataclasses.dataclass
        class Bad:
            inner: "Worse"
            money: Money

        @dataclasses.dataclass
        class Worse:
            bad: Bad

        def build(annotation: Any, types: Types) -> TypePlan:
            inner = {Bad: (Worse, Money), Worse: (Bad,)}[annotation]
            members = tuple(record_member(types, f"f{number}", found) for number, found in enumerate(inner))
            return record_plan(annotation, Record(annotation, members), vars)

        table = type_table(TypeHandler(dataclasses.is_dataclass, build))
        for annotation in (Bad, Worse, Bad):
            with pytest.raises(RegistrationError, match="Money"):
                table.plan(annotation)

    def test_many_threads_get_one_plan(self) -> None:
        table, found = with_records(), []
        barrier = threading.Barrier(8)

        def ask() -> None:
            barrier.wait()
            found.append(table.plan(list[Node]))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(map(id, found))) == 1


class TestRecords:
    def test_a_record_is_an_object_with_its_own_name(self) -> None:
        found = with_records().plan(Cat)
        assert render(found.schema, SchemaRequest(titles="qualified"))["title"].endswith("test_types.Cat")
        assert render(found.schema) == {
            "type": "object",
            "description": "A cat.",
            "properties": {"kind": {"type": "string", "const": "cat"}, "lives": {"type": "integer", "default": 9}},
            "required": ["kind"],
            "additionalProperties": False,
        }
        assert found.structure({"kind": "cat"}) == Cat("cat")
        assert found.unstructure(Cat("cat", 3)) == {"kind": "cat", "lives": 3}

    def test_a_record_may_contain_itself(self) -> None:
        found = with_records().plan(Node)
        value = {"value": 1, "children": [{"value": 2, "children": []}], "twin": {"value": 3.0, "children": []}}
        node = found.structure(value)
        assert node == Node(1, [Node(2, [])], Node(3, []))
        assert type(node.twin.value) is int
        assert found.unstructure(Node(1, [Node(2, [])], None))["children"][0]["value"] == 2
        assert refused(found.structure, {"value": 1, "children": [{"value": "2", "children": []}]})
        assert list(render(found.schema)["$defs"]) == ["Node"]

    def test_records_told_apart_by_a_literal_are_tagged(self) -> None:
        found = with_records().plan(Cat | Dog)
        assert isinstance(found.shape, Tagged)
        rendered = render(found.schema)
        assert len(rendered["oneOf"]) == 2
        assert rendered["discriminator"] == {"propertyName": "kind"}
        assert found.structure({"kind": "puppy", "name": "x"}) == Dog("puppy", "x")
        assert found.unstructure(Dog("dog", "y")) == {"kind": "dog", "name": "y"}
        assert refused(found.structure, {"kind": "cow"})
        optional = with_records().plan(Cat | Dog | None)
        assert optional.structure(None) is None
        assert optional.structure({"kind": "cat"}) == Cat("cat")

    def test_records_told_apart_by_their_members_are_tried_in_turn(self) -> None:
        for annotation in (Leaf | Branch, Branch | Leaf):
            found = with_records().plan(annotation)
            assert isinstance(found.shape, UnionShape)
            assert found.structure({"weight": 1}) == Leaf(1)
            assert found.structure({"weight": 1, "leaves": []}) == Branch(1, [])
            assert found.unstructure(Branch(1, [Leaf(2)])) == {"weight": 1, "leaves": [{"weight": 2}]}

    def test_a_mapping_that_takes_everything_hides_a_record(self) -> None:
        with pytest.raises(RegistrationError, match=r"Leaf can never win: dict\[str, int\] stands before it"):
            with_records().plan(dict[str, int] | Leaf)
        assert with_records().plan(Leaf | dict[str, int]).structure({"x": 1}) == {"x": 1}

    def test_a_wider_record_hides_a_narrower_one(self) -> None:
        @dataclasses.dataclass
        class Wide:
            """Wide."""

            weight: int
            more: str = ""

        table = with_records()
        with pytest.raises(RegistrationError, match="Leaf can never win"):
            table.plan(Wide | Leaf)
        assert table.plan(Leaf | Wide).structure({"weight": 1, "more": "x"}) == Wide(1, "x")


class TestMembers:
    def member(self, annotation: Any, **options: Any) -> Any:
        return record_member(type_table(), "x", annotation, **options)

    def test_a_plain_member_is_required(self) -> None:
        found = self.member(int)
        assert (found.name, found.key, found.required, found.default) == ("x", "x", True, MISSING)

    def test_a_default_makes_it_optional_and_is_shown(self) -> None:
        found = self.member(int, default=3)
        assert not found.required
        assert found.plan.schema == {"type": "integer", "default": 3}

    def test_a_factory_makes_it_optional_without_a_default_to_show(self) -> None:
        found = self.member(list[int], required=False)
        assert (found.required, "default" in found.plan.schema) == (False, False)

    def test_metadata_names_and_describes_it(self) -> None:
        found = self.member(Annotated[int, Param("How far", name="distance")], key="y", description="else")
        assert (found.key, found.plan.schema["description"]) == ("distance", "How far")
        found = self.member(int, key="y", description="else")
        assert (found.key, found.plan.schema["description"]) == ("y", "else")

    def test_optional_with_none_is_the_plain_type_and_refuses_null(self) -> None:
        for annotation in (str | None, Annotated[str | None, "City"], Annotated[str, "City"] | None):
            found = self.member(annotation, default=None)
            assert found.plan.schema["type"] == "string"
            assert "default" not in found.plan.schema
            assert not found.required
            assert refused(found.plan.structure, None)
        assert self.member(Annotated[str | None, "City"], default=None).plan.schema["description"] == "City"

    def test_optional_of_several_types_keeps_their_order(self) -> None:
        found = self.member(int | str | None, default=None)
        assert found.plan.schema == {"anyOf": [{"type": "integer"}, {"type": "string"}]}

    def test_optional_without_a_default_is_required_and_takes_null(self) -> None:
        found = self.member(str | None)
        assert found.required
        assert found.plan.structure(None) is None

    def test_optional_with_another_default_still_takes_null(self) -> None:
        found = self.member(int | None, default=5)
        assert found.plan.schema == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5}
        assert found.plan.structure(None) is None

    def test_a_bound_around_an_optional_type_bounds_the_type(self) -> None:
        found = self.member(Annotated[int | None, Ge(1)], default=None)
        assert found.plan.schema == {"type": "integer", "minimum": 1}
        assert refused(found.plan.structure, 0)

    def test_an_alias_of_an_optional_type_is_left_as_it_is(self) -> None:
        table = type_table()
        assert optional_member(table, int, None) is table.plan(int)
        assert isinstance(optional_member(table, int | None, 3).shape, Nullable)
        assert optional_member(table, int | None, None).shape is table.plan(int).shape


class TestDefaults:
    @pytest.mark.parametrize(
        ("annotation", "default", "shown"),
        [
            (int, 3, 3),
            (float, 3, 3),
            (float, 2.5, 2.5),
            (str, "", ""),
            (bool, False, False),
            (Color, Color.RED, "red"),
            (dt.date, dt.date(2024, 1, 1), "2024-01-01"),
            (bytes, b"A", "QQ=="),
            (Path, Path("a"), "a"),
            (tuple[int, int], (1, 2), [1, 2]),
            (list[Color], [Color.RED], ["red"]),
            (set[str], {"b", "a"}, ["a", "b"]),
            (dict[str, int], {"a": 1}, {"a": 1}),
            (dict[int, str], {1: "a"}, {"1": "a"}),
            (object, {"a": [None]}, {"a": [None]}),
        ],
    )
    def test_what_json_can_say_is_shown(self, annotation: Any, default: Any, shown: Any) -> None:
        assert same(json_default(plan(annotation), default), shown)

    @pytest.mark.parametrize(
        ("annotation", "default"),
        [
            (int, MISSING),
            (int, None),
            (int | None, None),
            (int, True),
            (int, "3"),
            (str, 3),
            (bool, 1),
            (float, float("inf")),
            (float, "x"),
            (dt.date, "soon"),
            (object, object()),
            (object, {1: 2}),
            (list[int], [object()]),
            (str, MISSING),
        ],
    )
    def test_anything_else_is_left_out(self, annotation: Any, default: Any) -> None:
        assert json_default(plan(annotation), default) is MISSING


class TestMetadata:
    def test_the_last_word_is_the_outermost(self) -> None:
        assert schema(Annotated[Annotated[int, "inner"], "outer"])["description"] == "outer"

    def test_everything_that_param_says_is_in_the_schema(self) -> None:
        param = Param("text", title="T", examples=[1, 2], deprecated=True, ge=1, schema_extra={"x-unit": "m"})
        assert schema(Annotated[int, param]) == {
            "type": "integer",
            "minimum": 1,
            "title": "T",
            "description": "text",
            "examples": [1, 2],
            "deprecated": True,
            "x-unit": "m",
        }

    def test_examples_may_be_python_values(self) -> None:
        found = schema(Annotated[dt.date, Param(examples=[dt.date(2024, 1, 1), "2024-01-02"])])
        assert found["examples"] == ["2024-01-01", "2024-01-02"]
        with pytest.raises(RegistrationError, match="example"):
            plan(Annotated[int, Param(examples=[object()])])

    def test_third_party_metadata_is_read_by_its_attributes(self) -> None:
        @dataclasses.dataclass
        class Meta:  # as msgspec has it
            ge: int | None = 1
            pattern: str | None = None
            description: str | None = "a count"
            title: str | None = "Count"
            examples: list[int] | None = dataclasses.field(default_factory=lambda: [5])
            extra_json_schema: dict[str, Any] | None = dataclasses.field(default_factory=lambda: {"x-a": 1})

        class FieldInfo:  # as pydantic has it
            metadata = (Ge(1), Len(0, 5))
            description = "some text"
            alias = "otherName"
            deprecated = None

        class Doc:  # PEP 727
            documentation = "documented"

        assert schema(Annotated[int, Meta()]) == {
            "type": "integer", "minimum": 1, "title": "Count", "description": "a count", "examples": [5], "x-a": 1,
        }  # fmt: skip
        found = read_metadata((FieldInfo(),))
        assert found.bounds == (("ge", 1), ("max_length", 5))
        assert (found.name, found.description) == ("otherName", "some text")
        assert schema(Annotated[int, Doc()])["description"] == "documented"

    def test_metadata_of_others_is_ignored(self) -> None:
        for other in (object(), 5, Money, len, ["x"], {"ge": 1}):
            assert schema(Annotated[int, other]) == {"type": "integer"}

    def test_a_predicate_is_asked_with_the_python_value(self) -> None:
        even = Annotated[int, Predicate(lambda value: value % 2 == 0)]
        assert plan(even).structure(2.0) == 2
        assert refused(plan(even).structure, 3)
        assert schema(even) == {"type": "integer"}
        short = Annotated[list[int], Predicate(lambda value: len(value) < 2)]
        assert plan(short).structure([1]) == [1]
        assert refused(plan(short).structure, [1, 2])

    @pytest.mark.parametrize(
        "annotation",
        [
            Annotated[str, Ge(1)],
            Annotated[int, Len(1, 2)],
            Annotated[bool, Ge(1)],
            Annotated[dt.date, Len(1)],
            Annotated[bytes, Len(1, 4)],
            Annotated[list[int], Ge(1)],
            Annotated[Color, Len(1)],
            Annotated[int | bool, Len(2)],
            Annotated[int | None, Param(pattern="a")],
            Annotated[int, Param(pattern="a")],
        ],
    )
    def test_a_bound_that_does_not_fit_is_refused(self, annotation: Any) -> None:
        with pytest.raises(RegistrationError, match="does not fit"):
            plan(annotation)

    def test_a_pattern_that_is_none_is_refused(self) -> None:
        with pytest.raises(RegistrationError, match=r"the pattern '\(' is not a regular expression"):
            plan(Annotated[str, Param(pattern="(")])

    def test_bounds_stay_the_numbers_that_they_are(self) -> None:
        assert same(schema(Annotated[int, Ge(1)]), {"type": "integer", "minimum": 1})

    def test_a_scalar_with_a_predicate_keeps_its_shape(self) -> None:
        assert isinstance(plan(Annotated[int, Predicate(bool)]).shape, Scalar)

    def test_a_bound_that_json_cannot_write_is_refused(self) -> None:
        with pytest.raises(RegistrationError, match="finite"):
            plan(Annotated[float, Ge(float("inf"))])

    def test_a_type_without_a_shape_is_bounded_too(self) -> None:
        opaque = TypeHandler(
            Money, lambda annotation, types: TypePlan({"type": "number"}, lambda value: Money(str(value)))
        )
        found = type_table(opaque).plan(Annotated[Money, Ge(1)])
        assert found.schema == {"type": "number", "minimum": 1}
        assert found.structure(2).amount == "2"
        assert refused(found.structure, 0)
        assert refused(found.structure, "x")


class TestRefusals:
    @pytest.fixture(autouse=True)
    def no_packs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Here the packs that map records are installed."""
        monkeypatch.setattr("pegboard._base.known_packs.find_spec", lambda name: None)

    @pytest.mark.parametrize(
        ("annotation", "says"),
        [
            (Money, "no type handler maps tests.types.test_types.Money: a plain class .* register a TypeHandler"),
            (Euro, "Euro"),
            (list[Money], "Money"),
            (Money | None, "Money"),
            (dict[str, Money], "Money"),
            (Cat, "pip install pegboard-dataclasses"),
            (Callable[[int], str], r"Callable\[\[int\], str\]: functions and classes cannot be sent as JSON"),
            (Callable, "functions and classes"),
            (type, "functions and classes"),
            (type[int], "functions and classes"),
            (complex, "JSON has no form for it"),
            (re.Pattern[bytes], "Pattern"),
            (bytearray, "JSON has no form for it"),
            ("Later", "the name 'Later' in an annotation cannot be resolved"),
            (list["Later"], "the name 'Later' in an annotation cannot be resolved"),  # type: ignore[name-defined]  # noqa: F821 - the mistake
            (dict[float, int], "float cannot be the key of a mapping"),
            (dict[bool, int], "bool cannot be the key of a mapping"),
            (dict[Money, int], "Money"),
            (set[list[int]], r"the items of set\[list\[int\]\] are not hashable"),
            (set[dict[str, int]], "not hashable"),
            (frozenset[set[int]], "not hashable"),
            (set[list[int] | None], "not hashable"),
            (set[tuple[list[int], int]], "not hashable"),
            (Literal[b"a"], "b'a' is not a JSON scalar"),
            (tuple[int, *tuple[str, ...]], "unpacks a tuple"),
            (dt, "it is a module"),
        ],
    )
    def test_the_type_and_the_remedy_are_named_in_one_line(self, annotation: Any, says: str) -> None:
        with pytest.raises(RegistrationError, match=says) as caught:
            plan(annotation)
        assert "\n" not in str(caught.value)

    def test_protocols_are_refused(self) -> None:
        class Drawable(Protocol):
            def draw(self) -> None: ...

        with pytest.raises(RegistrationError, match="Drawable: a protocol says nothing about data"):
            plan(Drawable)

    def test_an_enum_without_members_is_refused(self) -> None:
        class Empty(enum.Enum):
            pass

        with pytest.raises(RegistrationError, match="Empty has no members"):
            plan(Empty)

    @pytest.mark.parametrize("base", [str, int, float, list, dict, tuple, bytes])
    def test_a_subclass_would_arrive_as_its_base_and_is_refused(self, base: type) -> None:
        with pytest.raises(RegistrationError, match=f"it would arrive as a {base.__name__}, not as a Own"):
            plan(type("Own", (base,), {}))

    @pytest.mark.parametrize("base", [dt.datetime, dt.date, dt.time, dt.timedelta])
    def test_as_would_one_of_a_moment(self, base: type) -> None:
        """Such as `pandas.Timestamp`."""
        with pytest.raises(RegistrationError, match=rf"not as a Own; annotate datetime\.{base.__name__}, register"):
            plan(type("Own", (base,), {}))

    def test_one_of_a_set_too(self) -> None:
        with pytest.raises(RegistrationError, match="not as a Own; annotate set, register"):
            plan(type("Own", (set,), {}))

    @pytest.mark.parametrize(
        ("attributes", "pack"),
        [
            ({"__module__": "pydantic.main"}, "pegboard-pydantic"),
            ({"__pydantic_core_schema__": 1}, "pegboard-pydantic"),
            ({"__struct_fields__": ()}, "pegboard-msgspec"),
        ],
    )
    def test_the_pack_is_named_for_classes_of_known_libraries(self, attributes: dict[str, Any], pack: str) -> None:
        with pytest.raises(RegistrationError, match=f"pip install {pack}$"):
            plan(type("Model", (), attributes))

    @pytest.mark.parametrize(
        ("module", "name"), [("numpy", "ndarray"), ("numpy", "generic"), ("pandas.core.frame", "DataFrame")]
    )
    def test_a_pack_is_named_for_what_it_maps(self, module: str, name: str) -> None:
        with pytest.raises(RegistrationError, match=r"pip install pegboard-numpy$"):
            plan(type("Own", (type(name, (), {"__module__": module}),), {}))

    def test_no_pack_is_named_for_what_it_does_not_map(self) -> None:
        with pytest.raises(RegistrationError, match="register a TypeHandler") as caught:
            plan(type("Generator", (), {"__module__": "numpy.random"}))
        assert "pip install" not in str(caught.value)

    def test_the_pack_is_named_for_every_kind_of_record(self) -> None:
        from typing import NamedTuple, TypedDict

        @attrs.define
        class Attrs:
            x: int

        class Typed(TypedDict):
            x: int

        class Named(NamedTuple):
            x: int

        for record in (Attrs, Typed, Named):
            with pytest.raises(RegistrationError, match=r"pip install pegboard-dataclasses$"):
                plan(record)

    def test_an_alias_that_is_nothing_but_itself_is_refused(self) -> None:
        Loop = TypeAliasType("Loop", "Loop")  # type: ignore[misc]  # the mistake
        with pytest.raises(RegistrationError, match="Loop is nothing but itself"):
            plan(Loop)

    def test_an_alias_of_unknown_names_is_refused(self) -> None:
        Lost = TypeAliasType("Lost", "list[Nowhere]")  # type: ignore[name-defined]  # noqa: F821 - the mistake
        with pytest.raises(
            RegistrationError, match=r"the alias tests\.types\.test_types\.Lost cannot be evaluated: .*Nowhere"
        ):
            plan(Lost)


class TestUnreachable:
    @pytest.mark.parametrize(
        ("annotation", "loser", "winner"),
        [
            (str | dt.datetime, "datetime.datetime", "str"),
            (str | Path, "pathlib.Path", "str"),
            (str | Color, "tests.types.battery.Color", "str"),
            (str | bytes | None, "bytes", "str"),
            (int | Size, "tests.types.battery.Size", "int"),
            (Path | dt.date, "datetime.date", "pathlib.Path"),
            (Any | dt.date, "datetime.date", "Any"),
            (object | set[int], "set[int]", "object"),
            (list[str] | set[str], "set[str]", "list[str]"),
            (list[int] | tuple[int, ...], "tuple[int, ...]", "list[int]"),
            (list[int] | tuple[int, int], "tuple[int, int]", "list[int]"),
            (list[Any] | list[dt.date], "list[datetime.date]", "list[Any]"),
            (dict[str, str] | dict[str, dt.date], "dict[str, datetime.date]", "dict[str, str]"),
            (dict[str, int] | dict[int, int], "dict[int, int]", "dict[str, int]"),
            (Literal["red", "blue", "x"] | Color, "tests.types.battery.Color", "Literal['red', 'blue', 'x']"),
            (str | list[str] | set[str], "set[str]", "list[str]"),
            (int | str | dt.date | None, "datetime.date", "str"),
            (Json | dt.date, "datetime.date", "tests.types.battery.Json"),
            (list[str | None] | set[str], "set[str]", "list[str | None]"),
            (list[str | int] | set[int], "set[int]", "list[str | int]"),
            (dt.date | list[str] | Annotated[dt.date, "again"], "datetime.date", "datetime.date"),
        ],
    )
    def test_an_alternative_that_can_never_win_is_refused(self, annotation: Any, loser: str, winner: str) -> None:
        with pytest.raises(RegistrationError) as caught:
            plan(annotation)
        assert f"{loser} can never win: {winner} stands before it and accepts" in str(caught.value)
        assert f"put {loser} first" in str(caught.value)

    @pytest.mark.parametrize(
        "annotation",
        [
            dt.datetime | str,
            Path | str,
            Color | str,
            Size | int,
            str | int,
            float | int,
            float | Size,
            bool | int,
            str | Literal["auto"],
            int | Any,
            list[int] | list[str],
            list[int] | set[str],
            set[str] | list[str],
            tuple[int, int] | list[int],
            Annotated[str, Len(1, 3)] | dt.date,
            Annotated[list[int], Len(3)] | tuple[int, int],
            dt.date | dt.datetime,
            dict[str, int] | dict[str, dt.date],
            Literal["red"] | Color,
            Names | dt.date,
        ],
    )
    def test_one_that_sometimes_wins_is_not(self, annotation: Any) -> None:
        assert plan(annotation).schema is not None

    def test_the_order_of_registration_changes_nothing(self) -> None:
        table = type_table()
        table.plan(dt.datetime | str)
        with pytest.raises(RegistrationError):
            table.plan(str | dt.datetime)


class TestRenderedSchemas:
    @pytest.mark.parametrize(
        ("annotation", "title"),
        [
            (int, "int"),
            (list[dict[str, Color]], "list[dict[str, tests.types.battery.Color]]"),
            (str | None, "str | None"),
            (Optional[dt.date], "datetime.date | None"),  # noqa: UP045 - the old spelling is the point
            (Literal["a", 1], "Literal['a', 1]"),
            (Literal[Color.RED], "Literal[tests.types.battery.Color.RED]"),
            (tuple[int, ...], "tuple[int, ...]"),
            (tuple[()], "tuple[()]"),
            (Annotated[int, "x"], "int"),
            (Any, "Any"),
            (list, "list"),
            (Callable, "collections.abc.Callable"),
            (Crate[int], "tests.types.test_types.Crate[int]"),
            (None, "None"),
            (NewType("Id", int), "tests.types.test_types.Id"),
        ],
    )
    def test_full_names(self, annotation: Any, title: str) -> None:
        assert qualified_name(annotation) == title

    def test_titles_are_full_names_all_the_way_down(self) -> None:
        assert schema(list[dict[str, Color]], titles="qualified") == {
            "title": "list[dict[str, tests.types.battery.Color]]",
            "type": "array",
            "items": {
                "title": "dict[str, tests.types.battery.Color]",
                "type": "object",
                "additionalProperties": {
                    "title": "tests.types.battery.Color",
                    "type": "string",
                    "enum": ["red", "blue"],
                },
            },
        }

    def test_a_bounded_optional_type_keeps_its_title(self) -> None:
        assert schema(Annotated[int | None, Ge(1)], titles="qualified")["title"] == "int | None"

    def test_a_recursive_alias_is_a_definition_and_its_container_is_not(self) -> None:
        rendered = schema(list[Json])
        assert rendered["items"] == {"$ref": "#/$defs/Json"}
        assert list(rendered["$defs"]) == ["Json"]

    def test_a_schema_with_definitions_of_its_own_is_made_fit(self) -> None:
        own = {"type": "array", "items": {"$ref": "#/$defs/X"}, "$defs": {"X": {"type": "string"}}}
        table = type_table(TypeHandler(Money, lambda annotation, types: TypePlan(own, list)))
        assert render(table.plan(list[Money]).schema) == {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}},
        }

    def test_null_is_named_once(self) -> None:
        maybe: Any = TypeAliasType("maybe", int | None)
        assert schema(maybe | None)["anyOf"] == [{"type": "integer"}, {"type": "null"}]
        assert isinstance(plan(int | None).shape, Nullable)

    def test_any_or_none_is_any(self) -> None:
        assert schema(Any | None) == {}


class TestWriting:
    """Python values back to JSON, for results and defaults."""

    @pytest.mark.parametrize(
        ("annotation", "value", "written"),
        [
            (dt.date | dt.datetime, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "2024-01-01T00:00:00+00:00"),
            (dt.date | dt.datetime, dt.date(2024, 1, 1), "2024-01-01"),
            (list[dt.date] | list[int], [1], [1]),
            (list[dt.date] | list[int], [dt.date(2024, 1, 1)], ["2024-01-01"]),
            (Color | int | None, None, None),
            (Color | int | None, Color.RED, "red"),
            (Literal["x"] | dt.date, "x", "x"),
            (dict[Color, list[dt.date]], {Color.RED: [dt.date(2024, 1, 1)]}, {"red": ["2024-01-01"]}),
            (set[int | str], {2, 10, "b", "a"}, [2, 10, "a", "b"]),
            (dict[Size, int], {Size.SMALL: 1}, {"1": 1}),
            (tuple[Color, ...], (Color.RED,), ["red"]),
            (list[int], (1, 2), [1, 2]),
            (dt.timedelta, dt.timedelta(days=-1, seconds=1), "-PT23H59M59S"),
            (dt.timedelta, dt.timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=50), "P1DT2H3M4.00005S"),
            (Pair[Color], (Color.RED, Color.BLUE), ["red", "blue"]),
        ],
    )
    def test_values_are_written_by_their_type(self, annotation: Any, value: Any, written: Any) -> None:
        assert same(plan(annotation).unstructure(value), written)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`type X = ...` came with Python 3.12")
class TestTypeStatement:
    @pytest.fixture
    def module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        text = (
            "type Tree = dict[str, Tree] | int\n"
            "type Pair[T] = tuple[T, T]\n"
            "type Late = list[Later]\n"
            "type Bad = list[Nowhere]\n"
            "type Swapped[A, B] = tuple[B, A]\n"
            "class Later(str): pass\n"
        )
        (tmp_path / "aliases_of_python_3_12.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return importlib.import_module("aliases_of_python_3_12")

    def test_a_recursive_alias(self, module: Any) -> None:
        found = plan(module.Tree)
        assert found.structure({"a": {"b": 1.0}}) == {"a": {"b": 1}}
        assert refused(found.structure, {"a": {"b": "1"}})
        assert list(render(found.schema)["$defs"]) == ["Tree"]

    def test_a_generic_alias(self, module: Any) -> None:
        assert plan(module.Pair[dt.date]).structure(["2024-01-01"] * 2) == (dt.date(2024, 1, 1),) * 2
        assert plan(module.Swapped[int, str]).structure(["a", 1]) == ("a", 1)
        assert qualified_name(module.Pair[int]) == "aliases_of_python_3_12.Pair[int]"

    def test_what_it_stands_for_is_read_late(self, module: Any) -> None:
        with pytest.raises(RegistrationError, match="Later"):
            plan(module.Late)
        with pytest.raises(
            RegistrationError, match=r"the alias aliases_of_python_3_12\.Bad cannot be evaluated: .*Nowhere"
        ):
            plan(module.Bad)


class TestAnnotations:
    def test_wrappers_and_metadata_are_taken_off(self) -> None:
        from typing import ClassVar, Final, Required

        assert split(Final[Annotated[int, "x"]]) == (int, ("x",))
        assert split(ClassVar[int]) == (int, ())
        assert split(Required[list[int]]) == (list[int], ())

    def test_type_variables_are_replaced(self) -> None:
        variable: Any = T
        assert substitute(dict[str, list[variable]], {T: int}) == dict[str, list[int]]
        assert substitute(variable, {T: int}) is int
        assert substitute(list[int], {T: str}) == list[int]

    def test_the_class_of_values(self) -> None:
        assert [runtime_class(found) for found in (list[int], UserId, Names, None, Any, Annotated[int, 1])] == [
            list, int, list, type(None), object, int,
        ]  # fmt: skip
        assert runtime_class(int | str) is None


def test_a_shape_without_a_structure_of_its_own_is_compiled() -> None:
    assert shaped({"type": "string"}, Text(str.upper)).structure("a") == "A"
    assert shaped({}, Scalar(int)).unstructure(5) == 5
    with pytest.raises(Mismatch):
        shaped({}, Scalar(int)).structure("5")


def test_plans_are_made_without_compiling_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard._types.codegen.Writer.build", lambda *_: pytest.fail("compiled at registration"))
    found = with_records().plan(dict[str, list[Node] | Annotated[int, Ge(1)] | None])
    assert render(found.schema)["type"] == "object"
