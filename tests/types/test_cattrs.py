"""Types that a cattrs converter maps: hooks, strategies, schemas, and how strict all of it stays."""

import datetime as dt
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, Generic, NewType, TypeVar

import attrs
import cattrs
import pytest
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union
from jsonschema import Draft202012Validator

import pegboard_dataclasses
from pegboard import Mismatch, RegistrationError, Toolkit, ToolResult, TypeHandler, hookimpl
from pegboard._schema.nodes import render
from pegboard_dataclasses import from_cattrs
from tests.types import cattrs_pack
from tests.types.cattrs_pack import Animal, Circle, Dog, Event, Figure, Item, Money, Order, Point, Square, Version

T = TypeVar("T")


@attrs.define
class Flags:
    on: bool
    count: int
    names: list[str]


@attrs.define
class Box(Generic[T]):
    content: T


@attrs.define
class Node:
    value: int
    children: "list[Node]" = attrs.field(factory=list)


def board(*plugins: Any) -> Toolkit:
    """A toolkit with these plugins, and the records of pegboard-dataclasses."""
    return Toolkit(plugins=[*plugins, pegboard_dataclasses])


def pack(name: str, *handlers: TypeHandler) -> ModuleType:
    @hookimpl
    def provide_types() -> list[TypeHandler]:
        return list(handlers)

    module = ModuleType(name)
    vars(module)["provide_types"] = provide_types
    return module


def sent(annotation: Any, value: Any, toolkit: Toolkit | None = None) -> ToolResult:
    """The result of a tool that gives back what it got, as an instance in `value` and as JSON in `data`."""

    def give(value: Any) -> Any:
        """Give back."""
        return value

    give.__annotations__ = {"value": annotation, "return": annotation}
    with board(cattrs_pack) if toolkit is None else toolkit as opened:
        opened.register(give)
        return opened.call_sync("give", {"value": value})


