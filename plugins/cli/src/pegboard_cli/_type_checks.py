"""Checks of type handlers: which packs map the same types, or those that Pegboard maps itself."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, Literal

from pegboard import Toolkit, qualified_name
from pegboard_cli._finding import Finding

__all__ = ["check_types"]


class _Choice(enum.Enum):
    ONE = 1


_BUILTIN: Final[tuple[Any, ...]] = (
    *(str, int, float, bool, bytes, None, list, tuple, set, frozenset, dict),
    *(dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID, decimal.Decimal, pathlib.Path, re.Pattern),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, _Choice, Literal["a"], int | str),
)
_CALLED: Final = {_Choice: "enums", Literal["a"]: "Literal[...]", int | str: "unions"}


def check_types(toolkit: Toolkit) -> Iterator[Finding]:
    """Packs that map one type, handlers that fail, and packs that map what Pegboard maps itself."""
    for problem in toolkit.types.problems:
        message, _, fix = problem.rpartition("; ")
        yield Finding("warning", "type-overlap" if " both map " in message else "type-problem", "types", message, fix)
    shadowing: dict[str, list[str]] = defaultdict(list)
    for annotation in _BUILTIN:
        _, origin, hidden = toolkit.types.handler_for(annotation)
        if hidden and origin.distribution is not None:
            shadowing[str(origin)].append(_CALLED.get(annotation) or qualified_name(annotation))
    for pack, names in sorted(shadowing.items()):
        message = f"it maps {', '.join(names)} for every tool, in place of Pegboard's own mapping"
        fix = 'nothing, if it should; to keep Pegboard\'s own, in the settings: [pegboard.types] "{}" = "pegboard"'
        yield Finding("note", "type-shadowed", pack, message, fix.format(names[0]))
