"""Discovery: which plugins are installed, as facts. Nothing of them is imported.

importlib-metadata finds the distributions and reads their files. What it cannot say stands here: which of several
copies an import would find, what is wrong with a plugin whose metadata or `entry_points.txt` is malformed, and whether
a release lies in a range.
"""

from __future__ import annotations

import itertools
import operator
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pegboard._base.effects import tried
from pegboard._base.errors import describe_exception
from pegboard._base.names import normalise, pack_name
from pegboard.hookspecs import GROUP

_CORE = "pegboard"
_INFO = ".dist-info"  # what lies in one has its requirements in METADATA


class FoundPlugin(NamedTuple):
    """One entry point of an installed distribution.

    `problem` says why it cannot be loaded, `hidden` which copy of the distribution comes before this one.
    """

    name: str
    entry_point: str
    distribution: str | None = None
    version: str | None = None
    requires: tuple[str, ...] = ()
    problem: str = ""
    hidden: str = ""


class Discovery(NamedTuple):
    """What is installed. `unreadable` holds a sentence for each distribution that could not even be asked.

    `core` is the installed version of Pegboard; None where it runs from a checkout.
    """

    found: tuple[FoundPlugin, ...] = ()
    unreadable: tuple[str, ...] = ()
    core: str | None = None


class _Copy:
    """A distribution in one place; one name may be installed in several. `unreadable` collects what cannot be read."""

    def __init__(self, distribution: Any, unreadable: set[str]) -> None:
        self._distribution = distribution
        # Only the distribution knows where it lies, and only under this name; without it the folder has to do.
        place = tried(lambda: str(getattr(distribution, "_path", None) or distribution.locate_file("")))
        self.place = place or "a distribution of unknown place"
        # The library's own name for this purpose; `name` would open and parse a file for each distribution. Without a
        # readable name it is a copy of nothing.
        self.name = tried(lambda: str(distribution._normalized_name)) or self.place
        self.entry_points = ""
        try:
            self.entry_points = self._read("entry_points.txt")
        except Exception as error:  # noqa: BLE001 - a third party's damaged metadata may raise anything
            unreadable.add(f"{self.place}: entry points cannot be read: {describe_exception(error)}")

    @cached_property
    def facts(self) -> _Facts | None:
        """What the metadata says; None where it cannot be read or names no distribution."""
        distribution = self._distribution
        try:
            # Not the library's `metadata`: loading the email package takes longer than everything else here.
            headers = _headers(self._read("METADATA") or self._read("PKG-INFO"))
            lists_them = "requires-dist" in headers or self.place.endswith(_INFO)
            requires = headers.get("requires-dist") if lists_them else distribution.requires
        except Exception:  # noqa: BLE001 - the entry points are known, so the plugin is listed, as one that cannot load
            return None
        version = headers.get("version", [None])[0]
        return _Facts(headers["name"][0], version, tuple(requires or ())) if "name" in headers else None

    def _read(self, name: str) -> str:
        """What a file of the metadata says, empty where there is none."""
        if not isinstance(getattr(self._distribution, "_path", None), Path):  # an archive, or a finder of its own
            return self._distribution.read_text(name) or ""
        try:
            file = os.stat(f"{self.place}/{name}")  # noqa: PTH116 - text
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return _unchanged(f"{self.place}/{name}", file.st_mtime_ns, file.st_size)

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers of its version."""
        return release((self.facts and self.facts.version) or "")


@lru_cache(1_000)
def _unchanged(path: str, time: int, size: int) -> str:
    """The text of a file, which each toolkit asks for: one of the same time and size is not read again."""
    return Path(path).read_text(encoding="utf-8")


class _Facts(NamedTuple):
    """What the metadata of one copy says."""

    name: str
    version: str | None
    requires: tuple[str, ...]


def discover() -> Discovery:
    """Every entry point of the group, sorted by name and distribution.

    Distributions are asked one by one: the library's own `entry_points()` raises for all of them when the
    `entry_points.txt` of one is malformed. Of several with one name the first on the path counts, as in an import.
    """
    unreadable: set[str] = set()
    copies: dict[str, list[_Copy]] = {}
    mentioned: list[str] = []
    for distribution in _installed(unreadable):
        copy = _Copy(distribution, unreadable)
        copies.setdefault(copy.name, []).append(copy)
        if GROUP in copy.entry_points:
            mentioned.append(copy.name)
    found = [entry for name in dict.fromkeys(mentioned) for entry in _settle(copies[name])]
    # Directory order must not show in names, order or schemas.
    ordered = sorted(found, key=lambda entry: (entry.name, entry.distribution or "", entry.entry_point))
    core = _counting(copies[_CORE])[0].facts if _CORE in copies else None
    return Discovery(tuple(ordered), tuple(sorted(unreadable)), core and core.version)


def _installed(unreadable: set[str]) -> Iterator[Any]:
    """Every copy, in the order in which imports look; a finder that fails costs its own alone."""
    from importlib_metadata import DistributionFinder

    # Like the interpreter, which passes over whatever else is on the path; for an archive that is not there, such as
    # Python's own, the library would load what opens archives.
    entries: list[Any] = sys.path
    path = [entry for entry in entries if isinstance(entry, str) and os.path.exists(entry or ".")]  # noqa: PTH110 - text
    context = DistributionFinder.Context(path=path)  # type: ignore[no-untyped-call]  # the library's own
    for finder in list(sys.meta_path):
        try:
            yield from getattr(finder, "find_distributions", lambda context: ())(context)
        except Exception as error:  # noqa: BLE001 - an import hook that cannot list its distributions
            name = finder.__name__ if isinstance(finder, type) else type(finder).__name__
            reason = describe_exception(error)
            unreadable.add(f"the import hook {name} stopped listing its distributions early: {reason}")


@lru_cache(200)
def _headers(text: str) -> dict[str, list[Any]]:
    headers: dict[str, list[Any]] = {}
    for line in itertools.takewhile(str.strip, text.splitlines()):
        key, _, value = line.partition(":")
        if value.strip() and not line[0].isspace():
            headers.setdefault(key.lower(), []).append(value.strip())
    return headers


def _settle(copies: list[_Copy]) -> Iterator[FoundPlugin]:
    """The entries of the copy that an import would find, and those of the copies that it hides."""
    counting = _counting(copies)
    first = counting[0].place
    for copy in counting:
        hides = f"the copy in {first} comes first on the path and hides the one in {copy.place}"
        hidden = "" if copy.place == first else hides
        for name, value in _section(copy.entry_points):
            distribution, version, requires = copy.facts or (None, None, ())
            yield FoundPlugin(name, value, distribution, version, requires, _problem(name, value, copy), hidden)


def _counting(copies: list[_Copy]) -> list[_Copy]:
    """Each copy once, the first to count first; not what a broken uninstall left, which without metadata hides nothing.

    Of several in one folder the newest counts: an upgrade that was interrupted leaves the older one behind.
    """
    if len(copies) == 1:
        return copies
    # One folder may be on the path under several spellings: `""`, `.`, a link.
    places: dict[str, _Copy] = {}
    for copy in copies:
        if copy.facts:
            places.setdefault(os.path.realpath(copy.place), copy)
    folders = [os.path.dirname(place) for place in places]  # noqa: PTH120 - text
    newest = sorted(places, key=lambda place: places[place].release, reverse=True)
    ordered = sorted(newest, key=lambda place: folders.index(os.path.dirname(place)))  # noqa: PTH120 - text
    return [places[place] for place in ordered] or copies[:1]


def _section(text: str) -> Iterator[tuple[str, str]]:
    """The lines of our group as name and value, the value empty where the line has none; the library would raise."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line.strip("[] \t") == GROUP
        elif inside and line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _problem(name: str, value: str, copy: _Copy) -> str:
    if copy.facts is None:
        remedy = "remove the directory or reinstall"
        return f"the METADATA in {copy.place} cannot be read or names no distribution; {remedy}"
    if not re.fullmatch(r"[\w.]+\s*(:\s*[\w.]+)?\s*(\[.*\])?", value):
        line = f"{name} = {value}" if value else name
        remedy = f"reinstall {copy.facts.name}, or tell its author"
        return f'entry_points.txt has the line "{line}" where `name = module` is expected; {remedy}'
    if not pack_name(name):
        return f"the entry-point name {name!r} holds no letter a-z and no digit; its author has to rename it"
    return ""


