"""The types of a class's fields: strings resolved, type variables filled in, `Self` replaced."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

from pegboard import RegistrationError
from pegboard_dataclasses._record import class_of

__all__ = ["field_types"]


def field_types(annotation: Any) -> dict[str, Any]:
    """The annotations of a class or of `Box[int]`, inherited ones included, ready for `types.plan`.

    Raises `RegistrationError` for a string that names nothing.
    """
    found: dict[str, Any] = {}
    final = class_of(annotation)
    arguments = _arguments(annotation)
    # A TypedDict takes over its bases' annotations and forgets the bases.
    forgotten = {
        var: meaning for base, own in arguments.items() if base not in final.__mro__ for var, meaning in own.items()
    }
    # Class by class: the same type variable may mean something else in a base.
    for cls in reversed(final.__mro__):
        own = getattr(cls, "__dict__", {}).get("__annotations__", {})
        if not own or cls.__module__ == "typing":
            continue
        hints = _resolved(cls, final)
        meanings = {**forgotten, **arguments.get(cls, {}), Self: annotation}
        found.update({name: _filled(hints[name], meanings) for name in own if name in hints})
    return found


def _resolved(cls: type, final: type) -> dict[str, Any]:
    try:
        # A class made inside a function knows itself, though its module does not.
        return typing.get_type_hints(cls, localns={final.__name__: final, cls.__name__: cls}, include_extras=True)
    except Exception as error:
        raise RegistrationError(
            f"an annotation of {cls.__qualname__} cannot be resolved: {error}; "
            "define or import the name at the top of the module (not only under TYPE_CHECKING)"
        ) from error


def _arguments(annotation: Any) -> dict[type, dict[Any, Any]]:
    """What the type variables of a class, and of each of its generic bases, stand for."""
    cls = class_of(annotation)
    own = dict(zip(getattr(cls, "__parameters__", ()), get_args(annotation), strict=False))
    found = {cls: own}
    for base in getattr(cls, "__orig_bases__", cls.__bases__):
        # NamedTuple and TypedDict stand among the bases as functions.
        if isinstance(class_of(base), type) and class_of(base) not in (typing.Generic, typing.Protocol):
            found.update(_arguments(_filled(base, own)))
    return found


def _filled(annotation: Any, meanings: Mapping[Any, Any]) -> Any:
    """`annotation` with type variables and `Self` replaced at any depth."""
    if annotation is Self:
        return meanings.get(Self, Self)
    if isinstance(annotation, TypeVar):
        return meanings.get(annotation, annotation)
    origin, inner = get_origin(annotation), get_args(annotation)
    if not inner or origin is Literal:
        return annotation
    if origin is Annotated:
        return Annotated[(_filled(annotation.__origin__, meanings), *annotation.__metadata__)]
    filled = tuple(_filled(each, meanings) for each in inner)
    if all(one is other for one, other in zip(filled, inner, strict=True)):
        return annotation
    if origin is Union:
        return Union[filled]  # noqa: UP007 - the members are known only now
    if origin is UnionType:
        return reduce(or_, filled)
    return GenericAlias(origin, filled) if isinstance(annotation, GenericAlias) else annotation.copy_with(filled)
