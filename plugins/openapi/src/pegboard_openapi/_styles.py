"""Styles: how arrays and objects become text in paths, queries, headers and cookies, as RFC 6570 and OpenAPI say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

__all__ = ["Pair", "encode", "header", "joined", "pairs", "path", "text"]

Pair: TypeAlias = tuple[str, str]

# Tabs, and in headers and paths anything but commas, are of Swagger 2.0.
_DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}


def text(value: Any) -> str:
    """A scalar as text; what is nested where a style knows no nesting is JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encode(value: Any) -> str:
    """The text of a value as one part of a URL: characters with a meaning there are escaped."""
    return quote(text(value), safe="")


def pairs(name: str, value: Any, style: str, explode: bool) -> Iterator[Pair]:
    """Names and values of a query or a form, encoded. Null, an empty array and an empty object are left out."""
    if value is None or value in ([], {}):
        return
    if style == "deepObject" and isinstance(value, dict):
        yield from _deep(name, value)
    elif not isinstance(value, list | dict):
        yield encode(name), encode(value)
    elif not explode:
        yield encode(name), _DELIMITERS.get(style, ",").join(_flat(value, encode))
    elif isinstance(value, list):
        yield from ((encode(name), encode(each)) for each in value if each is not None)
    else:
        yield from ((encode(key), encode(each)) for key, each in value.items() if each is not None)


def header(value: Any, explode: bool, style: str = "simple") -> str:
    """The value of a header, in the style `simple` or that of an array of Swagger 2.0."""
    return _simple(value, explode, text, unquote(_DELIMITERS.get(style, ",")))


def joined(value: list[Any], style: str) -> str:
    """An array as one text, not encoded, as it stands in a part of a form."""
    return unquote(_DELIMITERS.get(style, ",")).join(_flat(value, text))


def path(name: str, value: Any, style: str, explode: bool) -> str:
    """A part of a path, in the style `simple`, `label` or `matrix`."""
    if style == "label":
        return f".{_simple(value, explode, encode, '.' if explode else ',')}"
    if style == "matrix":
        return "".join(_matrix(name, value, explode))
    return _simple(value, explode, encode, _DELIMITERS.get(style, ","))


def _simple(value: Any, explode: bool, written: Callable[[Any], str], delimiter: str) -> str:
    if isinstance(value, dict) and explode:
        return delimiter.join(f"{written(key)}={written(each)}" for key, each in value.items() if each is not None)
    return delimiter.join(_flat(value, written))


def _matrix(name: str, value: Any, explode: bool) -> Iterator[str]:
    if explode and isinstance(value, list | dict):
        yield from (f";{key}={each}" for key, each in pairs(name, value, "form", explode))
    else:
        joined = ",".join(_flat(value, encode))
        yield f";{encode(name)}={joined}" if joined else f";{encode(name)}"


def _flat(value: Any, written: Callable[[Any], str]) -> list[str]:
    """The items of an array, the names and values of an object in turn, or the one scalar."""
    if isinstance(value, dict):
        return [written(part) for key, each in value.items() if each is not None for part in (key, each)]
    if isinstance(value, list):
        return [written(each) for each in value if each is not None]
    return [written(value)]


def _deep(name: str, value: Any) -> Iterator[Pair]:
    """`name[key]=value`; deeper than OpenAPI says in the way that is common, `name[key][inner]=value`."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _deep(f"{name}[{key}]", each)
    elif isinstance(value, list):
        for each in value:
            yield from _deep(f"{name}[]" if isinstance(each, dict | list) else name, each)
    elif value is not None:
        yield encode(name), encode(value)
