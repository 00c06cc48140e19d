"""The built-in types: scalars, types that are written as text, choices and unions, containers."""

from __future__ import annotations

import collections
import enum
import re
import sys
from collections import abc
from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any, Final, Literal, LiteralString, get_args, get_origin

from pegboard._base.errors import Mismatch, RegistrationError
from pegboard._model import shapes
from pegboard._model.shapes import Convert, JsonSchema, TypePlan, identity
from pegboard._model.subschemas import TYPE_NAMES, distinct
from pegboard._schema.nodes import SchemaNode
from pegboard._types.annotations import is_union, qualified_name, refuse_unknown
from pegboard._types.json_kinds import kinds, plain
from pegboard._types.plans import shaped
from pegboard.extension import TypeHandler, Types
from pegboard.hookspecs import hookimpl

# Types that JSON has itself ----------------------------------------------------------------------------------------

_SCALARS: tuple[tuple[Any, type, dict[str, Any]], ...] = (
    (str, str, {"type": "string"}),
    (int, int, {"type": "integer"}),
    (float, float, {"type": "number"}),
    (bool, bool, {"type": "boolean"}),
    (NoneType, NoneType, {"type": "null"}),
    (object, object, {}),
    (Any, object, {}),
    (None, NoneType, {"type": "null"}),
    (LiteralString, str, {"type": "string"}),
)


def _scalar(scalar: Any, kind: type, schema: dict[str, Any]) -> TypeHandler:
    plan = shaped(SchemaNode(schema, partial(qualified_name, scalar)), shapes.Scalar(kind))

    def build(annotation: Any, types: Types) -> TypePlan:
        return plan if annotation is scalar else refuse_unknown(annotation)

    return TypeHandler(scalar if isinstance(scalar, type) else (lambda annotation: annotation is scalar), build)


# Types that are written as JSON strings ----------------------------------------------------------------------------
# Nothing of theirs is loaded before an annotation names one: to name `decimal.Decimal`, a program has loaded `decimal`.

# A class before its base: `datetime` is a `date`, and both handlers are asked about it.
_LATER = (
    *(("datetime", name) for name in ("datetime", "date", "time", "timedelta")),
    *(("ipaddress", name) for name in ("IPv4Address", "IPv6Address")),
    *(("uuid", "UUID"), ("decimal", "Decimal")),
)


