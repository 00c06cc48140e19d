"""Structs that several tests share."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

T = TypeVar("T")


class Item(Struct):
    """A line of an order.

    Attributes:
        sku: which one
    """

    sku: str
    qty: Annotated[int, Meta(ge=1, description="how many")]
    note: str | None = None


class Order(Struct, rename="camel", kw_only=True, frozen=True):
    line_items: list[Item] = field(default_factory=list)
    paid: bool
    discount: float | UnsetType = UNSET


class Node(Struct):
    value: int
    next: Node | None = None
    children: list[Node] = []


class Box(Struct, Generic[T]):
    content: T


class Cat(Struct, tag="cat", tag_field="kind"):
    lives: int


class Dog(Struct, tag="dog", tag_field="kind"):
    tricks: list[str] = []


class One(Struct, tag=1):
    a: int


class Two(Struct, tag=2):
    a: int


class Point(Struct, array_like=True):
    x: float
    y: float


class Line(Struct, array_like=True, tag="line"):
    """A line of points."""

    start: Point
    end: Point
    labels: list[str] = []
    width: float | UnsetType = UNSET


class Span(Struct):
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("end must not be before start")


class Described(Struct, rename={"from_": "from"}):
    from_: str
    to: str = field(name="until")
