"""`python -m tests.release plan` says what to build, `... finish DIST AGAIN` checks what was built twice.

While the newest section of CHANGELOG.md is called `Unreleased`, this is a rehearsal: what keeps the checkout from being
released is printed, and does not fail.
"""

import argparse
import json
import sys
from pathlib import Path

from tests.release import artifacts, bom, plan


def main() -> int:
    """Run one of the two steps; return an exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.release")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("plan", help="check versions, changelog and tree; print what to build, as JSON")
    finish = steps.add_parser("finish", help="check two builds of it; write hashes and the bill of materials")
    finish.add_argument("dist", type=Path)
    finish.add_argument("again", type=Path)
    options = parser.parse_args()
    written = plan.sections((plan.ROOT / "CHANGELOG.md").read_text("utf-8"))
    known = plan.members()
    if options.step == "plan":
        return _plan(written, known)
    return _finish(options.dist, options.again, written[0], known)


def _plan(written: list[plan.Section], known: dict[str, plan.Member]) -> int:
    newest = written[0]
    wrong = [*plan.disagreements(written, known), *plan.unnamed(written, known)]
    unready = list(plan.unready(newest))
    is_rehearsal = newest.heading == plan.UNRELEASED
    for line in wrong + unready:
        print(line, file=sys.stderr)
    if is_rehearsal:
        print("This is a rehearsal: no release is made of it.", file=sys.stderr)
    if wrong or (unready and not is_rehearsal):
        return 1
    print(json.dumps({"folders": plan.chosen(newest, known), "time": plan.time_of_commit(), "files": plan.tracked()}))
    return 0


def _finish(dist: Path, again: Path, newest: plan.Section, known: dict[str, plan.Member]) -> int:
    versions = {name: member.version for name, member in known.items() if name in newest.versions}
    wrong = [*artifacts.faults(dist, versions), *artifacts.differences(dist, again)]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        return 1
    for path in (artifacts.write_hashes(dist), bom.write_bom(dist, newest.heading, plan.time_of_commit())):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
