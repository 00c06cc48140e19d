"""What a release is made of: the distributions that the newest section of CHANGELOG.md names."""

import datetime as dt
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
UNRELEASED = "Unreleased"
# One distribution or several, and the version of each of them.
_NUMBERED = re.compile(r"((?:`pegboard[\w-]*`(?:,| and)? )+)(\d[\w.]*)")


class Section(NamedTuple):
    """A section of the changelog: its heading, the versions that its entries begin with, and entries without one."""

    heading: str
    versions: Mapping[str, frozenset[str]]
    unnumbered: tuple[str, ...] = ()


class Member(NamedTuple):
    """A distribution of the workspace: its folder, as git writes it, and its version."""

    folder: str
    version: str


def sections(changelog: str) -> list[Section]:
    """Read the sections, newest first."""
    found = []
    for part in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, entries = part.partition("\n")
        versions: dict[str, set[str]] = {}
        unnumbered = []
        for entry in re.findall(r"^- (.*)$", entries, re.MULTILINE):
            if begin := _NUMBERED.match(entry):
                for name in re.findall(r"`([\w-]+)`", begin[1]):
                    versions.setdefault(name, set()).add(begin[2])
            else:
                unnumbered.append(entry)
        numbers = {name: frozenset(each) for name, each in versions.items()}
        found.append(Section(heading.strip(), numbers, tuple(unnumbered)))
    return found


def members(root: Path = ROOT) -> dict[str, Member]:
    """Read the distributions of a checkout, the core first."""
    found = {}
    for path in (root / "core" / "pyproject.toml", *sorted(root.glob("plugins/*/pyproject.toml"))):
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        found[project["name"]] = Member(path.parent.relative_to(root).as_posix(), project["version"])
    return found


def chosen(newest: Section, known: Mapping[str, Member]) -> list[str]:
    """The folders of the distributions that a section names, in the order of the workspace."""
    return [member.folder for name, member in known.items() if name in newest.versions]


def disagreements(written: Sequence[Section], known: Mapping[str, Member]) -> Iterator[str]:
    """Say where the changelog and the versions of the distributions disagree."""
    newest, *older = written
    for name, versions in newest.versions.items():
        if name not in known:
            yield f"CHANGELOG.md: {newest.heading} names {name}, which is no distribution of this workspace"
        elif versions != {known[name].version}:
            told = " and ".join(sorted(versions))
            yield f"CHANGELOG.md: {newest.heading} names {name} {told}, and its pyproject.toml {known[name].version}"
    for name, member in known.items():
        before = [section.heading for section in older if member.version in section.versions.get(name, ())]
        if before and name in newest.versions:
            yield f"{name} {member.version} was released ({before[0]}): raise its version, here and in CHANGELOG.md"
        elif not before and name not in newest.versions:
            yield f"CHANGELOG.md has no entry for {name} {member.version}"


def unnamed(written: Sequence[Section], known: Mapping[str, Member], root: Path = ROOT) -> Iterator[str]:
    """Say which distributions have changed since the last release and are not in this one."""
    newest, *older = written
    tag = f"release-{older[0].heading}" if older else ""
    if not tag or not _git(root, "tag", "--list", tag):
        return
    for name, member in known.items():
        if name not in newest.versions and _git(root, "diff", "--name-only", tag, "HEAD", "--", f"{member.folder}/src"):
            yield f"{name} has changed since {tag}: raise its version and write an entry into CHANGELOG.md"


def unready(newest: Section, root: Path = ROOT) -> Iterator[str]:
    """Say what keeps a checkout from being released as it is."""
    try:
        dt.date.fromisoformat(newest.heading)
    except ValueError:
        yield f"CHANGELOG.md: the newest section is called {newest.heading!r}, not by the date of the release"
    if newest.unnumbered:
        many, first = len(newest.unnumbered), newest.unnumbered[0][:60]
        yield f"CHANGELOG.md: entries that do not begin with a distribution and its version: {many}, first {first!r}"
    if changed := _git(root, "status", "--porcelain"):
        yield f"there are changes that are not committed: {', '.join(changed.split(chr(10))[:5])}"
    tags = [tag for tag in _git(root, "tag", "--points-at", "HEAD").split() if tag.startswith("release-")]
    if tags and f"release-{newest.heading}" not in tags:
        yield f"the commit has the tag {tags[0]}, and the newest section of CHANGELOG.md is called {newest.heading}"


def time_of_commit(root: Path = ROOT) -> int:
    """When the commit was made, in seconds since 1970: the time in all files of an archive."""
    return int(_git(root, "log", "-1", "--format=%ct"))


def tracked(root: Path = ROOT) -> list[str]:
    """The files of a checkout that git tracks."""
    return [name for name in _git(root, "ls-files", "-z").split("\0") if name and (root / name).is_file()]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True, text=True).stdout.strip()
