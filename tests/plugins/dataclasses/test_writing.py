"""How records are written: under their keys, by what their fields say, whatever the fields are called."""

import datetime as dt
import gc
import linecache
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

import attrs
import pytest

import pegboard_dataclasses
from pegboard import Param, Toolkit

T = TypeVar("T")


@pytest.fixture
def board() -> Toolkit:
    return Toolkit(plugins=[pegboard_dataclasses])


def written(board: Toolkit, annotation: Any, value: Any) -> Any:
    return board.types.plan(annotation).unstructure(value)


@dataclass
class Settings:
    """Names that cattrs uses for arguments of its own."""

    cl: int = 1
    attrs: int = 2
    converter: int = 3
    typevar_map: int = 4
    instance: int = 5
    res: int = 6


def test_fields_may_have_any_name(board: Toolkit) -> None:
    assert written(board, Settings, Settings()) == {
        "cl": 1,
        "attrs": 2,
        "converter": 3,
        "typevar_map": 4,
        "instance": 5,
        "res": 6,
    }


def as_it_is(value: Any) -> Any:
    return value


def day_of(text: str | None) -> dt.date | None:
    return None if text is None else dt.date.fromisoformat(text)


@attrs.define
class Event:
    _start: dt.date
    end: dt.date | None = None
    at: Annotated[dt.time | None, Param(name="time")] = None
    late: Any = attrs.field(default=None, converter=as_it_is)
    number: int = attrs.field(default=0, init=False)


def test_what_is_none_is_absent_and_names_are_those_of_the_schema(board: Toolkit) -> None:
    day = dt.date(2024, 5, 6)
    assert written(board, Event, Event(day)) == {"start": "2024-05-06"}
    assert written(board, Event, Event(day, day, dt.time(7), 3)) == {
        "start": "2024-05-06",
        "end": "2024-05-06",
        "time": "07:00:00",
        "late": 3,
    }


@attrs.define
class Read:
    """The converter takes less than what is kept."""

    day: dt.date = attrs.field(default=None, converter=day_of)


def test_none_is_not_written_by_what_writes_the_rest(board: Toolkit) -> None:
    assert written(board, Read, Read()) == {}


@dataclass
class Pair(Generic[T]):
    first: T
    rest: "list[Pair[T]]" = field(default_factory=list)


def test_generic_and_recursive(board: Toolkit) -> None:
    value = Pair(dt.date(2024, 5, 6), [Pair(dt.date(2024, 5, 7))])
    assert written(board, Pair[dt.date], value) == {
        "first": "2024-05-06",
        "rest": [{"first": "2024-05-07", "rest": []}],
    }


def test_no_source_stays_behind(board: Toolkit) -> None:
    def one() -> None:
        @dataclass
        class Point:
            x: int

        assert written(board, Point, Point(1)) == {"x": 1}

    one()
    gc.collect()
    before = len(linecache.cache)
    for _ in range(20):
        one()
    gc.collect()
    assert len(linecache.cache) <= before
