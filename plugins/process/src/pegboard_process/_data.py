"""Values as data, on their way from a tool's process: JSON, bytes, and the records that results are made of.

What is read here was written by a process that runs untrusted code. Reading it makes text, numbers, lists, dicts,
bytes, content blocks, `ToolOutput` and `ToolResult`, and nothing else: it imports nothing and calls nothing by name.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from attrs import fields

from pegboard import (
    AudioBlock,
    Block,
    DataBlock,
    Fault,
    FileBlock,
    ImageBlock,
    LinkBlock,
    Note,
    Status,
    TextBlock,
    ToolOutput,
    ToolResult,
    VideoBlock,
)

__all__ = ["NotDataError", "decoded", "encoded"]

MAX_DEPTH: Final = 120
"""Levels of lists and dicts; results of tools have a hundred at most."""

# An object with this one member stands for what JSON has no word for: `{"$": [kind, ...]}`.
_TAG: Final = "$"
_MARK: Final = f'"{_TAG}"'
_HEAD: Final = struct.Struct("!I")
_write: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_SHORT_BITS: Final = 14_000  # Python writes and reads no more than 4,300 digits
_SCALARS: Final = frozenset({str, bool, float, type(None)})
_BLOCKS: Final[dict[str, type[Block]]] = {
    cls.__name__: cls for cls in (TextBlock, DataBlock, ImageBlock, AudioBlock, VideoBlock, FileBlock, LinkBlock)
}


class NotDataError(Exception):
    """Something in a value is no data by itself; its class has to be known to say what it is as data."""


def encoded(value: Any) -> bytes:
    """A value as bytes. Raises `NotDataError` for what `decoded` could not make again without knowing its class."""
    writer = _Writer()
    node = writer.node(value, 0)
    text = _write(node).encode("utf-8", "surrogatepass")
    return b"".join((_HEAD.pack(len(text)), text, *writer.blobs))


def decoded(content: bytes) -> Any:
    """What `encoded` was given. Raises ValueError for anything that it does not write."""
    try:
        (length,) = _HEAD.unpack_from(content)
        end = _HEAD.size + length
        text = content[_HEAD.size : end].decode("utf-8", "surrogatepass")
        if _MARK not in text:  # nothing but JSON, as most is
            return json.loads(text)
        return json.loads(text, object_hook=_Reader(memoryview(content)[end:]).tagged)
    except (struct.error, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        raise ValueError(f"it is no data: {type(error).__name__}") from error


@final
class _Writer:
    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._size = 0

    def node(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is int:
            return value if value.bit_length() < _SHORT_BITS else {_TAG: ["int", hex(value)]}
        if depth > MAX_DEPTH:
            raise NotDataError
        depth += 1
        if kind is list or kind is tuple:
            return [self.node(item, depth) for item in value]
        if kind is dict:
            return self._object(value, depth)
        if kind in (bytes, bytearray, memoryview):
            return {_TAG: ["bytes", *self._kept(bytes(value))]}
        return self._record(value, depth)

    def _kept(self, blob: bytes) -> tuple[int, int]:
        """Where the bytes begin in what follows the text, and where they end."""
        start = self._size
        self._size += len(blob)
        self.blobs.append(blob)
        return start, self._size

    def _object(self, value: dict[Any, Any], depth: int) -> Any:
        if not all(type(key) is str for key in value):
            raise NotDataError
        members = {key: self.node(member, depth) for key, member in value.items()}
        return {_TAG: ["dict", list(members.items())]} if _TAG in members else members

    def _record(self, value: Any, depth: int) -> Any:
        for name, cls in _BLOCKS.items():
            if isinstance(value, cls):
                members = [getattr(value, each.name) for each in fields(cls)]
                return {_TAG: ["block", name, *(self.node(member, depth) for member in members)]}
        if type(value) is ToolOutput:
            members = [value.value, dict(value.metadata), list(value.attachments)]
            return {_TAG: ["output", *(self.node(member, depth) for member in members)]}
        if type(value) is ToolResult:
            return {_TAG: ["result", *(self.node(member, depth) for member in _members(value))]}
        raise NotDataError


def _members(result: ToolResult) -> list[Any]:
    error = result.error
    fault = None if error is None else [error.kind, error.message, *_texts(error.details)]
    notes = [[str(note), note.kind, note.path] for note in result.notes]
    rest = [notes, list(result.logs), list(result.attachments), dict(result.metadata)]
    return [result.status.value, list(result.content), result.data, fault, *rest]


def _texts(details: Mapping[str, Any]) -> list[Any]:
    return [[name, value] for name, value in details.items() if isinstance(value, str)]


@final
class _Reader:
    """Makes the records. `json` asks for each object, the innermost first."""

    def __init__(self, blobs: memoryview) -> None:
        self._blobs = blobs
        self._makers: dict[str, Callable[..., Any]] = {
            "int": _int,
            "bytes": self._bytes,
            "dict": _dict,
            "block": _block,
            "output": _output,
            "result": _result,
        }

    def tagged(self, members: dict[str, Any]) -> Any:
        if _TAG not in members:
            return members
        given = members[_TAG]
        if len(members) != 1 or type(given) is not list:
            raise ValueError("a tag is none")
        return self._makers[given[0]](*given[1:])

    def _bytes(self, start: int, end: int) -> bytes:
        _require(type(start) is int and type(end) is int and 0 <= start <= end <= len(self._blobs))
        return bytes(self._blobs[start:end])


def _int(text: str) -> int:
    return int(text, 16)


def _dict(pairs: list[Any]) -> dict[str, Any]:
    made = {key: value for key, value in pairs}  # noqa: C416 - that each is a pair of two is what this says
    _require(all(type(key) is str for key in made))
    return made


def _block(name: str, *members: Any) -> Block:
    cls = _BLOCKS[name]
    if cls is DataBlock:
        _require(all(map(_is_json, members)))
    else:
        _require(all(member is None or type(member) is str for member in members))
        _require(cls is not TextBlock or members[0] is not None)
    return cls(*members)


def _output(value: Any, metadata: Any, attachments: Any) -> ToolOutput:
    return ToolOutput(value, _mapping(metadata), tuple(_all(Block, attachments)))


def _result(
    status: str, content: Any, data: Any, fault: Any, notes: Any, logs: Any, attachments: Any, metadata: Any
) -> ToolResult:
    _require(_is_json(data))
    error = None
    if fault is not None:
        kind, message, *details = fault
        _all(str, [kind, message])
        error = Fault(kind, message, {name: value for name, value in details if _all(str, [name, value])})
    read_notes = tuple(Note(text, kind=kind, path=path) for text, kind, path in notes if _all(str, [text, kind, path]))
    blocks = tuple(_all(Block, content)), data, error
    outcome = Status(status), *blocks, 0.0, 1, read_notes, tuple(_all(str, logs)), tuple(_all(Block, attachments))
    return ToolResult("", "", *outcome, _mapping(metadata))


def _mapping(value: Any) -> dict[str, Any]:
    _require(type(value) is dict)
    return value  # type: ignore[no-any-return]


def _all(cls: type, values: Any) -> list[Any]:
    _require(type(values) is list and all(isinstance(value, cls) for value in values))
    return values  # type: ignore[no-any-return]


def _is_json(value: Any) -> bool:
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is dict:
        return all(map(_is_json, value.values()))
    return type(value) is int or (type(value) in _SCALARS and not (type(value) is float and not math.isfinite(value)))


def _require(fits: bool) -> None:
    if not fits:
        raise ValueError("a record is not what it says")
