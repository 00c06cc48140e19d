"""Prints what the tests miss: `python -m tests.mutants [MODULE ...] [--jobs N] [--every N]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.mutate import Mutant, mutants
from tests.mutants.run import judged
from tests.workspace.project import ROOT

MODULES = (
    *(
        "_types/plans",
        "_types/codegen",
        "_types/json_kinds",
        "_types/unions",
        "_tools/plan",
    ),
    *("builtin/readings", "builtin/types"),
)
JUDGED = {
    "_tools/plan": {
        *("_member", "build", "_write_accept", "_read", "_absent", "_refuse_surplus", "_argument", "_value", "_passed"),
    },
    "_types/plans": {
        *("_bounded", "_bound_one", "_is_written_form", "_check", "_lengths", "<module>"),
        *("_with_predicates", "passed", "_called", "alternatives"),
    },
}
"""What of a module checks values; the rest says how a function is run, or how a type is shown."""


def all_mutants(modules: Sequence[str]) -> list[Mutant]:
    """The mutants of modules of the core."""
    source = ROOT / "core" / "src" / "pegboard"
    found = [mutant for name in modules for mutant in mutants(name, (source / f"{name}.py").read_text("utf-8"))]
    return [mutant for mutant in found if mutant.module not in JUDGED or mutant.function in JUDGED[mutant.module]]


def originals(modules: Sequence[str]) -> list[Mutant]:
    """Modules as they are: the tests have to be green for them."""
    source = ROOT / "core" / "src" / "pegboard"
    return [Mutant(name, "", 0, "", "", (source / f"{name}.py").read_text("utf-8")) for name in modules]


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge mutants and print a table; the exit code is 1 if one lives without a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Does a test notice each check?")
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=MODULES, help=f"which of: {' '.join(MODULES)}")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes at a time (default: 2)")
    parser.add_argument("--every", type=int, default=1, help="judge only every n-th mutant")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.modules) - set(MODULES))
    if unknown:
        parser.error(f"there is no module {unknown[0]} to change; known: {' '.join(MODULES)}")
    if any(verdict.killed for verdict in judged(originals(options.modules), options.jobs)):
        print("the tests are red without any mutant")
        return 2
    made, killed, excused, alive = Counter[str](), Counter[str](), Counter[str](), []
    for verdict in judged(all_mutants(options.modules)[:: options.every], options.jobs):
        module = verdict.mutant.module
        made[module] += 1
        if verdict.killed:
            killed[module] += 1
        elif verdict.mutant.key in EQUIVALENT:
            excused[module] += 1
        else:
            alive.append(verdict.mutant)
            print(f"ALIVE {verdict.mutant}", flush=True)
    print(f"\n{'module':<20} {'mutants':>8} {'killed':>8} {'same':>8} {'alive':>8} {'score':>8}")
    for name in sorted(made):
        print(row(name, made[name], killed[name], excused[name]))
    print(row("all", made.total(), killed.total(), excused.total()))
    return 1 if alive else 0


def row(name: str, made: int, killed: int, excused: int) -> str:
    """One line of the table; the score is what was killed of what differs from the original at all."""
    score = 100 * killed / (made - excused) if made > excused else 100.0
    return f"{name:<20} {made:>8} {killed:>8} {excused:>8} {made - killed - excused:>8} {score:>7.1f}%"


if __name__ == "__main__":
    sys.exit(main())
