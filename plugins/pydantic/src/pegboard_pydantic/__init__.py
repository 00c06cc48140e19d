"""Pydantic models, dataclasses and types as types of tool parameters and results."""

from collections.abc import Iterable
from typing import Any

from pegboard import RegistrationError, TypeHandler, TypePlan, Types, hookimpl
from pegboard_pydantic._marks import matches

__all__ = ["provide_types"]


def _build(annotation: Any, types: Types) -> TypePlan:
    # Pydantic is imported when the first such type is met.
    try:
        from pegboard_pydantic._plan import build
    except ImportError as error:
        raise RegistrationError(
            f"types of pydantic cannot be used without it: {error}; pip install --upgrade pydantic"
        ) from error
    return build(annotation, types)


@hookimpl
def provide_types() -> Iterable[TypeHandler]:
    """One handler for everything that carries pydantic's marks, metadata in `Annotated` included."""
    # Before `pegboard-dataclasses`, for a dataclass of pydantic is a dataclass too; after packs that map single models.
    return [TypeHandler(matches, _build, priority=-1, whole=True)]
