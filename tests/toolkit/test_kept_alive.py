"""What a toolkit keeps alive: nothing of a class that no tool uses, and of returned values only the last few."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Callable
from types import GenericAlias
from typing import Any

import pytest

from pegboard import Toolkit

pegboard_dataclasses = pytest.importorskip("pegboard_dataclasses")


def ping() -> str:
    return "pong"


@pytest.fixture
def board() -> Toolkit:
    toolkit = Toolkit(plugins=[pegboard_dataclasses])
    toolkit.register(ping)
    return toolkit


def class_of_its_own() -> type:
    @dataclasses.dataclass
    class Point:
        x: int

    return Point


def used(board: Toolkit, annotation: Callable[[type], Any]) -> weakref.ref[type]:
    """A class of a tool that was registered, shown, called and removed again."""
    cls = class_of_its_own()

    def move(point: Any) -> Any:
        return point

    move.__annotations__ = {"point": annotation(cls), "return": annotation(cls)}
    board.register(move)
    assert board["move"].parameters
    assert board["move"].returns
    sent: Any = {"x": 1}
    sent = sent if isinstance(annotation(cls), type) else [sent]
    assert not board.call_sync("move", {"point": sent}).is_error
    board.unregister("move")
    return weakref.ref(cls)


@pytest.mark.parametrize(
    "annotation", [lambda cls: cls, lambda cls: GenericAlias(list, (cls,))], ids=["alone", "in a list"]
)
def test_a_class_goes_with_the_tool_that_used_it(board: Toolkit, annotation: Callable[[type], Any]) -> None:
    before = used(board, annotation)
    board.call_sync("ping")  # what a session has ready is renewed with its next call
    gc.collect()
    assert before() is None


def test_a_class_stays_while_a_tool_uses_it(board: Toolkit) -> None:
    cls = class_of_its_own()

    def move(point: Any) -> int:
        return int(point.x)

    move.__annotations__ = {"point": cls, "return": int}
    board.register(move, name="stays")
    used(board, lambda _: cls)
    board.register(lambda point: 1, name="other")
    assert board.call_sync("stays", {"point": {"x": 3}}).data == 3
    assert board["stays"].parameters["properties"]["point"]["properties"] == {"x": {"type": "integer"}}


@pytest.mark.slow
def test_classes_of_returned_values_go_after_some_others(board: Toolkit) -> None:
    classes: list[weakref.ref[type]] = []

    def fresh() -> Any:
        cls = class_of_its_own()
        classes.append(weakref.ref(cls))
        return [cls(len(classes)), {"inside": cls(0)}]

    board.register(fresh)
    for number in range(1_200):
        assert board.call_sync("fresh").data[0] == {"x": number + 1}
    gc.collect()
    assert sum(each() is not None for each in classes) <= 501
    assert classes[0]() is None
