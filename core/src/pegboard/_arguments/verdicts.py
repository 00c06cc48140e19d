"""Verdicts: which parts of a refused value do not fit, found out once for mending and explaining alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import NoneType
from typing import Any, Final, TypeAlias, final

from pegboard._base.errors import BareMismatch
from pegboard._model.shapes import FixedItems, Items, Mapped, Member, Record, Scalar, Shape, Tagged, TypePlan
from pegboard._schema.problems import MOST_PROBLEMS

__all__ = ["BARE", "UNASKED", "Part", "Verdicts", "is_nested", "refusal"]

Part: TypeAlias = tuple[Any, BaseException]
"""A part that does not fit: the index of an item, the key of a value, or the `Member` of a record, and what refused it.
"""
UNASKED: Final[BaseException] = BareMismatch()
"""Stands for what would refuse a part that is looked into before anybody asks: asking costs as much."""
BARE: Final[BaseException] = BareMismatch()
"""What refuses a scalar of another type, and says nothing more."""
_NEVER: Final[Mapping[type, frozenset[type]]] = {
    str: frozenset({NoneType, bool, int, float, list, dict}),
    int: frozenset({NoneType, bool, str, list, dict}),
    float: frozenset({NoneType, bool, str, list, dict}),
    bool: frozenset({NoneType, int, float, str, list, dict}),
    NoneType: frozenset({bool, int, float, str, list, dict}),
    object: frozenset(),
}
"""The types of JSON that a scalar refuses whatever the value: raising an exception for each would take long."""
_NESTED: Final[Mapping[Any, type]] = {FixedItems: list, Items: list, Mapped: dict, Record: dict, Tagged: dict}


def refusal(plan: TypePlan, value: Any) -> BaseException | None:
    """What `plan.structure(value)` raised; None if the value fits."""
    shape = plan.shape
    if type(shape) is Scalar:
        kind = type(value)
        if kind in _NEVER[shape.type]:
            return BARE
        if kind is shape.type and kind is not float and not shape.checks:
            return None
    try:
        plan.structure(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - users' validators may raise anything, SystemExit included
        return error
    return None


def is_nested(plan: TypePlan, value: Any) -> bool:
    """Whether a value is an array or object of the right kind, whose parts say best what is wrong with it."""
    return type(value) is _NESTED.get(type(plan.shape))


@final
class Verdicts:
    """What one walk found out, for the next one. Values must not change in between."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # With what the ids stand for, so that nothing else gets them.
        self._known: dict[tuple[int, int], tuple[Shape, Any, list[Part]]] = {}

    def wrong(self, shape: Record | Items | FixedItems | Mapped, value: Any) -> Iterable[Part]:
        """The parts of an array or object that do not fit, in the order of the shape or else of the value."""
        key = id(shape), id(value)
        known = self._known.get(key)
        if known is not None:
            return known[2]
        finder = _FINDERS[type(shape)](shape, value)
        found: list[Part] = []
        for part in finder:
            found.append(part)
            if len(found) > MOST_PROBLEMS:
                return chain(found, finder)  # a hostile value must not make this any larger
        self._known[key] = shape, value, found
        return found


def _items(shape: Items, values: Iterable[Any]) -> Iterator[Part]:
    for index, value in enumerate(values):
        error = refusal(shape.item, value)
        if error is not None:
            yield index, error


def _fixed(shape: FixedItems, values: Iterable[Any]) -> Iterator[Part]:
    for index, (plan, value) in enumerate(zip(shape.items, values, strict=True)):
        error = refusal(plan, value)
        if error is not None:
            yield index, error


def _values(shape: Mapped, values: Mapping[str, Any]) -> Iterator[Part]:
    for key, value in values.items():
        error = refusal(shape.value, value)
        if error is not None:
            yield key, error


def _members(shape: Record, values: Mapping[str, Any]) -> Iterator[Part]:
    """The members that do not fit; where nothing but the one nested member can be wrong, nobody need ask it."""
    nested: list[Member] = []
    present = 0
    elsewhere = False
    for member in shape.members:
        if member.key not in values:
            elsewhere = elsewhere or member.required
            continue
        present += 1
        value = values[member.key]
        if is_nested(member.plan, value):
            nested.append(member)
        elif (error := refusal(member.plan, value)) is not None:
            elsewhere = True
            yield member, error
    elsewhere = elsewhere or len(nested) > 1 or (present < len(values) and not shape.open)
    for member in nested:
        error = refusal(member.plan, values[member.key]) if elsewhere else UNASKED
        if error is not None:
            yield member, error


_FINDERS: Final[Mapping[type[Shape], Callable[[Any, Any], Iterator[Part]]]] = {
    FixedItems: _fixed,
    Items: _items,
    Mapped: _values,
    Record: _members,
}
