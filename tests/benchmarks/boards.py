"""B7, B8 and B13: making tools, large boards, many sessions."""

from __future__ import annotations

import statistics
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pegboard import Tool, Toolkit
from tests.benchmarks.floors import FORECAST, NESTED, NESTED_OF_ITS_OWN, SCALARS, reflect, written
from tests.benchmarks.measuring import Clock, Figure, Pace, alternate, per_call, quiet, timed

__all__ = ["BENCHMARKS"]

MANY = 10_000


def _each(work: Callable[[Any], Any], functions: list[Any]) -> float:
    def everything() -> None:
        for function in functions:
            work(function)

    return timed(everything) / len(functions)


def _schema(function: Callable[..., Any]) -> None:
    assert Tool.from_function(function).schema().description


def _against_reflection(template: str, pace: Pace) -> list[float]:
    """Each round reads functions that were not read before."""
    batches = iter([written(template, 1000, start * 1000) for start in range(pace.repeats + 1)])
    current: list[Any] = []

    def floor() -> float:
        current[:] = next(batches)
        return _each(reflect, current)

    return alternate(floor, lambda: _each(_schema, current), pace.repeats).rounds


def _schemas(pace: Pace) -> Iterator[Figure]:
    yield Figure.of("B7", "schema of 1,000 functions, one model", _against_reflection(NESTED, pace), 6.0, 4.0)
    rounds = _against_reflection(NESTED_OF_ITS_OWN, pace)
    yield Figure.of("B7", "  each with models of its own", rounds, None, None)


def _one_by_one(functions: list[Any]) -> Toolkit:
    toolkit = Toolkit(plugins=())
    for function in functions:
        toolkit.register(function)
    return toolkit


def _registration(functions: list[Any], pace: Pace) -> Iterator[Figure]:
    """Registering once, in one call and one by one; a first toolkit pays for what is read once per process."""
    _one_by_one(functions[:10])
    floor = partial(_each, reflect, functions)
    ways = {
        "register(10,000 tools), each": lambda: Toolkit(plugins=()).register(*functions),
        "  one by one, each": lambda: _one_by_one(functions),
    }
    for way, register in ways.items():
        rounds = alternate(floor, lambda register=register: timed(register) / MANY, pace.repeats).rounds  # type: ignore[misc]
        yield Figure.of("B8", way, rounds, 2.5, 1.1)


def _preset(pace: Pace) -> Iterator[Figure]:
    """What a tool with a preset of its own costs where there are many must not depend on how many there are."""
    functions = written(SCALARS, 4000)
    _one_by_one(functions[:10])

    def registering(number: int) -> Clock:
        presets = {f"tool_{each}": {"city": "Bern"} for each in range(number)}

        def clock() -> float:
            toolkit = Toolkit(plugins=())
            return timed(lambda: toolkit.register(*functions[:number], presets=presets)) / number

        return clock

    rounds = alternate(registering(1000), registering(4000), pace.repeats).rounds
    yield Figure.of("B8", "  with presets, each of 4,000 over each of 1,000", rounds, 1.25, 1.05)


def _large_board(pace: Pace) -> Iterator[Figure]:
    functions = written(SCALARS, MANY)
    yield from _registration(functions, pace)
    yield from _preset(pace)
    small, large = _one_by_one(functions[:10]), _one_by_one(functions)
    few, many = (per_call(partial(each.call_sync, "tool_7", FORECAST), pace.seconds) for each in (small, large))
    ratio = alternate(few, many, pace.rounds)
    yield Figure.of("B8", "  a call at 10,000 tools over one at 10", ratio.rounds, 1.1, 1.0)
    yield Figure.of("B8", "  memory per tool", [_memory(functions)], 12.0, 8.0, "KiB")
    yield Figure.of("B8", "  memory per tool, schemas rendered", [_memory(functions, "schemas")], None, None, "KiB")


def _memory(functions: list[Any], then: str = "") -> float:
    """KiB for each tool, functions not counted: they are the program's."""
    _one_by_one(functions[:10])
    with quiet():
        tracemalloc.start()
        try:
            toolkit = _one_by_one(functions)
            if then:
                getattr(toolkit, then)()
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return used / len(toolkit) / 1024


def _sessions(pace: Pace) -> Iterator[Figure]:
    toolkit = Toolkit(plugins=())
    toolkit.register(*written(SCALARS, 1000))
    sessions = [toolkit.session() for _ in range(1000)]

    def renew() -> None:
        # One by one, as users come and go; dropping all at once would measure how the system gives and takes memory.
        for position in range(1000):
            sessions[position] = toolkit.session()

    with quiet():
        creations = [timed(renew) * 1000 for _ in range(pace.repeats * 20)]
    yield Figure.of("B13", "1,000 sessions, each renewed", creations, 5.0, 2.0, "us")
    first = timed(toolkit.schemas)
    clock = per_call(toolkit.schemas, pace.seconds)
    again = [clock() * 1e6 for _ in range(pace.rounds)]
    yield Figure.of("B13", "  schemas() of 1,000 tools again", again, None, None, "us")
    share = statistics.median(again) / (first * 1e6)
    yield Figure.of("B13", "  the same over the first time", [share], 0.01, 0.001)
    yield from _requests(pace)


def _requests(pace: Pace) -> Iterator[Figure]:
    """Whole requests over their definitions alone, while everything is offered and while a group is only kept."""
    for what, offered in (("request() of 100 tools over tools()", True), ("  with 20 of them only kept", False)):
        toolkit = Toolkit(plugins=["dialects"])
        toolkit.create_group("some")
        functions = written(SCALARS, 100)
        toolkit.register(*functions[:20], group="some")
        toolkit.register(*functions[20:])
        chat = toolkit.dialect("openai")
        all_of_them = toolkit.dialect("openai")
        chat.request()
        if not offered:
            wide = Toolkit(plugins=["dialects"])
            wide.register(*functions)
            all_of_them = wide.dialect("openai")
            toolkit.update_groups("some", False)
        # A call takes a millisecond, and a hundredth of it is looked for: rounds of many.
        tools, request = (per_call(work, pace.seconds * 10) for work in (all_of_them.tools, chat.request))
        yield Figure.of("B13", what, alternate(tools, request, pace.rounds).rounds, 1.01 if offered else None, None)


BENCHMARKS = {"B7": _schemas, "B8": _large_board, "B13": _sessions}
