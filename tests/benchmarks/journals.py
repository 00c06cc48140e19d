"""B17: what the journal adds to a call: installed, recording, and where it answers from its cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from pegboard import Toolkit, tool
from tests.benchmarks.floors import FORECAST, by_hand, forecast
from tests.benchmarks.measuring import Clock, Figure, Pace, alternate, per_call

__all__ = ["BENCHMARKS", "caching_board"]


@tool(read_only=True)
def reading(city: str, days: int) -> str:
    """Weather forecast for a city."""
    return city


@tool
def paying(city: str, days: int) -> str:
    """Weather forecast for a city, and pay for it."""
    return city


def _board(settings: dict[str, object] | None = None) -> Toolkit:
    """A toolkit with the pack and these settings; without settings, without the pack."""
    toolkit = Toolkit(plugins=()) if settings is None else Toolkit(plugins=["journal"], settings={"journal": settings})
    toolkit.register(forecast, reading, paying)
    return toolkit


def caching_board() -> Toolkit:
    """A toolkit whose journal keeps answers, and records nothing."""
    return _board({"cache": {"*": 3600.0}})


def _call(toolkit: Toolkit, name: str, pace: Pace) -> Clock:
    return per_call(lambda: toolkit.call_sync(name, FORECAST), pace.seconds)


def _insert(path: Path, pace: Pace) -> Clock:
    """The bare insert: the last row of the journal again and again, into a table without an index."""
    connection = sqlite3.connect(path, isolation_level=None)
    row = connection.execute("SELECT * FROM pegboard_journal ORDER BY seq DESC LIMIT 1").fetchone()
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("CREATE TABLE bare AS SELECT * FROM pegboard_journal LIMIT 0")
    statement, number = f"INSERT INTO bare VALUES ({', '.join('?' * len(row))})", count()

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement, (next(number), *row[1:]))
        connection.execute("COMMIT")

    return per_call(insert, pace.seconds)


def _journal(pace: Pace) -> Iterator[Figure]:
    with _board() as bare, _board({}) as installed, caching_board() as caching:
        plain = _call(bare, "forecast", pace)
        rounds = alternate(plain, _call(installed, "forecast", pace), pace.rounds).rounds
        yield Figure.of("B17", "a journal is installed, without a url", rounds, 1.02, None)
        hand = per_call(by_hand(forecast, FORECAST), pace.seconds)
        rounds = alternate(hand, _call(caching, "reading", pace), pace.rounds).rounds
        yield Figure.of("B17", "an answer from the cache", rounds, 3.0, None)
    with TemporaryDirectory() as folder, _board() as bare:
        path = Path(folder, "calls.db")
        with _board({"url": f"sqlite:///{path}"}) as toolkit:
            toolkit.call_sync("reading", FORECAST)
            insert, plain = _insert(path, pace), _call(bare, "reading", pace)
            for name, must in (("reading", 60.0), ("paying", None)):
                recorded = _call(toolkit, name, pace)
                added = [(recorded() - plain() - insert()) * 1e6 for _ in range(pace.rounds)]
                what = (
                    "recorded, less call and bare insert"
                    if must
                    else "  the same with an effect: two rows, one on disk"
                )
                yield Figure.of("B17", what, added, must, None, "us")


BENCHMARKS = {"B17": _journal}
