from dataclasses import dataclass

import pytest
from pydantic import BaseModel, Field, computed_field, field_serializer

from pegboard import Status, Toolkit
from tests.plugins.pydantic.models import Item, Money, Order, Span
from tests.support.lazy_library import assert_absence_is_named, assert_loaded_late


@pytest.fixture
def toolkit() -> Toolkit:
    return Toolkit(plugins=["pydantic"])


def total(order: Order, factor: int = 1, fallback: Item | None = None) -> Order:
    """Repeat an order."""
    return Order(items=order.items * factor, spare=fallback)


def test_a_model_goes_in_and_out(toolkit: Toolkit) -> None:
    toolkit.register(total)
    result = toolkit.call_sync("total", {"order": {"items": [{"sku": "a", "qty": 2}]}, "factor": 2})
    assert result.data == {"items": [{"sku": "a", "qty": 2}] * 2}
    assert result.value == Order(items=[Item(sku="a", qty=2)] * 2)


def test_all_problems_reach_the_model(toolkit: Toolkit) -> None:
    toolkit.register(total)
    result = toolkit.call_sync("total", {"order": {"items": [{"sku": "a", "qty": "a"}]}, "factor": "x"})
    assert result.status is Status.INVALID
    assert 'order.items[0].qty: expected integer >= 1, got string "a"' in result.text
    assert 'factor: expected integer, got string "x"' in result.text


def test_a_validator_speaks(toolkit: Toolkit) -> None:
    def length(span: Span) -> int:
        return span.end - span.start

    toolkit.register(length)
    result = toolkit.call_sync("length", {"span": {"start": 2, "end": 1}})
    assert result.status is Status.INVALID
    assert "span: end must not be before start" in result.text


def test_repairs_reach_into_models(toolkit: Toolkit) -> None:
    toolkit.register(total)
    result = toolkit.call_sync("total", {"order": '{"items": [{"sku": "a", "qty": "2", "note": null}]}'})
    assert result.data == {"items": [{"sku": "a", "qty": 2}]}
    assert result.notes


class Area(BaseModel):
    width: int
    height: int

    @computed_field  # type: ignore[prop-decorator]  # as pydantic's own documentation has it
    @property
    def size(self) -> int:
        return self.width * self.height


class Masked(BaseModel):
    card: str

    @field_serializer("card")
    def mask(self, card: str) -> dict[str, str]:
        return {"ends": card[-4:]}


class Renamed(BaseModel):
    size: int = Field(validation_alias="Size")


class Alias(BaseModel):
    size: int = Field(alias="Size")


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Area(width=2, height=3), {"width": 2, "height": 3, "size": 6}),
        (Masked(card="12345678"), {"card": {"ends": "5678"}}),
        (Renamed.model_validate({"Size": 1}), {"size": 1}),
    ],
)
def test_models_that_are_written_otherwise_promise_no_schema(toolkit: Toolkit, value: BaseModel, data: object) -> None:
    def give() -> list[BaseModel]:
        return [value]

    give.__annotations__["return"] = list[type(value)]  # type: ignore[misc]  # known only now
    toolkit.register(give)
    assert toolkit.call_sync("give").data == [data]
    assert toolkit["give"].returns is None


def test_other_models_do(toolkit: Toolkit) -> None:
    def give() -> Alias:
        return Alias(Size=1)

    toolkit.register(give)
    assert toolkit.call_sync("give").data == {"Size": 1}
    assert list((toolkit["give"].returns or {})["properties"]) == ["Size"]


def test_inside_a_dataclass() -> None:
    pytest.importorskip("pegboard_dataclasses")

    @dataclass
    class Shipment:
        order: Order
        price: Money

    def ship(shipment: Shipment) -> str:
        return f"{type(shipment.order).__name__} {type(shipment.price).__name__}"

    toolkit = Toolkit(plugins=["dataclasses", "pydantic"])
    toolkit.register(ship)
    price = {"amount": 1}
    assert toolkit.call_sync("ship", {"shipment": {"order": {"items": []}, "price": price}}).text == "Order Money"
    wrong = {"shipment": {"order": {"items": [{"sku": "a", "qty": 0}]}, "price": price}}
    assert "shipment.order.items[0].qty: expected integer >= 1" in toolkit.call_sync("ship", wrong).text


def test_pydantic_is_not_imported_before_it_is_needed() -> None:
    assert_loaded_late("pydantic")


def test_an_absent_library_is_named() -> None:
    assert_absence_is_named("pydantic", "__get_pydantic_core_schema__")
