"""A program with a tool of every kind: `pegboard inspect --toolkit tests.plugins.inspector.program:board`."""

import asyncio
import datetime as dt
import enum
import struct
import zlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pegboard import (
    CancelToken,
    Emitter,
    ImageBlock,
    Injected,
    LinkBlock,
    Param,
    Secret,
    Suspend,
    TextBlock,
    Tool,
    ToolError,
    Toolkit,
    tool,
)


class Unit(enum.Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


@dataclass
class Place:
    city: str
    country: str = "NO"


@dataclass
class Stop:
    place: Place
    nights: Annotated[int, Param("Nights to stay", ge=1, le=30)]
    tags: list[str]


class Store:
    """What the program provides."""

    rooms = 3


@tool(read_only=True, examples=[{"city": "Oslo", "days": 3}])
def forecast(city: str, days: Annotated[int, Param("Days ahead", ge=1, le=14)] = 2, unit: Unit = Unit.CELSIUS) -> Any:
    """Forecast the weather of a city.

    The numbers are made up, and stay the same for the same city.

    Args:
        city: The city's name, in any language
    """
    seed = sum(map(ord, city))
    warm = 1 if unit is Unit.CELSIUS else 1.8
    return [
        {"day": f"2026-06-{day + 1:02}", "degrees": round((seed + 7 * day) % 25 * warm, 1), "sky": "clear"}
        for day in range(days)
    ]


@tool
def plan_trip(stops: list[Stop], start: dt.date, budget: int | str | None = None) -> dict[str, Any]:
    """Plan a trip with several stops."""
    nights = sum(stop.nights for stop in stops)
    return {"start": start.isoformat(), "end": (start + dt.timedelta(nights)).isoformat(), "budget": budget}


def _png(width: int, height: int) -> bytes:
    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (x * 255 // width, y * 255 // height, 140))
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@tool(read_only=True)
def draw(width: int = 240, height: int = 120) -> Any:
    """Draw a picture."""
    link = LinkBlock("https://example.com/gallery", "The gallery")
    return [TextBlock(f"{width} x {height}"), ImageBlock.from_bytes(_png(width, height), "image/png"), link]


@tool
async def copy_files(count: int = 5, pause: float = 0.05, *, emitter: Emitter) -> str:
    """Copy files, and tell how far it is."""
    for number in range(count):
        emitter.progress(number, count, f"file {number + 1}")
        emitter.emit(f"copying file {number + 1}")
        await asyncio.sleep(pause)
    return f"{count} files"


@tool
def wait_for_ever(token: CancelToken) -> str:
    """Wait until the call is cancelled."""
    token.wait(60)
    return "cancelled" if token.cancelled else "not cancelled"


@tool(requires_approval=True, destructive=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@tool
def fail(how: Literal["politely", "rudely"] = "politely") -> str:
    """Fail."""
    raise ToolError("there is no such city") if how == "politely" else RuntimeError("the disk is full")


@tool
def book(room: int, store: Injected[Store], key: str = "") -> str:
    """Book a room."""
    return f"room {room} of {store.rooms}, with {key}"


@tool
def sign_in(user: str, password: Annotated[str, Param("Of this user", schema_extra={"format": "password"})]) -> str:
    """Sign in."""
    return f"{user} signed in with {password}"


@tool
def ask_desk(question: str) -> str:
    """Ask a person who answers later."""
    raise Suspend(f"a person thinks about {question}")


@tool(group="archive")
def find_letter(year: int) -> str:
    """Find a letter in the archive."""
    return f"a letter of {year}"


def board() -> Toolkit:
    """The board, with the packs that it needs as far as they are installed."""
    packs = [name for name in ("dialects", "dataclasses") if find_spec(f"pegboard_{name}")]
    toolkit = Toolkit(plugins=packs, context=Store())
    toolkit.create_group("archive", "Letters of the last century", active=False)
    toolkit.register(forecast, draw, copy_files, wait_for_ever, delete_file, fail, book, sign_in, ask_desk)
    if "dataclasses" in packs:
        toolkit.register(plan_trip)
    toolkit.register(find_letter, group="archive")
    toolkit.register(Tool.external("ask_user", "Ask the user something", {"type": "object", "properties": {}}))
    toolkit.set_presets("book", {"key": Secret("s3cret-k3y")})
    return toolkit
