"""Dataclasses, attrs classes, TypedDict and NamedTuple as types of tool parameters and results."""

from collections.abc import Iterable

from pegboard import TypeHandler, hookimpl
from pegboard_dataclasses import _attrs, _dataclass, _namedtuple, _typeddict

__all__ = ["provide_types"]


@hookimpl
def provide_types() -> Iterable[TypeHandler]:
    """One handler for each kind of record."""
    return [TypeHandler(kind.matches, kind.build) for kind in (_dataclass, _attrs, _typeddict, _namedtuple)]
