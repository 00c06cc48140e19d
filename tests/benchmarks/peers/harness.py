"""Runs inside a peer's environment: finds out what a path does, then measures it against the floors of this process.

The environment holds the peer, and attrs and pluggy without which the floors cannot be imported; nothing else of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from importlib import metadata
from typing import Any, NoReturn, TypeAlias

from attrs import asdict, evolve, frozen

from tests.benchmarks.floors import (
    BILL,
    BOTH_WRONG,
    FORECAST,
    NESTED,
    bill_by_hand,
    by_hand,
    later_by_hand,
    reflect,
    written,
)
from tests.benchmarks.measuring import Clock, Figure, Pace, alternate, per_await, per_call, timed
from tests.benchmarks.peers import work

__all__ = ["Answer", "Carry", "Function", "Path", "Row", "main", "measure", "stay_at_home"]

Function: TypeAlias = Callable[..., Any]
Carry: TypeAlias = Callable[[tuple[str, ...]], Any]
"""Carries out one call for each JSON text; what it returns is awaited if it can be.

What a model says is made once for each tuple of texts and kept: to say it is no work of the library.
"""

TURN = 10
SCHEMAS = 50


@frozen
class Path:
    """One way through a peer. `prepare` makes a tool of a function and returns what carries out calls.

    With `turns` it is a run of the peer's agent, whose scripted model asks for all the calls at once and then stops.
    """

    how: str
    prepare: Callable[[Function], Carry | Awaitable[Carry]]
    turns: bool = False


@frozen
class Row:
    """What one piece of work costs on one path, as a ratio to its floor, or the reason why there is none."""

    work: str
    path: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threaded: bool = False
    model: str = ""
    reason: str = ""


@frozen
class Answer:
    """All that a peer's process tells. `validates` says whether a path keeps wrong types from the function.

    `floor` is the time of F1 in seconds, which tells how fast the machine is; `reason` says why there is nothing else.
    """

    peer: str
    version: str
    how: dict[str, str]
    validates: dict[str, bool | None]
    floor: float
    rows: list[Row]
    reason: str = ""


@frozen
class Kind:
    """A piece of work: the tool, its twin that keeps what arrives, the JSON text, the same by hand."""

    work: str
    function: Function
    keep: Function
    text: str
    floor: Callable[[], Any]
    model: str = ""


def kinds() -> Iterator[tuple[Kind, ...]]:
    """Yield pieces of work; where there are two ways, the first that a peer can go is measured."""
    yield (Kind("B1", work.forecast, work.keep_forecast, FORECAST, by_hand(work.forecast, FORECAST)),)
    yield (Kind("B2", work.forecast_later, work.keep_forecast_later, FORECAST, later_by_hand),)
    records = [Kind("B3", work.total, work.keep_total, BILL, bill_by_hand(BILL), "dataclasses")]
    with contextlib.suppress(ImportError):
        from tests.benchmarks.peers import models

        records.append(Kind("B3", models.total, models.keep_total, BILL, bill_by_hand(BILL), "pydantic"))
    yield tuple(records)


class _Ways:
    """Runs paths in one event loop, whether they are asynchronous or not."""

    def __init__(self, runner: asyncio.Runner, pace: Pace) -> None:
        self._runner, self._pace = runner, pace

    def finished(self, value: Any) -> Any:
        """Await what can be awaited."""
        if not inspect.isawaitable(value):
            return value

        async def finish() -> Any:
            return await value

        return self._runner.run(finish())

    def clock(self, call: Callable[[], Any]) -> Clock:
        """Processor time of one call, threads of the peer included."""
        first = call()
        if inspect.isawaitable(first):
            self.finished(first)
            return per_await(call, self._pace.seconds, self._runner)
        return per_call(call, self._pace.seconds)

    def _seen(self, path: Path, keep: Function, text: str, times: int = 1) -> list[tuple[tuple[Any, ...], int]]:
        carry = self.finished(path.prepare(keep))
        work.SEEN.clear()
        self.finished(carry((text,) * times))
        return list(work.SEEN)

    def validates(self, path: Path) -> bool | None:
        """Whether a list for a text and a text for an integer are kept from the function; None if nothing arrives."""
        try:
            self._seen(path, work.keep_forecast, FORECAST)
        except Exception:  # noqa: BLE001 - told by the rows
            return None
        with contextlib.suppress(Exception):
            self._seen(path, work.keep_forecast, BOTH_WRONG)
        return not work.SEEN

    def row(self, name: str, path: Path, ways: tuple[Kind, ...]) -> Row:
        """The first way that the peer can go, measured, or why it can go none."""
        row = Row("", "")
        for kind in ways:
            row = _row(kind.work, name, partial(self._rounds, path, kind))
            if not row.reason:
                return evolve(row, threaded=self._threaded(path, kind), model=kind.model)
        return row

    def _rounds(self, path: Path, kind: Kind) -> list[float]:
        self._check(path, kind)
        carry = self.finished(path.prepare(kind.function))
        floor = self.clock(kind.floor)
        if not path.turns:
            return alternate(floor, self.clock(partial(carry, (kind.text,))), self._pace.rounds).rounds
        # What one more call costs: the run with eleven calls less the run with one, so that the turns of the model,
        # and whatever a run costs by itself, are not counted.
        few, many = (self.clock(partial(carry, (kind.text,) * times)) for times in (1, 1 + TURN))
        return alternate(floor, lambda: (-few() + many()) / TURN, self._pace.rounds).rounds

    def _threaded(self, path: Path, kind: Kind) -> bool:
        return any(thread != threading.get_ident() for _, thread in self._seen(path, kind.keep, kind.text))

    def _check(self, path: Path, kind: Kind) -> None:
        times = 3 if path.turns else 1
        seen = self._seen(path, kind.keep, kind.text, times)
        if len(seen) != times:
            raise RuntimeError(f"the tool ran {len(seen)} times, not {times}")
        for (first, *_), _ in seen:
            if kind.model and isinstance(first, dict):
                raise TypeError("the tool gets a dict")


def _schema_rounds(schema: Callable[[Function], Any], pace: Pace) -> list[float]:
    batches = iter([written(NESTED, SCHEMAS, start * SCHEMAS) for start in range(pace.repeats + 1)])
    current: list[Function] = []

    def each(make: Callable[[Function], Any]) -> float:
        def everything() -> None:
            for function in current:
                make(function)

        return timed(everything) / SCHEMAS

    def floor() -> float:
        current[:] = next(batches)
        return each(reflect)

    return alternate(floor, lambda: each(schema), pace.repeats).rounds


def _row(work_name: str, path: str, rounds: Callable[[], list[float]]) -> Row:
    try:
        figure = Figure.of(work_name, path, rounds(), None, None)
    except Exception as error:  # noqa: BLE001 - a peer that cannot do one thing is still measured at the others
        said = str(error).strip().splitlines()
        return Row(work_name, path, reason=(said[0] if said else type(error).__name__)[:200])
    return Row(work_name, path, figure.value, figure.low, figure.high)


def _rows(paths: dict[str, Path], schema: Callable[[Function], Any], ways: _Ways, pace: Pace) -> Iterator[Row]:
    for name, path in paths.items():
        for choice in kinds():
            yield ways.row(name, path, choice)
    yield _row("B7", "schema", partial(_schema_rounds, schema, pace))


def measure(
    peer: str,
    narrow: Path,
    agent: Path,
    schema: Callable[[Function], Any],
    pace: Pace,
    version: str = "",
    call: Path | None = None,
) -> Answer:
    """Measure everything that can be measured; `call` is the usual way of a library that has a narrower one."""
    paths = {"narrow": narrow, **({} if call is None else {"call": call}), "agent": agent}
    with asyncio.Runner() as runner:
        ways = _Ways(runner, pace)
        validates = {name: ways.validates(path) for name, path in paths.items()}
        rows = list(_rows(paths, schema, ways, pace))
        clock = ways.clock(by_hand(work.forecast, FORECAST))
        floor = min(clock() for _ in range(pace.rounds))
    how = {name: path.how for name, path in paths.items()}
    return Answer(peer, version or metadata.version(peer), how, validates, floor, rows)


def main(peer: str, narrow: Path, agent: Path, schema: Callable[[Function], Any], call: Path | None = None) -> None:
    """Measure and print one line of JSON, the last of the output."""
    stay_at_home()
    pace = Pace.quick() if "--quick" in sys.argv else Pace()
    print(json.dumps(asdict(measure(peer, narrow, agent, schema, pace, call=call))))


def stay_at_home() -> None:
    """Refuse connections to other machines: nothing that is measured needs one."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise PermissionError("a benchmark needs no network")

    socket.getaddrinfo = refuse
    socket.create_connection = refuse
    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
