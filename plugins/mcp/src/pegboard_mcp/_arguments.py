"""Checks of constructor arguments: a wrong one is an error at once, not a connection that fails later."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

__all__ = [
    "check_names",
    "count",
    "function",
    "http_url",
    "scopes",
    "seconds",
    "several",
    "text",
    "texts",
    "texts_by_name",
]

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - what RFC 9110 calls a token


def text(what: str, value: Any, *, may_be_empty: bool = False) -> str:
    """A text, or a path as text. Raises ValueError for other types and for blank text.

    The message shows no value, which may be secret.
    """
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise ValueError(f"{what} must be a text, not {type(value).__name__}")
    if not may_be_empty and not found.strip():
        raise ValueError(f"{what} cannot be {'blank' if found else 'empty'}")
    return found


def texts(what: str, values: Any) -> tuple[str, ...]:
    """Raises ValueError for anything but a list of texts; a single text is refused too."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{what} must be a list of texts, not {type(values).__name__}")
    return tuple(text(f"{what}[{index}]", each, may_be_empty=True) for index, each in enumerate(values))


def several(what: str, values: Any) -> tuple[str, ...]:
    """A text, or texts. Raises ValueError for anything else."""
    return (values,) if isinstance(values, str) else texts(what, values)


def scopes(what: str, values: Any) -> tuple[str, ...]:
    """Scopes, or one text with blanks between them, as tokens have it."""
    return tuple(values.split()) if isinstance(values, str) else texts(what, values)


def texts_by_name(what: str, values: Any, *, headers: bool = False) -> dict[str, str] | None:
    """Raises ValueError for what is no mapping of names to texts, nor of headers if it is to be one."""
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise ValueError(f"{what} must be a mapping of texts, not {type(values).__name__}")
    found = {}
    for name, value in values.items():
        given = found[text(f"a name in {what}", name)] = text(f"{what}[{name!r}]", value, may_be_empty=True)
        if headers and not re.fullmatch(_TOKEN, name):
            raise ValueError(f"{name!r} is no name of a header")
        if headers and re.search(r"[\0\r\n]", given):
            raise ValueError(f"{what}[{name!r}] holds characters that no header has")
    return found


def seconds(what: str, value: Any, *, or_none: bool = False) -> float | None:
    """Raises ValueError for anything but a number above 0."""
    if value is None and or_none:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise ValueError(f"{what} must be a number of seconds above 0{', or None' * or_none}; it is {value!r}")
    return value


def count(what: str, value: Any) -> int:
    """Raises ValueError for anything but a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{what} must be a whole number above 0; it is {value!r}")
    return value


def http_url(url: Any, what: str = "url") -> str:
    """Raises ValueError for anything but an http(s) URL. Variables in it are read when the server is connected."""
    found = text(what, url)
    if "$" in found:
        return found
    try:
        parts = urlsplit(found)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"{what} takes http(s)://host/path")  # it may hold a password
    return found


def function(what: str, value: Any) -> Any:
    """Raises ValueError for anything but None and callables."""
    if value is not None and not callable(value):
        raise ValueError(f"{what} must be a function, not {type(value).__name__}")
    return value


def check_names(what: str, options: Mapping[str, Any], known: Collection[str]) -> None:
    """Raises TypeError for an unknown option: a misspelled one must not leave anything unguarded."""
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        close = get_close_matches(unknown, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(sorted(known))}"
        raise TypeError(f"{what}() has no option {unknown!r}; {hint}")
