"""Values between programs and tools: JSON data within bounds, and handles for what is no JSON."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, Final, final

import attrs

import pegboard
from pegboard import Block, DataBlock, Status, TextBlock, ToolResult

__all__ = ["Handles", "TooLargeError", "as_data", "fits", "size_of"]

MAX_DEPTH: Final = 100
MAX_PARTS: Final = 250_000
MAX_CHARACTERS: Final = 10_000_000
"""Bounds of one value that leaves a program; one list that stands in it twice counts twice."""

_KINDS: Final[Mapping[Any, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class TooLargeError(Exception):
    """A value that is too large, or too deep, to leave a program."""


def as_data(value: Any) -> Any:
    """A value of a program as JSON-able data: tuples and sets are lists, dates ISO 8601, bytes base64.

    Raises `TooLargeError`.
    """
    return _Writer().data(value, 0)


@final
class _Writer:
    """Copies one value, and counts what it copies."""

    def __init__(self) -> None:
        self._parts = 0
        self._characters = 0

    def data(self, value: Any, depth: int) -> Any:
        self._parts += 1
        if depth > MAX_DEPTH:
            raise TooLargeError(f"it is nested more than {MAX_DEPTH} levels deep")
        if self._parts > MAX_PARTS:
            raise TooLargeError(f"it has more than {MAX_PARTS:,} parts")
        if value is None or type(value) in (bool, int):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else str(value)
        if isinstance(value, dict):
            return {self._text(_key(key)): self.data(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.data(each, depth + 1) for each in value]
        attributes = getattr(value, "attributes", None)  # an object of a class of the program
        return self.data(attributes, depth + 1) if isinstance(attributes, dict) else self._text(_text(value))

    def _text(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise TooLargeError(f"it has more than {MAX_CHARACTERS:,} characters")
        return text


def _key(key: Any) -> str:
    return json.dumps(key) if key is None or isinstance(key, bool) else str(key)


def _text(value: Any) -> str:
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, str | Decimal | PurePath | dt.timedelta):
        return str(value)
    return repr(value)


def size_of(data: Any, most: int) -> int:
    """About how many bytes JSON-able data takes in a program; counting ends beyond `most`."""
    total, left = 0, [data]
    while left and total <= most:
        each = left.pop()
        total += 64 + (len(each) if isinstance(each, str) else 0)
        if isinstance(each, dict):
            left += each.values()
            total += sum(64 + len(key) for key in each)
        elif isinstance(each, list):
            left += each
    return total


def fits(data: Any, schema: Any, definitions: Mapping[str, Any] | None = None) -> bool:
    """Whether data is what the stub made from a schema says: types, members and literals, no more than that."""
    if not isinstance(schema, Mapping):
        return True
    known = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return fits(data, known.get(str(schema["$ref"]).rpartition("/")[2]), known)
    if "const" in schema or "enum" in schema:
        return data in ([schema["const"]] if "const" in schema else schema["enum"])
    kind, options = schema.get("type"), schema.get("anyOf") or schema.get("oneOf")
    if options:
        return any(fits(data, each, known) for each in options)
    if isinstance(kind, list):
        return any(fits(data, {**schema, "type": each}, known) for each in kind)
    if kind == "array":
        items = [*schema.get("prefixItems", ())]
        rest = [schema.get("items")] * max(0, len(data) - len(items)) if isinstance(data, list) else []
        return isinstance(data, list) and all(map(fits, data, [*items, *rest], [known] * len(data)))
    if kind == "object" or "properties" in schema:
        return isinstance(data, dict) and _has_members(data, schema, known)
    return kind not in _KINDS or (isinstance(data, _KINDS[kind]) and (kind == "boolean" or type(data) is not bool))


def _has_members(data: Mapping[str, Any], schema: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    members, rest = schema.get("properties", {}), schema.get("additionalProperties")
    return all(name in data for name in schema.get("required", ())) and all(
        fits(each, members.get(name, rest), known) for name, each in data.items()
    )


def _block(members: Mapping[str, Any]) -> Block:
    """The block that `Block.to_dict` has written."""
    kind = getattr(pegboard, f"{members['type'].title()}Block")
    block: Block = kind(**{each.name: members[each.name] for each in attrs.fields(kind) if each.name in members})
    return block


@final
class Handles:
    """What tools gave to one program that is no JSON, and what of it the program has shown."""

    def __init__(self, blocks: Iterable[Mapping[str, Any]] = (), shown: Iterable[Mapping[str, Any]] = ()) -> None:
        self.blocks = {f"{block.kind}_{number}": block for number, block in enumerate(map(_block, blocks), 1)}
        self.shown = list(map(_block, shown))

    @property
    def data(self) -> dict[str, Any]:
        """Both, as JSON-able data."""
        both = {"blocks": self.blocks.values(), "shown": self.shown}
        return {name: [block.to_dict() for block in blocks] for name, blocks in both.items()}

    def value(self, result: ToolResult) -> Any:
        """What a program gets of a result: its data, or handles among the texts that stand between them."""
        if result.data is not None or not any(block.kind not in ("text", "data") for block in result.content):
            return result.data if result.data is not None or result.value is None else _plain(result)
        items = [self._item(block) for block in result.content]
        return items[0] if len(items) == 1 else items

    def _item(self, block: Block) -> Any:
        if isinstance(block, TextBlock | DataBlock):
            return block.text if isinstance(block, TextBlock) else block.data
        name = f"{block.kind}_{len(self.blocks) + 1}"
        self.blocks[name] = block
        return {"handle": name, "kind": block.kind, "media_type": getattr(block, "media_type", None) or ""}

    def show(self, handle: Any) -> str:
        """Put what a handle stands for into the result; the empty text, or what is wrong with the handle."""
        name = handle.get("handle") if isinstance(handle, dict) else handle
        block = self.blocks.get(name) if isinstance(name, str) else None
        if block is None:
            return (
                f"show() takes a handle that a tool gave to this program; there are: {', '.join(self.blocks) or 'none'}"
            )
        self.shown.append(block)
        return ""


def _plain(result: ToolResult) -> Any:
    """A float that JSON cannot carry, which a program can; else the text that a model would read."""
    return result.value if type(result.value) is float and result.status is Status.SUCCESS else result.text
