"""Reading type annotations: wrappers, metadata, full names, keys that keep order, and what to say of unknown ones."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ForwardRef, Literal, NoReturn, TypeVar, get_args, get_origin

from pegboard._base.errors import RegistrationError
from pegboard._base.markers import Param
from pegboard.extension import TypeHandler

_WRAPPERS = frozenset({"Final", "ClassVar", "Required", "NotRequired", "ReadOnly"})
_STRUCTURAL_MODULES = frozenset({"builtins", "collections", "collections.abc", "typing"})
_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")


class Metadata:
    """What the metadata of an `Annotated` says, in any library's words; never changes."""

    description: str | None = None
    name: str | None = None
    title: str | None = None
    examples: tuple[Any, ...] = ()
    deprecated: bool = False
    # Pairs such as `("ge", 1)` or `("pattern", "^a")`, in the order written.
    bounds: tuple[tuple[str, Any], ...] = ()
    predicates: tuple[Callable[[Any], Any], ...] = ()
    handler: TypeHandler | None = None
    schema_extra: Mapping[str, Any] = types.MappingProxyType({})

    def __init__(self, **said: Any) -> None:
        self.__dict__.update(said)

    def but(self, **changes: Any) -> Metadata:
        """The same, but for what is named."""
        return Metadata(**{**self.__dict__, **changes})

    @property
    def keywords(self) -> dict[str, Any]:
        """The JSON Schema annotations, in the order in which a reader wants them."""
        found: dict[str, Any] = {} if self.title is None else {"title": self.title}
        if self.description is not None:
            found["description"] = self.description
        if self.examples:
            found["examples"] = list(self.examples)
        if self.deprecated:
            found["deprecated"] = True
        return {**found, **self.schema_extra}


_NOTHING = Metadata()


