"""Records whose annotations are strings."""

from __future__ import annotations

import datetime as dt
from dataclasses import InitVar, dataclass, field
from typing import Annotated, ClassVar, Generic, Literal, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import attrs

T = TypeVar("T")


@dataclass
class Trip:
    date: dt.date
    stops: list[Stop] = field(default_factory=list)
    seed: InitVar[int] = 0
    kinds: ClassVar[int] = 2


@dataclass
class Stop:
    name: str
    trip: Trip | None = None


@attrs.frozen
class Ticket:
    trip: Trip
    price: Annotated[float, "in euros"] = 1.5


class Loose(TypedDict, total=False):
    name: Required[str]
    age: int


class Tight(Loose):
    mail: str
    phone: NotRequired[str]


class Pair(NamedTuple):
    left: int
    right: Literal["a", "b"] = "a"


class Page(TypedDict, Generic[T]):
    items: list[T]
