"""Values of settings: structured strictly into what a field is annotated with, or read from text."""

from __future__ import annotations

import datetime as dt
import functools
import json
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from pegboard._base.records import Compared

__all__ = ["Setting", "describe_type", "describe_value", "from_text", "structure"]


@frozen(eq=False, repr=False)
class Setting(Compared):
    """An effective value and where it came from; the value of a secret one is `***`."""

    section: str
    key: str
    value: Any
    source: str


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
_COLLECTIONS = (list, tuple, set, frozenset)


def structure(value: Any, annotation: Any) -> Any:
    """`value` as `annotation` wants it, or an exception. Integers may be floats, and text a path or a date."""
    if annotation in (Any, object):
        return value
    if isinstance(annotation, type) and annotation not in (*_KINDS, *_MOMENTS) and isinstance(value, annotation):
        return value  # a Python object from the program's own argument
    return _converter().structure(value, annotation)


def from_text(text: str, annotation: Any) -> Any:
    """The value that text from the environment stands for, or an exception.

    Text is taken as it is where the field takes text; else it is read as TOML or JSON, a list also as `a,b`.
    """
    for candidate in _readings(text):
        try:
            return structure(candidate, annotation)
        except Exception:  # noqa: BLE001, S112 - the next reading may fit; that none did is said below
            continue
    raise ValueError("no reading of this text fits")


def describe_type(annotation: Any) -> str:
    """An annotation as its author wrote it, more or less: `int`, `list[str]`."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
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


@functools.cache
def _converter() -> Any:
    """A cattrs converter without its lenient hooks: `int("3")`, `bool("no")` and `list("abc")` would hide mistakes."""
    import attrs
    import cattrs
    from cattrs.gen import make_dict_structure_fn

    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind in (bool, bytes, int, str):
        converter.register_structure_hook(kind, _exactly(kind))
    converter.register_structure_hook(float, _number)
    for moment in _MOMENTS:
        converter.register_structure_hook(moment, _moment)
    converter.register_structure_hook_func(lambda kind: isinstance(kind, type) and issubclass(kind, Path), _path)
    converter.register_structure_hook_func(_is_collection, _collection)
    converter.register_structure_hook_func(_is_union, _union)
    converter.register_structure_hook_factory(
        attrs.has, lambda cls: make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)
    )
    return converter


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def check(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(kind.__name__)
        return value

    return check


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError("float")
    return float(value)


def _moment(value: Any, kind: Any) -> Any:
    # TOML has dates of its own; text is for the environment. A datetime is a date for Python, not here.
    if type(value) is kind:
        return value
    if not isinstance(value, str):
        raise TypeError(kind.__name__)
    return kind.fromisoformat(value)


def _path(value: Any, kind: Any) -> Path:
    if not isinstance(value, (str, Path)):
        raise TypeError("path")
    return kind(value)  # type: ignore[no-any-return]  # the predicate lets only Path through


def _is_collection(annotation: Any) -> bool:
    return _build(annotation) is not None


def _build(annotation: Any) -> type | None:
    from collections import abc

    origin = typing.get_origin(annotation) or annotation
    if origin in (abc.Sequence, abc.Collection, abc.Iterable):
        return tuple
    return origin if origin in _COLLECTIONS else None


def _collection(value: Any, annotation: Any) -> Any:
    if not isinstance(value, _COLLECTIONS):
        raise TypeError("array")
    build, arguments = _build(annotation) or list, typing.get_args(annotation)
    if build is tuple and arguments and arguments[-1] is not Ellipsis and typing.get_origin(annotation) is tuple:
        return tuple(structure(item, kind) for item, kind in zip(value, arguments, strict=True))
    item_type = arguments[0] if arguments else Any
    return build(structure(item, item_type) for item in value)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _union(value: Any, annotation: Any) -> Any:
    # The exact type first: 1 is an int before it is a float.
    members = sorted(typing.get_args(annotation), key=lambda member: type(value) is not member)
    for member in members:
        if member is type(None):
            if value is None:
                return None
            continue
        try:
            return structure(value, member)
        except Exception:  # noqa: BLE001, S112 - the next member may fit
            continue
    raise TypeError("union")
