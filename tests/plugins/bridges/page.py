"""The table of `docs/packs/bridges.md`: what runs found out, kept in `found.json`, is what the page says.

`python -m tests.plugins.bridges.page FOLDER` compares what the runs wrote into a folder with it, and fails where they
differ; with `--write` it takes them over. What a call costs and which release it was is not compared.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.plugins.bridges.frameworks import PROPERTIES
from tests.workspace.project import ROOT

FOUND: Final = Path(__file__).with_name("found.json")
PAGE: Final = ROOT / "docs" / "packs" / "bridges.md"
BEGIN, END = "<!-- found by the runs -->\n", "<!-- until here -->"


def found() -> dict[str, Any]:
    """What is known of each framework."""
    known: dict[str, Any] = json.loads(FOUND.read_text("utf-8"))
    return known


def rendered(known: Mapping[str, Any]) -> str:
    """The table: for each framework what a call costs, and what it does not keep."""
    return "\n".join(["", "| framework | cost | not kept, and why |", "|---|---|---|", *_rows(known), ""])


def _rows(known: Mapping[str, Any]) -> Iterator[str]:
    for framework, row in sorted(known.items()):
        lost = {name: row["cells"][name] for name in PROPERTIES if row["cells"][name]}
        reasons = [f"{name}: {reason}" for name, reason in (*lost.items(), *sorted(row["also"].items()))]
        cost = f"{row['cost']:.2f}" if "cost" in row else "-"
        yield f"| `{framework}` ({row['version']}) | {cost} | {' <br>'.join(reasons)} |"


def page_with(known: Mapping[str, Any]) -> str:
    """The page with this table in it."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{rendered(known)}{END}{rest.partition(END)[2]}"


def main() -> int:
    """Compare or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    known = found() if FOUND.is_file() else {}
    new = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(asked.folder.glob("*.json"))}
    if asked.write:
        merged = {name: {**known.get(name, {}), **row} for name, row in new.items()}
        known = dict(sorted({**known, **merged}.items()))
        FOUND.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(page_with(known), encoding="utf-8")
        return 0
    differ = [name for name, row in new.items() if row["cells"] != known.get(name, {}).get("cells")]
    for name in differ:
        print(
            f"{name}: found {new[name]['cells']}, known {known.get(name, {}).get('cells')}; nox -s bridges -- --write"
        )
    return 1 if differ or not new else 0


if __name__ == "__main__":
    raise SystemExit(main())
