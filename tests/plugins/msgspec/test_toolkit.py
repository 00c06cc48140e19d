from dataclasses import dataclass

import pytest

from pegboard import Status, Toolkit
from tests.plugins.msgspec.structs import Cat, Dog, Item, Order
from tests.support.lazy_library import assert_absence_is_named, assert_loaded_late


@pytest.fixture
def toolkit() -> Toolkit:
    return Toolkit(plugins=["msgspec"])


def repeat(order: Order, factor: int = 1) -> Order:
    """Repeat an order."""
    return Order(line_items=order.line_items * factor, paid=order.paid)


def test_a_struct_goes_in_and_out(toolkit: Toolkit) -> None:
    toolkit.register(repeat)
    order = {"lineItems": [{"sku": "a", "qty": 2}], "paid": False}
    result = toolkit.call_sync("repeat", {"order": order, "factor": 2})
    assert result.data == {"lineItems": [{"sku": "a", "qty": 2}] * 2, "paid": False}
    assert result.value == Order(line_items=[Item("a", 2)] * 2, paid=False)


def test_all_problems_reach_the_model(toolkit: Toolkit) -> None:
    toolkit.register(repeat)
    result = toolkit.call_sync("repeat", {"order": {"lineItems": [{"sku": "a", "qty": "a"}]}, "factor": "x"})
    assert result.status is Status.INVALID
    assert 'order.lineItems[0].qty: expected integer >= 1, got string "a"' in result.text
    assert "order.paid: missing (required boolean)" in result.text
    assert 'factor: expected integer, got string "x"' in result.text


def test_repairs_reach_into_structs(toolkit: Toolkit) -> None:
    toolkit.register(repeat)
    result = toolkit.call_sync("repeat", {"order": '{"lineItems": [{"sku": "a", "qty": "2"}], "paid": true}'})
    assert result.data == {"lineItems": [{"sku": "a", "qty": 2}], "paid": True}
    assert result.notes


def test_tags_choose(toolkit: Toolkit) -> None:
    def name(pet: Cat | Dog) -> str:
        return type(pet).__name__

    toolkit.register(name)
    assert toolkit.call_sync("name", {"pet": {"kind": "dog"}}).text == "Dog"


def test_inside_a_dataclass() -> None:
    pytest.importorskip("pegboard_dataclasses")

    @dataclass
    class Shipment:
        order: Order

    def ship(shipment: Shipment) -> str:
        return type(shipment.order).__name__

    toolkit = Toolkit(plugins=["dataclasses", "msgspec"])
    toolkit.register(ship)
    assert toolkit.call_sync("ship", {"shipment": {"order": {"paid": True}}}).text == "Order"
    wrong = {"shipment": {"order": {"paid": 2}}}
    assert "shipment.order.paid: expected boolean, got integer 2" in toolkit.call_sync("ship", wrong).text


def test_msgspec_is_not_imported_before_it_is_needed() -> None:
    assert_loaded_late("msgspec")


def test_an_absent_library_is_named() -> None:
    assert_absence_is_named("msgspec", "__struct_config__")
