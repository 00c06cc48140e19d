"""Tools whose annotations are strings, for the cases that only `from __future__ import annotations` has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pegboard import Injected, tool

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