class _Later:
    """Matches a class, and those below it, that may not be loaded yet: no annotation can name it before."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, annotation: Any) -> bool:
        cls = getattr(sys.modules.get(self._module), self._name, None)
        return cls is not None and isinstance(annotation, type) and issubclass(annotation, cls)

    def __str__(self) -> str:
        return f"{self._module}.{self._name}"


def _text(annotation: Any, types: Types) -> TypePlan:
    from pegboard.builtin.readings import TEXTS

    known = TEXTS.get(annotation if get_args(annotation) != (str,) else get_origin(annotation))
    if known is None:  # a subclass would arrive as its base
        return refuse_unknown(annotation)
    schema, parse, write, repair = known
    example = "12.50" if schema.keys() == {"pattern"} else ""  # a decimal: no format has an example of it
    return shaped({"type": "string", **schema}, shapes.Text(parse, (), example, repair), write)


# Choices -----------------------------------------------------------------------------------------------------------

_JSON_NAMES = {kind: name for kind, name in TYPE_NAMES.items() if kind not in (list, dict)}


def _union(annotation: Any, types: Types) -> TypePlan:
    from pegboard._types.unions import union_plan

    return union_plan(annotation, types)


def _literal(annotation: Any, types: Types) -> TypePlan:
    pairs = [(_raw(value), value) for value in get_args(annotation)]
    types.contains(*(type(value) for _, value in pairs if isinstance(value, enum.Enum)))
    strange = next((value for raw, value in pairs if type(raw) not in _JSON_NAMES), None)
    if strange is not None:
        name = qualified_name(annotation)
        raise RegistrationError(f"{name} cannot be sent as JSON: {strange!r} is not a JSON scalar")
    names = {value.name: value for _, value in pairs if isinstance(value, enum.Enum)}
    return shaped(_choice_schema(pairs), shapes.Choice(tuple(pairs), names), _raw)


def _raw(value: Any) -> Any:
    """The JSON value of a literal: an enum member stands for its value, or for its name if that is no JSON scalar."""
    if not isinstance(value, enum.Enum):
        return value
    if not all(isinstance(member.value, tuple(_JSON_NAMES)) for member in type(value)):
        return value.name
    # The value of a member of `class Color(str, Enum)` may itself be of a subclass of str.
    return value.value if type(value.value) in _JSON_NAMES else plain(value.value)


def _enum(annotation: Any, types: Types) -> TypePlan:
    pairs = [(_raw(member), member) for member in annotation]
    if not pairs:
        raise RegistrationError(f"the enum {qualified_name(annotation)} has no members, so no value fits it")
    return shaped(_choice_schema(pairs), shapes.Choice(tuple(pairs), dict(annotation.__members__)), _raw)


def _choice_schema(pairs: list[tuple[Any, Any]]) -> JsonSchema:
    values = distinct([raw for raw, _ in pairs])
    classes = {type(value) for value in values}
    typed = {"type": _JSON_NAMES[classes.pop()]} if len(classes) == 1 else {}
    return {**typed, "const": values[0]} if len(values) == 1 else {**typed, "enum": values}


# Containers, under their own and their abstract names ---------------------------------------------------------------

_INTEGER_KEY = r"^(0|-?[1-9][0-9]*)$"
_JSON_SCALAR = str | int | float | bool | None


def _exactly(cls: type, build: Callable[[Any, Types], TypePlan]) -> Callable[[Any, Types], TypePlan]:
    def guarded(annotation: Any, types: Types) -> TypePlan:
        return build(annotation, types) if (get_origin(annotation) or annotation) is cls else refuse_unknown(annotation)

    return guarded


def _items_builder(build: Callable[[list[Any]], Any]) -> Callable[[Any, Types], TypePlan]:
    unique = build in (set, frozenset)

    def plan(annotation: Any, types: Types) -> TypePlan:
        (item,) = get_args(annotation) or (Any,)
        inner = types.plan(item)
        if unique:
            inner = _hashable(annotation, inner, types)
        return _array(inner, build, unique=unique)

    return plan


def _array(item: TypePlan, build: Callable[[list[Any]], Any], *, unique: bool = False) -> TypePlan:
    schema: JsonSchema = {"type": "array", "items": item.schema}
    if unique:
        schema["uniqueItems"] = True
    return shaped(schema, shapes.Items(item, build, unique=unique), _array_writer(item, build, unique))


def _array_writer(item: TypePlan, build: Callable[[list[Any]], Any], unique: bool) -> Convert:
    write = item.unstructure
    if build is list and write is identity:
        return list
    return (lambda value: sorted(map(write, value), key=_rank)) if unique else (lambda value: list(map(write, value)))


def _rank(value: Any) -> tuple[str, Any]:
    """Orders the members of a set alike from run to run."""
    if isinstance(value, (int, float)):
        return "", value
    return type(value).__name__, value if isinstance(value, str) else repr(value)


def _hashable(annotation: Any, item: TypePlan, types: Types) -> TypePlan:
    """The plan of a set's items, which have to be hashable: `set[Any]` holds JSON scalars."""
    if isinstance(item.shape, shapes.Scalar) and item.shape.type is object:
        return types.plan(_JSON_SCALAR)
    if not _is_hashable(item.shape):
        name = qualified_name(annotation)
        raise RegistrationError(f"the items of {name} are not hashable; use a list, tuple items or a frozen class")
    return item


def _is_hashable(shape: shapes.Shape | None) -> bool:
    match shape:
        case shapes.Scalar(type=kind):
            return kind is not object
        case shapes.Items(build=build) if build not in (tuple, frozenset):
            return False
        case shapes.Mapped():
            return False
        case shapes.Record(build=build):
            return getattr(build, "__hash__", None) is not None
        case None | shapes.Deferred():
            return True
    return all(_is_hashable(part.shape) for part in shape.parts())


def _tuple(annotation: Any, types: Types) -> TypePlan:
    arguments = get_args(annotation)
    if not hasattr(annotation, "__args__"):  # `tuple` and `typing.Tuple`; those of `tuple[()]` are there, but none
        arguments = (Any, ...)
    if any(map(_is_unpacked, arguments)):
        name = qualified_name(annotation)
        raise RegistrationError(f"{name} unpacks a tuple inside a tuple; write out its items, or use a list")
    if len(arguments) == 2 and arguments[1] is ...:
        return _array(types.plan(arguments[0]), tuple)
    items = tuple(map(types.plan, arguments))
    schema: JsonSchema = {"type": "array"}
    if items:
        schema.update(prefixItems=[item.schema for item in items], minItems=len(items))
    schema["maxItems"] = len(items)
    return shaped(schema, shapes.FixedItems(items), _tuple_writer([item.unstructure for item in items]))


