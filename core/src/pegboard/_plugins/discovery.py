"""Discovery: which plugins are installed, as facts. Nothing of theirs is imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from attrs import frozen

from pegboard._base.names import pack_name
from pegboard._base.records import Compared
from pegboard._plugins.distributions import Copy, installed
from pegboard.hookspecs import GROUP

__all__ = ["Discovery", "FoundPlugin", "discover"]

_CORE = "pegboard"


@frozen(eq=False, repr=False)
class FoundPlugin(Compared):
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


@frozen(eq=False, repr=False)
class Discovery(Compared):
    """What is installed. `unreadable` holds a sentence for each distribution that could not even be asked.

    `core` is the installed version of Pegboard; None where it runs from a checkout.
    """

    found: tuple[FoundPlugin, ...] = ()
    unreadable: tuple[str, ...] = ()
    core: str | None = None


class _Metadata:
    """What the metadata of one copy says."""

    __slots__ = ("entries", "name", "place", "requires", "version")

    def __init__(
        self,
        name: str | None,
        version: str | None,
        requires: tuple[str, ...],
        entries: tuple[tuple[str, str], ...],
        place: str,
    ) -> None:
        self.name = name
        self.version = version
        self.requires = requires
        self.entries = entries
        self.place = place


def discover() -> Discovery:
    """Every entry point of the group, sorted by name and distribution.

    Distributions are asked one by one: the library's own `entry_points()` raises for all of them when the
    `entry_points.txt` of one is malformed. Of several with one name the first on the path counts, as in an import.
    """
    unreadable: list[str] = []
    copies: dict[str, list[Copy]] = {}
    mentioned: list[str] = []
    for copy in installed(unreadable):
        copies.setdefault(copy.name, []).append(copy)
        if GROUP in copy.entry_points:
            mentioned.append(copy.name)
    found = [entry for name in dict.fromkeys(mentioned) for entry in _settle(copies[name])]
    # Directory order must not show in names, order or schemas.
    ordered = sorted(found, key=lambda entry: (entry.name, entry.distribution or "", entry.entry_point))
    core = _read(_counting(copies[_CORE])[0]).version if _CORE in copies else None
    return Discovery(tuple(ordered), tuple(sorted(set(unreadable))), core)


def _settle(copies: list[Copy]) -> Iterator[FoundPlugin]:
    """The entries of the copy that an import would find, and those of the copies that it hides."""
    counting = _counting(copies)
    first = counting[0].place
    for copy in counting:
        metadata = _read(copy)
        hidden = f"the copy in {first} comes first on the path and hides the one in {copy.place}"
        yield from _entries(metadata, "" if copy.place == first else hidden)


def _counting(copies: list[Copy]) -> list[Copy]:
    """Each copy once, without those that a broken uninstall left behind: without metadata they hide nothing."""
    if len(copies) == 1:
        return copies
    # One folder may be on the path under several spellings: `""`, `.`, a link.
    places: dict[str, Copy] = {}
    for copy in filter(_has_name, copies):
        places.setdefault(os.path.realpath(copy.place), copy)
    return list(places.values()) or copies[:1]


def _has_name(copy: Copy) -> bool:
    try:
        return "name" in _headers(copy.metadata())
    except Exception:  # noqa: BLE001 - metadata that cannot be read is as good as none
        return False


def _read(copy: Copy) -> _Metadata:
    entries = tuple(_section(copy.entry_points))
    try:
        headers = _headers(copy.metadata())
        name, version = (next(iter(headers.get(key, ())), None) for key in ("name", "version"))
        requires = tuple(headers.get("requires-dist", ())) or copy.egg_requires()
    except Exception:  # noqa: BLE001 - the entry points are known, so the plugin is listed, as one that cannot load
        return _Metadata(None, None, (), entries, copy.place)
    return _Metadata(name, version, requires, entries, copy.place)


def _headers(text: str) -> dict[str, list[str]]:
    # An email parser would read the description too, which is the longest part and never asked for.
    headers: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip():
            break
        key, colon, value = line.partition(":")
        if colon and not line[0].isspace() and value.strip():
            headers.setdefault(key.lower(), []).append(value.strip())
    return headers


def _section(text: str) -> Iterator[tuple[str, str]]:
    """The lines of our group as name and value, the value empty where the line has none."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line.strip("[] \t") == GROUP
        elif inside and line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _entries(installed: _Metadata, hidden: str = "") -> Iterator[FoundPlugin]:
    for name, value in installed.entries:
        problem = _problem(name, value, installed)
        yield FoundPlugin(name, value, installed.name, installed.version, installed.requires, problem, hidden)


def _problem(name: str, value: str, installed: _Metadata) -> str:
    remedy = f"reinstall {installed.name}" if installed.name else "remove the directory or reinstall"
    if installed.name is None:
        return f"the METADATA in {installed.place} cannot be read or names no distribution; {remedy}"
    if not re.fullmatch(r"[\w.]+\s*(:\s*[\w.]+)?\s*(\[.*\])?", value):
        line = f"{name} = {value}" if value else name
        return f'entry_points.txt has the line "{line}" where `name = module` is expected; {remedy}, or tell its author'
    if not pack_name(name):
        return f"the entry-point name {name!r} holds no letter a-z and no digit; its author has to rename it"
    return ""
