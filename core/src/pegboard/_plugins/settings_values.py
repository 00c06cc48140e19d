"""Values of settings: structured strictly into what a field is annotated with, or read from text."""

from __future__ import annotations

import datetime as dt
import json
from collections import abc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_origin

import attrs
import cattrs
from attrs import field, frozen
from cattrs.cols import is_mapping, list_structure_factory, mapping_structure_factory
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_hetero_tuple_structure_fn

from pegboard._base.errors import Mismatch, suggestion
from pegboard._base.records import Compared
from pegboard._model.subschemas import TYPE_NAMES
from pegboard._model.tool import Origin
from pegboard._types.annotations import is_union
from pegboard._types.table import TypeTable
from pegboard.extension import TypeHandler

Structure: TypeAlias = Callable[[Any, Any], Any]


@frozen(eq=False, repr=False)
class Setting(Compared):
    """An effective value and its source.

    Args:
        section: Name of the pack.
        key: Name of the setting.
        value: The value; `***` for a secret one.
        source: Where it came from.
    """

    section: str
    key: str
    value: Any
    source: str


@frozen
class OwnSettings:
    """Those of Pegboard itself: which pack's handler maps a type for all tools, by the type's full name."""

    types: dict[str, str] = field(factory=dict)


_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_KINDS = {**TYPE_NAMES, bytes: "bytes"}
_MOMENTS = (dt.date, dt.datetime, dt.time)


def strict_converter(handlers: Iterable[TypeHandler]) -> cattrs.Converter:
    """What structures settings: classes and containers as cattrs does, what is in them as these handlers do.

    Nothing is converted: cattrs' own `bool("no")`, `int(5.7)` and `list("abc")` are never reached, and a key that a
    class does not have is refused. Besides JSON and TOML it takes Python objects that fit already.
    """
    table = TypeTable()
    for handler in handlers:
        table.add(handler, Origin(), "builtin")
    converter = cattrs.Converter()

    def by_plan(value: Any, annotation: Any) -> Any:
        return value if _is_instance(value, annotation) else table.plan(annotation).structure(value)

    # Of hooks the last one that fits counts, but for classes that have one of their own.
    converter.register_structure_hook_func(lambda annotation: True, by_plan)
    for cls in (str, bytes, int, float, Path):
        converter.register_structure_hook(cls, by_plan)
    for fits, factory in ((is_union, _union), (_is_array, _array), (is_mapping, _mapping), (attrs.has, _record)):
        converter.register_structure_hook_factory(fits, factory)
    return converter


def _union(annotation: Any, converter: cattrs.Converter) -> Structure:
    """The member that a value is of exactly, else the first one that takes it: `str | Path` has both."""
    members = get_args(annotation)

    def structure(value: Any, _: Any) -> Any:
        for member in sorted(members, key=lambda member: type(value) is not member):
            try:
                return converter.structure(value, member)
            except Exception:  # noqa: BLE001, S112 - the next member may take it
                continue
        raise Mismatch("no member of the union takes it")

    return structure


_ARRAYS = (list, tuple, set, frozenset, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable)
_MUTABLE = (list, abc.MutableSequence)


def _is_array(annotation: Any) -> bool:
    return (get_origin(annotation) or annotation) in _ARRAYS


def _array(annotation: Any, converter: cattrs.Converter) -> Structure:
    origin, items = get_origin(annotation) or annotation, get_args(annotation) or (Any,)
    if origin is tuple and items[-1] is not ... and get_args(annotation):
        return _only((list, tuple), make_hetero_tuple_structure_fn(annotation, converter))
    build: Any = list if origin in _MUTABLE else origin if origin in (set, frozenset) else tuple
    read = list_structure_factory(list[items[0]], converter)  # type: ignore[valid-type]  # made at run time
    return _only((list, tuple, set, frozenset), lambda value, _: build(read(value, annotation)))


def _mapping(annotation: Any, converter: cattrs.Converter) -> Structure:
    return _only(abc.Mapping, mapping_structure_factory(annotation, converter))


def _record(cls: Any, converter: cattrs.Converter) -> Structure:
    options: dict[str, Any] = {"_cattrs_forbid_extra_keys": True, "_cattrs_use_alias": True}
    read = _only(abc.Mapping, make_dict_structure_fn(cls, converter, **options))
    return lambda value, _: value if isinstance(value, get_origin(cls) or cls) else read(value, cls)


def _only(kinds: Any, read: Structure) -> Structure:
    """What cattrs reads, of values of these kinds alone: it would take a text for an array."""

    def structure(value: Any, annotation: Any) -> Any:
        if not isinstance(value, kinds):
            raise Mismatch("a value of another kind")
        return read(value, annotation)

    return structure


def wrong_part(error: BaseException) -> str:
    """Where in a table the first thing is that its class refuses, as far as field names tell: never a value."""
    path: list[str] = []
    while isinstance(error, ClassValidationError):
        noted, others = error.group_exceptions()
        error, names = (noted[0][0], [noted[0][1].name]) if noted else (others[0], [])
        path += names
    if isinstance(error, ForbiddenExtraKeysError):
        known = [attribute.alias for attribute in attrs.fields(error.cl) if attribute.init]
        unknown = min(error.extra_fields)
        return ": ".join([*path, f"unknown key {unknown!r}. {suggestion(unknown, known, noun='keys')}"])
    return ".".join(path)


def from_text(text: str, annotation: Any, converter: cattrs.Converter) -> Any:
    """The value that text from the environment stands for, or an exception.

    Text is taken as it is where the field takes text; else it is read as TOML or JSON, a list also as `a,b`.
    """
    for candidate in _readings(text):
        try:
            return converter.structure(candidate, annotation)
        except Exception:  # noqa: BLE001, S112 - the next reading may fit; that none did is said below
            continue
    raise ValueError("no reading of this text fits")


def describe_type(annotation: Any) -> str:
    """An annotation as its author wrote it, more or less: `int`, `list[str]`."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def describe_value(value: Any) -> str:
    """The kind of a value, never the value itself: it may be secret."""
    return _KINDS.get(type(value), type(value).__name__)


def _readings(text: str) -> Iterator[Any]:
    yield text
    folded = text.strip().casefold()
    if folded in _BOOLEANS:
        yield _BOOLEANS[folded]
    for parse in (_toml, json.loads, lambda listed: _toml(f"[{listed}]")):
        try:
            yield parse(text)
        except (ValueError, RecursionError):
            continue
    yield [item.strip() for item in text.split(",") if item.strip()]


def _toml(text: str) -> Any:
    import tomllib

    content = tomllib.loads(f"value = {text}")
    if list(content) != ["value"]:
        raise ValueError("more than one value")
    return content["value"]


def _is_instance(value: Any, annotation: Any) -> bool:
    """Whether a value is what the annotation wants already; JSON is for the plan, and a datetime is no date here."""
    if annotation in (Any, object) or type(value) is annotation:
        return True
    try:
        return type(value) not in (*_KINDS, *_MOMENTS) and isinstance(value, annotation)
    except TypeError:  # an annotation that is no class
        return False
