from datetime import date
from typing import Annotated, Any, Generic, TypeVar

import attrs
import pytest

from pegboard import Param
from pegboard._types.table import TypeTable
from tests.plugins.dataclasses import postponed
from tests.plugins.dataclasses.travel import arrive, is_refused_by_both, leave, schema, wrong

T = TypeVar("T")


def positive(instance: Any, attribute: Any, value: int) -> None:
    if value < 1:
        raise ValueError(f"{attribute.alias} must be positive")


@attrs.define
class Order:
    """An order.

    Args:
        item: what is ordered
    """

    item: str
    quantity: int = attrs.field(default=1, validator=positive, metadata={"description": "how many"})
    tags: list[str] = attrs.field(factory=list)


@attrs.frozen
class Node:
    name: str
    next: "Node | None" = None


@attrs.frozen
class Box(Generic[T]):
    item: T


def test_schema(types: TypeTable) -> None:
    assert schema(types, Order) == {
        "type": "object",
        "description": "An order.",
        "properties": {
            "item": {"type": "string", "description": "what is ordered"},
            "quantity": {"type": "integer", "description": "how many", "default": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["item"],
        "additionalProperties": False,
    }


def test_values_arrive_and_leave(types: TypeTable) -> None:
    value = {"item": "a", "quantity": 2, "tags": ["x"]}
    assert arrive(types, Order, value) == Order("a", 2, ["x"])
    assert leave(types, Order, Order("a", 2, ["x"])) == value


@pytest.mark.parametrize("value", [{}, {"item": 1}, {"item": "a", "quantity": "1"}, {"item": "a", "x": 1}, []])
def test_what_does_not_fit_is_refused(types: TypeTable, value: Any) -> None:
    assert is_refused_by_both(types, Order, value)


def test_validators_run_and_speak_for_themselves(types: TypeTable) -> None:
    assert wrong(types, list[Order], [{"item": "a", "quantity": 0}]) == ["[0]: quantity must be positive"]


@pytest.mark.parametrize(
    ("validator", "sent", "says"),
    [
        (attrs.validators.in_(["a", "b"]), "c", "'word' must be in ['a', 'b'] (got 'c')"),
        (attrs.validators.matches_re("[a-z]"), "C", "'word' must match regex '[a-z]' ('C' doesn't)"),
        (attrs.validators.max_len(1), "cc", "Length of 'word' must be <= 1: 2"),
    ],
)
def test_validators_of_attrs_itself(types: TypeTable, validator: Any, sent: str, says: str) -> None:
    @attrs.define
    class Worded:
        word: str = attrs.field(validator=validator)

    assert wrong(types, Worded, {"word": sent}) == [says]


def test_recursive(types: TypeTable) -> None:
    assert arrive(types, Node, {"name": "a", "next": {"name": "b"}}) == Node("a", Node("b"))


def test_generic(types: TypeTable) -> None:
    assert arrive(types, Box[date], {"item": "2024-01-02"}) == Box(date(2024, 1, 2))
    assert is_refused_by_both(types, Box[int], {"item": "x"})


def test_private_names_and_aliases(types: TypeTable) -> None:
    @attrs.define
    class Secretive:
        _token: str
        other: int = attrs.field(alias="another")
        renamed: Annotated[int, Param(name="from")] = 3

    assert list(schema(types, Secretive)["properties"]) == ["token", "another", "from"]
    assert arrive(types, Secretive, {"token": "x", "another": 2, "from": 4}) == Secretive("x", another=2, renamed=4)
    assert leave(types, Secretive, Secretive("x", 2)) == {"token": "x", "another": 2, "from": 3}


def test_what_the_constructor_does_not_take_is_no_member(types: TypeTable) -> None:
    @attrs.define
    class Counted:
        given: int
        made: int = attrs.field(init=False, default=7)

    assert list(schema(types, Counted)["properties"]) == ["given"]
    assert arrive(types, Counted, {"given": 1}).made == 7


class TestConverters:
    def test_run_after_structuring(self, types: TypeTable) -> None:
        @attrs.define
        class Loud:
            word: str = attrs.field(converter=str.upper)  # type: ignore[misc]  # mypy's plugin does not know such converters

        assert arrive(types, Loud, {"word": "a"}) == Loud("A")
        assert is_refused_by_both(types, Loud, {"word": 1})

    def test_decide_what_is_taken_where_they_say_so(self, types: TypeTable) -> None:
        def split(text: str) -> list[str]:
            return text.split(",")

        @attrs.define
        class Listed:
            names: list[str] = attrs.field(converter=split)

        assert schema(types, Listed)["properties"]["names"] == {"type": "string"}
        assert arrive(types, Listed, {"names": "a,b"}).names == ["a", "b"]
        assert types.plan(Listed).unstructure(Listed("a,b")) == {"names": ["a", "b"]}

    def test_that_take_the_instance(self, types: TypeTable) -> None:
        def add(value: int, instance: Any) -> int:
            return value + 1

        @attrs.define
        class Raised:
            value: int = attrs.field(converter=attrs.Converter(add, takes_self=True))  # type: ignore[misc]  # as above

        assert arrive(types, Raised, {"value": 1}).value == 2


def test_a_factory_that_looks_at_the_instance(types: TypeTable) -> None:
    @attrs.define
    class Derived:
        a: int
        b: int = attrs.field(default=attrs.Factory(lambda self: self.a + 1, takes_self=True))

    assert "default" not in schema(types, Derived)["properties"]["b"]
    assert arrive(types, Derived, {"a": 1}) == Derived(1, 2)


def test_types_that_are_no_annotations(types: TypeTable) -> None:
    old = attrs.make_class("Old", {"a": attrs.field(type=int), "b": attrs.field()})
    assert schema(types, old)["properties"] == {"a": {"type": "integer"}, "b": {}}


def test_string_annotations(types: TypeTable) -> None:
    found = schema(types, postponed.Ticket)
    assert found["properties"]["price"] == {"type": "number", "description": "in euros", "default": 1.5}
    ticket = arrive(types, postponed.Ticket, {"trip": {"date": "2024-01-02"}})
    assert ticket == postponed.Ticket(postponed.Trip(date(2024, 1, 2)))


def test_inheritance(types: TypeTable) -> None:
    @attrs.define
    class Special(Order):
        reason: str = "none"

    assert list(schema(types, Special)["properties"]) == ["item", "quantity", "tags", "reason"]
    assert arrive(types, Special, {"item": "a", "reason": "b"}) == Special("a", reason="b")


def test_a_plain_class_below_one_arrives_as_itself(types: TypeTable) -> None:
    class Plain(Order):
        pass

    assert arrive(types, Plain, {"item": "a"}) == Plain("a")
