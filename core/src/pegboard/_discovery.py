"""Discovery: which plugins are installed, as facts. Nothing of theirs is imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from attrs import frozen

from pegboard._errors import describe_exception
from pegboard.hookspecs import GROUP

__all__ = ["Discovery", "Found", "core_version", "discover", "normalise", "pack_name"]


@frozen
class Found:
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


@frozen
class Discovery:
    """What is installed. `unreadable` holds a sentence for each distribution that could not even be asked."""

    found: tuple[Found, ...] = ()
    unreadable: tuple[str, ...] = ()


@frozen(eq=False)
class _Copy:
    """A distribution and its `entry_points.txt`; one name may be installed in several places."""

    distribution: Any
    text: str


@frozen
class _Installed:
    """What the metadata of one copy says."""

    name: str | None
    version: str | None
    requires: tuple[str, ...]
    entries: tuple[tuple[str, str], ...]
    place: str


@lru_cache(4096)
def normalise(name: str) -> str:
    """A distribution or entry-point name as installers compare it: `My_Pack.x` is `my-pack-x`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pack_name(name: str) -> str:
    """An entry-point name as tool names carry it: only `[a-z0-9_]`, and never two underscores in a row."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def core_version() -> str | None:
    """The installed version of Pegboard; None where it runs from a checkout."""
    import importlib_metadata

    try:
        return importlib_metadata.version("pegboard")
    except Exception:  # noqa: BLE001 - whatever is wrong with our own metadata, plugins must still load
        return None


def discover() -> Discovery:
    """Every entry point of the group, sorted by name and distribution.

    Distributions are asked one by one: the library's own `entry_points()` raises for all of them when the
    `entry_points.txt` of one is malformed. Of several with one name the first on the path counts, as in an import.
    """
    unreadable: list[str] = []
    copies: dict[str, list[_Copy]] = {}
    mentioned: list[str] = []
    for distribution in _distributions(unreadable):
        copy = _Copy(distribution, _text(distribution, unreadable))
        name = _key(distribution)
        copies.setdefault(name, []).append(copy)
        if GROUP in copy.text:
            mentioned.append(name)
    found = [entry for name in dict.fromkeys(mentioned) for entry in _settle(copies[name])]
    # Directory order must not show in names, order or schemas.
    ordered = sorted(found, key=lambda entry: (entry.name, entry.distribution or "", entry.entry_point))
    return Discovery(tuple(ordered), tuple(sorted(set(unreadable))))


def _distributions(unreadable: list[str]) -> Iterator[Any]:
    import importlib_metadata

    try:
        yield from importlib_metadata.distributions()
    except Exception as error:  # noqa: BLE001 - an import hook that cannot list its distributions
        unreadable.append(f"listing the installed distributions stopped early: {describe_exception(error)}")


def _text(distribution: Any, unreadable: list[str]) -> str:
    try:
        return _entry_points(distribution)
    except Exception as error:  # noqa: BLE001 - a stranger's damaged metadata may raise anything
        unreadable.append(f"{_place(distribution)}: entry points cannot be read: {describe_exception(error)}")
        return ""


def _entry_points(distribution: Any) -> str:
    from pathlib import Path

    # Nearly every distribution lies in a folder, from which this takes a third of the library's time.
    folder = getattr(distribution, "_path", None)
    if not isinstance(folder, Path):
        return distribution.read_text("entry_points.txt") or ""
    try:
        with open(f"{folder}/entry_points.txt", "rb", buffering=0) as file:  # noqa: PTH123 - joining paths takes longer than reading
            return file.read().decode()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError):  # as the library has it
        return ""


def _key(distribution: Any) -> str:
    """What copies of one distribution have in common."""
    try:
        # The library's own name for this purpose; `name` would open and parse a file for each distribution.
        return str(distribution._normalized_name)
    except Exception:  # noqa: BLE001 - without a readable name it is a copy of nothing
        return _place(distribution)


def _settle(copies: list[_Copy]) -> Iterator[Found]:
    """The entries of the copy that an import would find, and those of the copies that it hides."""
    if len(copies) > 1:
        # A directory that a broken uninstall left behind has no metadata and hides nothing.
        copies = list({_place(copy.distribution): copy for copy in copies if _has_name(copy)}.values()) or copies[:1]
    first = _place(copies[0].distribution)
    for copy in copies:
        installed = _read(copy)
        hidden = f"the copy in {first} comes first on the path and hides the one in {installed.place}"
        yield from _entries(installed, "" if installed.place == first else hidden)


def _has_name(copy: _Copy) -> bool:
    try:
        return "name" in _headers(_metadata(copy.distribution))
    except Exception:  # noqa: BLE001 - metadata that cannot be read is as good as none
        return False


def _read(copy: _Copy) -> _Installed:
    entries = tuple(_section(copy.text))
    place = _place(copy.distribution)
    try:
        headers = _headers(_metadata(copy.distribution))
        name, version = (next(iter(headers.get(key, ())), None) for key in ("name", "version"))
        requires = tuple(headers.get("requires-dist", ())) or _egg_requires(copy.distribution)
    except Exception:  # noqa: BLE001 - the entry points are known, so the plugin is listed, as one that cannot load
        return _Installed(None, None, (), entries, place)
    return _Installed(name, version, requires, entries, place)


def _metadata(distribution: Any) -> str:
    return distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""


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


def _egg_requires(distribution: Any) -> tuple[str, ...]:
    # An egg-info keeps its requirements in a file and a form of its own, which the library knows.
    return tuple(distribution.requires or ()) if distribution.read_text("requires.txt") else ()


def _section(text: str) -> Iterator[tuple[str, str]]:
    """The lines of our group as name and value, the value empty where the line has none."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line.strip("[] \t") == GROUP
        elif inside and line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


def _entries(installed: _Installed, hidden: str = "") -> Iterator[Found]:
    for name, value in installed.entries:
        problem = _problem(name, value, installed)
        yield Found(name, value, installed.name, installed.version, installed.requires, problem, hidden)


def _problem(name: str, value: str, installed: _Installed) -> str:
    remedy = f"reinstall {installed.name}" if installed.name else "remove the directory or reinstall"
    if installed.name is None:
        return f"the METADATA in {installed.place} cannot be read or names no distribution; {remedy}"
    if not re.fullmatch(r"[\w.]+\s*(:\s*[\w.]+)?\s*(\[.*\])?", value):
        line = f"{name} = {value}" if value else name
        return f'entry_points.txt has the line "{line}" where `name = module` is expected; {remedy}, or tell its author'
    if not pack_name(name):
        return f"the entry-point name {name!r} holds no letter a-z and no digit; its author has to rename it"
    return ""


def _place(distribution: Any) -> str:
    # Only the distribution knows where it lies, and only under this name; without it the folder has to do.
    try:
        return str(getattr(distribution, "_path", None) or distribution.locate_file(""))
    except Exception:  # noqa: BLE001 - a distribution that lies in no folder
        return "a distribution of unknown place"
