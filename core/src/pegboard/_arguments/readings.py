"""Readings: what a scalar that does not fit was probably meant to be.

The lowest rung of the ladder of repairs: one reading only, with nothing lost. Whether a reading fits is for the type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from types import NoneType
from typing import Any, Final

from pegboard._model.shapes import Choice, Scalar
from pegboard._schema.problems import spell

__all__ = ["is_null", "readings"]

# ASCII digits only, of a length that Python converts in no time.
_INTEGER: Final = re.compile(r"\s*([+-]?[0-9]{1,400})(?:\.0*)?\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?\s*")
_BOOLEANS: Final = {"true": True, "false": False}
_NULLS: Final = frozenset({"", "null"})


def is_null(value: Any) -> bool:
    """Whether a value is a text that stands for null."""
    return isinstance(value, str) and value.strip().lower() in _NULLS


def readings(shape: Scalar | Choice, value: Any) -> Iterable[Any]:
    """What a scalar may have been meant to be; the plan decides whether it fits."""
    if isinstance(shape, Choice):
        return _choices(shape, value)
    if isinstance(value, str):
        reading = _read(shape.type, value)
        return () if reading is value else (reading,)
    if shape.type is str and type(value) is int and value.bit_length() < 4000:
        return (str(value),)
    return ()


def _read(kind: type, text: str) -> Any:
    if kind is int and (match := _INTEGER.fullmatch(text)):
        return int(match[1])
    if kind is float and _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    return None if kind is NoneType and is_null(text) else text


def _choices(shape: Choice, value: Any) -> Iterable[Any]:
    """The choices that are spelled like `value`: by name, else by case where that leaves only one, else as JSON."""
    if type(value) is int:
        return [spelling for spelling, _ in shape.pairs if spelling == str(value)]
    if not isinstance(value, str):
        return []
    if value in shape.names:
        return [_spelling(shape, shape.names[value])]
    spelled = {str(spelling): spelling for spelling, _ in shape.pairs if isinstance(spelling, str)}
    named = {name: _spelling(shape, chosen) for name, chosen in shape.names.items()}
    folded = value.strip().casefold()
    alike = {_key(chosen): chosen for text, chosen in [*named.items(), *spelled.items()] if text.casefold() == folded}
    if alike:
        return list(alike.values()) if len(alike) == 1 else []
    return [spelling for spelling, _ in shape.pairs if not isinstance(spelling, str) and spell(spelling) == folded]


def _spelling(shape: Choice, chosen: Any) -> Any:
    """The JSON scalar that stands for an enum member."""
    return next((spelling for spelling, stands_for in shape.pairs if stands_for is chosen), chosen)


def _key(chosen: Any) -> Any:
    return type(chosen), chosen