def _tuple_writer(writers: list[Convert]) -> Convert:
    return lambda value: [write(inner) for write, inner in zip(writers, value, strict=True)]


def _is_unpacked(annotation: Any) -> bool:
    return bool(getattr(annotation, "__unpacked__", False)) or getattr(get_origin(annotation), "_name", "") == "Unpack"


def _mapping(annotation: Any, types: Types) -> TypePlan:
    key_type, value_type = get_args(annotation) or (str, Any)
    key, value = _key(key_type, types), types.plan(value_type)
    schema: JsonSchema = {"type": "object"}
    if key is not None:
        schema["propertyNames"] = key.schema
    schema["additionalProperties"] = value.schema or True
    return shaped(schema, shapes.Mapped(key, value), _mapping_writer(key, value))


def _mapping_writer(key: TypePlan | None, value: TypePlan) -> Convert:
    write = value.unstructure
    if key is None:
        return dict if write is identity else (lambda mapping: {name: write(inner) for name, inner in mapping.items()})
    write_key = key.unstructure
    return lambda mapping: {write_key(name): write(inner) for name, inner in mapping.items()}


def _key(annotation: Any, types: Types) -> TypePlan | None:
    """How keys are read from their text; None for keys that are just text. Raises for types that no text stands for."""
    plan = types.plan(annotation)
    shape = plan.shape
    if isinstance(shape, shapes.Scalar) and not shape.checks:
        if shape.type in (str, object):
            return None
        if shape.type is int:
            return shaped({"pattern": _INTEGER_KEY}, shapes.Text(_integer_key), str)
    if isinstance(shape, shapes.Choice) and all(type(value) is int for value, _ in shape.pairs):
        return _integer_choice(plan, shape)
    if kinds(plan).keys() == {str}:
        return plan
    how = "use str, int, an enum, or a list of pairs"
    raise RegistrationError(f"{qualified_name(annotation)} cannot be the key of a mapping: JSON keys are text; {how}")


def _integer_key(text: str) -> int:
    if re.search(_INTEGER_KEY, text) is None:
        raise Mismatch
    return int(text)


def _integer_choice(plan: TypePlan, shape: shapes.Choice) -> TypePlan:
    pairs = tuple((str(value), meaning) for value, meaning in shape.pairs)
    write = plan.unstructure
    return shaped({"enum": [text for text, _ in pairs]}, shapes.Choice(pairs, shape.names), lambda key: str(write(key)))


_BUILDERS: tuple[tuple[tuple[Any, ...], Callable[[Any, Types], TypePlan]], ...] = (
    ((list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection), _items_builder(list)),
    ((collections.deque,), _items_builder(collections.deque)),
    ((set, abc.Set, abc.MutableSet), _items_builder(set)),
    ((frozenset,), _items_builder(frozenset)),
    ((tuple,), _tuple),
    ((dict, abc.Mapping, abc.MutableMapping), _mapping),
)


# What is looked up by class refuses subclasses: they would arrive as their base.
_HANDLERS: Final = (
    *(_scalar(*each) for each in _SCALARS),
    TypeHandler(bytes, _text),
    TypeHandler(re.Pattern, _text),
    *(TypeHandler(_Later(module, name), _text) for module, name in _LATER),
    TypeHandler(_Later("pathlib", "PurePath"), lambda cls, types: shaped({"type": "string"}, shapes.Text(cls), str)),
    TypeHandler(lambda annotation: getattr(annotation, "__origin__", None) is Literal, _literal),
    # A predicate, since StrEnum stands behind `str` in its own bases.
    TypeHandler(lambda annotation: isinstance(annotation, enum.EnumMeta), _enum),
    TypeHandler(is_union, _union),
    *(TypeHandler(cls, _exactly(cls, build)) for classes, build in _BUILDERS for cls in classes),
)


@hookimpl
def provide_types() -> tuple[TypeHandler, ...]:
    """Scalars, types written as text, choices and unions, containers."""
    return _HANDLERS
