"""Launchers: well-known programs that start other programs because an argument says so.

An allow-list that lets `find` run does not let run what stands behind `-exec`. The list is of the common ones; that it
can never be complete is why the docs promise nothing about what an allowed program does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

__all__ = ["UNCLEAR", "objection", "target"]

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
