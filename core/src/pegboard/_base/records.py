"""How records show themselves and compare: written once, for attrs compiles it for each class at the start.

Where attrs is used and where it is not is decided here. A class of five fields costs 0.42 ms at import with all that
attrs writes, 0.17 ms where `__eq__` and `__repr__` come from this module, and 0.005 ms by hand with `__slots__`; the
first call of a program loads some 170 classes, 48 of them of attrs. So:

- records that users see, and whatever is loaded rarely: attrs, `@frozen` or `@define`;
- records that the first call loads: `@frozen(eq=False, repr=False)` on one of these bases;
- what is inside a room and loaded by the first call (entries, slots, states of a call): by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any

from attrs import fields


def as_tuple(items: Iterable[Any]) -> tuple[Any, ...]:
    """A converter of fields. attrs reads the type of the argument here; `tuple` itself would give a type variable."""
    return tuple(items)


class Shown:
    """A base of records that shows the name of the class and its fields, as attrs does."""

    __slots__ = ()

    def __repr__(self) -> str:
        cls: Any = type(self)
        shows = ((each.name, repr if each.repr is True else each.repr) for each in fields(cls))
        shown = [f"{name}={show(getattr(self, name))}" for name, show in shows if show]
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
def _values(cls: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """What gives the values that a record compares by, and those that it hashes by."""
    compared = [each.name for each in fields(cls) if each.eq]
    hashed = [each.name for each in fields(cls) if (each.eq if each.hash is None else each.hash)]
    return _getter(compared), _getter(hashed)


def _getter(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda record: ()
