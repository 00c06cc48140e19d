"""Two revisions side by side: the benchmarks as they stand here, run against the packages of both.

Each benchmark runs in a fresh process for one revision, then for the other, a few times in turn, so that whatever else
the machine does hits both alike. Entry points are those that are installed: a pack that the revision does not have is
loaded from the checkout.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

from tests.benchmarks.tables import number
from tests.workspace.project import ROOT

__all__ = ["HEAD", "Comparison", "Unknown", "cells", "commit", "compared", "pooled", "unpacked"]

TURNS = 3
HEAD = ("", "work", "before", "half of the rounds", "now", "half of the rounds", "change")

Spread: TypeAlias = tuple[float, float, float]
"""Median, low and high."""

Side: TypeAlias = dict[str, tuple[str, Spread]]
"""Unit and spread of each work."""


class Unknown(Exception):
    """There is no such revision, or no repository; the message says what to do."""


@frozen
class Comparison:
    """One row. `before` or `now` is None for a side that could not run, as `reason` says."""

    key: str
    work: str
    unit: str
    before: Spread | None
    now: Spread | None
    reason: str = ""

    @property
    def change(self) -> float | None:
        """How much more it is now, as a share of what it was."""
        return (
            None if self.before is None or self.now is None or not self.before[0] else self.now[0] / self.before[0] - 1
        )

    @property
    def verdict(self) -> str:
        """`same` where the ranges overlap: such a difference shows nothing."""
        if self.before is None or self.now is None:
            return ""
        if self.now[2] < self.before[1]:
            return "better"
        return "worse" if self.now[1] > self.before[2] else "same"


def commit(revision: str) -> str:
    """The full name of a revision. Raises Unknown."""
    try:
        return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
    except (OSError, subprocess.CalledProcessError):
        raise Unknown(
            f"there is no revision {revision!r} in {ROOT}; `git log --oneline --all` shows which there are"
        ) from None


@contextmanager
def unpacked(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        with tarfile.open(fileobj=BytesIO(_git("archive", commit))) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def compared(names: Sequence[str], commit: str, quick: bool) -> Iterator[Comparison]:
    """Measure benchmarks against the packages of a commit and against those of the checkout."""
    with unpacked(commit) as before:
        for name in names:
            yield from _in_turn(name, before, quick)


def _in_turn(name: str, before: Path, quick: bool) -> Iterator[Comparison]:
    runs: dict[Path, list[Any]] = {before: [], ROOT: []}
    reasons = {}
    for turn in range(1 if quick else TURNS):
        for place in list(runs)[:: -1 if turn % 2 else 1]:
            try:
                runs[place].append(_measured(name, place, before, quick))
            except subprocess.CalledProcessError as error:
                reasons[place] = f"{'now' if place == ROOT else 'before'}: {_last_line(error.stderr)}"
    yield from pooled(name, runs[before], runs[ROOT], "; ".join(reasons.values()))


def pooled(
    name: str,
    before: Sequence[Sequence[Mapping[str, Any]]],
    now: Sequence[Sequence[Mapping[str, Any]]],
    reason: str = "",
) -> Iterator[Comparison]:
    """Rows of what `--json` gave in several runs of each side: medians of medians and of both ends of the ranges."""
    old, new = _by_work(before), _by_work(now)
    units = {work: unit for side in (old, new) for work, (unit, _) in side.items()}
    for work, unit in units.items() or [("", "")]:
        yield Comparison(name, work, unit, _side_of(old, work), _side_of(new, work), reason)


def _side_of(found: Side, work: str) -> Spread | None:
    return found[work][1] if work in found else None


def cells(rows: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Rows of the table."""
    return [_cells(row) for row in rows]


def _cells(row: Comparison) -> tuple[str, ...]:
    change = "" if row.change is None else f"{row.change:+.0%} {row.verdict}"
    return row.key, row.work, *_side(row.before, row.unit), *_side(row.now, row.unit), change or row.reason


def _side(values: Spread | None, unit: str) -> tuple[str, str]:
    if values is None:
        return "-", ""
    median, low, high = map(number, values)
    return f"{median} {unit}", f"{low} - {high}"


def _by_work(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Side:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        for figure in run:
            found.setdefault(figure["work"], []).append(figure)
    return {work: (figures[0]["unit"], _medians(figures)) for work, figures in found.items()}


def _medians(figures: Sequence[Mapping[str, Any]]) -> Spread:
    value, low, high = (statistics.median(figure[part] for figure in figures) for part in ("value", "low", "high"))
    return value, low, high


def _measured(name: str, place: Path, temporary: Path, quick: bool) -> Any:
    """What `--json` prints for one benchmark, with the packages of a folder; raises CalledProcessError."""
    sources = [place / "core" / "src", *sorted(place.glob("plugins/*/src"))]
    path = os.pathsep.join(map(str, [*sources, ROOT]))
    # What the benchmarks leave in the folder for temporary files is removed with the unpacked revision.
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", CHECKED, str(sources[0]), name, "--json", *(["--quick"] if quick else [])]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT)
    return json.loads(run.stdout)


# The folder of the core has to be the first argument, so that the packages are those that the table names.
CHECKED = """
import sys, pegboard
source = sys.argv.pop(1)
if not pegboard.__file__.startswith(source):
    sys.exit(f"pegboard comes from {pegboard.__file__}, not from {source}")
from tests.benchmarks.__main__ import main
sys.exit(main())
"""


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it failed without a word"])[-1]


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout
