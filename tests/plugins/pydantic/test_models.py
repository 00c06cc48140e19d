from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, RootModel, ValidationError, computed_field

from pegboard import RegistrationError
from pegboard._types.table import TypeTable
from tests.plugins.dataclasses.travel import arrive, is_refused_by_both, leave, schema, wrong
from tests.plugins.pydantic.models import Aliased, Box, Cat, Dog, Home, Item, Money, Node, Open, Order, Span

ITEM = {
    "type": "object",
    "properties": {
        "sku": {"type": "string"},
        "qty": {"type": "integer", "minimum": 1, "description": "how many"},
        "note": {"type": "string"},
    },
    "required": ["sku", "qty"],
    "additionalProperties": False,
    "description": "A line of an order.",
}


class TestSchema:
    def test_is_pydantics_own_without_noise_and_closed(self, types: TypeTable) -> None:
        assert schema(types, Item) == ITEM

    def test_a_class_is_one_definition_wherever_it_is_used(self, types: TypeTable) -> None:
        found = schema(types, tuple[Order, Item, list[Order]])
        assert sorted(found["$defs"]) == ["Item", "Order"]
        assert found["$defs"]["Item"] == ITEM
        assert found["prefixItems"][1] == {"$ref": "#/$defs/Item"}
        assert found["$defs"]["Order"]["properties"]["items"]["items"] == {"$ref": "#/$defs/Item"}

    def test_a_recursive_one_refers_to_itself(self, types: TypeTable) -> None:
        found = schema(types, Node)
        assert found["$ref"] == "#/$defs/Node"
        assert found["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}

    def test_a_title_that_was_written_is_kept(self, types: TypeTable) -> None:
        class Titled(BaseModel):
            model_config = ConfigDict(title="A title")

        assert schema(types, Titled)["title"] == "A title"

    def test_extra_allow_stays_open(self, types: TypeTable) -> None:
        assert "additionalProperties" not in schema(types, Open)

    def test_aliases_are_the_names(self, types: TypeTable) -> None:
        assert list(schema(types, Aliased)["properties"]) == ["from", "maxSize"]

    def test_a_discriminator_makes_its_tag_required(self, types: TypeTable) -> None:
        pet = schema(types, Home)["properties"]["pet"]
        assert pet["discriminator"] == {"propertyName": "kind"}
        assert pet["required"] == ["kind"]
        assert len(pet["oneOf"]) == 2


class TestValues:
    def test_arrive_as_instances(self, types: TypeTable) -> None:
        value = {"items": [{"sku": "a", "qty": 1.0}]}
        order = arrive(types, Order, value)
        assert order == Order(items=[Item(sku="a", qty=1)])
        assert type(order.items[0].qty) is int

    @pytest.mark.parametrize(
        "value",
        [
            {},
            [],
            None,
            "{}",
            {"sku": "a"},
            {"sku": "a", "qty": "1"},
            {"sku": "a", "qty": True},
            {"sku": "a", "qty": 1.5},
            {"sku": 1, "qty": 1},
            {"sku": "a", "qty": 0},
            {"sku": "a", "qty": 1, "note": None},
            {"sku": "a", "qty": 1, "surplus": 1},
        ],
    )
    def test_what_does_not_fit_is_refused(self, types: TypeTable, value: Any) -> None:
        assert is_refused_by_both(types, Item, value)

    def test_recursive_ones(self, types: TypeTable) -> None:
        value = {"value": 1, "next": {"value": 2, "children": []}, "children": [{"value": 3, "children": []}]}
        node = Node(value=1, next=Node(value=2), children=[Node(value=3)])
        assert arrive(types, Node, value) == node
        assert leave(types, Node, node) == value

    def test_generic_ones(self, types: TypeTable) -> None:
        assert arrive(types, Box[int], {"content": 1}) == Box[int](content=1)
        assert is_refused_by_both(types, Box[int], {"content": "a"})
        assert arrive(types, Box[Box[str]], {"content": {"content": "a"}}).content.content == "a"

    def test_aliases(self, types: TypeTable) -> None:
        found = arrive(types, Aliased, {"from": "a", "maxSize": 3})
        assert (found.from_, found.max_size) == ("a", 3)
        assert leave(types, Aliased, found) == {"from": "a", "maxSize": 3}
        assert is_refused_by_both(types, Aliased, {"from_": "a"})

    def test_surplus_members_reach_an_open_model(self, types: TypeTable) -> None:
        value = {"item": {"sku": "a", "qty": 1}, "more": [1]}
        found = arrive(types, Open, value)
        assert found.model_extra == {"more": [1]}
        assert leave(types, Open, found) == value
        assert is_refused_by_both(types, Open, {"item": {"sku": "a", "qty": "1"}})

    def test_typed_surplus_members(self, types: TypeTable) -> None:
        class Numbers(BaseModel):
            model_config = ConfigDict(extra="allow")
            __pydantic_extra__: dict[str, int]

        assert arrive(types, Numbers, {"a": 1.0}).model_extra == {"a": 1}
        assert is_refused_by_both(types, Numbers, {"a": "1"})

    def test_discriminated_unions(self, types: TypeTable) -> None:
        home = arrive(types, Home, {"pet": {"kind": "cat", "lives": 9}, "guest": None})
        assert home == Home(pet=Cat(lives=9), guest=None)
        assert leave(types, Home, home) == {"pet": {"kind": "cat", "lives": 9}, "guest": None}
        assert is_refused_by_both(types, Home, {"pet": {"lives": 9}, "guest": None})
        guest = arrive(types, Home, {"pet": {"kind": "dog", "tricks": []}, "guest": {"tricks": ["roll"]}}).guest
        assert guest == Dog(tricks=["roll"])

    def test_pydantic_dataclasses(self, types: TypeTable) -> None:
        assert arrive(types, Money, {"amount": 1}) == Money(1)
        assert leave(types, list[Money], [Money(2, "USD")]) == [{"amount": 2, "currency": "USD"}]
        assert is_refused_by_both(types, Money, {"amount": 1, "currency": "eur"})

    @pytest.mark.parametrize(
        ("annotation", "value", "root"),
        [
            (RootModel[list[int]], [1.0], [1]),
            (RootModel[dict[int, Item]], {"1": {"sku": "a", "qty": 1}}, {1: Item(sku="a", qty=1)}),
            (RootModel[int | None], None, None),
            (RootModel[int | None], 1.0, 1),
            (RootModel[Cat | Dog], {"kind": "cat", "lives": 1}, Cat(lives=1)),
            (RootModel[tuple[int, str]], [1, "a"], (1, "a")),
            (RootModel[str], "a", "a"),
        ],
    )
    def test_root_models(self, types: TypeTable, annotation: Any, value: Any, root: Any) -> None:
        found = arrive(types, annotation, value)
        assert type(found) is annotation
        assert found.root == root

    def test_a_strict_model_reads_dates_as_json_has_them(self, types: TypeTable) -> None:
        import datetime as dt

        class Strict(BaseModel):
            model_config = ConfigDict(strict=True)

            when: dt.date
            inner: Item

        found = arrive(types, Strict, {"when": "2024-01-02", "inner": {"sku": "a", "qty": 1}})
        assert found.when == dt.date(2024, 1, 2)

    def test_validators_before_see_json(self, types: TypeTable) -> None:
        seen: list[Any] = []

        def watch(value: Any) -> Any:
            seen.append(value)
            return value

        class Watched(BaseModel):
            tags: set[str]

            @classmethod
            def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
                from pydantic_core import core_schema

                return core_schema.no_info_before_validator_function(watch, handler(source))

        assert arrive(types, Watched, {"tags": ["a"]}).tags == {"a"}
        assert seen == [{"tags": ["a"]}]


class TestResults:
    def test_members_that_may_not_be_null_are_left_out(self, types: TypeTable) -> None:
        order = Order(items=[Item(sku="a", qty=1), Item(sku="b", qty=2, note="c")])
        assert leave(types, Order, order) == {"items": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 2, "note": "c"}]}

    def test_computed_fields_are_written(self, types: TypeTable) -> None:
        class Square(BaseModel):
            side: int

            @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
            @property
            def area(self) -> int:
                return self.side**2

        assert types.plan(Square).unstructure(Square(side=2)) == {"side": 2, "area": 4}

    def test_something_else_than_promised_is_an_error(self, types: TypeTable) -> None:
        with pytest.raises(Exception, match="Expected `Item`"):
            types.plan(Item).unstructure({"sku": "a"})