# Versions and their ranges -------------------------------------------------------------------------------------------

# By the numbers of a release; what may follow them, such as `rc1`, `.dev0` or `+local`, counts for nothing.
# As text: most programs never need them compiled.
_RELEASE = r"(?a)v?(\d+(?:\.\d+)*)(?![!\d])"
_SUFFIX = r"(?:\.?(?:a|b|rc|post|dev)\d+)*"
_RANGE = rf"(?a)\s*(~=|==|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(?:(\.\*)|{_SUFFIX})\s*"
_REQUIREMENT = r"(?a)\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*([^;]*?)\s*(;.*)?"
_COMPARED: Final[Any] = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


def release(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with; none where it begins with no number."""
    found = re.match(_RELEASE, version.strip())
    return tuple(map(int, found[1].split("."))) if found else ()


def allows(ranges: str, version: str) -> bool | None:
    """Whether the release of `version` lies in ranges such as `>=0.1,<0.2`; None where one cannot be read.

    A pre-release counts as its release, because this asks about one that is installed already.
    """
    answers = [_lies_in(each, release(version)) for each in ranges.split(",") if each.strip()]
    return None if None in answers else all(answers)


def _lies_in(range_: str, installed: tuple[int, ...]) -> bool | None:
    found = re.fullmatch(_RANGE, range_)
    if found is None or (found[3] and found[1] not in ("==", "!=")):
        return None
    sign, limit = found[1], release(found[2])
    size = max(len(installed), len(limit))  # 1 is 1.0
    ours, theirs = ((*numbers, *(0,) * (size - len(numbers))) for numbers in (installed, limit))
    if sign == "~=":
        return ours >= theirs and ours[: len(limit) - 1] == limit[:-1]
    if sign in _COMPARED:
        return bool(_COMPARED[sign](ours, theirs))
    same = ours[: len(limit)] == limit if found[3] else ours == theirs
    return same is (sign == "==")


def conflict(requires: Iterable[str], name: str, version: str) -> str:
    """What `requires` asks of the distribution `name` and `version` is not, as a part of a sentence; mostly empty."""
    if not release(version):
        return ""
    for asked in sorted({_asked(text, name) for text in requires}):
        fits = allows(asked, version)
        if fits is None:
            return f"requires {name}{asked}, which is no range of releases such as >=0.1,<0.2"
        if not fits:
            return f"requires {name}{asked}, but {version} is installed"
    return ""


def _asked(requirement: str, name: str) -> str:
    """The range that a `Requires-Dist` line asks of `name`. One under a condition (`; extra == "x"`) does not count."""
    found = re.fullmatch(_REQUIREMENT, requirement)
    if found is None or found[3] or normalise(found[1]) != name or found[2].startswith("@"):  # which names a file
        return ""
    return found[2].removeprefix("(").removesuffix(")")
