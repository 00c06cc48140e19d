"""How records are written: by a function that cattrs generates for each class, out of what the table says of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pegboard import MISSING, TypePlan

__all__ = ["Written", "of_attributes", "of_keys"]

_AS_IT_IS: Final = TypePlan({}, str).unstructure
"""What a plan writes a value with that is JSON already."""


@dataclass(frozen=True)
class Written:
    """How a field is written: under which key, from which attribute or key, and whether None means absent."""

    key: str
    name: str
    plan: TypePlan
    omits_none: bool


def of_attributes(cls: type, fields: Sequence[Written]) -> Callable[[Any], dict[str, Any]]:
    """Writes instances of a class, by a function that is generated when the first one is written."""
    write: Any = None
    omitted = [(field.name, field.key) for field in fields if field.omits_none]

    def unstructure(instance: Any) -> dict[str, Any]:
        nonlocal write
        if write is None:
            write = _generated(cls, fields)
        written: dict[str, Any] = write(instance)
        for name, key in omitted:
            if getattr(instance, name) is None:
                del written[key]
        return written

    return unstructure


def _generated(cls: type, fields: Sequence[Written]) -> Callable[[Any], dict[str, Any]]:
    from cattrs import Converter
    from cattrs.gen import make_dict_unstructure_fn_from_attrs

    # Without its lines for tracebacks, which would outlive the class.
    attributes = list(map(_attribute, fields))
    return make_dict_unstructure_fn_from_attrs(attributes, cls, Converter(), _cattrs_use_linecache=False)


def _attribute(field: Written) -> Any:
    import attrs
    from cattrs import override
    from cattrs.fns import identity

    write = field.plan.unstructure
    if write is _AS_IT_IS:
        write = identity
    elif field.omits_none:
        write = _unless_none(write)
    hook = override(rename=field.key, unstruct_hook=write)
    # In the annotation: as an argument it could have the name of one of cattrs' own.
    made: Any = attrs.Attribute
    plain = {"default": attrs.NOTHING, "validator": None, "repr": True, "cmp": None, "hash": None, "inherited": False}
    return made(name=field.name, init=True, type=Annotated[Any, hook], alias=field.key, **plain)


def _unless_none(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else write(value)


def of_keys(fields: Sequence[Written]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Writes mappings, whose keys need not all be there."""

    def unstructure(mapping: Mapping[str, Any]) -> dict[str, Any]:
        found = ((field, mapping.get(field.name, MISSING)) for field in fields)
        return {field.key: field.plan.unstructure(value) for field, value in found if value is not MISSING}

    return unstructure
