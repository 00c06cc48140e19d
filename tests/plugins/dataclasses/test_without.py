"""Results without annotation: the same with this pack and without it."""

import datetime as dt
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, NamedTuple

import attrs
import pytest

import pegboard_dataclasses
from pegboard import Toolkit


@dataclass
class Trip:
    kind: ClassVar[str] = "trip"
    to: str = "Rome"
    by: str | None = None
    days: int | None = 3
    at: dt.date | None = None
    seed: InitVar[int] = 5
    made: int = field(init=False, default=7)


@attrs.define
class Ticket:
    _number: int
    seat: str | None = None
    trip: Trip | None = None
    price: int = attrs.field(default=1, alias="cost")


class Place(NamedTuple):
    name: str
    country: str | None = None


@dataclass
class Empty:
    """Nothing."""


VALUES: list[tuple[Any, Any]] = [
    (Trip(), {"to": "Rome", "days": 3}),
    (
        Trip(by="train", days=None, at=dt.date(2024, 5, 6)),
        {"to": "Rome", "by": "train", "days": None, "at": "2024-05-06"},
    ),
    (Ticket(1), {"number": 1, "cost": 1}),
    (Ticket(1, "12a", Trip(days=1)), {"number": 1, "seat": "12a", "trip": {"to": "Rome", "days": 1}, "cost": 1}),
    (Place("Rome"), {"name": "Rome"}),
    ([Place("Rome", "Italy")], [{"name": "Rome", "country": "Italy"}]),
    ({"a": Trip(to="Oslo")}, {"a": {"to": "Oslo", "days": 3}}),
    (Empty(), {}),
]


@pytest.mark.parametrize("plugins", [(), [pegboard_dataclasses]], ids=["without", "with"])
@pytest.mark.parametrize(("value", "data"), VALUES)
def test_is_the_same(plugins: Any, value: Any, data: Any) -> None:
    def give():  # type: ignore[no-untyped-def]  # what is annotated is promised, and then the pack decides
        return value

    with Toolkit(plugins=plugins) as toolkit:
        toolkit.register(give)
        assert toolkit.call_sync("give").data == data


@pytest.mark.parametrize("plugins", [(), [pegboard_dataclasses]], ids=["without", "with"])
def test_annotated_too(plugins: Any) -> None:
    def give() -> Trip:
        return Trip()

    with Toolkit(plugins=plugins) as toolkit:
        toolkit.register(give)
        assert toolkit.call_sync("give").text == '{"to": "Rome", "days": 3}'