def split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The bare type and its metadata: `Annotated` and wrappers such as `Final[...]` and `Required[...]` taken off."""
    metadata: tuple[Any, ...] = ()
    if type(annotation) is type:
        return annotation, metadata
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            # The outer metadata comes last, as in a flat Annotated, and so has the last word.
            annotation, metadata = annotation.__origin__, annotation.__metadata__ + metadata
        elif not isinstance(origin, type) and getattr(origin, "_name", None) in _WRAPPERS:
            (annotation,) = get_args(annotation)
        else:
            return annotation, metadata


def read_metadata(items: tuple[Any, ...]) -> Metadata:
    """Read `Param`, a plain string, a `TypeHandler`, and other libraries' metadata by its attribute names.

    Understood without importing them: annotated_types (`Ge`, `Len`, `Interval`, `Predicate` ...), `pydantic.Field`,
    `msgspec.Meta` and PEP 727 documentation. Anything else is not ours and is ignored.
    """
    metadata = _NOTHING
    for item in items:
        metadata = _read_item(metadata, item)
    return metadata


def _read_item(metadata: Metadata, item: Any) -> Metadata:
    if isinstance(item, str):
        return metadata.but(description=item)
    if isinstance(item, TypeHandler):
        return metadata.but(handler=item)
    if isinstance(item, type) or callable(getattr(item, "__get__", None)):
        return metadata
    if type(item).__name__ in ("Predicate", "Not") and callable(getattr(item, "func", None)):
        return metadata.but(predicates=(*metadata.predicates, _predicate(item)))
    for inner in _items(getattr(item, "metadata", None)):
        metadata = _read_item(metadata, inner)
    return _read_attributes(metadata, item)


def _read_attributes(metadata: Metadata, item: Any) -> Metadata:
    bounds = [(name, getattr(item, name, None)) for name in _BOUNDS]
    found: dict[str, Any] = {"bounds": metadata.bounds + tuple(bound for bound in bounds if _is_limit(*bound))}
    texts = {"description": "description", "title": "title", "name": "name", "documentation": "description"}
    if not isinstance(item, Param):
        texts |= {"alias": "name", "validation_alias": "name"}
        del texts["name"]
    for attribute, meaning in texts.items():
        if isinstance(getattr(item, attribute, None), str):
            found[meaning] = getattr(item, attribute)
    if _items(getattr(item, "examples", None)):
        found["examples"] = tuple(item.examples)
    if getattr(item, "deprecated", False):
        found["deprecated"] = True
    extra = [getattr(item, name, None) for name in ("schema_extra", "json_schema_extra", "extra_json_schema")]
    for mapping in extra:
        if isinstance(mapping, Mapping):
            found["schema_extra"] = {**metadata.schema_extra, **mapping}
    return metadata.but(**found)


def _is_limit(name: str, limit: Any) -> bool:
    if limit is None or callable(limit) or (name == "min_length" and limit == 0):
        return False
    return isinstance(limit, str) if name == "pattern" else not isinstance(limit, (bool, str))


def _items(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else ()


def _predicate(item: Any) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = item.func
    return (lambda value: not function(value)) if type(item).__name__ == "Not" else function


def is_union(annotation: Any) -> bool:
    """Whether this is `A | B`, `Union[A, B]` or `Optional[A]`."""
    return get_origin(annotation) in (typing.Union, types.UnionType)


def is_alias(annotation: Any) -> bool:
    """Whether this is a `type X = ...` alias (PEP 695), subscripted or not; `typing_extensions` has them on 3.11."""
    alias = get_origin(annotation) or annotation
    # Not `__value__`, which is evaluated when it is looked at.
    return type(alias).__name__ == "TypeAliasType" and hasattr(alias, "__type_params__")


def is_structural(annotation: Any) -> bool:
    """Whether an annotation is built from others without a name of its own: unions, `Annotated`, `list[...]`."""
    origin = get_origin(annotation)
    return origin is not None and (is_union(annotation) or origin.__module__ in _STRUCTURAL_MODULES)


def alias_value(annotation: Any) -> Any:
    """What a PEP 695 alias stands for, with its type arguments filled in. Raises what evaluating it raises."""
    alias = get_origin(annotation) or annotation
    value = alias.__value__
    if _mentions_names(value):
        value = _with_names_resolved(value, alias)
    if alias is annotation:
        return value
    return substitute(value, dict(zip(alias.__type_params__, get_args(annotation), strict=True)))


def _mentions_names(annotation: Any) -> bool:
    """Whether there is a quoted name inside, as recursive aliases need before Python 3.12."""
    if isinstance(annotation, (str, ForwardRef)):
        return True
    return get_origin(annotation) is not Literal and any(map(_mentions_names, get_args(annotation)))


def _with_names_resolved(value: Any, alias: Any) -> Any:
    module = sys.modules.get(alias.__module__)
    holder = types.SimpleNamespace(__annotations__={"value": value})
    names = {alias.__name__: alias, **{parameter.__name__: parameter for parameter in alias.__type_params__}}
    hints = typing.get_type_hints(holder, vars(module) if module else {}, names, include_extras=True)
    return hints["value"]


def substitute(annotation: Any, arguments: Mapping[Any, Any]) -> Any:
    """`annotation` with type variables replaced: `list[T]` and `{T: int}` give `list[int]`."""
    if isinstance(annotation, TypeVar):
        return arguments.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if not parameters or isinstance(annotation, type):
        return annotation
    return annotation[tuple(arguments.get(parameter, parameter) for parameter in parameters)]


def runtime_class(annotation: Any) -> type | None:
    """The class whose instances this annotation means, for `isinstance`; None where there is no single one."""
    if type(annotation) is type:
        return annotation  # a bare class, as most are
    bare, _ = split(annotation)
    if is_alias(bare):
        return runtime_class(alias_value(bare))
    while hasattr(bare, "__supertype__"):
        bare = bare.__supertype__
    if bare is None:
        return types.NoneType
    if is_union(bare):
        return None
    found = get_origin(bare) or bare
    if found is Any:
        return object
    return found if isinstance(found, type) else None


def structural_key(annotation: Any) -> Any:
    """A hashable key that tells annotations apart which Python calls equal.

    `int | str == str | int` and `Literal[1] == Literal[True]` hold in Python; here order and types count. Classes and
    metadata count by identity, so what stores the key must also keep the annotation alive.
    """
    if type(annotation) is type:
        return id(annotation)
    if isinstance(annotation, list):  # of a Callable
        return ("list", *map(structural_key, annotation))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None:
        return ("text", annotation) if isinstance(annotation, str) else id(annotation)
    if origin is Literal:
        plain = (str, int, bool, bytes)
        return ("literal", *((id(type(v)), v if type(v) in plain else id(v)) for v in arguments))
    if origin is Annotated:
        return ("annotated", structural_key(annotation.__origin__), *map(id, annotation.__metadata__))
    inner = tuple(map(structural_key, arguments))
    return ("union", *inner) if is_union(annotation) else (id(origin), *inner)


def qualified_name(annotation: Any) -> str:
    """The full name of a type, generics included: `list[dict[str, pkg.mod.MyObject]]`; builtins without a module.

    Args:
        annotation: The type.
    """
    bare, _ = split(annotation)
    if bare is None or bare is types.NoneType:
        return "None"
    if bare is ...:
        return "..."
    if isinstance(bare, list):  # of a Callable
        return f"[{', '.join(map(qualified_name, bare))}]"
    if is_union(bare):
        return " | ".join(map(qualified_name, get_args(bare)))
    origin, arguments = get_origin(bare), get_args(bare)
    if origin is Literal:
        return f"Literal[{', '.join(map(_value_name, arguments))}]"
    if origin is not None and not arguments and origin is not tuple:
        return _plain_name(origin)
    if origin is not None:
        inner = ", ".join(map(qualified_name, arguments))
        return f"{_plain_name(origin)}[{inner or '()'}]"
    return bare if isinstance(bare, str) else _plain_name(bare)


def _plain_name(annotation: Any) -> str:
    name = getattr(annotation, "__qualname__", None) or getattr(annotation, "__name__", None)
    if name is None:
        return str(annotation).removeprefix("typing.")
    module = getattr(annotation, "__module__", None) or "builtins"
    if module.partition(".")[0] in sys.stdlib_module_names:
        module = module.partition("._")[0]  # `pathlib._local.Path` on 3.13 is `pathlib.Path` everywhere
    return name if module in ("builtins", "typing", "typing_extensions") else f"{module}.{name}"


def _value_name(value: Any) -> str:
    import enum

    return f"{_plain_name(type(value))}.{value.name}" if isinstance(value, enum.Enum) else repr(value)


# Classes whose subclasses would arrive as the class itself.
_MAPPED = frozenset(
    {"bytes", "decimal.Decimal", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple", "uuid.UUID"}
    | {f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta")}
)
_HANDLER = "register a TypeHandler for it, or annotate Injected[...] if the program provides it"


def refuse_unknown(annotation: Any) -> NoReturn:
    """Raise the `RegistrationError` for an annotation without a handler: one line that names it and the remedy."""
    name = qualified_name(annotation)
    if isinstance(annotation, (str, ForwardRef)):
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        remedy = "import it at run time (not only under TYPE_CHECKING), or define it before the tool is registered"
        raise RegistrationError(f"the name {text!r} in an annotation cannot be resolved; {remedy}")
    raise RegistrationError(f"no type handler maps {name}: {_remedy(annotation)}")


def _remedy(annotation: Any) -> str:
    origin = get_origin(annotation) or annotation
    if not isinstance(origin, type):
        return _special(annotation)
    from pegboard._base.known_packs import how_to_get, pack_for_class

    pack = pack_for_class(origin)
    if pack is not None:
        injected = f"annotate Injected[{origin.__name__}] if the program provides it"
        return f"{injected}; {pack.distribution} maps it for the model. {how_to_get(pack)}"
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