class TestReading:
    @pytest.mark.parametrize(
        ("annotation", "value", "wanted"),
        [
            (Figure, {"_type": "Circle", "radius": 1}, Circle(1.0)),
            (Figure, {"_type": "Square", "side": 1.5}, Square(1.5)),
            (Figure | None, {"_type": "Square", "side": 1.5}, Square(1.5)),
            (list[Figure], [{"_type": "Square", "side": 1.5}], [Square(1.5)]),
            (Animal, {"name": "Rex"}, Animal("Rex")),
            (Animal, {"name": "Rex", "tricks": ["sit"]}, Dog("Rex", ["sit"])),
            (dict[str, Version], {"now": "1.2"}, {"now": Version(1, 2)}),
            (Annotated[Point, "where"], {"x": 1}, Point(1, 0, seen=True)),
        ],
    )
    def test_hooks_and_strategies_hold(self, annotation: Any, value: Any, wanted: Any) -> None:
        result = sent(annotation, value)
        assert not result.is_error, result.text
        assert result.value == wanted
        assert type(result.value) is type(wanted)

    def test_what_comes_back_is_what_was_sent(self) -> None:
        figure = {"_type": "Circle", "radius": 1.0, "filled": True}
        assert sent(Figure, figure).data == figure
        assert sent(Version, "1.2").data == "1.2"
        assert sent(Animal, {"name": "Rex", "tricks": []}).data == {"name": "Rex", "tricks": []}

    def test_a_class_that_is_read_by_its_fields_is_compiled(self) -> None:
        order = {"items": [{"name": "tea", "count": 2}], "price": "3 EUR", "due": "2024-05-06"}
        result = sent(Order, order)
        assert result.value.items == [Item("tea", 2)]
        assert type(result.value.price) is Money
        assert result.value.due == dt.date(2024, 5, 6)
        assert result.data == order

    def test_the_schema_of_fields_is_what_is_read(self) -> None:
        # The preconf converter writes bytes in base85; the schema says base64.
        result = sent(Event, {"at": "2024-05-06T07:08:09Z", "payload": "QQ==", "attendees": ["b", "a"]})
        assert result.value == Event(dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC), b"A", {"a", "b"})
        assert result.data["attendees"] == ["a", "b"]

    def test_a_hook_for_a_type_that_the_table_maps_holds_where_its_class_is_named(self) -> None:
        @attrs.define
        class Trip:
            start: dt.datetime

        converter = make_converter()
        converter.register_structure_hook(
            dt.datetime, lambda value, _: dt.datetime.fromisoformat(value).replace(year=1)
        )
        sent_as = {"start": "2024-05-06T07:08:09Z"}
        with board() as toolkit:
            toolkit.register_type(from_cattrs(converter, Trip))
            assert sent(Trip, sent_as, toolkit).value.start.year == 1
        with board() as toolkit:
            toolkit.register_type(from_cattrs(converter, dt.datetime))
            assert sent(Trip, sent_as, toolkit).value.start.year == 1
            assert sent(dt.date, "2024-05-06", board()).value == dt.date(2024, 5, 6)

    def test_a_plain_converter_reads_dates_too(self) -> None:
        @attrs.define
        class Trip:
            day: dt.date

        with board() as toolkit:
            toolkit.register_type(from_cattrs(cattrs.Converter(), Trip))
            assert sent(Trip, {"day": "2024-05-06"}, toolkit).value == Trip(dt.date(2024, 5, 6))

    def test_the_table_writes_what_the_converter_leaves(self) -> None:
        @attrs.define
        class Trip:
            day: dt.date

        converter = cattrs.Converter()
        converter.register_structure_hook(Trip, lambda value, _: Trip(dt.date.fromisoformat(value["day"])))
        with board() as toolkit:
            toolkit.register_type(from_cattrs(converter, Trip))
            assert sent(Trip, {"day": "2024-05-06"}, toolkit).data == {"day": "2024-05-06"}

    def test_an_instance_that_the_converter_leaves_is_written_by_its_fields(self) -> None:
        converter = cattrs.Converter()
        converter.register_structure_hook(Money, lambda value, _: Money.parse(value))
        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(from_cattrs(converter, Money, schema={"type": "string"}))
            assert sent(Money, "3 EUR", toolkit).data == "3 EUR"

    def test_without_a_hook_to_write_no_schema_of_results_is_promised(self) -> None:
        def price(name: str) -> list[Money]:
            """Tell a price."""
            return [Money(len(name), "EUR")]

        for hooks in ((), (str,)):
            converter = cattrs.Converter()
            converter.register_structure_hook(Money, lambda value, _: Money.parse(value))
            for hook in hooks:
                converter.register_unstructure_hook(Money, hook)
            with Toolkit(plugins=()) as toolkit:
                toolkit.register_type(from_cattrs(converter, Money, schema={"type": "string"}))
                toolkit.register(price)
                assert (toolkit["price"].returns is not None) is bool(hooks)
                assert toolkit.call_sync("price", {"name": "tea"}).data == ["3 EUR"]

    def test_names_stand_for_themselves(self) -> None:
        Celsius = NewType("Celsius", float)
        converter = cattrs.Converter()
        converter.register_structure_hook(Celsius, lambda value, _: Celsius(value - 273.15))
        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(from_cattrs(converter, Celsius, schema={"type": "number"}))
            assert sent(Celsius, 273.15, toolkit).value == 0.0
            assert sent(float, 273.15, Toolkit(plugins=())).value == 273.15

    def test_a_generic_class_with_any_arguments(self) -> None:
        converter = cattrs.Converter()
        converter.register_structure_hook_func(
            lambda annotation: getattr(annotation, "__origin__", None) is Box,
            lambda value, annotation: Box(converter.structure(value[0], annotation.__args__[0])),
        )
        schema = {"type": "array", "minItems": 1, "maxItems": 1}
        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(from_cattrs(converter, Box, schema=schema))
            assert sent(Box[int], [7], toolkit).value == Box(7)

    def test_recursive_classes(self) -> None:
        with board() as toolkit:
            toolkit.register_type(from_cattrs(cattrs.Converter(), Node))
            result = sent(Node, {"value": 1, "children": [{"value": 2}]}, toolkit)
            assert result.value == Node(1, [Node(2)])

    def test_exactly_the_named_types(self) -> None:
        """A handler for `date` says nothing of `datetime`, whose base it is."""
        converter = cattrs.Converter()
        converter.register_structure_hook(dt.date, lambda value, _: dt.date(value, 1, 1))
        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(from_cattrs(converter, dt.date, schema={"type": "integer", "minimum": 1}))
            assert sent(list[dt.date], [2024], toolkit).value == [dt.date(2024, 1, 1)]
        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(from_cattrs(converter, dt.date, schema={"type": "integer", "minimum": 1}))
            moment = "2024-05-06T07:08:09Z"
            assert sent(dt.datetime, moment, toolkit).value == dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)


