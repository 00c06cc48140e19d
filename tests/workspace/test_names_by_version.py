"""A pack works with the oldest core and the oldest packs that it admits: what it uses of them had begun by then.

`names.toml` records with which version each public name began.
"""

import importlib
import re
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.workspace.project import CORE, MEMBERS, PACKS, ROOT, Member, each_pack, load, tracked

RECORD = ROOT / "tests" / "workspace" / "names.toml"
BEGAN = {
    library: {name: Version(version) for version, names in table.items() for name in names.split()}
    for library, table in load(RECORD).items()
}
NEEDED = {Requirement(text).name for member in PACKS for text in member.project["dependencies"]}
LIBRARIES = [member for member in MEMBERS if member.name in NEEDED]
MODULES = ("extension", "hookspecs", "inspection")

each_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)


def public(library: Member) -> set[str]:
    """The public names of a distribution, as its users write them behind the package."""
    found = set(importlib.import_module(library.package).__all__)
    for module in MODULES if library is CORE else ():
        found |= {f"{module}.{name}" for name in importlib.import_module(f"pegboard.{module}").__all__}
    return found


def used(source: str, package: str) -> set[str]:
    """The names of a package that a module imports, or reaches through its import of the package."""
    found = set()
    # Read without the parser, which would take two seconds for all packs.
    for module, names in re.findall(rf"^ *from {package}((?:\.\w+)?) import (\([^)]*\)|.*)$", source, re.MULTILINE):
        found |= {
            f"{module}.{name}".lstrip(".") for name in re.findall(r"(?:^|[(,])\s*(\w+)", re.sub("#.*", "", names))
        }
    if re.search(rf"^ *import {package}$", source, re.MULTILINE):
        found |= set(re.findall(rf"\b{package}\.(\w+)", source))
    return found - {*MODULES, "__version__"}


def oldest(specifier: SpecifierSet) -> Version:
    """The oldest version that a requirement admits."""
    return max(Version(each.version) for each in specifier if each.operator in (">=", "==", "~="))


def too_new(names: set[str], began: dict[str, Version], specifier: SpecifierSet) -> Iterator[str]:
    for name in sorted(names & began.keys()):
        if began[name] > oldest(specifier):
            yield f"{name} began with {began[name]}"


@each_library
def test_each_public_name_has_its_version_on_record(library: Member) -> None:
    recorded = BEGAN.get(library.name, {})
    missing, removed = public(library) - recorded.keys(), recorded.keys() - public(library)
    assert (sorted(missing), sorted(removed)) == ([], []), f"write it into {RECORD.relative_to(ROOT)}: {library.name}"
    assert all(version <= Version(library.project["version"]) for version in recorded.values())


@each_pack
def test_a_pack_admits_no_version_that_lacks_a_name_that_it_uses(pack: Member) -> None:
    requirements = {each.name: each for each in map(Requirement, pack.project["dependencies"])}
    sources = [path.read_text("utf-8") for path in (pack.path / "src").rglob("*.py")]
    for library in LIBRARIES:
        if library.name in requirements:
            names = {name for source in sources for name in used(source, library.package)}
            told = list(too_new(names, BEGAN[library.name], requirements[library.name].specifier))
            assert told == [], f"{pack.name} admits {requirements[library.name]}: raise its lower bound"


def test_ranges_on_pages_admit_what_is_here() -> None:
    versions = {member.name: member.project["version"] for member in MEMBERS}
    found = {
        (path.relative_to(ROOT).as_posix(), match.group())
        for path in tracked()
        if path.suffix in {".in", ".md"}
        for match in re.finditer(r"\bpegboard[a-z-]*(?:\[\w+\])?>=[\d.]+(?:,<[\d.]+)?", path.read_text("utf-8"))
    }
    assert len(found) > 3
    wanted = {(page, Requirement(text.rstrip("."))) for page, text in found}
    assert [(page, str(each)) for page, each in wanted if versions[each.name] not in each.specifier] == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from pegboard import Toolkit, tool as t", {"Toolkit", "tool"}),
        ("from pegboard.extension import Job  # lazily", {"extension.Job"}),
        ("from pegboard import (  # lazily\n    Tool\n)", {"Tool"}),
        ("    from pegboard import (\n    Tool,\n    tool,\n)", {"Tool", "tool"}),
        ("import pegboard\npegboard.Toolkit().call", {"Toolkit"}),
        ("from pegboard import inspection", set()),
        ("from pegboard_net import fetch", set()),
    ],
)
def test_uses_are_found(source: str, names: set[str]) -> None:
    assert used(source, "pegboard") == names


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        (">=0.1,<0.2", ["new began with 0.1.2"]),
        (">=0.1.1", ["new began with 0.1.2"]),
        (">=0.1.2,<0.2", []),
        (">=0.2", []),
    ],
)
def test_a_bound_that_is_too_low_is_found(bound: str, told: list[str]) -> None:
    began = {"old": Version("0.1.0"), "new": Version("0.1.2")}
    assert list(too_new({"old", "new", "_private"}, began, SpecifierSet(bound))) == told
