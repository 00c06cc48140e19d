"""Decoding: untrusted JSON text becomes a dict of arguments, within bounds that are checked before it is parsed."""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeAlias

from pegboard._base.jsonable import carried_data, owned
from pegboard._model.result import Note
from pegboard._schema.problems import got, spell
from pegboard._types.json_kinds import count_members

# What a model's arguments may arrive as.
Sent: TypeAlias = str | bytes | bytearray | Mapping[str, Any] | None


class DecodeError(ValueError):
    """Arguments that cannot be read; the message is written for the model, the `remedy` for the program."""

    remedy = ""


# How many characters of text are read.
MAX_SIZE: Final = 16 * 1024 * 1024
# How many levels of nesting are read.
MAX_DEPTH: Final = 100
# How many keys are read, in all objects together: no model writes as many, and each may have to be explained.
MAX_KEYS: Final = 100_000
# Characters: each level takes two, so no well-formed text that is as short is too deep.
_FLAT: Final = 2 * MAX_DEPTH
ATOMS: Final = frozenset({int, bool, type(None)})

# Possessive, so that a hostile text cannot make the expression itself slow.
_NO_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^][{}"]++', re.DOTALL)
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]\w\w")
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_FENCE: Final = re.compile(r"\s*```[\w+-]*\s(.*?)\s*```\s*", re.DOTALL)
_LEVELS: Final = {"[": 1, "{": 1, "]": -1, "}": -1, '"': 0}


def decode(sent: Sent) -> dict[str, Any]:
    """The arguments that were sent: a JSON object as text, or a mapping; nothing at all stands for no arguments.

    Raises `DecodeError` for text that is too long or too deep, malformed, no object, or that has duplicate or too many
    keys, NaN, Infinity, integers of more than 4,300 digits or lone surrogates. A mapping is held to the same bounds.
    """
    if isinstance(sent, Mapping):
        check_value(sent)
        return owned(sent)
    value = parse(_as_text(sent))
    if not isinstance(value, dict):
        raise DecodeError(f"arguments must be a JSON object, got {got(value)}")
    return value


def fast_decode(text: str) -> tuple[dict[str, Any], int]:
    """`decode` of short text without the search for duplicate keys, and at most how many keys the text has.

    Where the arguments turn out to have fewer keys than that, ask `has_every_key`: keys that are not there came twice,
    which `decode(text)` then reports. Raises `DecodeError`.
    """
    keys = text.count(":")
    if len(text) <= _FLAT or (
        len(text) <= MAX_SIZE and keys <= MAX_KEYS and text.count("{") + text.count("[") <= MAX_DEPTH
    ):
        try:
            _ = text.isascii() or text.encode()
            value, end = _scan(text, 0)
        except (StopIteration, ValueError, RecursionError):
            pass  # read again below, for the message
        else:
            if end == len(text) and type(value) is dict:
                if "\\" in text and _HALF.search(text):
                    _check_text(value)
                return value, keys
    value = decode(text)
    return value, count_members(value)


def read(sent: Sent) -> dict[str, Any]:
    """What `decode` gives, sooner for text. Raises `DecodeError`."""
    if type(sent) is str:
        value, keys = fast_decode(sent)
        if has_every_key(value, keys, sent):
            return value
    return decode(sent)


def has_every_key(decoded: dict[str, Any], keys: int, text: str) -> bool:
    """Whether what `fast_decode(text)` gave has all keys of the text: none came twice."""
    if len(decoded) == keys:
        return True
    members = count_members(decoded)
    return members == keys or members == exact_keys(text)


def exact_keys(text: str) -> int:
    """How many keys well-formed JSON text has, duplicates included, at all levels."""
    return _STRING.sub("", text).count(":")


def repair_text(sent: str | bytes | bytearray, refused: DecodeError) -> tuple[dict[str, Any], Note]:
    """Malformed text, repaired by json_repair, and a note that says so; `refused` is what reading it raised.

    For read-only tools alone: a truncated path must not reach a tool that deletes. Raises `DecodeError` where
    nothing can be repaired, and where the package is not installed (the remedy names it).
    """
    text = _as_text(sent)
    _check_bounds(text)
    try:
        repair_json = importlib.import_module("json_repair").repair_json
    except ImportError:
        refused.remedy = "such text can be repaired: pip install json_repair"
        raise refused from None
    repaired = repair_json(text, return_objects=True)
    if not isinstance(repaired, dict):
        raise refused
    check_value(repaired)
    return repaired, Note(f"arguments: malformed JSON read as {spell(repaired)} ({refused})", kind="repair")