class TestMessages:
    def test_name_every_problem_and_its_path(self, types: TypeTable) -> None:
        value = [{"items": [{"sku": "a", "qty": 1}, {"sku": 5, "qty": 0, "nte": "x"}]}]
        assert wrong(types, list[Order], value) == [
            "[0].items[1].sku: expected string, got integer 5",
            "[0].items[1].qty: expected integer >= 1, got integer 0",
            "[0].items[1].nte: unknown member, did you mean 'note'?",
        ]

    def test_of_a_tag(self, types: TypeTable) -> None:
        assert wrong(types, Home, {"pet": {"kind": "dg"}, "guest": {"kind": "cat", "lives": "x"}}) == [
            'pet.kind: expected one of "cat", "dog", got string "dg", did you mean "dog"?',
            'guest.lives: expected integer, got string "x"',
        ]

    def test_of_validators_come_with_their_path_and_words(self, types: TypeTable) -> None:
        class Spans(BaseModel):
            spans: dict[str, list[Span]]

        value = {"spans": {"a": [{"start": 1, "end": 2}, {"start": 2, "end": 1}, {"start": 1, "end": 2, "unit": "ft"}]}}
        assert wrong(types, list[Spans], [value]) == [
            "[0].spans.a[1]: end must not be before start",
            "[0].spans.a[2].unit: feet are not metric",
        ]

    def test_of_an_open_model(self, types: TypeTable) -> None:
        value = {"item": {"sku": "a", "qty": "1"}}
        assert wrong(types, Open, value) == ['item.qty: expected integer >= 1, got string "1"']

    def test_of_null_where_it_is_not_allowed(self, types: TypeTable) -> None:
        value = {"sku": "a", "qty": None}
        assert wrong(types, Item, value) == ["qty: expected integer >= 1, got null"]

    def test_keep_the_validation_error(self, types: TypeTable) -> None:
        with pytest.raises(ValueError, match="pydantic refuses") as caught:
            types.plan(Span).structure({"start": 2, "end": 1})
        assert isinstance(caught.value.__cause__, ValidationError)


class TestRefusals:
    def test_name_what_cannot_be_resolved(self, types: TypeTable) -> None:
        class Lost(BaseModel):
            where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - that is the point

        with pytest.raises(RegistrationError, match=r"Lost.*Nowhere"):
            types.plan(Lost)

    def test_name_what_json_cannot_express(self, types: TypeTable) -> None:
        from collections.abc import Callable

        class Calls(BaseModel):
            function: Callable[[], None]

        with pytest.raises(RegistrationError, match=r"no JSON Schema for .*Calls"):
            types.plan(Calls)
