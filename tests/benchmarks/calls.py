"""B1 to B6 and B12: one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

from pegboard import Toolkit
from tests.benchmarks.floors import (
    BILL,
    BOTH_WRONG,
    FORECAST,
    ONE_WRONG,
    SEND,
    Client,
    Hop,
    bill_by_hand,
    by_hand,
    failing_by_hand,
    forecast,
    forecast_later,
    later_by_hand,
    refuse,
    send,
    total,
)
from tests.benchmarks.measuring import Figure, Pace, alternate, per_await, per_call

__all__ = ["BENCHMARKS"]


def board() -> Toolkit:
    """The toolkit, made as a program would make it."""
    toolkit = Toolkit(context=[Client()])
    toolkit.register(forecast, forecast_later, total, refuse)
    toolkit.register(send, presets={"key": "secret enough"})
    return toolkit


def _sync(
    floor: Callable[[], Any], name: str, text: str, status: str, pace: Pace, *, read: bool = False
) -> list[float]:
    """With `read`, the result's text is read too, as the loop of an agent does."""
    with board() as toolkit:
        call = partial(toolkit.call_sync, name, text)
        assert call().status == status, call()
        subject = (lambda: call().text) if read else call
        clocks = per_call(floor, pace.seconds), per_call(subject, pace.seconds)
        return alternate(*clocks, pace.rounds).rounds


def _scalars(pace: Pace) -> Iterator[Figure]:
    rounds = _sync(by_hand(forecast, FORECAST), "forecast", FORECAST, "success", pace)
    yield Figure.of("B1", "call_sync, 2 scalars", rounds, 2.0, 1.5)


def _later(pace: Pace) -> Iterator[Figure]:
    with board() as toolkit, asyncio.Runner() as runner:
        subject = partial(toolkit.call, "forecast_later", FORECAST)
        assert runner.run(subject()).status == "success"
        floor = per_await(later_by_hand, pace.seconds, runner)
        rounds = alternate(floor, per_await(subject, pace.seconds, runner), pace.rounds).rounds
    yield Figure.of("B2", "await call, async tool", rounds, 2.2, 1.5)


def _records(pace: Pace) -> Iterator[Figure]:
    rounds = _sync(bill_by_hand(BILL), "total", BILL, "success", pace)
    yield Figure.of("B3", "dataclass with 20 dataclasses", rounds, 2.0, 1.4)


def _provided(pace: Pace) -> Iterator[Figure]:
    floor = by_hand(send, SEND, client=Client(), key="secret enough")
    yield Figure.of("B4", "context, preset and argument", _sync(floor, "send", SEND, "success", pace), 2.0, 1.5)


def _raising(pace: Pace) -> Iterator[Figure]:
    work = failing_by_hand(FORECAST), "refuse", FORECAST, "error", pace
    yield Figure.of("B5", "tool raises", _sync(*work), 2.5, 1.5)
    yield Figure.of("B5", "the same, and its text read", _sync(*work, read=True), None, None)


def _wrong(pace: Pace) -> Iterator[Figure]:
    work = by_hand(forecast, FORECAST), "forecast", BOTH_WRONG, "invalid", pace
    yield Figure.of("B6", "two wrong scalars, explained", _sync(*work), 14.0, 10.0)
    yield Figure.of("B6", "the same, and its text read", _sync(*work, read=True), None, None)


def _wrong_leaf(pace: Pace) -> Iterator[Figure]:
    work = bill_by_hand(BILL), "total", ONE_WRONG, "invalid", pace
    yield Figure.of("B6N", "one wrong leaf in 20 sub-objects", _sync(*work), 8.0, 4.0)
    yield Figure.of("B6N", "the same, and its text read", _sync(*work, read=True), None, None)


def _hop(pace: Pace) -> Iterator[Figure]:
    hop = Hop()
    with board() as toolkit, asyncio.Runner() as runner:
        subject = partial(toolkit.call, "forecast", FORECAST)
        assert runner.run(subject()).status == "success"
        floor = per_await(hop, pace.seconds, runner, perf_counter)
        rounds = alternate(floor, per_await(subject, pace.seconds, runner, perf_counter), pace.rounds).rounds
    hop.close()
    yield Figure.of("B12", "await call of a sync tool", rounds, 1.3, 1.1)


BENCHMARKS = {
    "B1": _scalars,
    "B2": _later,
    "B3": _records,
    "B4": _provided,
    "B5": _raising,
    "B6": _wrong,
    "B6N": _wrong_leaf,
    "B12": _hop,
}
