"""Puts what was measured into `docs/performance.md`, between its markers; the rest of the page is written by hand."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from tests.benchmarks import figures, imports
from tests.benchmarks.imports import Imported
from tests.benchmarks.measuring import Figure
from tests.benchmarks.peers import table
from tests.benchmarks.peers.harness import Answer
from tests.benchmarks.tables import markdown
from tests.workspace.project import ROOT

__all__ = ["PAGE", "figures_section", "imports_section", "peers_section", "replaced"]

PAGE = ROOT / "docs" / "performance.md"


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
