"""Lengths: a class of our own, which travels as text such as `3.5 km`."""

import re
from dataclasses import dataclass
from typing import Any

import pegboard

METRES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0}

PATTERN = r"^-?[0-9]{1,15}(\.[0-9]{1,15})? (mm|cm|m|km)$"


@dataclass(frozen=True)
class Quantity:
    """A length in metres."""

    metres: float

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Read `3.5 km`. Raises ValueError."""
        if not re.search(PATTERN, text):
            raise ValueError("write a number, a space and one of mm, cm, m, km")
        number, unit = text.split()
        return cls(float(number) * METRES[unit])

    def __str__(self) -> str:
        return f"{self.metres:.15f}".rstrip("0").rstrip(".") + " m"


def quantity(annotation: Any, types: pegboard.Types) -> pegboard.TypePlan:
    """Schema, JSON to Python, Python to JSON. `parse` accepts exactly what the pattern accepts."""
    schema = {"type": "string", "pattern": PATTERN, "description": "Length with its unit, such as 3.5 km"}
    return pegboard.shaped(schema, pegboard.Text(Quantity.parse), str)
