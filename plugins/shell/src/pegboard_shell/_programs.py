"""Programs: where the names of programs lead to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

from attrs import frozen

__all__ = [
    "MOST_INTERPRETERS",
    "Programs",
    "Way",
    "interpreter",
    "is_below",
    "is_inside",
    "same_place",
    "trusted_directories",
    "way",
]

_SUFFIXES: Final = (".exe", ".com")
"""What Windows starts by itself; a .bat or .cmd file is run by its shell, which reads the arguments as code."""
_LONGEST_FIRST_LINE: Final = 256
_MOST_LINKS: Final = 40
MOST_INTERPRETERS: Final = 4
"""How many scripts may be interpreted by one another."""


@final
class Programs:
    """Finds programs in fixed directories, or by a path relative to the working directory."""

    def __init__(self, directories: Iterable[str], working_directory: str) -> None:
        self.directories = tuple(directories)
        self._working_directory = working_directory

    def find(self, word: str) -> str | None:
        """The absolute path of the program that a word names, None if there is none."""
        if os.sep in word or (os.altsep and os.altsep in word):
            return _executable(os.path.join(self._working_directory, word))  # noqa: PTH118 - `..` stays as it is
        for directory in self.directories:
            found = _executable(os.path.join(directory, word))  # noqa: PTH118 - as above
            if found is not None:
                return found
        return None

    def is_lasting(self, path: str) -> bool:
        """Whether no command can change what a program is: neither it nor its interpreter lies in the workspace."""
        for _ in range(MOST_INTERPRETERS):
            found = way(path, self._working_directory) if Path(path).is_absolute() else None
            if found is None:
                return False
            following = interpreter(found.end)
            if following is None:
                return True
            path = following
        return False


@frozen
class Way:
    """Where a path leads, and the links on the way with what they say."""

    end: str
    links: dict[str, str]


def way(path: str, workspace: str | None) -> Way | None:
    """The way of an absolute path; None if it goes through the workspace, where commands can put links meanwhile."""
    links: dict[str, str] = {}
    pending, at, count = list(Path(path).parts[:0:-1]), Path(path).anchor, 0
    while pending:
        name = pending.pop()
        following = os.path.dirname(at) if name == os.pardir else os.path.join(at, name)  # noqa: PTH118, PTH120
        if workspace is not None and is_below(following, workspace):
            return None
        try:
            target = os.readlink(following)  # noqa: PTH115 - as it is written
        except (OSError, ValueError):  # it is no link, or nothing
            at = following
            continue
        count += 1
        if count > _MOST_LINKS:
            return None
        links[following] = target
        pending += Path(target).parts[::-1]
        if Path(target).is_absolute():
            pending.pop()
            at = Path(target).anchor
    return Way(at, links)


def interpreter(path: str) -> str | None:
    """The program that a script names to be run by, if it is one."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a string
            first = file.read(_LONGEST_FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return None
    words = first.removeprefix(b"#!").split()
    return os.fsdecode(words[0]) if first.startswith(b"#!") and words else None


def trusted_directories(path: str, workspace: str) -> tuple[str, ...]:
    """The directories of a search path, without relative ones and those in the workspace, where a model writes."""
    found = (directory for directory in path.split(os.pathsep) if Path(directory).is_absolute())
    return tuple(dict.fromkeys(directory for directory in found if way(directory, os.path.realpath(workspace))))


def is_inside(path: str, directory: str) -> bool:
    """Whether a path leads into a directory, or is it."""
    real, root = os.path.realpath(path), os.path.realpath(directory)
    return Path(real).is_relative_to(root)


def is_below(path: str, place: str) -> bool:
    """Whether a path names something in a place, or the place; links are not followed."""
    path, place = os.path.normcase(path), os.path.normcase(place)
    return path == place or path.startswith(place if place.endswith(os.sep) else f"{place}{os.sep}")


def same_place(path: str, other: str) -> bool:
    """Whether two paths are one entry of one directory: /bin/ls and /usr/bin/ls where /bin is a link.

    Not whether they lead to one file: there are files that are many programs, by the name that they are called by.
    """
    if path == other:
        return True
    one, two = Path(path), Path(other)
    return one.name == two.name and os.path.realpath(one.parent) == os.path.realpath(two.parent)


def _is_windows() -> bool:
    return os.name == "nt"


def _executable(path: str) -> str | None:
    if not _is_windows():
        return path if _is_executable(path) else None
    named = Path(path).suffix.lower() in _SUFFIXES
    candidates = [path] if named else [f"{path}{suffix}" for suffix in _SUFFIXES]
    return next(filter(_is_executable, candidates), None)


def _is_executable(path: str) -> bool:
    try:
        return Path(path).is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):  # a name that no file can have
        return False
