"""Dataclasses, attrs classes, TypedDict and NamedTuple as types of tool parameters and results."""

from collections.abc import Iterable
from typing import Any

from pegboard import TypeHandler, hookimpl
from pegboard_dataclasses import _attrs, _dataclass, _namedtuple, _typeddict

__all__ = ["from_cattrs", "provide_types"]


@hookimpl
def provide_types() -> Iterable[TypeHandler]:
    """One handler for each kind of record."""
    return [TypeHandler(kind.matches, kind.build) for kind in (_dataclass, _attrs, _typeddict, _namedtuple)]


def from_cattrs(converter: Any, *types: Any, schema: Any = None) -> TypeHandler:
    """What `pegboard.from_cattrs` gives, whose documentation it has. Raises as that does."""
    from pegboard_dataclasses import _cattrs  # with cattrs, which most programs never need

    return _cattrs.from_cattrs(converter, *types, schema=schema)
