"""Decoding: untrusted JSON text becomes a dict of arguments, within bounds that are checked before it is parsed."""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, Final, NoReturn, TypeAlias, final

from pegboard._base.effects import is_interrupt
from pegboard._base.errors import describe_exception
from pegboard._model.result import Note
from pegboard._model.shapes import JsonSchema
from pegboard._schema.problems import got, spell
from pegboard._types.json_kinds import count_members
from pegboard.extension import Accelerator

Sent: TypeAlias = str | bytes | bytearray | Mapping[str, Any] | None
"""What a model's arguments may arrive as."""


class DecodeError(ValueError):
    """Arguments that cannot be read; the message is written for the model."""


MAX_SIZE: Final = 16 * 1024 * 1024
"""How many characters of text are read."""
MAX_DEPTH: Final = 100
"""How many levels of nesting are read."""
_FLAT: Final = 2 * MAX_DEPTH
"""Characters: each level takes two, so no well-formed text that is as short is too deep."""

# Possessive, so that a hostile text cannot make the expression itself slow.
_NO_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^][{}"]++', re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LEVELS: Final = {"[": 1, "{": 1, "]": -1, "}": -1, '"': 0}


def decode(sent: Sent) -> dict[str, Any]:
    """The arguments that were sent: a JSON object as text, or a mapping; nothing at all stands for no arguments.

    Raises `DecodeError` for text that is too long or too deep, malformed, no object, or that has duplicate keys,
    NaN, Infinity or integers of more than 4,300 digits. A mapping is held to the same bounds.
    """
    if isinstance(sent, Mapping):
        check_value(sent)
        return owned(sent)
    value = parse(_as_text(sent))
    if not isinstance(value, dict):
        raise DecodeError(f"arguments must be a JSON object, got {got(value)}")
    return value


def owned(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of checked arguments that shares no dict and no list with them."""
    copied = dict(arguments)
    for name, value in copied.items():
        if type(value) is dict or type(value) is list:
            copied[name] = _owned(value)
    return copied


def _owned(value: Any) -> Any:
    return owned(value) if type(value) is dict else [_owned(item) for item in value] if type(value) is list else value


def fast_decode(text: str) -> tuple[dict[str, Any], int]:
    """`decode` of short text without the search for duplicate keys, and at most how many keys the text has.

    Where the arguments turn out to have fewer keys than that, ask `has_every_key`: keys that are not there came twice,
    which `decode(text)` then reports. Raises `DecodeError`.
    """
    if len(text) <= _FLAT or (len(text) <= MAX_SIZE and text.count("{") + text.count("[") <= MAX_DEPTH):
        try:
            value, end = _scan(text, 0)
        except (StopIteration, ValueError, RecursionError):
            pass  # read again below, for the message
        else:
            if end == len(text) and type(value) is dict:
                return value, text.count(":")
    value = decode(text)
    return value, count_members(value)


def has_every_key(decoded: dict[str, Any], keys: int, text: str) -> bool:
    """Whether what `fast_decode(text)` gave has all keys of the text: none came twice."""
    if len(decoded) == keys:
        return True
    members = count_members(decoded)
    return members == keys or members == exact_keys(text)


def exact_keys(text: str) -> int:
    """How many keys well-formed JSON text has, duplicates included, at all levels."""
    return _STRING.sub("", text).count(":")


def repair_text(sent: Sent, refused: DecodeError) -> tuple[dict[str, Any], Note]:
    """Malformed text, mended by the json_repair package, and a note that says so; `refused` is what reading it raised.

    For read-only tools alone: a truncated path must not reach a tool that deletes. Raises `DecodeError` where
    nothing can be mended, and where the package is not installed (the message names it).
    """
    if not isinstance(sent, str | bytes | bytearray):
        raise refused
    text = _as_text(sent)
    check_depth(text)
    try:
        repair_json = importlib.import_module("json_repair").repair_json
    except ImportError:
        raise DecodeError(f"{refused}; the program can mend such text with `pip install json_repair`") from refused
    mended = repair_json(text, return_objects=True)
    if not isinstance(mended, dict):
        raise refused
    check_value(mended)
    return mended, Note(f"arguments: malformed JSON read as {spell(mended)} ({refused})", kind="repair")


def decode_twice(sent: Sent) -> tuple[dict[str, Any], Note] | None:
    """Arguments that were encoded twice (a JSON string that holds an object), and a note; None for anything else."""
    if not isinstance(sent, str | bytes | bytearray):
        return None
    try:
        inner = parse(_as_text(sent))
        if not isinstance(inner, str) or not inner.strip():
            return None
        return decode(inner), Note("arguments: JSON text read as object", kind="repair")
    except DecodeError:
        return None


def check_value(value: Any) -> None:
    """Refuse a program's mapping that is no JSON: too deep (or circular), with NaN, or with keys that are no strings.

    Raises `DecodeError`. Objects of other types pass; whether they fit is for the type plan to say.
    """
    level = [value]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise DecodeError(f"arguments are nested more than {MAX_DEPTH} levels deep")
        level = [inner for outer in level for inner in _inside(outer)]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise DecodeError(f"arguments have a key that is no string: {got(key)}")
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, float) and not math.isfinite(value):
        _refuse_constant(repr(value))
    return []


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
    check_depth(text)
    try:
        return _STRICT.decode(text)
    except DecodeError:
        raise
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno} column {error.colno}"
        ending = " (the text ends there)" if error.pos >= len(text.rstrip()) else ""
        raise DecodeError(f"arguments are not valid JSON: {error.msg} {where}{ending}") from None
    except ValueError:
        raise DecodeError(
            "arguments have an integer of more than 4300 digits; send such a number as a string"
        ) from None
    except RecursionError:
        raise DecodeError("arguments are nested too deep") from None


def check_depth(text: str) -> None:
    """Refuse JSON text that is nested too deep. Raises `DecodeError`."""
    # Only a text with that many brackets can be that deep.
    if text.count("{") + text.count("[") > MAX_DEPTH:
        brackets = _NO_BRACKET.sub("", text)
        if max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > MAX_DEPTH:
            raise DecodeError(f"arguments are nested more than {MAX_DEPTH} levels deep")


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


FastDecode: TypeAlias = Callable[[str], tuple[dict[str, Any], int]]


@final
class Accelerators:
    """The accelerators of one toolkit: the first of each kind. `decode` and `read` are the core's own where none is."""

    __slots__ = ("_loaded", "decode", "offered", "problems", "read")

    def __init__(self) -> None:
        self.use(())

    def use(self, offered: Iterable[Accelerator]) -> None:
        """Use these from now on."""
        self.offered = tuple(offered)
        self.problems: list[str] = []
        """A sentence for each accelerator that failed to load."""
        self._loaded = {each.kind: _Loaded(each, self.problems) for each in reversed(self.offered)}
        decoder = self._loaded.get("decode")
        self.decode: FastDecode = _decoding(decoder) if decoder else fast_decode
        """`_decode.fast_decode`, or the same through the accelerator."""
        self.read: Callable[[Any], dict[str, Any]] = _reading(self.decode)
        """`_decode.decode`, or the same through the accelerator."""

    @property
    def used(self) -> dict[str, str]:
        """The names of the accelerators by kind, without those that failed to load."""
        return {kind: each.accelerator.name for kind, each in sorted(self._loaded.items()) if not each.failed}

    def quick(self, schema: JsonSchema) -> Callable[[Any], bool] | None:
        """A predicate that is true only for values that fit a foreign schema; None where there is none for it."""
        validator = self._loaded.get("validator")
        if validator is None:
            return None
        try:
            fits = validator.function()(schema)
        except BaseException as error:  # whatever a library says of a schema, jsonschema has accepted it
            if is_interrupt(error):
                raise
            return None

        def surely_fits(value: Any) -> bool:
            try:
                return fits(value) is True
            except BaseException as error:  # a library in another language may raise anything
                if is_interrupt(error):
                    raise
                return False

        return None if fits is None else surely_fits


@final
class _Loaded:
    """An accelerator, and what it loads on first use."""

    __slots__ = ("_function", "_problems", "accelerator", "failed")

    def __init__(self, accelerator: Accelerator, problems: list[str]) -> None:
        self.accelerator = accelerator
        self.failed = False
        self._problems = problems
        self._function: Callable[..., Any] | None = None

    def function(self) -> Callable[..., Any]:
        """What `load` returned; where that failed, a function that raises."""
        if self._function is None:
            try:
                self._function = self.accelerator.load()
            except BaseException as error:  # a broken wheel may raise anything
                if is_interrupt(error):
                    raise
                self.failed = True
                self._problems.append(
                    f"the accelerator {self.accelerator.name} cannot be used: {describe_exception(error)}"
                )
                self._function = _unusable
        return self._function


def _unusable(text: Any) -> Any:
    raise ValueError("this accelerator failed to load")


def _decoding(decoder: _Loaded) -> FastDecode:
    loads: Callable[[str], Any] | None = None
    shortest = decoder.accelerator.shortest

    def fast_decode_with(text: str) -> tuple[dict[str, Any], int]:
        nonlocal loads
        size = len(text)
        if shortest <= size <= MAX_SIZE:
            if loads is None:
                loads = decoder.function()
            try:
                if size > _FLAT:
                    check_depth(text)
                value = loads(text)
            except BaseException as error:  # read again below, for the decision and the message
                if is_interrupt(error):
                    raise
            else:
                if type(value) is dict:
                    return value, text.count(":")
        return fast_decode(text)

    return fast_decode_with


def _reading(fast: FastDecode) -> Callable[[Any], dict[str, Any]]:
    def read(sent: Any) -> dict[str, Any]:
        if type(sent) is str:
            value, keys = fast(sent)
            if has_every_key(value, keys, sent):
                return value
        return decode(sent)

    return read
