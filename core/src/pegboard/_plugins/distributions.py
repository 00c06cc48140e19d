"""Installed distributions: every copy that lies on the path, and its `entry_points.txt`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any

from pegboard._base.errors import describe_exception
from pegboard._base.names import normalise

__all__ = ["Copy", "installed"]

_INFOS = (".dist-info", ".egg-info")
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
"""What importlib-metadata takes for a file that is not there."""
_LARGE = 1 << 16
_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Copy:
    """A distribution in one place; one name may be installed in several. Its folder is read when it is asked for."""

    __slots__ = ("_distribution", "entry_points", "name", "place")

    def __init__(self, name: str, place: str, entry_points: str, distribution: Any = None) -> None:
        self.name = name
        self.place = place
        self.entry_points = entry_points
        self._distribution = distribution

    def metadata(self) -> str:
        """The text of METADATA or PKG-INFO, empty without one. Raises what reading it raises."""
        return self._text("METADATA") or self._text("PKG-INFO")

    def egg_requires(self) -> tuple[str, ...]:
        """The requirements of an egg, which keeps them in a file and a form of its own. Raises what reading raises."""
        if not self._text("requires.txt"):
            return ()
        from importlib_metadata import Distribution

        return tuple((self._distribution or Distribution.at(self.place)).requires or ())

    def _text(self, name: str) -> str:
        if self._distribution is None:
            return (_read(f"{self.place}/{name}") or b"").decode()
        return self._distribution.read_text(name) or ""


def installed(unreadable: list[str]) -> Iterator[Copy]:
    """Every copy, in the order in which imports look; of two in one folder the newest first.

    What cannot be asked adds a sentence to `unreadable`. Nearly everything lies in plain folders on `sys.path`; these
    are listed here, in a fraction of the library's time. Archives, eggs and what other finders know are the library's.
    """
    listed = False
    for finder in list(sys.meta_path):
        if finder is PathFinder or type(finder).__module__ == "importlib_metadata":
            # Two names of one thing: once it is imported, the library stands in for the interpreter's own finder.
            for entry in () if listed else list(sys.path):
                yield from _on_path(entry, unreadable)
            listed = True
        elif getattr(finder, "find_distributions", None) is not None:
            yield from _asked(finder, unreadable)


def _on_path(entry: Any, unreadable: list[str]) -> Iterator[Copy]:
    try:
        folder = os.fsdecode(entry) or "."
        children = os.listdir(folder)  # noqa: PTH208 - paths as objects are what takes the library its time
    except NotADirectoryError:
        yield from _by_library(entry, unreadable)
        return
    except (OSError, TypeError, ValueError):  # the interpreter skips such entries too
        return
    if folder.lower().endswith(".egg"):
        yield from _by_library(entry, unreadable)
        return
    prefix = os.path.join(folder, "")  # noqa: PTH118 - as above
    for name, child in _named([child for child in children if child.lower().endswith(_INFOS)]):
        place = f"{prefix}{child}"
        yield Copy(name, place, _entry_points(place, unreadable))


def _named(infos: list[str]) -> list[tuple[str, str]]:
    """The folders with the names of what they describe. Directory order must not show."""
    named = sorted((normalise(child.rpartition(".")[0].partition("-")[0]), child) for child in infos)
    if len({name for name, _ in named}) < len(named):
        # An upgrade that was interrupted leaves the older one behind.
        named.sort(key=lambda pair: _version(pair[1]), reverse=True)
    return named


def _version(info: str) -> tuple[Any, ...]:
    from pegboard._plugins.versions import Version

    version = Version.parse(info.rpartition(".")[0].partition("-")[2])
    return version.key if version else ()


def _entry_points(place: str, unreadable: list[str]) -> str:
    try:
        return (_read(f"{place}/entry_points.txt") or b"").decode()
    except (OSError, UnicodeDecodeError) as error:
        unreadable.append(_sentence(place, error))
        return ""


def _read(file: str) -> bytes | None:
    """What is in a file, None if there is none; with three calls of the system, for there are hundreds of them."""
    try:
        descriptor = os.open(file, _READING)
    except _ABSENT:
        return None
    try:
        content = os.read(descriptor, _LARGE)
        while len(content) % _LARGE == 0 and (more := os.read(descriptor, _LARGE)):
            content += more
    except IsADirectoryError:
        return None
    finally:
        os.close(descriptor)
    return content


def _by_library(entry: Any, unreadable: list[str]) -> Iterator[Copy]:
    from importlib_metadata import MetadataPathFinder

    yield from _asked(MetadataPathFinder, unreadable, path=[entry])


def _asked(finder: Any, unreadable: list[str], **where: Any) -> Iterator[Copy]:
    from importlib_metadata import DistributionFinder

    context = DistributionFinder.Context(**where)  # type: ignore[no-untyped-call]  # the library's own
    try:
        for distribution in finder.find_distributions(context):
            yield _copy(distribution, unreadable)
    except Exception as error:  # noqa: BLE001 - an import hook that cannot list its distributions
        name = finder.__name__ if isinstance(finder, type) else type(finder).__name__
        reason = describe_exception(error)
        unreadable.append(f"the import hook {name} stopped listing its distributions early: {reason}")


def _copy(distribution: Any, unreadable: list[str]) -> Copy:
    place = _place(distribution)
    try:
        text = distribution.read_text("entry_points.txt") or ""
    except Exception as error:  # noqa: BLE001 - a stranger's damaged metadata may raise anything
        unreadable.append(_sentence(place, error))
        text = ""
    try:
        # The library's own name for this purpose; `name` would open and parse a file for each distribution.
        name = normalise(str(distribution._normalized_name))
    except Exception:  # noqa: BLE001 - without a readable name it is a copy of nothing
        name = place
    return Copy(name, place, text, distribution)


def _place(distribution: Any) -> str:
    # Only the distribution knows where it lies, and only under this name; without it the folder has to do.
    try:
        return str(getattr(distribution, "_path", None) or distribution.locate_file(""))
    except Exception:  # noqa: BLE001 - a distribution that lies in no folder
        return "a distribution of unknown place"


def _sentence(place: str, error: Exception) -> str:
    return f"{place}: entry points cannot be read: {describe_exception(error)}"
