"""The answers of peers side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.benchmarks.peers.harness import Answer, Row
from tests.benchmarks.tables import number

__all__ = ["HEAD", "cells", "notes", "speed"]

HEAD = ("library", "path", "through", "B1", "B2", "B3", "B7", "wrong types")


def cells(answers: Iterable[Answer]) -> list[tuple[str, ...]]:
    """Rows of the table: one for each path of each library."""
    return [row for answer in answers for row in _rows(answer)]


def notes(answers: Iterable[Answer]) -> list[str]:
    """Why something was not measured, each reason once."""
    found: dict[str, list[str]] = {}
    for answer in answers:
        if answer.reason:
            found[f"{answer.peer} could not be measured: {answer.reason}"] = []
        for row in answer.rows:
            if row.reason:
                found.setdefault(f"{answer.peer}: {row.reason}", []).append(f"{row.work} {row.path}")
    return [f"{reason} ({', '.join(places)})" if places else reason for reason, places in found.items()]


def _rows(answer: Answer) -> list[tuple[str, ...]]:
    if answer.reason:
        return [(answer.peer, "", "", "-", "-", "-", "-", "")]
    found = {(row.path, row.work): row for row in answer.rows}
    return [
        (
            f"{answer.peer} {answer.version}",
            path,
            how,
            *(_cell(found.get((path, work))) for work in ("B1", "B2", "B3")),
            _cell(found.get(("schema", "B7"))) if path == "narrow" else "",
            {True: "refused", False: "VALIDATES NOTHING", None: ""}[answer.validates.get(path)],
        )
        for path, how in answer.how.items()
    ]


def _cell(row: Row | None) -> str:
    if row is None or row.value is None or row.low is None or row.high is None:
        return "-"
    marks = ["thread"] * row.threaded + ["pydantic"] * (row.model == "pydantic")
    return f"{number(row.value)} ({number(row.low)}-{number(row.high)})" + "".join(f" {mark}" for mark in marks)


def speed(answers: Sequence[Answer]) -> str:
    """The time of F1 in the processes, which says how fast the machine is."""
    floors = sorted(answer.floor * 1e6 for answer in answers if answer.floor)
    return f"{floors[0]:.1f} to {floors[-1]:.1f} us" if floors else "unknown"
