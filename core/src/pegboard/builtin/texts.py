"""Types that are written as JSON strings: moments, identifiers, numbers, paths, patterns, addresses, bytes.

Nothing of theirs is loaded before an annotation names one: whoever can name `decimal.Decimal` has loaded `decimal`.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final, final, get_args, get_origin

from pegboard._model.shapes import Text, TypePlan
from pegboard._types.annotations import refuse_unknown
from pegboard._types.plans import shaped
from pegboard.extension import TypeHandler, Types

__all__ = ["HANDLERS"]

# A class before its base: `datetime` is a `date`, and both handlers are asked about it.
_LATER = (
    ("datetime", "datetime"),
    ("datetime", "date"),
    ("datetime", "time"),
    ("datetime", "timedelta"),
    ("uuid", "UUID"),
    ("decimal", "Decimal"),
    ("ipaddress", "IPv4Address"),
    ("ipaddress", "IPv6Address"),
)


@final
class _Later:
    """Matches a class, and those below it, that may not be loaded yet: nobody can have named it before it is."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, annotation: Any) -> bool:
        cls = getattr(sys.modules.get(self._module), self._name, None)
        return cls is not None and isinstance(annotation, type) and issubclass(annotation, cls)

    def __str__(self) -> str:
        return f"{self._module}.{self._name}"


def _build(annotation: Any, types: Types) -> TypePlan:
    from pegboard.builtin.readings import TEXTS

    known = TEXTS.get(annotation if get_args(annotation) != (str,) else get_origin(annotation))
    if known is None:  # a subclass would arrive as its base
        return refuse_unknown(annotation)
    schema, parse, write = known
    return shaped({"type": "string", **schema}, Text(parse), write)


def _path(annotation: Any, types: Types) -> TypePlan:
    return shaped({"type": "string"}, Text(annotation), str)


HANDLERS: Final = (
    TypeHandler(bytes, _build),
    TypeHandler(re.Pattern, _build),
    *(TypeHandler(_Later(module, name), _build) for module, name in _LATER),
    TypeHandler(_Later("pathlib", "PurePath"), _path),
)
