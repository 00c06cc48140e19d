"""Discovery: which plugins are installed, as facts. Nothing of theirs is imported.

importlib-metadata finds the distributions and reads their files. What it cannot say stands here: which of several
copies an import would find, what is wrong with a plugin whose metadata or `entry_points.txt` is malformed, and whether
a version lies in a range (PEP 440).
"""

from __future__ import annotations

import itertools
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

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


class _Copy(NamedTuple):
    """A distribution in one place; one name may be installed in several. `entry_points` is the text of that file."""

    distribution: Any
    place: str
    entry_points: str


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
        place = _place(distribution)
        copy = _Copy(distribution, place, _entry_points(distribution, place, unreadable))
        name = _folder_name(distribution, place)
        copies.setdefault(name, []).append(copy)
        if GROUP in copy.entry_points:
            mentioned.append(name)
    found = [entry for name in dict.fromkeys(mentioned) for entry in _settle(copies[name])]
    # Directory order must not show in names, order or schemas.
    ordered = sorted(found, key=lambda entry: (entry.name, entry.distribution or "", entry.entry_point))
    core = _facts(_counting(copies[_CORE])[0]) if _CORE in copies else None
    return Discovery(tuple(ordered), tuple(sorted(unreadable)), core and core.version)


def _installed(unreadable: set[str]) -> Iterator[Any]:
    """Every copy, in the order in which imports look; a finder that fails takes nobody else's with it."""
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


def _folder_name(distribution: Any, place: str) -> str:
    # The library's own name for this purpose; `name` would open and parse a file for each distribution. Without a
    # readable name it is a copy of nothing.
    return tried(lambda: str(distribution._normalized_name)) or place


def _place(distribution: Any) -> str:
    # Only the distribution knows where it lies, and only under this name; without it the folder has to do.
    place = tried(lambda: str(getattr(distribution, "_path", None) or distribution.locate_file("")))
    return place or "a distribution of unknown place"


def _entry_points(distribution: Any, place: str, unreadable: set[str]) -> str:
    try:
        return distribution.read_text("entry_points.txt") or ""
    except Exception as error:  # noqa: BLE001 - a stranger's damaged metadata may raise anything
        unreadable.add(f"{place}: entry points cannot be read: {describe_exception(error)}")
        return ""


def _facts(copy: _Copy) -> _Facts | None:
    """What the metadata says; None where it cannot be read or names no distribution."""
    read = copy.distribution.read_text
    try:
        # Not the library's `metadata`: loading the email package takes longer than everything else here.
        headers = _headers(read("METADATA") or read("PKG-INFO") or "")
        requires = headers.get("requires-dist") or (not copy.place.endswith(_INFO) and copy.distribution.requires) or ()
    except Exception:  # noqa: BLE001 - the entry points are known, so the plugin is listed, as one that cannot load
        return None
    version = headers.get("version", [None])[0]
    return _Facts(headers["name"][0], version, tuple(requires)) if "name" in headers else None


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
        facts = _facts(copy)
        for name, value in _section(copy.entry_points):
            problem = _problem(name, value, facts, copy.place)
            distribution, version, requires = facts or (None, None, ())
            yield FoundPlugin(name, value, distribution, version, requires, problem, hidden)


def _counting(copies: list[_Copy]) -> list[_Copy]:
    """Each copy once, the first to count first; not what a broken uninstall left, which without metadata hides nothing.

    Of several in one folder the newest counts: an upgrade that was interrupted leaves the older one behind.
    """
    if len(copies) == 1:
        return copies
    # One folder may be on the path under several spellings: `""`, `.`, a link.
    places: dict[str, _Copy] = {}
    for copy in copies:
        if _facts(copy):
            places.setdefault(os.path.realpath(copy.place), copy)
    folders = list(dict.fromkeys(place.rpartition(os.sep)[0] for place in places))
    newest = sorted(places, key=lambda place: _version(places[place]), reverse=True)
    ordered = sorted(newest, key=lambda place: folders.index(place.rpartition(os.sep)[0]))
    return [places[place] for place in ordered] or copies[:1]


def _version(copy: _Copy) -> tuple[Any, ...]:
    facts = _facts(copy)
    version = Version.parse(facts.version or "") if facts else None
    return version.key if version else ()


def _section(text: str) -> Iterator[tuple[str, str]]:
    """The lines of our group as name and value, the value empty where the line has none; the library would raise."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line.strip("[] \t") == GROUP
        elif inside and line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _problem(name: str, value: str, facts: _Facts | None, place: str) -> str:
    if facts is None:
        remedy = "remove the directory or reinstall"
        return f"the METADATA in {place} cannot be read or names no distribution; {remedy}"
    if not re.fullmatch(r"[\w.]+\s*(:\s*[\w.]+)?\s*(\[.*\])?", value):
        line = f"{name} = {value}" if value else name
        remedy = f"reinstall {facts.name}, or tell its author"
        return f'entry_points.txt has the line "{line}" where `name = module` is expected; {remedy}'
    if not pack_name(name):
        return f"the entry-point name {name!r} holds no letter a-z and no digit; its author has to rename it"
    return ""


# Versions and version ranges (PEP 440), as build tools write them and a requirement on the core needs them ------------
# As text: most programs never need them compiled.

_VERSION = r"(?ai)v?(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?(?:\.post(\d+))?(?:\.dev(\d+))?(?:\+[a-z0-9.]+)?"
_SPECIFIER = r"\s*(~=|==|!=|<=|>=|<|>)\s*([^\s,+]+?)(\.\*)?\s*"
_REQUIREMENT = r"(?a)\s*([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*([^;]*?)\s*(;.*)?"
# Where a version stands among those of its release: 1.0.dev1 comes before 1.0a1, but 1.0.post1.dev1 after 1.0.
_EARLY, _FINAL = ("", 0), ("z", 0)


class Version(NamedTuple):
    """A parsed version, without its local part (`+cpu`): a range speaks of public versions."""

    release: tuple[int, ...]
    phase: tuple[str, int]
    post: int
    dev: float
    written: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Read a version; None for text that is none, or is not in the normal form."""
        found = re.fullmatch(_VERSION, text.strip())
        if found is None:
            return None
        numbers, phase, number, post, dev = found.groups()
        written = tuple(map(int, numbers.split(".")))
        # Zeros at the end say nothing.
        end = max((place for place, each in enumerate(written) if each), default=0) + 1
        among = (phase.lower(), int(number)) if phase else _EARLY if dev and not post else _FINAL
        return cls(written[:end], among, int(post or -1), int(dev) if dev else math.inf, written)

    @property
    def key(self) -> tuple[Any, ...]:
        """Orders versions: development, alpha, beta, candidate, final, post."""
        return self[:-1]

    def starts_with(self, series: tuple[int, ...]) -> bool:
        """Whether this is a version of a series such as `1.4.*`."""
        return (*self.written, *(0,) * len(series))[: len(series)] == series


def _below(version: Version, limit: Version) -> bool:
    # <2 does not mean 2.0a1: what comes before 2 ends where the first development version of 2 begins.
    if limit.phase == _FINAL and limit.dev == math.inf:
        limit = limit._replace(phase=_FINAL if limit.post >= 0 else _EARLY, dev=0)
    return version.key < limit.key


def _above(version: Version, limit: Version) -> bool:
    # >1 does not mean 1.post1, nor >1a1 1a1.post1.
    late = version[:2] == limit[:2] and version.post >= 0 > limit.post and limit.dev == math.inf
    return version.key > limit.key and not late


_OPERATORS: dict[str, Callable[[Version, Version], bool]] = {
    "==": lambda version, limit: version.key == limit.key,
    "!=": lambda version, limit: version.key != limit.key,
    "<=": lambda version, limit: version.key <= limit.key,
    ">=": lambda version, limit: version.key >= limit.key,
    "<": _below,
    ">": _above,
    "~=": lambda version, limit: version.key >= limit.key and version.starts_with(limit.written[:-1]),
}


def allows(specifiers: str, version: str) -> bool | None:
    """Whether `version` lies in a range such as `>=0.1,<0.2`; None where either cannot be understood.

    A pre-release counts like any other version, because this asks about one that is installed already.
    """
    installed = Version.parse(version)
    tests = [_test(part) for part in specifiers.split(",") if part.strip()]
    if installed is None or None in tests:
        return None
    return all(test(installed) for test in tests if test is not None)


def _test(specifier: str) -> Callable[[Version], bool] | None:
    found = re.fullmatch(_SPECIFIER, specifier)
    limit = Version.parse(found[2]) if found else None
    if found is None or limit is None:
        return None
    operator = found[1]
    if found[3]:
        if operator not in ("==", "!=") or limit[1:4] != (_FINAL, -1, math.inf):
            return None
        return lambda version: version.starts_with(limit.written) is (operator == "==")
    if operator == "~=" and len(limit.written) < 2:
        return None
    return lambda version: _OPERATORS[operator](version, limit)


def conflicts(requires: Iterable[str], name: str, version: str) -> list[str]:
    """The ranges that `requires` asks of the distribution `name` and that `version` is not in, sorted.

    What cannot be understood conflicts with nothing: the installer has judged it before.
    """
    asked = {_asked(text, name) for text in requires}
    return sorted(specifiers for specifiers in asked if allows(specifiers, version) is False)


def _asked(requirement: str, name: str) -> str:
    """The range that a `Requires-Dist` line asks of `name`. One under a condition (`; extra == "x"`) binds nobody."""
    found = re.fullmatch(_REQUIREMENT, requirement)
    if found is None or found[3] or normalise(found[1]) != name:
        return ""
    return found[2].removeprefix("(").removesuffix(")")
