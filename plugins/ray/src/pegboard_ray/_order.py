"""What a worker is told to do, and how its answer is framed: bytes both ways, and nothing that is pickled."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from pegboard import Tool
from pegboard_process.wire import decoded, encoded

__all__ = ["LATE", "MISMATCH", "NAMESPACE", "PROTOCOL", "Frame", "Order", "Wanted", "framed", "frames", "schema_digest"]

PROTOCOL: Final = 1
NAMESPACE: Final = b"pegboard"
"""In the cluster's table of keys: there a worker notes why it ends itself."""

# What an answer is, beside what processes say:
LATE: Final = b"t"
"""The time of the call is up, and the tool has ended by itself: nothing."""
MISMATCH: Final = b"m"
"""The worker has another tool: text."""

Frame: TypeAlias = tuple[bytes, bytes]
"""Something said: its kind and its content."""

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
    """One call. `wanted` is JSON text, which a worker reads once."""

    wanted: str
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
        return encoded([PROTOCOL, *self])

    @classmethod
    def unpacked(cls, parcel: bytes) -> Order | None:
        """The other way; None for one that another release has written."""
        protocol, *members = decoded(parcel)
        return cls(*members) if protocol == PROTOCOL else None


def framed(kind: bytes, content: bytes) -> bytes:
    """Something said, as bytes that can follow each other."""
    return _HEAD.pack(kind, len(content)) + content


def frames(said: bytes) -> Iterator[Frame]:
    """What was said, one after another. Raises ValueError for what is nothing of the kind."""
    start = 0
    while start < len(said):
        try:
            kind, size = _HEAD.unpack_from(said, start)
        except struct.error:
            raise ValueError("a frame has no head") from None
        start += _HEAD.size + size
        if start > len(said):
            raise ValueError("a frame has no end")
        yield kind, said[start - size : start]


def schema_digest(tool: Tool) -> str:
    """SHA-256 of the schema of a tool's parameters as its function has them, whatever presets fill."""
    bare = tool.evolve(hidden=frozenset(), face=None)
    return hashlib.sha256(json.dumps(bare.parameters, sort_keys=True).encode()).hexdigest()
