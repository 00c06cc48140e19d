"""Dataclasses, attrs classes, TypedDict and NamedTuple as types of tool parameters and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pegboard import TypeHandler, hookimpl
from pegboard_dataclasses import _attrs, _dataclass, _namedtuple, _typeddict

if TYPE_CHECKING:
    import cattrs

    from pegboard_dataclasses._cattrs import Schemas

__all__ = ["from_cattrs", "provide_types"]


def from_cattrs(converter: cattrs.BaseConverter, *types: Any, schema: Schemas | None = None) -> TypeHandler:
    """A type handler that reads and writes some types with a cattrs converter: for `provide_types` and `register_type`.

    Hooks, overrides and strategies of the converter hold for exactly these types.

    Every value is checked strictly against the schema before the converter sees it, so that cattrs' own conversions
    (`bool("False")`, `int(5.7)`, `list("abc")`) are never reached: whatever they would convert is not what the schema
    says. What the converter refuses after that is a problem of the argument, reported with its path.

    Raises `RegistrationError` for something that is no converter and for no types. Planning one of the types raises it
    for a schema that is invalid or lacks what the converter needs, and where there is none and the fields do not tell
    what the converter reads.

    Args:
        converter: The converter.
        types: Classes (with any type arguments), unions, `NewType`s.
        schema: JSON Schema of what the converter reads: one for all types, a mapping from type to schema, or a function
            of the type. None makes it from the fields of a dataclass or attrs class, under the names that the converter
            gives them; a class that it reads as cattrs does by itself is then compiled.
    """
    from pegboard_dataclasses import _cattrs  # with cattrs, which most programs never need

    return _cattrs.from_cattrs(converter, *types, schema=schema)


@hookimpl
def provide_types() -> Iterable[TypeHandler]:
    """One handler for each kind of record, after those of packs that map single classes or families of them."""
    kinds = (_dataclass, _attrs, _typeddict, _namedtuple)
    return [TypeHandler(kind.matches, kind.build, priority=-2) for kind in kinds]
