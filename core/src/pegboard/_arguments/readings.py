"""Readings: what a scalar that does not fit was probably meant to be: the one reading that loses nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, Final, TypeAlias

from pegboard._base.effects import tried
from pegboard._model.shapes import Choice, Scalar, Text
from pegboard._model.subschemas import distinct
from pegboard._schema.problems import spell

# ASCII digits only, of a length that Python converts in no time.
_INTEGER: Final = re.compile(r"\s*([+-]?[0-9]{1,400})(?:\.0+)?\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?\s*")
_BOOLEANS: Final = {"true": True, "false": False}
_NULLS: Final = frozenset({"", "null"})
_DIGITS: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")

# A number with the digits that it was sent with; None where that is not certain.
Digits: TypeAlias = Callable[[float], Any]


def is_null(value: Any) -> bool:
    """Whether a value is a text that stands for null."""
    return isinstance(value, str) and value.strip().lower() in _NULLS


def own_digits(sent: Any) -> Digits:
    """What numbers of the text `sent` were before they became floats; a number that is not in there is its shortest."""
    seen: dict[float, set[Any]] = {}

    def digits(number: float) -> Any:
        from decimal import Decimal

        if not seen:
            for each in _DIGITS.findall(str(sent)):  # that of bytes and mappings has them too
                seen.setdefault(float(each), set()).add(Decimal(each))
        found = seen.setdefault(number, {Decimal(repr(number))})
        return next(iter(found)) if len(found) == 1 and math.isfinite(number) else None

    return digits


def readings(shape: Scalar | Choice | Text, value: Any, digits: Digits) -> Iterable[Any]:
    """What a scalar may have been meant to be; the plan decides whether it fits."""
    if isinstance(shape, Choice):
        return _choices(shape, value)
    if isinstance(shape, Text):
        text = shape.mend and tried(shape.mend, digits(value) if type(value) is float else value)
        return () if text is None else (text,)
    if isinstance(value, str):
        reading = _read(shape.type, value)
        return () if reading is value else (reading,)
    if type(value) is not int:
        return ()
    if shape.type is bool:
        return (value == 1,) if value in (0, 1) else ()
    return (str(value),) if shape.type is str and value.bit_length() < 4000 else ()


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
    text = value.strip()
    spelled = {str(spelling): spelling for spelling, _ in shape.pairs if isinstance(spelling, str)}
    if text in spelled:
        return [spelled[text]]
    if text in shape.names:
        return [_spelling(shape, shape.names[text])]
    named = {name: _spelling(shape, chosen) for name, chosen in shape.names.items()}
    folded = text.casefold()
    alike = distinct([chosen for name, chosen in [*named.items(), *spelled.items()] if name.casefold() == folded])
    if alike:
        return alike if len(alike) == 1 else []
    return [spelling for spelling, _ in shape.pairs if not isinstance(spelling, str) and spell(spelling) == folded]


def _spelling(shape: Choice, chosen: Any) -> Any:
    """The JSON scalar that stands for an enum member."""
    return next((spelling for spelling, stands_for in shape.pairs if stands_for is chosen), chosen)
