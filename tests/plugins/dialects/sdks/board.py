"""Every type of the battery, and the tools of our packs, on one board."""

from functools import cache
from typing import Any, Literal

from attrs import define

from pegboard import RegistrationError, Toolkit, tool
from tests.types.battery import BATTERY


@define
class Node:
    """Something that contains itself, where it has to and where it may."""

    name: str
    children: "list[Node]"
    parent: "Node | None" = None


@define
class Point:
    """A point."""

    x: float
    y: float = 0.0


@define
class Circle:
    """A circle."""

    kind: Literal["circle"]
    center: Point
    radius: float = 1.0


@define
class Square:
    """A square."""

    kind: Literal["square"]
    corner: Point
    opposite: Point | None = None


@tool(strict=True, examples=[{"figure": {"kind": "circle", "center": {"x": 1}}}], read_only=True)
def draw(figure: Circle | Square, beside: list[Circle | Square] | None = None, at: Point | None = None) -> list[Point]:
    """Draw a figure.

    Args:
        at: Where its middle shall be
    """
    return []


@tool(defer=True)
def plant(tree: Node, other: Node | None = None) -> Node:
    """Plant a tree."""
    return tree


@cache
def everything() -> Toolkit:
    """A toolkit with all that installed packs offer, and two tools for each type: required, and optional."""
    toolkit = Toolkit()
    toolkit.create_group("figures", "Figures of all kinds")
    toolkit.register(draw, group="figures")
    toolkit.register(plant)
    for number, entry in enumerate(BATTERY):
        toolkit.register(_taking(f"takes_{number}", {"x": entry.annotation}))
        try:
            toolkit.register(_taking(f"may_take_{number}", {"x": entry.annotation, "y": entry.annotation}))
        except RegistrationError:  # a default of None fits no constant
            continue
    return toolkit


def _taking(name: str, annotations: dict[str, Any]) -> Any:
    def required(x: Any) -> None: ...

    def optional(x: Any, y: Any = None) -> None: ...

    function = optional if "y" in annotations else required
    function.__annotations__ = {**annotations, "return": annotations["x"]}
    return tool(name=name, description=f"Takes {annotations['x']}.")(function)
