"""Structs of msgspec as types of tool parameters and results."""

from collections.abc import Iterable
from typing import Any

from pegboard import RegistrationError, TypeHandler, TypePlan, Types, hookimpl
from pegboard_msgspec._marks import matches

__all__ = ["provide_types"]


def _build(annotation: Any, types: Types) -> TypePlan:
    # Msgspec is imported when the first Struct is met.
    try:
        from pegboard_msgspec._struct import build
    except ImportError as error:
        raise RegistrationError(
            f"Structs of msgspec cannot be used without it: {error}; pip install --upgrade msgspec"
        ) from error
    return build(annotation, types)


@hookimpl
def provide_types() -> Iterable[TypeHandler]:
    """One handler for all Structs."""
    return [TypeHandler(matches, _build, priority=-1)]
