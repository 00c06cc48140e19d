"""The strict readings of JSON values that generated code falls back to, one function each.

Generated code checks the exact type in line and calls these only when that fails: for an integral float where an
integer is wanted, for a subclass of `str`, or to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard._base.errors import BareMismatch
from pegboard._model.subschemas import TYPE_NAMES, comparable

__all__ = [
    "JSON_TYPES",
    "choice_table",
    "choose",
    "count_members",
    "first_of",
    "has_duplicates",
    "json_type",
    "plain",
    "to_array",
    "to_integer",
    "to_number",
    "to_object",
    "to_text",
]

JSON_TYPES: tuple[type, ...] = tuple(TYPE_NAMES)
"""The Python types of decoded JSON values."""
_LEAVES = frozenset(JSON_TYPES) - {list, dict}


def json_type(value: Any) -> type | None:
    """Which of `JSON_TYPES` a value is an instance of; None for what JSON does not have."""
    return next((kind for kind in JSON_TYPES if isinstance(value, kind)), None)


def plain(value: Any) -> Any:
    """A value of a subclass of a JSON type as that JSON type itself. Raises `Mismatch` for anything else."""
    kind = json_type(value)
    if kind is None or kind is type(value):
        raise BareMismatch
    convert: Callable[[Any], Any] = {str: str.__str__, int: int.__int__, float: float.__float__}.get(kind, kind)
    return convert(value)


def to_text(value: Any) -> str:
    """A string; a subclass of `str` arrives as a plain one."""
    if isinstance(value, str):
        return str.__str__(value)
    raise BareMismatch


def to_integer(value: Any) -> int:
    """An integer; a float without a fraction is one, a boolean is not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise BareMismatch


def to_number(value: Any) -> float:
    """A finite float; integers are numbers, unless they are beyond the range of floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BareMismatch
    try:
        number = float(value)
    except OverflowError:
        raise BareMismatch from None
    if number - number != 0.0:  # only infinities and NaN
        raise BareMismatch
    return number


def to_array(value: Any) -> list[Any]:
    """A JSON array."""
    if isinstance(value, list):
        return value
    raise BareMismatch


def to_object(value: Any) -> dict[str, Any]:
    """A JSON object."""
    if isinstance(value, dict):
        return value
    raise BareMismatch


def has_duplicates(values: Sequence[Any]) -> bool:
    """Whether two JSON values are equal as JSON has it: 1 equals 1.0, and true does not equal 1."""
    return len({comparable(value) for value in values}) != len(values)


def count_members(value: Any) -> int:
    """How many members all JSON objects inside `value` have together."""
    members = 0
    inside = [value]
    for each in inside:  # which grows meanwhile
        if isinstance(each, dict):
            members += len(each)
            inside += [member for member in each.values() if type(member) not in _LEAVES]
        elif isinstance(each, list):
            inside += [item for item in each if type(item) not in _LEAVES]
    return members


def choice_table(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """A table for `choose`. The first of two equal values counts."""
    table: dict[Any, Any] = {}
    for value, meaning in pairs:
        table.setdefault(comparable(value), meaning)
    return table


def choose(table: Mapping[Any, Any], value: Any) -> Any:
    """What a JSON scalar stands for. Raises `Mismatch` for a value that is not in the table."""
    try:
        return table[comparable(value)]
    except KeyError:
        raise BareMismatch from None


def first_of(structures: Sequence[Callable[[Any], Any]], value: Any) -> Any:
    """The answer of the first function that accepts `value`; what the last one raises if none does."""
    for structure in structures[:-1]:
        try:
            return structure(value)
        except Exception:  # noqa: BLE001, S112 - any exception of a handler means that the value does not fit
            continue
    return structures[-1](value)
