"""Where the time of importing goes: each module's own time, as `python -X importtime` tells it."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import frozen

__all__ = ["HEAD", "Imported", "cells", "measure", "own_times"]

FEW = 0.5
"""Third-party modules below these milliseconds share a row."""

HEAD = ("module", "import pegboard, ms", "until a first call, ms")
LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)


@frozen
class Imported:
    """Own time of a module, or of all modules of a library, in milliseconds; None where it is not imported."""

    origin: str
    module: str
    at_import: float | None
    at_call: float | None


def own_times(report: str, loaded: Collection[str]) -> dict[str, float]:
    """Milliseconds of each module in what `-X importtime` writes; it also tells what was looked for in vain."""
    return {name: int(microseconds) / 1000 for microseconds, name in LINE.findall(report) if name in loaded}


def measure(runs: int) -> list[Imported]:
    """Medians of fresh processes; modules that an empty interpreter loads as well are left out."""
    # Here and not above: packages of another revision may lack what that module needs.
    from tests.benchmarks.starts import FIRST_CALL

    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as bytecode:
        empty, imported, called = (_medians(code, runs, bytecode) for code in ("", "import pegboard", FIRST_CALL))
    at_import, at_call = (
        _grouped({name: time for name, time in times.items() if name not in empty}) for times in (imported, called)
    )
    found = [Imported(*each, at_import.get(each), at_call.get(each)) for each in at_import | at_call]
    order = ("pegboard", "libraries", "standard library")
    return sorted(found, key=lambda each: (order.index(each.origin), -(each.at_call or 0), each.module))


def cells(found: Sequence[Imported]) -> list[tuple[str, ...]]:
    """Rows of the table: every module with its own time, and a sum for each origin and for all."""
    rows = []
    for origin in dict.fromkeys(each.origin for each in found):
        group = [each for each in found if each.origin == origin]
        small = [] if origin == "pegboard" else [each for each in group if (each.at_call or 0) < FEW]
        rows += [(each.module, _time(each.at_import), _time(each.at_call)) for each in group if each not in small]
        if small:
            rows.append((f"{len(small)} others", *_sums(small)))
        rows.append((f"{origin} together", *_sums(group)))
    return [*rows, ("all", *_sums(found))]


def _sums(found: Iterable[Imported]) -> tuple[str, str]:
    each = list(found)
    return _time(sum(one.at_import or 0 for one in each)), _time(sum(one.at_call or 0 for one in each))


def _time(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.2f}"


def _grouped(times: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """Our modules one by one, others by what is installed or imported as one."""
    sums: dict[tuple[str, str], float] = {}
    for name, time in times.items():
        top = name.partition(".")[0]
        origin = (
            "pegboard" if top == "pegboard" else "standard library" if top in sys.stdlib_module_names else "libraries"
        )
        key = origin, name if origin == "pegboard" else top
        sums[key] = sums.get(key, 0.0) + time
    return sums


def _medians(code: str, runs: int, bytecode: str) -> dict[str, float]:
    reports = [_report(code, bytecode) for _ in range(runs + 1)][1:]  # the first run compiles
    names = dict.fromkeys(name for report in reports for name in report)
    return {name: statistics.median(report.get(name, 0.0) for report in reports) for name in names}


def _report(code: str, bytecode: str) -> dict[str, float]:
    # Installers compile what they install; with PYTHONDONTWRITEBYTECODE a checkout would be compiled at each start.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    command = [sys.executable, "-X", "importtime", "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return own_times(run.stderr, set(run.stdout.split()))
