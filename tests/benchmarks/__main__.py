"""Prints the table: `python -m tests.benchmarks [B1 B3 ...] [--quick] [--json] [--check]`."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator, Sequence

from attrs import asdict

from tests.benchmarks import boards, calls, crowds, starts
from tests.benchmarks.measuring import Figure, Pace

BENCHMARKS = dict(
    sorted(
        {**calls.BENCHMARKS, **boards.BENCHMARKS, **crowds.BENCHMARKS, **starts.BENCHMARKS}.items(),
        key=lambda item: (int(item[0].strip("BN")), item[0]),
    )
)


def figures(names: Sequence[str], pace: Pace) -> Iterator[Figure]:
    """Measure what is asked for, everything if nothing is."""
    for name in names or BENCHMARKS:
        yield from BENCHMARKS[name](pace)


def line(figure: Figure) -> str:
    """One row of the table."""
    return (
        f"{figure.key:<4} {figure.work:<42} {_number(figure.value, figure.unit):>10} "
        f"{_number(figure.low, ''):>8} - {_number(figure.high, ''):<8} "
        f"{_limit(figure.must, figure.unit):>8} {_limit(figure.aim, figure.unit):>8}  {figure.verdict}"
    ).rstrip()


def _number(value: float, unit: str) -> str:
    digits = 2 if value < 100 else 0
    return f"{value:.{digits}f} {unit}".rstrip() if value >= 0.01 or not value else f"{value:.5f} {unit}".rstrip()


def _limit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:g} {unit}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; with `--check` the exit code is 1 where a figure is not where it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Ratios to floors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which rows: {' '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a figure is not where it must be")
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; known: {' '.join(BENCHMARKS)}")
    found = []
    if not options.json:
        print(f"Python {platform.python_version()}; half of the rounds lie in the range")
        print(f"{'':4} {'work':<42} {'median':>10} {'range':^19} {'must':>8} {'aim':>8}")
    for figure in figures(options.names, Pace.quick() if options.quick else Pace()):
        found.append(figure)
        if not options.json:
            print(line(figure), flush=True)
    if options.json:
        print(json.dumps([{**asdict(each), "verdict": each.verdict} for each in found], indent=2))
    return 1 if options.check and any(each.verdict == "MISSED" for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
