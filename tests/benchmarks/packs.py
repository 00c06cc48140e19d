"""What each pack brings: the dependencies that it declares, the size of what is installed, and the time of its import.

A pack is installed as a user would get it, with what it declares and nothing else, into a folder that is removed again.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.workspace.project import CORE, PACKS, Member

__all__ = ["HEAD", "Pack", "cells", "declared", "measure", "members", "milliseconds", "size"]

HEAD = ("distribution", "dependencies besides `pegboard`", "installed, MB", "import, ms", "after a toolkit, ms")

TIMED = """
import sys, time
folder, before, statement = sys.argv[1:]
sys.path.insert(0, folder)
exec(before)
started = time.process_time()
exec(statement)
print(time.process_time() - started)
"""
IMPORT = "import pegboard"
TOOLKIT = "import pegboard; pegboard.Toolkit(plugins=())"


@frozen
class Pack:
    """Figures of a distribution; those of a pack are what it adds to the core."""

    name: str
    dependencies: tuple[str, ...]
    megabytes: float
    imported: float
    """Milliseconds of the import of a pack after that of the core, which loads little of itself until it is used."""
    after_toolkit: float
    """Milliseconds of the import where a toolkit has been made: what the pack adds to a program."""


def declared(member: Member) -> tuple[str, ...]:
    """The dependencies in a distribution's `pyproject.toml`, without the core."""
    return tuple(text for text in member.project["dependencies"] if _name(text) != CORE.name)


def members(member: Member) -> list[Member]:
    """A distribution and those of the workspace that it depends on: they are on no index while they are developed."""
    needed = {_name(text) for text in member.project["dependencies"]}
    found = [each for other in (CORE, *PACKS) if other.name in needed for each in members(other)]
    return list({each.name: each for each in (*found, member)}.values())


def measure(runs: int) -> Iterator[Pack]:
    """The core, as it is and with a toolkit, and every pack with what it adds to the core."""
    with _installed(CORE) as folder:
        core = size(folder)
        times = (milliseconds(folder, "", statement, runs) for statement in (IMPORT, TOOLKIT))
        yield Pack(CORE.name, declared(CORE), core, *times)
    for pack in PACKS:
        with _installed(pack) as folder:
            times = (milliseconds(folder, before, f"import {pack.package}", runs) for before in (IMPORT, TOOLKIT))
            yield Pack(pack.name, declared(pack), size(folder) - core, *times)


def cells(found: Sequence[Pack]) -> list[tuple[str, ...]]:
    """Rows of the table."""
    return [(f"`{each.name}`", _code(each.dependencies), *_numbers(each)) for each in found]


def milliseconds(folder: Path, before: str, statement: str, runs: int) -> float:
    """Median processor time of a statement after another, in processes that see a folder and the standard library."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as bytecode:
        isolated = [sys.executable, "-I", "-S", "-X", f"pycache_prefix={bytecode}"]
        command = [*isolated, "-c", TIMED, str(folder), before, statement]
        printed = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(runs + 1)]
    return 1000 * statistics.median(float(seconds) for seconds in printed[1:])  # the first run compiles


def size(folder: Path) -> float:
    """Megabytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


@contextmanager
def _installed(member: Member) -> Iterator[Path]:
    """A folder with a member as it stands in the checkout, and what it depends on; nothing is compiled."""
    wanted = members(member)
    uv = shutil.which("uv")
    # uv would take a member that it has built before from its cache, and a dependency of one from the workspace.
    fresh = [option for each in wanted for option in ("--refresh-package", each.name)]
    install = [uv, "pip", "install", "--quiet", "--no-sources", "--python", sys.executable, *fresh] if uv else []
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        subprocess.run([*(install or pip), "--target", folder, *(str(each.path) for each in wanted)], check=True)
        yield Path(folder)


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _code(dependencies: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in dependencies)


def _numbers(pack: Pack) -> tuple[str, str, str]:
    return f"{pack.megabytes:.2f}", f"{pack.imported:.1f}", f"{pack.after_toolkit:.1f}"