def unfenced(text: str) -> str:
    """The text inside a fenced code block, or the text itself."""
    found = _FENCE.fullmatch(text) if text.lstrip().startswith("```") else None
    return found[1] if found else text


def decode_wrapped(sent: str | bytes | bytearray) -> tuple[dict[str, Any], Note]:
    """Arguments in a fenced code block, or encoded twice, and a note. Raises `DecodeError` for anything else."""
    inner = parse(unfenced(_as_text(sent)))
    inner = parse(unfenced(inner)) if isinstance(inner, str) else inner
    if not isinstance(inner, dict):
        raise DecodeError("no object")
    return inner, Note("arguments: JSON text read as object", kind="repair")


def check_value(value: Any) -> None:
    """Refuse a program's mapping that is no JSON: too deep (or circular), with NaN, or with keys that are no strings.

    Also one with too many keys, and text that UTF-8 cannot carry. Raises `DecodeError`. Objects of other types pass;
    whether they fit is for the type plan to say.
    """
    level, depth, keys = [value], 0, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise DecodeError(f"arguments are nested more than {MAX_DEPTH} levels deep")
        keys += sum(len(outer) for outer in level if isinstance(outer, Mapping))
        _check_keys(keys)
        inside = (inner for outer in level for inner in _inside(outer) if type(inner) not in ATOMS)
        # By identity: a circle is no wider than its parts.
        level = [*{id(inner): inner for inner in inside if type(inner) is not str or not inner.isascii()}.values()]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise DecodeError(f"arguments have a key that is no string: {got(key)}")
        return [*value, *value.values()]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        _refuse_constant(repr(value))
    return []


def _check_keys(keys: int) -> None:
    if keys > MAX_KEYS:
        raise DecodeError(f"arguments have more than {MAX_KEYS} keys; send fewer at once")


def _check_text(value: Any) -> None:
    """Refuse text that UTF-8 cannot carry, at any depth. Raises `DecodeError`."""
    if carried_data(value) is not value:
        before = _HALF.split(ascii(value), maxsplit=1)[0][-30:]
        raise DecodeError(f"arguments have half of a character after {before} (UTF-8 cannot carry it); send all of it")


def _as_text(text: Sent) -> str:
    if text is None:
        return "{}"
    if not isinstance(text, str | bytes | bytearray):
        raise DecodeError(f"arguments must be a JSON object, got a Python {type(text).__name__}")
    if len(text) > MAX_SIZE:
        raise DecodeError(f"arguments are too large: {len(text)} characters, at most {MAX_SIZE} are read")
    if not isinstance(text, str):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DecodeError(f"arguments are not valid UTF-8: {error.reason} at byte {error.start}") from None
    return text if text.strip() else "{}"


def parse(text: str) -> Any:
    """Any JSON value, strictly. Raises `DecodeError`."""
    _check_bounds(text)
    try:
        value = _STRICT.decode(text)
        _check_text(value)
        return value
    except DecodeError:
        raise
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno} column {error.colno}"
        ending = " (the text ends there)" if error.pos >= len(text.rstrip()) else ""
        raise DecodeError(f"arguments are not valid JSON: {error.msg} {where}{ending}") from None
    except ValueError:
        raise DecodeError("arguments have an integer of more than 4300 digits; send it as a string") from None
    except RecursionError:
        raise DecodeError("arguments are nested too deep") from None


def _check_bounds(text: str) -> None:
    """Refuse JSON text that is nested too deep, or has too many keys. Raises `DecodeError`."""
    # Only a text with that many brackets can be that deep, and only one with that many colons have so many keys.
    if text.count("{") + text.count("[") > MAX_DEPTH:
        brackets = _NO_BRACKET.sub("", text)
        if max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > MAX_DEPTH:
            raise DecodeError(f"arguments are nested more than {MAX_DEPTH} levels deep")
    if text.count(":") > MAX_KEYS:
        _check_keys(exact_keys(text))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DecodeError(f"arguments have the key {spell(twice)} twice in one object; send it once")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise DecodeError(f"arguments have {name}, which is no JSON; send a finite number or null")


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
_scan: Final = json.JSONDecoder(parse_constant=_refuse_constant).scan_once  # type: ignore[attr-defined]  # undocumented, the fastest way in
