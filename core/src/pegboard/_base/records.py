"""How records show themselves and compare: written once, for attrs compiles it for each class at the start."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

from attrs import fields

__all__ = ["Compared", "Shown"]

_Values: TypeAlias = Callable[[Any], Any]


class Shown:
    """A base of records that shows the name of the class and its fields, as attrs does."""

    __slots__ = ()

    def __repr__(self) -> str:
        cls: Any = type(self)
        shown = []
        for each in fields(cls):
            show = repr if each.repr is True else each.repr
            if show:
                shown.append(f"{each.name}={show(getattr(self, each.name))}")
        return f"{cls.__name__}({', '.join(shown)})"


class Compared(Shown):
    """A base of records that also compares and hashes by class and fields, as attrs does: `@frozen(eq=False)`."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        cls: Any = type(self)
        compared, _ = _values(cls)
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        cls: Any = type(self)
        _, hashed = _values(cls)
        return hash((cls, hashed(self)))


@cache
def _values(cls: Any) -> tuple[_Values, _Values]:
    """What gives the values that a record compares by, and those that it hashes by."""
    compared = [each.name for each in fields(cls) if each.eq]
    hashed = [each.name for each in fields(cls) if (each.eq if each.hash is None else each.hash)]
    return _getter(compared), _getter(hashed)


def _getter(names: list[str]) -> _Values:
    return attrgetter(*names) if names else lambda record: ()
