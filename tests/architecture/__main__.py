"""Print the size of the core by room and the walks, beside what `rooms.py` allows.

python -m tests.architecture            the figures
python -m tests.architecture --files    and the files that each walk enters, in their order
"""

import argparse

from tests.architecture.rooms import MOST_ENTRIES, MOST_LINES, MOST_MODULES, MOST_TOKENS, WALKS
from tests.architecture.size import entries, sizes, total
from tests.architecture.walks import walks
from tests.workspace.project import CORE

PACKAGE = CORE.path / "src" / "pegboard"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.architecture", description="Size of the core, and walks.")
    parser.add_argument(
        "--files", action="store_true", help="name the files of each walk, in the order they are entered"
    )
    named = parser.parse_args().files

    measured = sizes(PACKAGE.parent)
    print(f"{'room':14}{'code lines':>12}{'tokens':>9}{'modules':>9}")
    for room, size in measured.items():
        print(f"{room:14}{size.lines:>12,}{size.tokens:>9,}{size.modules:>9}")
    whole = total(measured)
    limits = f"{MOST_LINES:,} lines, {MOST_TOKENS:,} tokens, {MOST_MODULES} modules"
    print(f"{'core':14}{whole.lines:>12,}{whole.tokens:>9,}{whole.modules:>9}   at most {limits}")
    print(f"{'entries':14}{len(entries(PACKAGE)):>12}            at most {MOST_ENTRIES}")

    print(f"\n{'walk':14}{'files':>12}")
    for name, files in walks().items():
        print(f"{name:14}{len(files):>12}            at most {WALKS[name]}")
        if named:
            print(*(f"    {file}" for file in files), sep="\n")


if __name__ == "__main__":
    main()