class TestStrictness:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"on": "False"},
            {"on": 1},
            {"count": 5.7},
            {"count": True},
            {"names": "abc"},
            {"names": [1]},
            {"names": {"a": 1}},
        ],
    )
    @pytest.mark.parametrize("hooked", [False, True])
    def test_no_conversion_of_cattrs_is_reached(self, wrong: dict[str, Any], hooked: bool) -> None:
        converter = cattrs.Converter()
        if hooked:
            read = make_dict_structure_fn(Flags, converter)
            converter.register_structure_hook(Flags, lambda value, cls: read({**value}, cls))
        with board() as toolkit:
            toolkit.register_type(from_cattrs(converter, Flags))
            plan = toolkit.types.plan(Flags)
            right = {"on": True, "count": 1, "names": ["a"]}
            assert plan.structure(right) == Flags(True, 1, ["a"])
            with pytest.raises(Mismatch):
                plan.structure({**right, **wrong})

    def test_in_a_schema_that_the_pack_gives(self) -> None:
        with board(cattrs_pack) as toolkit:
            plan = toolkit.types.plan(Figure)
            for value in ({"_type": "Circle", "radius": "1"}, {"_type": "Circle", "radius": 1, "filled": "False"}):
                with pytest.raises(ValueError, match="does not fit its schema"):
                    plan.structure(value)

    def test_mistakes_are_repaired_and_noted(self) -> None:
        result = sent(Figure, {"_type": "Circle", "radius": "1.5"})
        assert result.value == Circle(1.5)
        assert [str(note) for note in result.notes] == ['value.radius: text "1.5" read as number 1.5']


class TestRefusals:
    def test_what_the_converter_refuses_is_a_problem_with_its_path(self) -> None:
        result = sent(Order, {"items": [{"name": "tea"}], "price": "3 XXX"})
        assert result.status == "invalid"
        assert result.text.splitlines()[1:] == ["value.price: XXX is no currency of ours; write EUR or USD"]

    def test_each_problem_in_a_class_with_a_hook_has_its_path(self) -> None:
        @attrs.define
        class Cart:
            items: list[Item]
            label: str

        converter = cattrs.Converter()
        read = make_dict_structure_fn(Cart, converter)
        converter.register_structure_hook(Cart, lambda value, cls: read({**value}, cls))
        with board() as toolkit:
            toolkit.register_type(from_cattrs(converter, Cart))
            items = [{"name": "a", "count": 0}, {"name": "b"}, {"name": "c", "count": -1}]
            result = sent(Cart, {"items": items, "label": "x"}, toolkit)
        assert result.text.splitlines()[1:] == [
            "value.items[0]: 'count' must be > 0: 0",
            "value.items[2]: 'count' must be > 0: -1",
        ]

    @pytest.mark.parametrize("detailed", [False, True])
    @pytest.mark.parametrize(
        "error", [ValueError("no"), KeyError("x"), RecursionError(), ExceptionGroup("g", [OSError()])]
    )
    def test_a_hook_may_raise_anything(self, error: Exception, detailed: bool) -> None:
        def fail(value: Any, cls: Any) -> Money:
            raise error

        converter = cattrs.Converter(detailed_validation=detailed)
        converter.register_structure_hook(Money, fail)
        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(from_cattrs(converter, Money, schema={}))
            assert sent(list[Money], ["x"], toolkit).status == "invalid"


