"""Measures and prints: `python -m tests.benchmarks --help` says what."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import asdict

from tests.benchmarks import compare, figures, imports, packs, page
from tests.benchmarks.measuring import Pace
from tests.benchmarks.peers import environments, table
from tests.benchmarks.tables import plain

SECTIONS = ("figures", "imports", "packs", "peers")


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Ratios to floors.")
    rows = f"which rows ({' '.join(figures.NAMES)}), or with --peers which peers ({' '.join(environments.PEERS)})"
    made.add_argument("names", nargs="*", metavar="NAME", help=rows)
    made.add_argument("--figures", action="store_true", help="Pegboard's own figures; the default")
    made.add_argument("--imports", action="store_true", help="what each module takes to import")
    made.add_argument("--packs", action="store_true", help="what each pack depends on, its size, its import")
    made.add_argument("--peers", action="store_true", help="other libraries, each installed into its own environment")
    made.add_argument("--compare", metavar="REV", help="the figures with the packages of a revision beside today's")
    made.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    made.add_argument("--check", action="store_true", help="exit with 1 where a figure is not where it must be")
    made.add_argument("--json", action="store_true", help="print JSON; with several sections, an object of them")
    made.add_argument("--write", action="store_true", help="write the sections into their pages of docs as well")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; with `--check` the exit code is 1 where a figure is not where it must be."""
    made = parser()
    options = made.parse_args(arguments)
    sections = [section for section in SECTIONS if getattr(options, section)] or ["figures"]
    complaint = _complaint(options, sections)
    if complaint:
        made.error(complaint)
    if options.compare:
        return _compare(made, options)
    found = {section: WAYS[section](options) for section in sections}
    if options.json:
        data = {section: [_data(each) for each in rows] for section, rows in found.items()}
        print(json.dumps(data[sections[0]] if len(data) == 1 else data, indent=2))
    if options.write:
        _write(found, options.quick)
    missed = any(figure.verdict == "MISSED" for figure in found.get("figures", ()))
    return 1 if options.check and missed else 0


def _complaint(options: argparse.Namespace, sections: Sequence[str]) -> str:
    """What is wrong with the options, if anything."""
    if options.compare and (sections != ["figures"] or options.write or options.check):
        return "--compare goes with NAME, --quick and --json only"
    if options.names and sections not in (["figures"], ["peers"]):
        return "names select rows of one table, and those of imports and packs have none; ask for one section"
    if options.names and options.write:
        return "the page shows every row: leave the names out"
    kind, known = ("peer", environments.PEERS) if sections == ["peers"] else ("benchmark", figures.NAMES)
    unknown = sorted(set(options.names) - set(known))
    return f"there is no {kind} {unknown[0]}; known: {' '.join(known)}" if unknown else ""


def _figures(options: argparse.Namespace) -> list[Any]:
    with figures.core_alone():
        return _measured(options, options.names or figures.NAMES)


def _measured(options: argparse.Namespace, names: Sequence[str]) -> list[Any]:
    if not options.json:
        print(f"Python {platform.python_version()}; half of the rounds lie in the range")
        print(figures.line(figures.HEAD))
    found = []
    for figure in figures.measure(names, _pace(options)):
        found.append(figure)
        if not options.json:
            print(figures.line(figures.cells([figure])[0]), flush=True)
    return found


def _imports(options: argparse.Namespace) -> list[Any]:
    found = imports.measure(_pace(options).repeats * 3)
    if not options.json:
        print(plain(imports.HEAD, imports.cells(found)))
    return found


def _packs(options: argparse.Namespace) -> list[Any]:
    found = []
    for pack in packs.measure(_pace(options).repeats * 3):
        print(pack.name, file=sys.stderr, flush=True)
        found.append(pack)
    if not options.json:
        print(plain(packs.HEAD, packs.cells(found)))
    return found


def _peers(options: argparse.Namespace) -> list[Any]:
    with figures.core_alone():
        answers = list(_told(environments.answers(options.names, options.quick)))
    if not options.json:
        print(plain(table.HEAD, table.cells(answers)), *table.notes(answers), sep="\n")
    return answers


def _told(answers: Iterator[Any]) -> Iterator[Any]:
    """Say which peer is done: together they take minutes."""
    for answer in answers:
        print(f"{answer.peer} {answer.version or answer.reason}", file=sys.stderr, flush=True)
        yield answer


def _compare(made: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    try:
        commit = compare.commit(options.compare)
    except compare.Unknown as error:
        made.error(str(error))
    rows = list(compare.compared(options.names or figures.NAMES, commit, options.quick))
    if options.json:
        print(json.dumps([{**asdict(row), "change": row.change, "verdict": row.verdict} for row in rows], indent=2))
    else:
        print(f"before: {options.compare} ({commit[:12]}); the same benchmarks with the packages of both")
        print(plain(compare.HEAD, compare.cells(rows)))
    return 0


def _write(found: dict[str, list[Any]], quick: bool) -> None:
    for section, rows in found.items():
        path = page.PACKS if section == "packs" else page.PAGE
        text = page.replaced(path.read_text(encoding="utf-8"), section, WRITTEN[section](rows, quick))
        path.write_text(text, encoding="utf-8")


WAYS: dict[str, Callable[[argparse.Namespace], list[Any]]] = {
    "figures": _figures,
    "imports": _imports,
    "packs": _packs,
    "peers": _peers,
}
WRITTEN: dict[str, Callable[[Any, bool], str]] = {
    "figures": page.figures_section,
    "imports": page.imports_section,
    "packs": page.packs_section,
    "peers": page.peers_section,
}


def _data(row: Any) -> dict[str, Any]:
    verdict = getattr(row, "verdict", None)
    return asdict(row) if verdict is None else {**asdict(row), "verdict": verdict}


def _pace(options: argparse.Namespace) -> Pace:
    return Pace.quick() if options.quick else Pace()


if __name__ == "__main__":
    sys.exit(main())
