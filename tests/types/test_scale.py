"""A thousand tools cost five times what two hundred do: counted in Python function calls, which no machine changes."""

from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import pegboard_dataclasses
from pegboard import Toolkit, tool
from tests.support.profiling import profiled
from tests.support.thinning import first

SOURCE = '''
@dataclass
class Place{n}:
    """A place."""
    name: str
    zone: Annotated[int, Ge(0)] = 0

@dataclass
class Stop{n}:
    """A stop on the way."""
    place: Place{n}
    day: date
    tags: list[str] = field(default_factory=list)

@dataclass
class Trip{n}:
    """A trip of several stops."""
    stops: list[Stop{n}]
    home: Place{n} | None = None

def plan_{n}(trip: Trip{n}, name: str, budget: float, days: int = 1, notes: dict[str, list[str]] | None = None) -> str:
    """Plan a trip.

    Args:
        trip: Where to
        name: Whose trip
    """
    return name
'''
TRIP = {"stops": [{"place": {"name": "Bern"}, "day": "2024-05-06"}]}
IMPORTS = """
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated
from annotated_types import Ge
"""


def functions(number: int) -> list[Callable[..., Any]]:
    """Distinct tools with distinct models, as if each had been written by hand."""
    names: dict[str, Any] = {"__name__": __name__}
    exec(IMPORTS, names)
    for n in range(number):
        exec(compile(SOURCE.replace("{n}", str(n)), f"<tool {n}>", "exec", dont_inherit=True), names)
    return [names[f"plan_{n}"] for n in range(number)]


def counted(work: Callable[[], Any]) -> int:
    """How many Python and C functions `work` calls."""
    calls = 0

    def count(frame: FrameType, event: str) -> None:
        nonlocal calls
        calls += 1

    profiled(work, count)
    return calls


def built(made: list[Callable[..., Any]], *, called: bool) -> Callable[[], None]:
    """Register all tools at once, make every schema, and call each tool if that is asked for."""

    def work() -> None:
        with Toolkit(plugins=[pegboard_dataclasses]) as toolkit:
            toolkit.register(*map(tool, made))
            schemas = toolkit.schemas()
            assert len(schemas) == len(made)
            if called:
                arguments = {"trip": TRIP, "name": "Ada", "budget": 100}
                assert all(toolkit.call_sync(schema.name, arguments).text == "Ada" for schema in schemas)

    return work


@pytest.mark.parametrize("called", first(1, [True, False]))
@pytest.mark.parametrize(("few", "many"), [(25, 100), pytest.param(200, 1000, marks=pytest.mark.slow)])
def test_tools_with_nested_models_are_linear(few: int, many: int, called: bool) -> None:
    built(functions(5), called=called)()  # what is imported and cached once
    for_few, for_many = (counted(built(functions(number), called=called)) / number for number in (few, many))
    assert for_many == pytest.approx(for_few, rel=0.1)


def test_counting_counts() -> None:
    def inner() -> int:
        return len("abc")

    assert counted(inner) >= 2
    assert counted(lambda: [inner() for _ in range(100)]) >= 200
