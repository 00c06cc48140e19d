"""What the workspace's files say, read once."""

import ast
import functools
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class Member(NamedTuple):
    """A distribution of the workspace."""

    folder: str
    pyproject: Mapping[str, Any]

    @property
    def path(self) -> Path:
        return ROOT / self.folder

    @property
    def project(self) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self.pyproject["project"]
        return table

    @property
    def name(self) -> str:
        return str(self.project["name"])

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")


def load(path: Path) -> Mapping[str, Any]:
    """Read a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def member(path: Path) -> Member:
    """Read the distribution in a folder."""
    return Member(path.relative_to(ROOT).as_posix(), load(path / "pyproject.toml"))


WORKSPACE = load(ROOT / "pyproject.toml")
CORE = member(ROOT / "core")
PACKS = [member(path.parent) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
MEMBERS = [CORE, *PACKS]

each_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
each_pack = pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Files that git tracks or would, were they added now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in sorted(listing.split("\0")) if name)
    return tuple(path for path in paths if path.is_file())


@functools.cache
def sessions() -> frozenset[str]:
    """The sessions of the noxfile, without what a parametrized one has in brackets."""
    found = {"tests", *(f"tests-{version}" for version in (ROOT / ".python-version").read_text("utf-8").split())}
    for node in ast.parse((ROOT / "noxfile.py").read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and any("nox.session" in ast.unparse(d) for d in node.decorator_list):
            names = [re.search("name='([^']+)'", ast.unparse(each)) for each in node.decorator_list]
            found.add(next((name[1] for name in names if name), node.name))
    return frozenset(found)
