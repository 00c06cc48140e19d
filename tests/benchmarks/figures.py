"""The rows of the table of Pegboard's own figures, and which module measures each."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tests.benchmarks.measuring import Figure, Pace
from tests.benchmarks.tables import number

__all__ = ["HEAD", "HOMES", "NAMES", "cells", "core_alone", "line", "measure"]

HOMES = {
    "agents": ("B15",),
    "calls": ("B1", "B2", "B3", "B4", "B5", "B6", "B6N", "B12"),
    "code": ("B16",),
    "boards": ("B7", "B8", "B13"),
    "crowds": ("B9",),
    "features": ("B14",),
    "journals": ("B17",),
    "starts": ("B10", "B11"),
}
"""Imported when a row is measured: packages of another revision may lack what only other rows need."""

NAMES = tuple(sorted(sum(HOMES.values(), ()), key=lambda name: (int(name.strip("BN")), name)))
HEAD = ("", "work", "median", "half of the rounds", "must", "aim", "")


OF_EVERY_CALL: Final = ("otel",)
"""The packs that change what each call costs."""


@contextmanager
def core_alone(without: Sequence[str] = OF_EVERY_CALL) -> Iterator[None]:
    """Leave packs out as a user would: by the variable that blocks plugins."""
    before = os.environ.get("PEGBOARD_BLOCK")
    os.environ["PEGBOARD_BLOCK"] = ",".join(filter(None, (before, *without)))
    try:
        yield
    finally:
        os.environ.pop("PEGBOARD_BLOCK")
        if before is not None:
            os.environ["PEGBOARD_BLOCK"] = before


def measure(names: Sequence[str], pace: Pace) -> Iterator[Figure]:
    """Measure what is asked for, everything if nothing is."""
    for name in names or NAMES:
        (home,) = (home for home, rows in HOMES.items() if name in rows)
        yield from importlib.import_module(f"tests.benchmarks.{home}").BENCHMARKS[name](pace)


def cells(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """Rows of the table."""
    return [_cells(figure) for figure in figures]


def line(cells: Sequence[str]) -> str:
    """One row at a terminal, as wide as every other, so that it can be printed before the next is known."""
    key, work, value, spread, must, aim, verdict = cells
    return f"{key:<4} {work:<42} {value:>10} {spread:^19} {must:>8} {aim:>8}  {verdict}".rstrip()


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.key,
        figure.work,
        f"{number(figure.value)} {figure.unit}",
        f"{number(figure.low)} - {number(figure.high)}",
        _limit(figure.must, figure.unit),
        _limit(figure.aim, figure.unit),
        figure.verdict,
    )


def _limit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:g} {unit}"
