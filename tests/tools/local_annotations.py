"""Tools whose annotations are strings, for the cases that only `from __future__ import annotations` has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import pytest

from pegboard import Injected, RegistrationError, Tool, Toolkit, tool

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Point:
    x: int
    y: int = 0


def at(point: Point, label: str = "p") -> str:
    return f"{label}: {point.x + point.y}"


def later(value: Later) -> str:
    return value.text


@dataclass
class Later:
    text: str


def unresolved(amount: Decimal, rate: float = 1.0) -> str:
    return str(amount)


def unresolved_result(rate: float) -> Decimal:
    raise NotImplementedError


def misspelled(amount: floot) -> str:  # type: ignore[name-defined]  # noqa: F821 - the case under test
    return str(amount)


def local_function() -> Any:
    class Colour(Enum):
        RED = "red"

    @tool
    def paint(colour: Colour, times: int = 1) -> str:
        return colour.name * times

    return paint


def local_method() -> Any:
    @dataclass
    class Size:
        width: int

    class Shop:
        class Kind(Enum):
            BIG = "big"

        @tool
        def buy(self, size: Size, kind: Kind) -> str:
            return f"{size.width} {kind.name}"

        @tool(name="sell")
        @staticmethod
        def sell_size(sizes: list[Size]) -> int:
            return sum(size.width for size in sizes)

    return Shop()


def local_closure() -> Any:
    class Colour(Enum):
        RED = "red"

    def paint(colour: Colour) -> str:
        return Colour(colour).name

    return paint


def local_unseen() -> Any:
    class Colour(Enum):
        RED = "red"

    def paint(colour: Colour) -> str:
        return colour.name

    return paint


def local_context() -> Any:
    class Db:
        name = "db"

    @tool
    def ask(db: Injected[Db], question: str) -> str:
        return f"{db.name} {question}"

    return ask, Db()


def registered_where_its_class_is_local(toolkit: Toolkit) -> list[str]:
    """Functions that mention a class of this function alone, handed over in each of the ways that there are."""

    @dataclass
    class Order:
        item: str

    def plain(order: Order) -> str:
        return order.item

    def inside(orders: list[Order] | None = None) -> int:
        return len(orders or ())

    def unknown(order: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821 - that is the case
        return ""

    toolkit.register(plain)
    register_from_here(toolkit, inside)
    Tool.from_function(plain)
    with pytest.raises(RegistrationError, match="annotation 'Nowhere' of parameter 'order' cannot be resolved"):
        toolkit.register(unknown)
    return [
        toolkit.call_sync("plain", {"order": {"item": "tea"}}).text,
        toolkit.call_sync("inside", {"orders": [{"item": "tea"}]}).text,
    ]


def register_from_here(toolkit: Toolkit, function: Any) -> None:
    """Register for a caller: the class is local to the caller."""
    toolkit.register(function)
