"""What recording costs, as ratios and differences of one run: the best of many short rounds."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from pegboard import Toolkit, tool
from tests.benchmarks.floors import FORECAST, forecast
from tests.plugins.journal.desk import entries, journaled
from tests.support.measuring import least


@tool(read_only=True)
def reading(city: str, days: int) -> str:
    """Weather forecast for a city."""
    return city


@pytest.fixture(autouse=True)
def _still() -> Iterator[None]:
    """No collector comes between."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def best(*works: Callable[[], Any], rounds: int = 60, repeat: int = 60) -> list[float]:
    """Seconds of the processor for one run of each, one after another, the least of all rounds."""
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            begun = thread_time()
            for _ in range(repeat):
                work()
            found[index] = min(found[index], (thread_time() - begun) / repeat)
    return found


@pytest.mark.slow
def test_an_installed_pack_without_a_url_costs_nothing() -> None:
    bare, full = Toolkit(plugins=()), Toolkit(plugins=["journal"])
    with bare, full:
        for each in (bare, full):
            each.register(forecast)
        plain, packed = (lambda: bare.call_sync("forecast", FORECAST)), (lambda: full.call_sync("forecast", FORECAST))

        def ratio() -> float:
            before, within = best(plain, packed)
            return within / before

        assert least(ratio, enough=1.02) <= 1.02


@pytest.mark.slow
def test_recording_beside_the_bare_insert(tmp_path: Path) -> None:
    """Beside a statement that inserts the same row into the same kind of table, in a transaction of its own."""
    with journaled(tmp_path, reading) as toolkit, Toolkit(plugins=()) as plain:
        plain.register(reading)
        toolkit.call_sync("reading", FORECAST)
        bare = sqlite3.connect(tmp_path / "calls.db", isolation_level=None)
        (names,) = bare.execute("SELECT group_concat(name) FROM pragma_table_info('pegboard_journal')").fetchone()
        row = bare.execute("SELECT * FROM pegboard_journal").fetchone()
        bare.execute("PRAGMA synchronous=NORMAL")
        (schema,) = bare.execute("SELECT sql FROM sqlite_master WHERE name = 'pegboard_journal'").fetchone()
        bare.execute(schema.replace("pegboard_journal", "bare"))
        insert = f"INSERT INTO bare ({names}) VALUES ({', '.join('?' * len(row))})"
        number = iter(range(1, 1_000_000))

        def by_itself() -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.execute(insert, (next(number), *row[1:]))
            bare.execute("COMMIT")

        def added() -> float:
            inserted, called, recorded = best(
                by_itself,
                lambda: plain.call_sync("reading", FORECAST),
                lambda: toolkit.call_sync("reading", FORECAST),
                rounds=20,
            )
            return (recorded - called) / inserted

        assert least(added, enough=3.0) <= 6.0  # twice, on a machine that does other things
        assert len(entries(toolkit)) > 1_000
        bare.close()
