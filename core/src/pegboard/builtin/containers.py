"""Containers: lists, tuples, sets and mappings, under their own and their abstract names."""

from __future__ import annotations

import collections
import re
from collections import abc
from collections.abc import Callable
from typing import Any, Final, get_args, get_origin

from pegboard._base.errors import Mismatch, RegistrationError
from pegboard._model.shapes import (
    Choice,
    Deferred,
    FixedItems,
    Items,
    Mapped,
    Record,
    Scalar,
    Shape,
    Text,
    TypePlan,
    identity,
)
from pegboard._schema.nodes import JsonSchema
from pegboard._types.annotations import qualified_name, refuse_unknown
from pegboard._types.json_kinds import kinds
from pegboard._types.plans import shaped
from pegboard.extension import TypeHandler, Types

__all__ = ["HANDLERS"]

_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_SETS = (set, abc.Set, abc.MutableSet)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
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
    return shaped(schema, Items(item, build, unique=unique), _array_writer(item, build, unique))


def _array_writer(item: TypePlan, build: Callable[[list[Any]], Any], unique: bool) -> Callable[[Any], Any]:
    write = item.unstructure
    if build is list and write is identity:
        return list
    return (lambda value: _ordered(map(write, value))) if unique else (lambda value: list(map(write, value)))


def _ordered(values: abc.Iterable[Any]) -> list[Any]:
    """The members of a set in an order that does not change from run to run."""
    return sorted(values, key=_rank)


def _rank(value: Any) -> tuple[str, Any]:
    if isinstance(value, (int, float)):
        return "", value
    return type(value).__name__, value if isinstance(value, str) else repr(value)


def _hashable(annotation: Any, item: TypePlan, types: Types) -> TypePlan:
    """The plan of a set's items, which have to be hashable: `set[Any]` holds JSON scalars."""
    if isinstance(item.shape, Scalar) and item.shape.type is object:
        return types.plan(_JSON_SCALAR)
    if not _is_hashable(item.shape):
        name = qualified_name(annotation)
        raise RegistrationError(
            f"the items of {name} are not hashable; use a list, tuples for items, or a frozen class"
        )
    return item


def _is_hashable(shape: Shape | None) -> bool:
    match shape:
        case Scalar(type=kind):
            return kind is not object
        case Items(build=build) if build not in (tuple, frozenset):
            return False
        case Mapped():
            return False
        case Record(build=build):
            return getattr(build, "__hash__", None) is not None
        case None | Deferred():
            return True
    return all(_is_hashable(part.shape) for part in shape.parts())


def _tuple(annotation: Any, types: Types) -> TypePlan:
    arguments = get_args(annotation)
    if not hasattr(annotation, "__args__"):  # `tuple` and `typing.Tuple`; those of `tuple[()]` are there, but none
        arguments = (Any, ...)
    if any(getattr(argument, "__unpacked__", False) or _is_unpack(argument) for argument in arguments):
        name = qualified_name(annotation)
        raise RegistrationError(f"{name} unpacks a tuple inside a tuple; write out its items, or use a list")
    if len(arguments) == 2 and arguments[1] is ...:
        return _array(types.plan(arguments[0]), tuple)
    items = tuple(map(types.plan, arguments))
    schema: JsonSchema = {"type": "array"}
    if items:
        schema.update(prefixItems=[item.schema for item in items], minItems=len(items))
    schema["maxItems"] = len(items)
    return shaped(schema, FixedItems(items), _tuple_writer([item.unstructure for item in items]))


def _tuple_writer(writers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda value: [write(inner) for write, inner in zip(writers, value, strict=True)]


def _is_unpack(annotation: Any) -> bool:
    return getattr(get_origin(annotation), "_name", None) == "Unpack"


def _mapping(annotation: Any, types: Types) -> TypePlan:
    key_type, value_type = get_args(annotation) or (str, Any)
    key, value = _key(key_type, types), types.plan(value_type)
    schema: JsonSchema = {"type": "object"}
    if key is not None:
        schema["propertyNames"] = key.schema
    schema["additionalProperties"] = value.schema or True
    return shaped(schema, Mapped(key, value), _mapping_writer(key, value))


def _mapping_writer(key: TypePlan | None, value: TypePlan) -> Callable[[Any], Any]:
    write = value.unstructure
    if key is None:
        return dict if write is identity else (lambda mapping: {name: write(inner) for name, inner in mapping.items()})
    write_key = key.unstructure
    return lambda mapping: {write_key(name): write(inner) for name, inner in mapping.items()}


def _key(annotation: Any, types: Types) -> TypePlan | None:
    """How keys are read from their text; None for keys that are just text. Raises for types that no text stands for."""
    plan = types.plan(annotation)
    shape = plan.shape
    if isinstance(shape, Scalar) and not shape.checks:
        if shape.type in (str, object):
            return None
        if shape.type is int:
            return shaped({"pattern": _INTEGER_KEY}, Text(_integer_key), str)
    if isinstance(shape, Choice) and all(type(value) is int for value, _ in shape.pairs):
        return _integer_choice(plan, shape)
    if kinds(plan).keys() == {str}:
        return plan
    raise RegistrationError(
        f"{qualified_name(annotation)} cannot be the key of a mapping: JSON keys are text; use str, int, an enum, or a "
        "list of pairs"
    )


def _integer_key(text: str) -> int:
    if re.search(_INTEGER_KEY, text) is None:
        raise Mismatch
    return int(text)


def _integer_choice(plan: TypePlan, shape: Choice) -> TypePlan:
    pairs = tuple((str(value), meaning) for value, meaning in shape.pairs)
    write = plan.unstructure
    return shaped({"enum": [text for text, _ in pairs]}, Choice(pairs, shape.names), lambda key: str(write(key)))


_BUILDERS: tuple[tuple[tuple[Any, ...], Callable[[Any, Types], TypePlan]], ...] = (
    (_LISTS, _items_builder(list)),
    ((collections.deque,), _items_builder(collections.deque)),
    (_SETS, _items_builder(set)),
    ((frozenset,), _items_builder(frozenset)),
    ((tuple,), _tuple),
    (_MAPPINGS, _mapping),
)
HANDLERS: Final = tuple(TypeHandler(cls, _exactly(cls, build)) for classes, build in _BUILDERS for cls in classes)
"""One for each container; subclasses are refused, since they would arrive as their base."""
