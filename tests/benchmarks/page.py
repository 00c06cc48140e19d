"""Puts what was measured into a page of `docs`, between its markers; the rest of the page is written by hand."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from tests.benchmarks import figures, imports, packs
from tests.benchmarks.imports import Imported
from tests.benchmarks.measuring import Figure
from tests.benchmarks.packs import Pack
from tests.benchmarks.peers import table
from tests.benchmarks.peers.harness import Answer
from tests.benchmarks.tables import markdown
from tests.workspace.project import ROOT

__all__ = ["PACKS", "PAGE", "figures_section", "imports_section", "packs_section", "peers_section", "replaced"]

PAGE = ROOT / "docs" / "internals" / "performance.md"
PACKS = ROOT / "docs" / "packs.md"


def replaced(text: str, section: str, body: str) -> str:
    """Return the page with another body of a section. Raises ValueError if the page has no such section."""
    begin, end = (f"<!-- {edge}: {section} -->" for edge in ("begin", "end"))
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"the page lacks the lines {begin!r} and {end!r}, between which the section is written")
    return pattern.sub(lambda _: f"{begin}\n\n{body.strip()}\n\n{end}", text)


def figures_section(found: Sequence[Figure], quick: bool) -> str:
    """Our own figures."""
    return f"{_circumstances(quick)}\n\n{markdown(figures.HEAD, figures.cells(found))}"


def imports_section(found: Sequence[Imported], quick: bool) -> str:
    """The times of importing."""
    return f"{_circumstances(quick)}\n\n{markdown(imports.HEAD, imports.cells(found))}"


def packs_section(found: Sequence[Pack], quick: bool) -> str:
    """What packs bring, after the core."""
    core, *rest = found
    times = f"{core.imported:.1f} ms to import and {core.after_toolkit:.1f} ms until a toolkit without packs is made"
    itself = f"`{core.name}` itself has {core.megabytes:.1f} MB with its dependencies; it takes {times}."
    return f"{_circumstances(quick)} {itself}\n\n{markdown(packs.HEAD, packs.cells(rest))}"


def peers_section(answers: Sequence[Answer], quick: bool) -> str:
    """The figures of peers, and why something is missing."""
    speed = f"F1 took {table.speed(answers)} in these processes."
    missing = "".join(f"\n- {note}" for note in table.notes(answers))
    reasons = f"\n\nWhat a dash means:\n{missing}" if missing else ""
    return f"{_circumstances(quick)} {speed}\n\n{markdown(table.HEAD, table.cells(answers))}{reasons}"


def _circumstances(quick: bool) -> str:
    machine = f"{platform.system()} on {platform.machine()} with {os.cpu_count()} cores"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    rounds = ", few rounds (`--quick`)" if quick else ""
    return f"Measured on {datetime.now(UTC):%Y-%m-%d} with Pegboard {version('pegboard')}, {python}, {machine}{rounds}."
