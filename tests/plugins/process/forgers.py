"""Tools that abuse their process: they answer for others, spoil the pipe, and return what runs where it is read."""

import os
import pickle
import re
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from pegboard import Emitter, ImageBlock, ToolCall, ToolOutput, ToolResult, tool

process = tool(backend="process")


class Trap:
    """Writes down which process reads it."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return spring, (self.place,)


class TrapError(Exception):
    """The same as an exception."""

    def __init__(self, place: Path) -> None:
        super().__init__("sprung")
        self.place = place

    def __reduce__(self) -> Any:
        return spring, (self.place,)


def spring(place: Path) -> Any:
    """Run where a pickle is read."""
    with place.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return TrapError(place)


@process
def give_trap(place: Path, how: str, call: ToolCall, emitter: Emitter) -> Any:
    """Leave a trap somewhere in the answer."""
    trap = Trap(place)
    if how == "raised":
        raise TrapError(place)
    if how == "note":
        error = ValueError("no")
        error.__notes__ = [trap]  # type: ignore[list-item]
        raise error
    if how == "logged":
        call.logs.append(trap)  # type: ignore[arg-type]
    if how == "attached":
        call.attachments.append(trap)  # type: ignore[arg-type]
    if how == "emitted":
        emitter.emit(trap)  # type: ignore[arg-type]
    ways = {"returned": trap, "inside": [{"a": trap}], "metadata": ToolOutput(1, {"trap": trap})}
    return ways.get(how, 1)


@process
def yield_trap(place: Path) -> Iterator[Any]:
    """Yield a trap."""
    yield Trap(place)


def sockets() -> list[int]:
    """What this process could talk to its parent through."""
    found = []
    for place in list(Path("/proc/self/fd").iterdir()):
        try:
            if stat.S_ISSOCK(os.fstat(int(place.name)).st_mode):
                found.append(int(place.name))
        except OSError:
            continue
    return found


def framed(kind: bytes, content: bytes, job: bytes = bytes(8)) -> bytes:
    """What a child says."""
    return struct.pack("!c8sQ", kind, job, len(content)) + content


def data(text: bytes) -> bytes:
    """JSON as a child writes it."""
    return struct.pack("!I", len(text)) + text


def earlier_framed(content: bytes) -> bytes:
    """What a child once said."""
    return struct.pack("!i", len(content)) + content


STOLEN = data(b'["stolen",[],[]]')
SPOILED: dict[str, bytes] = {
    "an answer": framed(b"v", STOLEN),
    "an answer of another": framed(b"v", STOLEN, b"12345678"),
    "an answer as once": earlier_framed(b"v" + pickle.dumps(("stolen", [], []))),
    "an answer as once, begun": earlier_framed(b"b") + earlier_framed(b"v" + pickle.dumps(("stolen", [], []))),
    "noise": b"\xff" * 64,
    "a size without end": struct.pack("!c8sQ", b"v", bytes(8), 2**63),
    "a size without end as once": struct.pack("!iQ", -1, 2**62),
    "half a frame": b"v",
    "half a frame as once": b"\0\0",
}


@process
def spoil(how: str) -> str:
    """Write into the pipe and return, as if nothing had happened."""
    for number in sockets():
        os.write(number, SPOILED[how])
    return "mine"


@process
def spoil_and_hang(how: str) -> str:
    """Write into the pipe and never return."""
    spoil(how)
    time.sleep(600)
    return "mine"


@process
def spoil_later(how: str, place: Path) -> int:
    """Leave a thread behind that writes into the pipe once it is told."""

    def write() -> None:
        while not place.exists():
            time.sleep(0.001)
        spoil(how)
        place.with_suffix(".done").touch()

    threading.Thread(target=write, daemon=True).start()
    return os.getpid()


@process
def wedge_later(place: Path) -> int:
    """Leave a thread behind that lets no other run, once it is told."""

    def wedge() -> None:
        while not place.exists():
            time.sleep(0.001)
        place.with_suffix(".done").touch()
        re.match(r"(a+)+$", "a" * 64 + "b")  # years, without ever letting go of the interpreter

    threading.Thread(target=wedge, daemon=True).start()
    return os.getpid()


@process
def length(text: str) -> int:
    """Measure."""
    return len(text)


@process
def whoami(seconds: float = 0.0) -> int:
    """Say which process this is."""
    time.sleep(seconds)
    return os.getpid()


@process
def forge(how: str) -> str:
    """Say something out of turn, as this call."""
    from pegboard_process import _worker

    server: Any = next(each for each in frames() if type(each) is _worker._Server)
    for kind, content in FORGED[how]:
        server._say(server._now, kind, content)
    return "mine"


def frames() -> Iterator[Any]:
    """What the callers of a function call themselves."""
    import sys

    frame = sys._getframe()
    while frame is not None:
        yield frame.f_locals.get("self")
        frame = frame.f_back  # type: ignore[assignment]


def record(*members: Any) -> bytes:
    """A record, said to be one."""
    import json

    return data(json.dumps([{"$": list(members)}, [], []]).encode())


FORGED: dict[str, list[tuple[bytes, bytes]]] = {
    "begun again": [(b"b", b"")],
    "ready again": [(b"r", b"")],
    "lost though begun": [(b"l", data(b'"no"'))],
    "two answers": [(b"v", data(b'["one",[],[]]')), (b"v", data(b'["two",[],[]]'))],
    "a chunk that is none": [(b"p", data(b'{"a": 1}'))],
    "no data": [(b"v", b"\0")],
    "no JSON": [(b"v", data(b"[1"))],
    "too deep": [(b"v", data(b"[" * 100_000))],
    "no list": [(b"v", data(b"1"))],
    "logs that are none": [(b"v", data(b"[1,[2],[]]"))],
    "attachments that are none": [(b"v", data(b'[1,[],["a"]]'))],
    "an unknown record": [(b"v", record("os.system", "true"))],
    "a block of another class": [(b"v", record("block", "Path", "/"))],
    "a block of numbers": [(b"v", record("block", "TextBlock", 1))],
    "a block of two": [(b"v", record("block", "ImageBlock", "a", "b", "c"))],
    "a result of nothing": [(b"v", record("result"))],
    "a result of another status": [(b"v", record("result", "fine", [], None, None, [], [], [], {}))],
    "bytes that are not there": [(b"v", record("bytes", 0, 10))],
    "a number that is none": [(b"v", record("int", "x"))],
    "an error without a name": [(b"x", data(b'[[1,["builtins.ValueError"],"no",[],{},null,""],[],[]]'))],
    "an error of pieces": [(b"x", data(b'[["ValueError"],[],[]]'))],
    "a reason that is none": [(b"s", data(b"[1,2]"))],
}


class Colour(Enum):
    """An enumeration."""

    RED = "red"


class Level(IntEnum):
    """Another."""

    LOW = 1


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: float


@attrs.define
class Box:
    """A record."""

    corner: Point
    tags: set[str]
    inner: Any = None


class Plain:
    """An object without any promise."""

    def __init__(self) -> None:
        self.shown = 1
        self._hidden = 2


def values() -> dict[str, Callable[[], Any]]:
    """What a tool may return, by name."""
    from datetime import date, datetime, timedelta
    from decimal import Decimal
    from uuid import UUID

    picture = ImageBlock.from_bytes(b"a", "image/png")
    return {
        "none": lambda: None,
        "text": lambda: "Grüße, 世界 🌍",
        "empty": lambda: "",
        "truth": lambda: True,
        "number": lambda: -7,
        "big": lambda: 10**30,
        "endless": lambda: 1 << 20_000,
        "float": lambda: 0.1,
        "nan": lambda: float("nan"),
        "infinite": lambda: [float("inf"), 1.0],
        "list": lambda: [1, "a", None, [2.5, {"b": [True]}]],
        "tuple": lambda: (1, ("a", "b")),
        "tagged": lambda: {"$": ["bytes", 0, 9], "a": 1},
        "numbered": lambda: {1: "a", 2.5: "b", None: "c"},
        "bytes": lambda: b"\x89PNG\r\n\x1a\n....",
        "array": lambda: bytearray(b"GIF89a"),
        "nested bytes": lambda: {"a": b"raw"},
        "set": lambda: {"b", "a"},
        "day": lambda: date(2025, 1, 2),
        "moment": lambda: [datetime(2025, 1, 2, 3), timedelta(seconds=3)],  # noqa: DTZ001
        "decimal": lambda: {"d": Decimal("1.10"), "u": UUID(int=7)},
        "path": lambda: Path("/a/b"),
        "enum": lambda: [Colour.RED, Level.LOW],
        "point": lambda: Point(1, 2.0),
        "box": lambda: Box(Point(1, 2.0), {"b", "a"}, Path("c")),
        "plain": Plain,
        "block": lambda: picture,
        "blocks": lambda: ["see", picture],
        "output": lambda: ToolOutput({"a": 1}, {"m": [1, "b"]}, (picture,)),
        "output of a box": lambda: ToolOutput(Box(Point(1, 2.0), set()), {"m": 1}, (picture,)),
        "result": lambda: ToolResult(content="said", data={"a": 1}, notes=(), logs=("l",), metadata={"m": 1}),
        "deep": deep,
        "circle": circle,
        "class": lambda: Box,
    }


def deep() -> Any:
    """Nest deeper than results may."""
    made: Any = 1
    for _ in range(500):
        made = [made]
    return made


def circle() -> Any:
    """Contain itself."""
    made: list[Any] = []
    made.append(made)
    return made


@process
def give(name: str) -> Any:
    """Return something."""
    return values()[name]()


@tool(name="give_here")
def give_here(name: str) -> Any:
    """Return something, here."""
    return values()[name]()


@process
def give_box() -> Box:
    """Return what the annotation promises."""
    return Box(Point(1, 2.0), {"b", "a"})


@tool(name="give_box_here")
def give_box_here() -> Box:
    """Return what the annotation promises, here."""
    return Box(Point(1, 2.0), {"b", "a"})


def summed(point: Point) -> str:
    """Convert."""
    return f"{type(point).__name__} of {point.x + point.y}"


@tool(backend="process", converter=summed)
def give_converted() -> Point:
    """Return what a converter takes."""
    return Point(1, 2.0)
