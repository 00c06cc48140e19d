"""Programs: where their names lead to, and which of them start other programs because an argument says so.

An allow-list that lets `find` run does not let run what stands behind `-exec`. The list of such programs is of the
common ones; that it can never be complete is why the docs promise nothing about what an allowed program does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, final

from attrs import frozen

__all__ = [
    "MOST_INTERPRETERS",
    "UNCLEAR",
    "Programs",
    "Way",
    "interpreter",
    "is_below",
    "is_inside",
    "objection",
    "same_place",
    "target",
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


# Programs that start others ----------------------------------------------------------------------------------

UNCLEAR: Final = -1


@frozen
class _Wrapper:
    """Options of a program that starts the program named by its operands.

    `flags` and `valued` are letters of options without and with a value; any other option leaves it unclear where the
    program stands. `operands` come before it.
    """

    flags: str = ""
    valued: str = ""
    operands: int = 0


_WRAPPERS: Final = {
    "chrt": _Wrapper(operands=1),
    "env": _Wrapper(flags="i0", valued="u"),
    "flock": _Wrapper(operands=1),
    "ionice": _Wrapper(flags="t", valued="cn"),
    "nice": _Wrapper(valued="n"),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(flags="cfw"),
    "stdbuf": _Wrapper(valued="ioe"),
    "taskset": _Wrapper(operands=1),
    "time": _Wrapper(flags="pv"),
    "timeout": _Wrapper(valued="ks", operands=1),
    "xargs": _Wrapper(flags="0rtx", valued="dELnPs"),
}

# Options that name a program to start: long ones, which may be abbreviated, and letters, which may stand together.
_OPTIONS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "fd": (("--exec", "--exec-batch"), "xX"),
    "fdfind": (("--exec", "--exec-batch"), "xX"),
    "find": (("-exec", "-execdir", "-ok", "-okdir"), ""),
    "rg": (("--pre", "--hostname-bin"), ""),
    "rsync": (("--rsh", "--rsync-path"), "e"),
    "sort": (("--compress-program",), ""),
    "tar": (
        (
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ),
        "FI",
    ),
    "zip": (("--unzip-command",), "T"),
}


_REMOTE: Final = frozenset({"rsync", "tar"})
"""Programs that start a remote shell for what looks like a place on another host: a colon before any slash."""


def target(program: str, arguments: Sequence[str]) -> int | None:
    """Where among the arguments of `program` the program stands that it starts: None if nowhere, or `UNCLEAR`."""
    wrapper = _WRAPPERS.get(program)
    if wrapper is None:
        return None
    position = 0
    while position < len(arguments) and arguments[position].startswith("-"):
        option = arguments[position]
        position += 1
        if option == "--":
            break
        letter = option[1:2]
        if letter and letter in wrapper.valued:
            position += len(option) == 2
        elif not letter or option.startswith("--") or any(flag not in wrapper.flags for flag in option[1:]):
            return UNCLEAR
    if program == "env" and any("=" in word for word in arguments[position : position + 1]):
        return UNCLEAR  # with another PATH, or a library to load first, every program is another one
    position += wrapper.operands
    return position if position < len(arguments) else None


def objection(program: str, arguments: Sequence[str]) -> str | None:
    """The argument that has `program` start another one, if there is one."""
    names, letters = _OPTIONS.get(program, ((), ""))
    for index, argument in enumerate(arguments):
        option = argument.partition("=")[0]
        long = option.startswith("--") and len(option) > 2
        if option in names or (long and any(name.startswith(option) for name in names)):
            return argument
        place = argument.partition("=")[2] if long else argument
        if program in _REMOTE and ":" in place.partition("/")[0]:
            return argument
        # tar takes its first letters without a dash, too.
        together = (argument.startswith("-") and not long) or (program == "tar" and index == 0)
        if together and any(letter in letters for letter in argument):
            return argument
    return None
