"""Places: what of a host's file system a confined command needs to see, and what it must not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from attrs import frozen

from pegboard_shell._programs import is_inside

__all__ = ["Places", "needed_by"]

PRIVATE: Final = ("/home", "/root", "/run", "/tmp", "/var/run", "/var/tmp")  # noqa: S108 - hidden, not used
"""Homes with keys in them, sockets of the system's services, and what other programs leave about."""
PROTECTED: Final = (".git/config", ".git/hooks", "pegboard.lock", "pegboard.toml")
"""What makes other programs run something, or loosens this very policy: not writable in a writable workspace."""
_PROGRAM_FOLDERS: Final = ("bin", "sbin", "libexec")


@frozen
class Places:
    """`private` places are hidden but for what is `readable` in them and the workspace, which is writable."""

    workspace: str
    private: tuple[str, ...]
    readable: tuple[str, ...] = ()

    @classmethod
    def of(cls, workspace: str, home: str | None, readable: Iterable[str] = ()) -> Places:
        """The places of this host."""
        homes = [home] if home and Path(home).is_absolute() and home != "/" else []
        private = {os.path.realpath(path) for path in (*PRIVATE, *homes) if Path(path).is_dir()}
        # Outermost first: a hidden place within a hidden place is hidden already.
        outer = [path for path in sorted(private) if not any(is_inside(path, other) for other in private - {path})]
        return cls(workspace, tuple(outer), tuple(readable))

    @property
    def writable(self) -> str | None:
        """The workspace, unless it is everything."""
        return None if self.workspace == "/" else self.workspace

    @property
    def protected(self) -> list[str]:
        """What is there of the files in the workspace that stay as they are."""
        git = Path(self.workspace, ".git")
        names = (*PROTECTED, ".git") if git.is_file() else PROTECTED  # a file says where the repository is
        real = (os.path.realpath(path) for name in names if (path := Path(self.workspace, name)).exists())
        return [path for path in real if is_inside(path, self.workspace)]

    @property
    def anchored(self) -> list[str]:
        """Directories of protected files: they can be written to, but not be moved away, to be replaced by others."""
        folders = (str(Path(path).parent) for path in self.protected)
        return [folder for folder in dict.fromkeys(folders) if folder != self.workspace]

    def shown(self, executable: str) -> list[str]:
        """What of the private places has to be readable so that a program can run."""
        wanted = (*self.readable, *needed_by(executable, (*self.private, *self.homes)))
        return [path for path in dict.fromkeys(wanted) if any(is_inside(path, hidden) for hidden in self.private)]

    @property
    def homes(self) -> list[str]:
        """Homes of users, none of which is shown whole because a program lies in it."""
        found = [Path.home()] if "HOME" in os.environ else []
        return [os.path.realpath(path) for path in (*found, *Path("/home").glob("*"))]


def needed_by(executable: str, never: Iterable[str]) -> list[str]:
    """The installation that a program belongs to, by its path and by where that leads; the file alone at the least.

    What is `never` shown whole, or holds it, is not.
    """
    closed = [os.path.realpath(path) for path in never]
    found = []
    for path in dict.fromkeys((executable, os.path.realpath(executable))):
        folder = Path(path).parent
        installation = folder.parent if folder.name in _PROGRAM_FOLDERS else Path(path)
        whole = not any(is_inside(place, str(installation)) for place in closed)
        found.append(str(installation) if whole else path)
    return found
