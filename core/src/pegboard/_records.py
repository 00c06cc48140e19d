"""How records show themselves: written once, for attrs compiles a `__repr__` for each class when a program starts."""

from __future__ import annotations

from typing import Any

from attrs import fields

__all__ = ["Shown"]


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
