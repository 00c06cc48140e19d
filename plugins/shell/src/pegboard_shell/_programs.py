"""Programs: where the names of programs lead to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

__all__ = ["Programs", "is_inside", "same_place", "trusted_directories"]

_SUFFIXES: Final = (".exe", ".com")
"""What Windows starts by itself; a .bat or .cmd file is run by its shell, which reads the arguments as code."""


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


def trusted_directories(path: str, workspace: str) -> tuple[str, ...]:
    """The directories of a search path, without relative ones and those in the workspace, where a model writes."""
    found = (directory for directory in path.split(os.pathsep) if Path(directory).is_absolute())
    return tuple(dict.fromkeys(directory for directory in found if not is_inside(directory, workspace)))


def is_inside(path: str, directory: str) -> bool:
    """Whether a path leads into a directory, or is it."""
    real, root = os.path.realpath(path), os.path.realpath(directory)
    return Path(real).is_relative_to(root)


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
