"""NumPy arrays and scalars, pandas tables and Pillow images as types of tool parameters and results.

No library is imported before one of its types is met: an annotation can only name a class of a module that is loaded.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from pegboard import Converter, TypeHandler, TypePlan, Types, hookimpl
from pegboard_numpy._loaded import derives_from
from pegboard_numpy._nested import is_nested, nested

__all__ = ["provide_converters", "provide_types"]

_MAPPED = (
    ("numpy", "ndarray", "_arrays:array"),
    ("numpy", "generic", "_scalars:scalar"),
    ("pandas", "DataFrame", "_tables:frame"),
    ("pandas", "Series", "_tables:series"),
    ("PIL.Image", "Image", "_images:image"),
)
"""Module and name of a class, and where the plan of its annotations is built."""


def _builder(place: str) -> Callable[[Any, Types], TypePlan]:
    module, _, name = place.partition(":")

    def build(annotation: Any, types: Types) -> TypePlan:
        plan: TypePlan = getattr(import_module(f"{__name__}.{module}"), name)(annotation, types)
        return plan

    return build


def _image_block(value: Any) -> Any:
    from pegboard_numpy._images import image_block

    return image_block(value)


@hookimpl
def provide_types() -> Iterable[TypeHandler]:
    """One handler for each library class, and one for arrays in arrays."""
    mapped = [(derives_from(module, name), _builder(place)) for module, name, place in _MAPPED]
    return [TypeHandler(matches, build, priority=-1) for matches, build in (*mapped, (is_nested, nested))]


@hookimpl
def provide_converters() -> Iterable[Converter]:
    """Images are shown to the model as images."""
    return [Converter(derives_from("PIL.Image", "Image"), _image_block)]
