"""Registering on several threads: no mapping is lost."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from threading import Barrier
from typing import Any

import pytest

from pegboard import Text, Toolkit, TypeHandler, TypePlan, Types, shaped
from pegboard._tools.collect import Collector


def marked(annotation: Any, types: Types) -> TypePlan:
    return shaped({"type": "string", "pattern": "^new$"}, Text(lambda text: date.min), lambda value: "new")


def when(day: date) -> None:
    """Say when."""


def pattern(toolkit: Toolkit, name: str) -> Any:
    return toolkit[name].parameters["properties"]["day"].get("pattern")


def test_a_tool_that_is_read_while_a_type_is_mapped_has_the_new_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler comes between the reading of the tool and its place on the board."""
    collect = Collector.collect
    asked: list[int] = []

    def late(self: Collector, *args: Any, **options: Any) -> Any:
        found = collect(self, *args, **options)
        if not asked:
            asked.append(1)
            toolkit.register_type(TypeHandler(date, marked))
        return found

    with Toolkit(plugins=()) as toolkit:
        monkeypatch.setattr(Collector, "collect", late)
        toolkit.register(when)
        assert pattern(toolkit, "when") == "^new$"


@pytest.mark.parametrize("round_", range(20))
def test_mapping_and_registering_at_once(round_: int) -> None:
    with Toolkit(plugins=()) as toolkit, ThreadPoolExecutor(4) as pool:
        barrier = Barrier(4)

        def register(number: int) -> None:
            barrier.wait()
            for each in range(3):
                toolkit.register(when, name=f"when_{number}_{each}")

        def map_it() -> None:
            barrier.wait()
            toolkit.register_type(TypeHandler(date, marked))

        for future in [*(pool.submit(register, number) for number in range(3)), pool.submit(map_it)]:
            future.result()
        assert {pattern(toolkit, tool.name) for tool in toolkit} == {"^new$"}