class TestSchemas:
    def test_they_are_shown_as_they_were_given(self) -> None:
        with board(cattrs_pack) as toolkit:

            def fly(figure: Figure, price: Annotated[Money, "in euros"]) -> None:
                """Fly."""

            toolkit.register(fly)
            shown = toolkit["fly"].parameters["properties"]
            assert shown["figure"] == cattrs_pack.SCHEMAS[Figure]
            assert shown["price"] == {**cattrs_pack.SCHEMAS[Money], "description": "in euros"}

    def test_references_in_them_lead_on(self) -> None:
        with board(cattrs_pack) as toolkit:
            assert render(toolkit.types.plan(Animal).schema)["properties"]["tricks"]["items"] == {"type": "string"}
            assert sent(Animal, {"name": "Rex", "tricks": [None]}, toolkit).status == "invalid"

    @pytest.mark.parametrize(
        "schema",
        [{"type": "string"}, {Money: {"type": "string"}}, lambda cls: {"type": "string", "title": cls.__name__}],
    )
    def test_one_for_all_one_for_each_or_a_function(self, schema: Any) -> None:
        converter = cattrs.Converter()
        converter.register_structure_hook(Money, lambda value, _: Money.parse(value))
        with Toolkit(plugins=()) as toolkit:
            toolkit.register_type(from_cattrs(converter, Money, schema=schema))
            assert toolkit.types.plan(Money).schema["type"] == "string"

    @pytest.mark.parametrize(
        ("make", "reason"),
        [
            (lambda: from_cattrs(cattrs.Converter(), Money), r"no type handler maps .*Money.*schema="),
            (lambda: from_cattrs(tagged(), Figure), r"chooses by the JSON what .*Circle.*schema="),
            (lambda: from_cattrs(cattrs_pack.converter(), Animal), r"chooses by the JSON what .*Animal.*schema="),
            (lambda: from_cattrs(cattrs_pack.converter(), Money, schema={"type": "text"}), "is not valid JSON Schema"),
            (lambda: from_cattrs(cattrs.Converter(), Money, schema={"type": "string"}), "the converter cannot read"),
        ],
    )
    def test_what_cannot_be_promised_is_refused_with_the_remedy(
        self, make: Callable[[], TypeHandler], reason: str
    ) -> None:
        handler = make()
        with board() as toolkit:
            toolkit.register_type(handler)
            matches: Any = handler.matches
            with pytest.raises(RegistrationError, match=reason):
                toolkit.types.plan(matches[0])

    def test_a_union_inside_that_the_converter_chooses_has_to_be_named(self) -> None:
        @attrs.define
        class Drawing:
            figures: list[Circle | Square]

        with board() as toolkit:
            toolkit.register_type(from_cattrs(tagged(), Drawing))
            with pytest.raises(RegistrationError, match=r"Circle \| .*Square is.*name it in from_cattrs"):
                toolkit.types.plan(Drawing)
            toolkit.register_type(from_cattrs(tagged(), Drawing, Figure, schema=cattrs_pack.SCHEMAS))
            drawn = toolkit.types.plan(Drawing).structure({"figures": [{"_type": "Square", "side": 1}]})
            assert drawn == Drawing([Square(1.0)])

    def test_overrides_of_fields_are_the_converters(self) -> None:
        converter = cattrs.Converter()
        hook = make_dict_structure_fn(Item, converter, name=override(rename="title"))
        converter.register_structure_hook(Item, hook)
        schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
        with board() as toolkit:
            toolkit.register_type(from_cattrs(converter, Item, schema=schema))
            assert sent(Item, {"title": "tea"}, toolkit).value == Item("tea")


def tagged() -> cattrs.Converter:
    converter = cattrs.Converter()
    configure_tagged_union(Figure, converter)
    return converter


class TestPlace:
    @pytest.mark.parametrize("strange", [None, cattrs, cattrs.Converter, {}])
    def test_only_converters_are_taken(self, strange: Any) -> None:
        with pytest.raises(RegistrationError, match="takes a cattrs converter first"):
            from_cattrs(strange, Money)

    def test_types_have_to_be_named(self) -> None:
        with pytest.raises(RegistrationError, match="needs the types to map"):
            from_cattrs(cattrs.Converter())

    def test_a_hook_may_give_it_alone(self) -> None:
        @hookimpl
        def provide_types() -> Any:
            return from_cattrs(cattrs_pack.converter(), Version, schema=cattrs_pack.SCHEMAS)

        module = ModuleType("alone")
        vars(module)["provide_types"] = provide_types
        assert sent(Version, "1.2", board(module)).value == Version(1, 2)

    def test_it_wins_over_handlers_of_whole_kinds_of_classes(self) -> None:
        with board(cattrs_pack) as toolkit:
            _, origin, shadowed = toolkit.types.handler_for(Point)
            assert origin.plugin == "cattrs_pack"
            assert [other.plugin for _, other in shadowed] == ["dataclasses"]

    def test_of_two_packs_that_map_one_class_the_first_counts(self) -> None:
        handlers = [from_cattrs(cattrs_pack.converter(), Version, schema={"type": "string"}) for _ in "ab"]
        with board(pack("one", handlers[0]), pack("two", handlers[1])) as toolkit:
            assert toolkit.types.handler_for(Version)[0] is handlers[0]
            assert "one and two both map" in toolkit.problems[0]

    def test_it_can_be_taken_back(self) -> None:
        """A type that no tool can be read with changes nothing."""
        with board() as toolkit:

            def go(point: Point) -> None:
                """Go."""

            toolkit.register(go)
            before = toolkit["go"].parameters
            with pytest.raises(RegistrationError):
                toolkit.register_type(
                    from_cattrs(cattrs_pack.converter(), Point, Animal, schema=lambda cls: {"type": 1})
                )
            assert toolkit["go"].parameters == before


