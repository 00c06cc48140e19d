"""Unique names: a document may use one name for many operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

__all__ = ["Names"]


@final
class Names:
    """Names that are taken. Each next one of the same name goes on where the last one ended, so that all are linear."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def free(self, name: str) -> str:
        """`name` if it is free, else the next of `name_2`, `name_3`, ...; it is taken from then on."""
        found, number = name, self._numbers.get(name, 2)
        while found in self._taken:
            found, number = f"{name}_{number}", number + 1
        self._numbers[name] = number
        self._taken.add(found)
        return found
