"""Types that nobody maps: what to say, and what to do about each."""

from __future__ import annotations

import types
from typing import Any, ForwardRef, NoReturn, get_origin

from pegboard._base.errors import RegistrationError
from pegboard._types.annotations import qualified_name

__all__ = ["refuse_unknown"]

_MAPPED = frozenset(
    {"bytes", "decimal.Decimal", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple", "uuid.UUID"}
    | {f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta")}
)
"""Classes whose subclasses would arrive as the class itself."""
_HANDLER = "register a TypeHandler for it, or annotate Injected[...] if the program provides it"


def refuse_unknown(annotation: Any) -> NoReturn:
    """Raise the `RegistrationError` for an annotation without a handler: one line that names it and the remedy."""
    name = qualified_name(annotation)
    if isinstance(annotation, (str, ForwardRef)):
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        raise RegistrationError(
            f"the name {text!r} in an annotation cannot be resolved; import it at run time (not only under "
            "TYPE_CHECKING), or define it before the tool is registered"
        )
    raise RegistrationError(f"no type handler maps {name}: {_remedy(annotation)}")


def _remedy(annotation: Any) -> str:
    origin = get_origin(annotation) or annotation
    if not isinstance(origin, type):
        return _special(annotation)
    from pegboard._base.known_packs import pack_for_class

    pack = pack_for_class(origin)
    if pack is not None:
        return f"pip install {pack.distribution}"
    if getattr(origin, "_is_protocol", False):
        return f"a protocol says nothing about data; {_HANDLER}"
    if origin in (types.FunctionType, type) or origin.__name__ == "Callable":
        return f"functions and classes cannot be sent as JSON; {_HANDLER}"
    base = next((name for name in map(qualified_name, origin.__mro__[1:-1]) if name in _MAPPED), None)
    if base is not None:
        return f"it would arrive as a {base}, not as a {origin.__name__}; annotate {base}, {_HANDLER}"
    if origin.__module__ == "builtins":
        return f"JSON has no form for it; {_HANDLER}"
    return f"a plain class says nothing about data; make it a dataclass, {_HANDLER}"


def _special(annotation: Any) -> str:
    name = getattr(annotation, "__name__", None) or str(annotation)
    if name in ("Self", "Never", "NoReturn"):
        return f"{name} is not a type of data; name the class instead"
    if isinstance(annotation, types.ModuleType):
        return "it is a module; did you mean a class in it?"
    return f"it is not a class; {_HANDLER}"
