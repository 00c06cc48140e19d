"""A pack as it is published: what its wheel says of it, and what its tests need."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from attrs import frozen

__all__ = ["Wheel", "admits", "needs_of_tests", "normal", "read_project", "read_wheel"]

_NAME: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(;.*)?")
_CLAUSE: Final = re.compile(r"\s*(~=|==|!=|<=|>=|<|>)\s*([0-9]+(?:\.[0-9]+)*)(\.\*)?\s*")
# Extras and dependency groups that hold what tests need, the narrowest first.
_FOR_TESTS: Final = ("test", "tests", "testing", "dev")


@frozen
class Wheel:
    """What a wheel says: its plugins by name, the Python and the core that it asks for, its extras and packages."""

    path: Path
    name: str
    version: str
    python: str
    core: str
    plugins: Sequence[str]
    extras: Sequence[str]
    packages: Sequence[str]

    @property
    def lowest_core(self) -> str | None:
        """The lowest version of the core that it admits; None if it names none."""
        found = [match for match in map(_CLAUSE.fullmatch, self.core.split(",")) if match]
        return next((match[2] for match in found if match[1] in (">=", "~=", "==")), None)


def normal(name: str) -> str:
    """A distribution's name as names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_project(folder: Path) -> Mapping[str, Any]:
    """A folder's `pyproject.toml`; empty where there is none. Raises ValueError for one that cannot be read."""
    try:
        return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def read_wheel(path: Path) -> Wheel:
    """What a wheel says of itself. Raises ValueError for a file that is no wheel."""
    with ZipFile(path) as archive:
        names = archive.namelist()
        info = next((name.partition("/")[0] for name in names if name.endswith(".dist-info/METADATA")), None)
        if info is None:
            raise ValueError(f"{path.name} has no metadata")
        metadata = HeaderParser().parsestr(archive.read(f"{info}/METADATA").decode("utf-8"))
        points = f"{info}/entry_points.txt"
        declared = archive.read(points).decode("utf-8") if points in names else ""
    needed = [match for match in map(_NAME.match, metadata.get_all("Requires-Dist", ())) if match]
    tops = {name.partition("/")[0] for name in names} - {info}
    return Wheel(
        path=path,
        name=metadata["Name"],
        version=metadata["Version"],
        python=metadata.get("Requires-Python", ""),
        core=next((each[2] for each in needed if normal(each[1]) == "pegboard" and "extra" not in (each[3] or "")), ""),
        plugins=[*_plugins(declared)],
        extras=metadata.get_all("Provides-Extra", []),
        packages=sorted(tops),
    )


def _plugins(entry_points: str) -> Iterator[str]:
    """The names of the entry points that make plugins."""
    group = ""
    for line in map(str.strip, entry_points.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
        elif group == "pegboard" and "=" in line:
            yield line.partition("=")[0].strip()


def needs_of_tests(wheel: Wheel, project: Mapping[str, Any]) -> list[str]:
    """The wheel with the extra that its tests need, or beside it their dependency group."""
    for name in _FOR_TESTS:
        if name in wheel.extras:
            return [f"{wheel.path}[{name}]"]
        if name in project.get("dependency-groups", {}):
            return [str(wheel.path), *_group(project["dependency-groups"], name)]
    return [str(wheel.path)]


def _group(groups: Mapping[str, Any], name: str) -> Iterator[str]:
    for each in groups.get(name, ()):
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping) and each.get("include-group") != name:
            yield from _group(groups, str(each.get("include-group")))


def admits(requires: str, version: str) -> bool:
    """Whether a version of Python is among those that `Requires-Python` names; only plain clauses count."""
    found = tuple(map(int, version.split(".")))
    for clause in filter(None, map(_CLAUSE.fullmatch, requires.split(","))):
        limit = tuple(map(int, clause[2].split(".")))
        cut = found[: len(limit)]
        fits = {
            "~=": found >= limit and found[: len(limit) - 1] == limit[:-1],
            "==": cut == limit,
            "!=": cut != limit,
            "<=": cut <= limit,
            ">=": found >= limit,
            "<": found < limit,
            ">": cut > limit,
        }
        if not fits[clause[1]]:
            return False
    return True
