"""Models that several tests share."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic import dataclasses as pydantic_dataclasses

T = TypeVar("T")


class Item(BaseModel):
    """A line of an order."""

    sku: str
    qty: int = Field(ge=1, description="how many")
    note: str | None = None


class Order(BaseModel):
    items: list[Item]
    spare: Item | None = None


class Node(BaseModel):
    value: int
    next: Node | None = None
    children: list[Node] = []


class Box(BaseModel, Generic[T]):
    content: T


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    item: Item


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str]


class Home(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    guest: Cat | Dog | None


class Aliased(BaseModel):
    from_: str = Field(alias="from")
    max_size: int = Field(2, alias="maxSize")


class Span(BaseModel):
    start: int
    end: int
    unit: str = "m"

    @field_validator("unit")
    @classmethod
    def is_metric(cls, unit: str) -> str:
        if unit == "ft":
            raise ValueError("feet are not metric")
        return unit.upper()

    @model_validator(mode="after")
    def is_forward(self) -> Span:
        if self.end < self.start:
            raise ValueError("end must not be before start")
        return self


@pydantic_dataclasses.dataclass
class Money:
    amount: int
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "EUR"
