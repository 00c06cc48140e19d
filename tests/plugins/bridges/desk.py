"""The same ten tools for every framework, the calls that are made of them, and a board with both."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from typing import Annotated, Any, Final, Literal

from pegboard import Emitter, ImageBlock, Secret, Suspend, ToolCall, ToolError, Toolkit, injectable, tool

PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000"
    "000049454e44ae426082"
)
"""An image of one pixel."""


@dataclasses.dataclass
class Place:
    """Where a person lives."""

    city: str
    zip_code: str = ""


@dataclasses.dataclass
class Person:
    """A person with two addresses, so that one schema is referred to twice."""

    name: str
    home: Place
    work: Place | None = None


@injectable
@dataclasses.dataclass
class Desk:
    """What the program provides, and no model hears of."""

    clerk: str


@tool
def forecast(city: Annotated[str, "City name"], days: int = 1, metric: bool = True, wind: float = 0.5) -> str:
    """Weather forecast for a city."""
    return f"{city}/{days}/{metric}/{wind:g}"


@tool
def introduce(person: Person, friends: list[Person] | None = None) -> dict[str, Any]:
    """Introduce people to each other."""
    names = [each.name for each in friends or []]
    return {"name": person.name, "city": person.home.city, "works": person.work is not None, "friends": names}


@tool
def mixed(value: int | str | list[int], mode: Literal["plain", "loud"] = "plain") -> str:
    """Say what a value is."""
    return f"{type(value).__name__} {value!r} {mode}"


@tool
def when(day: dt.date, moment: dt.datetime | None = None) -> str:
    """Say which day a date is."""
    return f"{day:%Y-%m-%d} is day {day.timetuple().tm_yday}" + (f", {moment.isoformat()}" if moment else "")


@tool
def picture(title: str) -> list[Any]:
    """Paint a picture."""
    return [f"a picture of {title}", ImageBlock.from_bytes(PNG, "image/png")]


@tool
def sign(document: str, desk: Desk, key: str) -> str:
    """Sign a document with the key of the desk."""
    return f"{document} signed by {desk.clerk} with {len(key)} letters"


@tool
def count(upto: int, emitter: Emitter) -> str:
    """Count, and tell how far it has come."""
    for number in range(1, upto + 1):
        emitter.progress(number, upto, f"counted {number}")
    return f"counted to {upto}"


@tool
def break_it(reason: str) -> str:
    """Fail."""
    raise ToolError(f"broken: {reason}")


@tool(requires_approval=True)
def wipe(disk: str) -> str:
    """Wipe a disk."""
    return f"wiped {disk}"


@tool
async def measure(what: str) -> str:
    """Measure something; a human does that."""
    raise Suspend(f"a person measures {what}")


TOOLS: Final = (forecast, introduce, mixed, when, picture, sign, count, break_it, wipe, measure)
NAMES: Final = tuple(function.__name__ for function in TOOLS)
HIDDEN: Final = ("desk", "key")


def board(**options: Any) -> Toolkit:
    """A board with the ten tools, on a desk."""
    toolkit = Toolkit(plugins=["dataclasses", "bridges"], context=(Desk("Ada"),), **options)
    toolkit.register(*TOOLS, presets={"sign": {"key": Secret("hunter2")}})
    return toolkit


def cheap_calls(how_many: int = 400) -> list[tuple[str, dict[str, Any]]]:
    """Calls with good arguments, some with bad ones: the same every time."""
    chance = random.Random(20)
    return [_cheap_call(chance) for _ in range(how_many)]


def _cheap_call(chance: random.Random) -> tuple[str, dict[str, Any]]:
    word = chance.choice(["Oslo", "Zürich", "東京", 'a "quoted" word', ""])
    number = chance.randint(-5, 500)
    person: dict[str, Any] = {"name": word, "home": {"city": "Bergen", "zip_code": str(number)}}
    choices: list[tuple[str, dict[str, Any]]] = [
        ("forecast", {"city": word}),
        ("forecast", {"city": word, "days": number, "metric": number % 2 == 0, "wind": number / 4}),
        ("forecast", {"town": word, "days": "soon"}),
        ("introduce", {"person": person}),
        ("introduce", {"person": {**person, "work": {"city": word}}, "friends": [person, person]}),
        ("introduce", {"person": {"name": word}}),
        ("mixed", {"value": number, "mode": "loud"}),
        ("mixed", {"value": word}),
        ("mixed", {"value": [number, 2]}),
        ("mixed", {"value": number, "mode": "silent"}),
        ("when", {"day": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}"}),
        ("when", {"day": "2026-02-03", "moment": "2026-02-03T04:05:06+00:00"}),
        ("when", {"day": "yesterday"}),
        ("sign", {"document": word}),
        ("count", {"upto": number % 4}),
        ("break_it", {"reason": word}),
    ]
    return chance.choice(choices)


def call_of(number: int, call: tuple[str, dict[str, Any]]) -> ToolCall:
    """A call as a scripted model makes it."""
    name, arguments = call
    return ToolCall(f"call_{number}", name, arguments)
