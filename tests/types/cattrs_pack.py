"""A pack whose types are read and written by a cattrs converter: hooks of its own, strategies, a preconf converter."""

import datetime as dt
import functools
from collections.abc import Mapping
from typing import Any, TypeAlias

import cattrs
from attrs import define, field, validators
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union, include_subclasses, use_class_methods

from pegboard import TypeHandler, hookimpl
from pegboard_dataclasses import from_cattrs


class Money:
    """Written as `3 EUR`; a plain class, which says nothing about data."""

    def __init__(self, amount: int, currency: str) -> None:
        self.amount = amount
        self.currency = currency

    @classmethod
    def parse(cls, text: str) -> "Money":
        amount, currency = text.split()
        if currency not in ("EUR", "USD"):
            raise ValueError(f"{currency} is no currency of ours; write EUR or USD")
        return cls(int(amount), currency)

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"


@define
class Point:
    """A class with a hook of its own, which reads its fields in another way than cattrs does."""

    x: int
    y: int = 0
    seen: bool = False


@define
class Circle:
    radius: float
    filled: bool = False


@define
class Square:
    side: float


@define
class Animal:
    name: str


@define
class Dog(Animal):
    tricks: list[str]


@define
class Version:
    """Its own methods read and write it."""

    major: int
    minor: int

    @classmethod
    def from_json(cls, data: str) -> "Version":
        major, minor = data.split(".")
        return cls(int(major), int(minor))

    def to_json(self) -> str:
        return f"{self.major}.{self.minor}"


@define
class Event:
    """Moments, which the preconf converter knows; its day it leaves as it is."""

    at: dt.datetime
    payload: bytes
    attendees: set[str] = field(factory=set)


@define
class Item:
    name: str
    count: int = field(default=1, validator=validators.gt(0))


@define
class Order:
    """Read by its fields; one of them has a type with a hook."""

    items: list[Item]
    price: Money
    due: dt.date | None = None


Figure: TypeAlias = Circle | Square

NUMBER = {"type": "number"}
SCHEMAS: Mapping[Any, Mapping[str, Any]] = {
    Money: {"type": "string", "pattern": "^[0-9]+ [A-Z]{3}$"},
    Figure: {
        "oneOf": [
            {
                "type": "object",
                "properties": {"_type": {"const": "Circle"}, "radius": NUMBER, "filled": {"type": "boolean"}},
                "required": ["_type", "radius"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"_type": {"const": "Square"}, "side": NUMBER},
                "required": ["_type", "side"],
                "additionalProperties": False,
            },
        ]
    },
    Animal: {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tricks": {"$ref": "#/$defs/Tricks"}},
        "required": ["name"],
        "additionalProperties": False,
        "$defs": {"Tricks": {"type": "array", "items": {"type": "string"}}},
    },
    Version: {"type": "string", "pattern": r"^[0-9]+\.[0-9]+$"},
}


@functools.cache
def converter() -> cattrs.Converter:
    """What the pack has for other purposes too; to look for subclasses collects all garbage."""
    made = make_converter()
    made.register_structure_hook(Money, lambda value, _: Money.parse(value))
    made.register_unstructure_hook(Money, str)
    made.register_structure_hook(Point, lambda value, _: Point(value["x"], value.get("y", 0), seen=True))
    configure_tagged_union(Figure, made)
    include_subclasses(Animal, made)
    use_class_methods(made, "from_json", "to_json")
    return made


@hookimpl
def provide_types() -> list[TypeHandler]:
    return [from_cattrs(converter(), Money, Point, Figure, Animal, Version, Event, Order, schema=SCHEMAS)]
