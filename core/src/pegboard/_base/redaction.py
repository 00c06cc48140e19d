"""Redaction: secrets in all forms that encoders, escapes and protocols give them, taken out of texts that leave."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from functools import cached_property, partial
from itertools import islice
from json import dumps
from typing import Any, Final, cast, final

from attrs import fields

from pegboard._base.records import Shown

MASK: Final = "***"
# A shorter text is too likely a part of an innocent word, and what is masked of it would tell it letter by letter.
SHORTEST: Final = 4
# Of one secret: an object that holds more is no secret, but half of the program.
MOST_TEXTS: Final = 1_000


@final
class Redaction:
    """Takes secrets out of texts before they leave: `Redaction(values)(text)`.

    A secret is every text in a value: its parts, if it is a record or a container. It is masked as it is,
    percent-encoded, escaped as in JSON and Python (all of that also several times over), in hexadecimal, and in base64,
    also as a part of what was encoded. With a value of which all texts are shorter than four characters every text
    becomes `***`: what was masked of it would tell it letter by letter.

    Args:
        values: The secrets: texts, or records and containers that hold some.
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values = tuple(values)

    def __call__(self, text: str) -> str:
        """`text` without the secrets in it."""
        return self._pattern.sub(MASK, text)

    def deep(self, value: Any, inside: tuple[int, ...] = ()) -> Any:
        """A copy of JSON-able data, of content blocks or of both, without the secrets in it; other objects stay."""
        if isinstance(value, str | bytes):
            return self(value) if isinstance(value, str) else _bytes(self(_text(value)))
        if id(value) in inside:
            return MASK
        deep = partial(self.deep, inside=(*inside, id(value)))
        if isinstance(value, Mapping):
            return {deep(key): deep(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return list(map(deep, value)) if isinstance(value, list) else tuple(map(deep, value))
        if isinstance(value, Shown):
            found = copy(value)
            for each in fields(cast("Any", type(value))):
                object.__setattr__(found, each.name, deep(getattr(value, each.name)))
            return found
        return value

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        texts = [{"?"}]  # what is not known cannot be told from the rest
        with suppress(Exception):  # it has no end, or methods of its own
            texts = [set(islice(texts_in(value), 10 * MOST_TEXTS)) - {""} for value in self.values]
        if any(each and (max(map(len, each)) < SHORTEST or len(each) > MOST_TEXTS) for each in texts):
            return re.compile("(?s).+")
        known = sorted(set().union(*texts), key=lambda text: (-len(text), text))  # one inside another is masked too
        return re.compile("|".join(form for text in known for form in _forms(text)) or "(?!)")


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a secret: a record or a container is as secret as its parts.

    Raises RecursionError for one that leads to itself.
    """
    if isinstance(value, bytes | str | int | float | os.PathLike):
        yield _text(value) if isinstance(value, bytes) else "" if isinstance(value, bool) else str(value)
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(part)
    elif value is not None and not isinstance(value, type):
        yield from texts_in(getattr(value, "__dict__", None) or value.__getstate__())
        # A UUID or a date is all in its text.
        yield str(value) if cast("Any", type(value)).__str__ is not object.__str__ else ""


def _forms(text: str) -> Iterator[str]:
    """Patterns of how a secret may be written."""
    from base64 import b64encode  # which a program without secrets does not load

    data = _bytes(text)
    yield "".join(map(_escaped, re.sub(r"\\+", r"\\", text)))
    yield f"(?i:{data.hex()})"
    for before in range(3 if len(data) >= SHORTEST else 0):
        # What stands before and behind decides about the characters at both ends: those are taken, whatever they are.
        written = b64encode(bytes(before) + data).decode()[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        written = written.replace("+", r"(?:[+-]|%2[Bb])").replace("/", r"(?:\\?/|_|%2[Ff])")
        yield rf"[\w+/-]?{written}[\w+/-]?=*"


def _escaped(char: str) -> str:
    """A pattern of a character as encoders and escapes write it, several times over."""
    if char.isascii() and char.isalnum():
        return char
    escape, plain = r"\\{1,64}", "[ +]" if char == " " else re.escape(char)
    as_json = re.escape(dumps(char)[1:-1]).replace(r"\\", escape)
    encoded = "".join(f"(?:%(?:25)*|{escape}x){each:02x}" for each in _bytes(char))
    return rf"(?:\\{{0,64}}{plain}|(?i:{as_json}|{encoded}|{escape}[xu]0*{ord(char):x}))"


_text: Final = partial(bytes.decode, errors="surrogateescape")  # bytes that are no text are again what they were
_bytes: Final = partial(str.encode, errors="surrogateescape")
