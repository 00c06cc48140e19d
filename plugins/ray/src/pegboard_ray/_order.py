"""Orders to workers, and the frames of their answers: bytes both ways, and nothing that is pickled."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from pegboard import Tool
from pegboard_process.wire import decoded, encoded

__all__ = [
    "LATE",
    "MISMATCH",
    "NAMESPACE",
    "PUT_OFF",
    "TOOK",
    "Frame",
    "Order",
    "Wanted",
    "framed",
    "frames",
    "parcel",
    "schema_digest",
    "unpacked",
]

PROTOCOL: Final = b"2"
"""How a parcel begins: other releases may write otherwise."""
NAMESPACE: Final = b"pegboard"
"""In the cluster's table of keys: there a worker notes why it ends itself."""

# What an answer is, beside what processes say:
LATE: Final = b"t"
"""The time of the call is up, and the tool has ended by itself: nothing."""
MISMATCH: Final = b"m"
"""The worker has another tool: text."""
PUT_OFF: Final = b"p"
"""A call before it in its task took long, and it has not begun: nothing."""
TOOK: Final = b"s"
"""The last of all: the seconds that the task took, as text."""

Frame: TypeAlias = tuple[bytes, bytes]
"""A message: its kind and its content."""

_ORDER: Final = b"o"
_HEAD: Final = struct.Struct("!cQ")


class Wanted(NamedTuple):
    """The tool of an order, the same for all its calls: by what it is found, and what it has to be."""

    plugin: str | None
    name: str
    path: str
    schema: str
    release: str
    pegboard: str
    packs: list[str]
    types: list[str]
    targets: list[str]
    groups: list[str]


class Order(NamedTuple):
    """One call. Its key begins with that of its task, and a slash."""

    key: str
    call_id: str
    arguments: dict[str, Any]
    presets: dict[str, Any]
    heard: bool
    timeout: float | None
    grace: float
    carrier: dict[str, str]

    def packed(self) -> bytes:
        """As bytes. Raises `NotDataError` for presets that are no data."""
        return encoded(list(self))


def parcel(wanted: str, orders: Iterable[bytes]) -> bytes:
    """Calls of one tool; `wanted` is JSON text, which a worker reads once."""
    return framed(PROTOCOL, wanted.encode()) + b"".join([framed(_ORDER, order) for order in orders])


def unpacked(data: bytes) -> tuple[str, list[Order]] | None:
    """The other way; None for one that another release has written."""
    with suppress(ValueError):
        (protocol, wanted), *orders = frames(data)
        if protocol == PROTOCOL:
            return wanted.decode(), [Order(*decoded(order)) for _, order in orders]
    return None


def framed(kind: bytes, content: bytes) -> bytes:
    """A message, as bytes that can follow each other."""
    return _HEAD.pack(kind, len(content)) + content


def frames(data: bytes) -> Iterator[Frame]:
    """The messages in these bytes. Raises ValueError for bytes that are no messages."""
    start = 0
    while start < len(data):
        try:
            kind, size = _HEAD.unpack_from(data, start)
        except struct.error:
            raise ValueError("a frame has no head") from None
        start += _HEAD.size + size
        if start > len(data):
            raise ValueError("a frame has no end")
        yield kind, data[start - size : start]


def schema_digest(tool: Tool) -> str:
    """SHA-256 of the schema of a tool's parameters as its function has them, whatever presets fill."""
    bare = tool.evolve(hidden=frozenset(), face=None)
    return hashlib.sha256(json.dumps(bare.parameters, sort_keys=True).encode()).hexdigest()
