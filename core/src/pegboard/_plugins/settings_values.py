"""Values of settings: structured strictly into what a field is annotated with, or read from text."""

from __future__ import annotations

import datetime as dt
import json
from collections import abc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, get_args, get_type_hints

import attrs
from attrs import evolve, field, frozen

from pegboard._base.records import Compared
from pegboard._model.shapes import Member, Record, Scalar, TypePlan, Union
from pegboard._model.tool import Origin
from pegboard._types.annotations import is_union
from pegboard._types.plans import shaped
from pegboard._types.table import TypeTable
from pegboard.extension import TypeHandler, Types


@frozen(eq=False, repr=False)
class Setting(Compared):
    """An effective value and where it came from; the value of a secret one is `***`."""

    section: str
    key: str
    value: Any
    source: str


@frozen
class OwnSettings:
    """Those of Pegboard itself: which pack's handler maps a type for all tools, by the type's full name."""

    types: dict[str, str] = field(factory=dict)


_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_KINDS = {
    bool: "a boolean",
    bytes: "bytes",
    dict: "a table",
    float: "a number",
    int: "an integer",
    list: "an array",
    str: "text",
    type(None): "null",
}
_MOMENTS = (dt.date, dt.datetime, dt.time)


def type_table(handlers: Iterable[TypeHandler]) -> TypeTable:
    """What structures settings: these handlers and attrs classes; besides JSON they take Python objects that fit."""
    table = TypeTable()
    frozen_arrays = (TypeHandler(cls, _tuple) for cls in (abc.Sequence, abc.Collection, abc.Iterable))
    for handler in (TypeHandler(attrs.has, _record), TypeHandler(is_union, _union), *frozen_arrays, *handlers):
        table.add(evolve(handler, build=partial(_or_instance, handler.build)), Origin(), "builtin")
    return table


def structure(value: Any, annotation: Any, types: TypeTable) -> Any:
    """`value` as `annotation` wants it, or an exception. Integers may be floats, and text a path or a date."""
    return value if _is_instance(value, annotation) else types.plan(annotation).structure(value)


def from_text(text: str, annotation: Any, types: TypeTable) -> Any:
    """The value that text from the environment stands for, or an exception.

    Text is taken as it is where the field takes text; else it is read as TOML or JSON, a list also as `a,b`.
    """
    for candidate in _readings(text):
        try:
            return structure(candidate, annotation, types)
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


def _or_instance(build: Callable[[Any, Types], TypePlan], annotation: Any, types: Types) -> TypePlan:
    """The plan of a type, which takes what the program's own argument or TOML may bring besides: objects, tuples."""
    plan = build(annotation, types)
    if isinstance(plan.shape, Scalar):
        return plan

    def structure(value: Any) -> Any:
        if _is_instance(value, annotation):
            return value
        if isinstance(value, tuple | set | frozenset):
            return plan.structure(list(value))
        return plan.structure(dict(value) if isinstance(value, abc.Mapping) else value)

    return TypePlan(plan.schema, structure, plan.unstructure)


def _is_instance(value: Any, annotation: Any) -> bool:
    """Whether a value is what the annotation wants already; JSON is for the plan, and a datetime is no date here."""
    if annotation in (Any, object) or type(value) is annotation:
        return True
    try:
        return type(value) not in (*_KINDS, *_MOMENTS) and isinstance(value, annotation)
    except TypeError:  # an annotation that is no class
        return False


def _record(cls: Any, types: Types) -> TypePlan:
    hints = get_type_hints(cls, include_extras=True)
    members = (
        Member(field.alias, field.alias, types.plan(hints.get(field.name, Any)), field.default is attrs.NOTHING)
        for field in attrs.fields(cls)
        if field.init
    )
    return shaped({"type": "object"}, Record(cls, tuple(members), cls.__name__))


def _tuple(annotation: Any, types: Types) -> TypePlan:
    return types.plan(tuple[(*(get_args(annotation) or (Any,)), ...)])  # type: ignore[misc]  # made at run time


def _union(annotation: Any, types: Types) -> TypePlan:
    """As any union, but that what no JSON could be is no mistake in `str | Path`: a program may hand in a path."""
    members = tuple(map(types.plan, get_args(annotation)))
    return shaped({"anyOf": [member.schema for member in members]}, Union(members))