@attrs.define
class Person:
    first_name: str
    age: int = 0
    friends: "list[Person]" = attrs.field(factory=list)
    _note: str = ""


@attrs.define
class Visit:
    guest: Person


CAMEL = {"first_name": override(rename="firstName"), "friends": override(rename="knows"), "age": override(omit=True)}


def camel(reads: Any = CAMEL, writes: Any = CAMEL, **options: Any) -> cattrs.Converter:
    """A converter that has its own names for the fields of a person."""
    converter = cattrs.Converter(**options)
    converter.register_structure_hook(Person, make_dict_structure_fn(Person, converter, **reads))
    converter.register_unstructure_hook(Person, make_dict_unstructure_fn(Person, converter, **writes))
    return converter


class TestNames:
    """The schema has the names that the converter reads, or the type is refused."""

    @pytest.mark.parametrize("forbid", [False, True])
    def test_a_renamed_field_has_that_name_in_the_schema(self, forbid: bool) -> None:
        with board() as toolkit:
            toolkit.register_type(from_cattrs(camel(forbid_extra_keys=forbid), Person))
            schema = render(toolkit.types.plan(Person).schema)
            right = {"firstName": "Ada", "knows": [{"firstName": "Bob", "_note": "x"}]}
            result = sent(Person, right, toolkit)
            assert result.value == Person("Ada", 0, [Person("Bob", 0, [], "x")])
            assert result.data == {
                "firstName": "Ada",
                "knows": [{"firstName": "Bob", "knows": [], "_note": "x"}],
                "_note": "",
            }
            for wrong in ({"first_name": "Ada"}, {**right, "age": 3}, {**right, "knows": [{"first_name": "Bob"}]}):
                assert not Draft202012Validator(schema).is_valid(wrong)
                with pytest.raises(Mismatch, match="fit its schema"):
                    toolkit.types.plan(Person).structure(wrong)
            assert Draft202012Validator(schema).is_valid(right)
            assert toolkit["give"].returns is not None

    def test_by_aliases_and_annotations_too(self) -> None:
        @attrs.define
        class Trip:
            start_day: dt.date = attrs.field(alias="startDay")
            length: Annotated[int, override(rename="days")] = 1

        with board() as toolkit:
            toolkit.register_type(from_cattrs(make_converter(use_alias=True), Trip))
            assert sent(Trip, {"startDay": "2024-05-06", "days": 2}, toolkit).value == Trip(dt.date(2024, 5, 6), 2)

    def test_inside_of_a_class_that_is_listed_too(self) -> None:
        with board() as toolkit:
            toolkit.register_type(from_cattrs(camel(), Visit, Person))
            assert sent(Visit, {"guest": {"firstName": "Ada"}}, toolkit).value == Visit(Person("Ada"))

    def test_a_class_inside_has_to_be_listed(self) -> None:
        with board() as toolkit:
            toolkit.register_type(from_cattrs(camel(), Visit))
            with pytest.raises(RegistrationError, match=r"other names for the fields of .*Person.*name it in"):
                toolkit.types.plan(Visit)

    def test_a_schema_that_the_converter_contradicts_is_refused(self) -> None:
        given = {"type": "object", "properties": {"first_name": {"type": "string"}}, "required": ["first_name"]}
        with board() as toolkit:
            toolkit.register_type(from_cattrs(camel(), Person, schema=given))
            with pytest.raises(RegistrationError, match=r"reads 'first_name' of .*Person under 'firstName'.*schema="):
                toolkit.types.plan(Person)
        given["properties"] = {"firstName": {"type": "string"}}
        with board() as toolkit:
            toolkit.register_type(from_cattrs(camel(), Person, schema={**given, "required": ["firstName"]}))
            assert sent(Person, {"firstName": "Ada"}, toolkit).value == Person("Ada")

    def test_other_names_in_results_promise_nothing(self) -> None:
        with board() as toolkit:
            toolkit.register_type(from_cattrs(camel(writes={}), Person))
            assert sent(Person, {"firstName": "Ada"}, toolkit).data["first_name"] == "Ada"
            assert toolkit["give"].returns is None
