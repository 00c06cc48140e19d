from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Struct, UnsetType

from pegboard import RegistrationError
from pegboard._types.table import TypeTable
from tests.plugins.dataclasses.travel import arrive, is_refused_by_both, leave, schema, wrong
from tests.plugins.msgspec.structs import Box, Cat, Described, Dog, Item, Line, Node, One, Order, Point, Span, Two


class TestSchema:
    def test_of_a_plain_one(self, types: TypeTable) -> None:
        assert schema(types, Item) == {
            "type": "object",
            "description": "A line of an order.",
            "properties": {
                "sku": {"type": "string", "description": "which one"},
                "qty": {"type": "integer", "minimum": 1, "description": "how many"},
                "note": {"type": "string"},
            },
            "required": ["sku", "qty"],
            "additionalProperties": False,
        }

    def test_renamed_fields_and_defaults(self, types: TypeTable) -> None:
        found = schema(types, Order)
        assert list(found["properties"]) == ["lineItems", "paid", "discount"]
        assert found["required"] == ["paid"]
        assert found["properties"]["lineItems"]["default"] == []
        assert found["properties"]["discount"] == {"type": "number"}
        assert list(schema(types, Described)["properties"]) == ["from", "until"]

    def test_factories_with_effects_do_not_run(self, types: TypeTable) -> None:
        calls: list[int] = []

        def make() -> list[int]:
            calls.append(1)
            return calls

        class Made(Struct):
            numbers: list[int] = msgspec.field(default_factory=make)

        assert "default" not in schema(types, Made)["properties"]["numbers"]
        assert calls == []
        assert arrive(types, Made, {}).numbers == [1]

    def test_a_recursive_one_refers_to_itself(self, types: TypeTable) -> None:
        found = schema(types, Node)
        assert found["$ref"] == "#/$defs/Node"
        assert found["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}

    def test_a_tag_is_a_required_constant(self, types: TypeTable) -> None:
        found = schema(types, Cat)
        assert found["properties"]["kind"] == {"const": "cat"}
        assert found["required"] == ["kind", "lives"]

    def test_tagged_unions_have_a_discriminator(self, types: TypeTable) -> None:
        found = schema(types, Cat | Dog)
        assert len(found["oneOf"]) == 2
        assert found["discriminator"] == {"propertyName": "kind"}

    def test_arrays(self, types: TypeTable) -> None:
        assert schema(types, Line) == {
            "type": "array",
            "description": "A line of points.",
            "prefixItems": [
                {"const": "line"},
                {"$ref": "#/$defs/Point"},
                {"$ref": "#/$defs/Point"},
                {"type": "array", "items": {"type": "string"}, "default": []},
                {"type": "number"},
            ],
            "minItems": 3,
            "maxItems": 5,
            "$defs": {
                "Point": {
                    "type": "array",
                    "prefixItems": [{"type": "number"}, {"type": "number"}],
                    "minItems": 2,
                    "maxItems": 2,
                }
            },
        }


class TestValues:
    def test_arrive_as_instances(self, types: TypeTable) -> None:
        order = arrive(types, Order, {"lineItems": [{"sku": "a", "qty": 1.0}], "paid": True})
        assert order == Order(line_items=[Item("a", 1)], paid=True)
        assert type(order.line_items[0].qty) is int
        assert order.discount is UNSET

    @pytest.mark.parametrize(
        "value",
        [
            *({}, [], None, "{}", {"sku": "a"}, {"sku": 1, "qty": 1}, {"sku": "a", "qty": "1"}),
            *({"sku": "a", "qty": True}, {"sku": "a", "qty": 0}, {"sku": "a", "qty": 1, "note": None}),
            {"sku": "a", "qty": 1, "surplus": 1},
        ],
    )
    def test_what_does_not_fit_is_refused(self, types: TypeTable, value: Any) -> None:
        assert is_refused_by_both(types, Item, value)

    def test_what_arrives_is_what_msgspec_makes(self, types: TypeTable) -> None:
        for annotation, value in [
            (Order, {"lineItems": [{"sku": "a", "qty": 1, "note": "n"}], "paid": False, "discount": 0.5}),
            (Node, {"value": 1, "next": {"value": 2}, "children": [{"value": 3}]}),
            (Line, ["line", [1.0, 2.0], [3.0, 4.0], ["a"]]),
            (Box[Box[int]], {"content": {"content": 1}}),
            (Described, {"from": "a", "until": "b"}),
            (Cat | Dog, {"kind": "dog", "tricks": ["roll"]}),
        ]:
            assert arrive(types, annotation, value) == msgspec.convert(value, annotation)

    def test_leave_as_json(self, types: TypeTable) -> None:
        assert leave(types, Order, Order(line_items=[Item("a", 1)], paid=True)) == {
            "lineItems": [{"sku": "a", "qty": 1}],
            "paid": True,
        }
        assert leave(types, list[Cat | Dog], [Cat(9), Dog()]) == [
            {"kind": "cat", "lives": 9},
            {"kind": "dog", "tricks": []},
        ]
        assert leave(types, Described, Described("a", "b")) == {"from": "a", "until": "b"}

    def test_arrays_with_optional_ends(self, types: TypeTable) -> None:
        line = Line(Point(1.0, 2.0), Point(3.0, 4.0))
        assert arrive(types, Line, ["line", [1, 2], [3, 4]]) == line
        assert leave(types, Line, line) == ["line", [1.0, 2.0], [3.0, 4.0], []]
        assert leave(types, Line, Line(Point(1.0, 2.0), Point(3.0, 4.0), width=2.0))[-1] == 2.0
        assert is_refused_by_both(types, Line, ["line", [1, 2]])
        assert is_refused_by_both(types, Line, ["line", [1, 2], [3, 4], [], 1.0, 2])
        assert is_refused_by_both(types, Line, ["arc", [1, 2], [3, 4]])

    def test_nothing_has_a_place_in_an_array(self, types: TypeTable) -> None:
        class Gapped(Struct, array_like=True):
            a: int | None = None
            b: int | UnsetType = UNSET
            c: int = 3

        assert arrive(types, Gapped, [None, 1]) == Gapped(None, 1)
        assert leave(types, Gapped, Gapped(None, 1)) == [None, 1, 3]
        with pytest.raises(ValueError, match="b is unset"):
            types.plan(Gapped).unstructure(Gapped(1))

    def test_generic_ones(self, types: TypeTable) -> None:
        assert arrive(types, Box[int], {"content": 1}) == Box(1)
        assert is_refused_by_both(types, Box[int], {"content": "a"})
        assert len(schema(types, tuple[Box[int], Box[str], Box[int], Box[str]])["$defs"]) == 2

    def test_integer_tags(self, types: TypeTable) -> None:
        assert arrive(types, One | Two, {"type": 2, "a": 1}) == Two(1)
        assert leave(types, One | Two, Two(1)) == {"type": 2, "a": 1}
        assert is_refused_by_both(types, One | Two, {"type": 3, "a": 1})


class TestMessages:
    def test_name_every_problem_and_its_path(self, types: TypeTable) -> None:
        value = {"lineItems": [{"sku": 1, "qty": 0}], "paid": "yes", "discont": 1}
        assert wrong(types, Order, value) == [
            "lineItems[0].sku: expected string, got integer 1",
            "lineItems[0].qty: expected integer >= 1, got integer 0",
            'paid: expected boolean, got string "yes"',
            "discont: unknown argument, did you mean 'discount'?",
        ]

    def test_of_arrays(self, types: TypeTable) -> None:
        value = [["line", [1, "a"], [3, 4], []]]
        assert wrong(types, list[Line], value) == ['[0][1][1]: expected number, got string "a"']

    def test_of_a_post_init(self, types: TypeTable) -> None:
        assert wrong(types, list[Span], [{"start": 2, "end": 1}]) == ["[0]: end must not be before start"]

    def test_of_a_tag(self, types: TypeTable) -> None:
        assert wrong(types, Cat | Dog, {"kind": "dg"}) == [
            'kind: expected one of "cat", "dog", got string "dg", did you mean "dog"?'
        ]


class TestRefusals:
    def test_name_class_and_field(self, types: TypeTable) -> None:
        class Plain: ...

        class Holder(Struct):
            inner: Plain

        with pytest.raises(RegistrationError, match=r"field 'inner' of .*Holder: .*Plain"):
            types.plan(Holder)

    def test_name_what_cannot_be_resolved(self, types: TypeTable) -> None:
        class Lost(Struct):
            where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - that is the point

        with pytest.raises(RegistrationError, match=r"Lost cannot be resolved: name 'Nowhere' is not defined"):
            types.plan(Lost)
