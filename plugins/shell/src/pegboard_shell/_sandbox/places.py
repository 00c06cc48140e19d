"""Places: what of a host's file system a confined command needs to see, and what it must not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from pegboard_shell._policy.programs import MOST_INTERPRETERS, interpreter, is_below, is_inside, way

__all__ = ["Places", "needed_by"]

PRIVATE: Final = ("/home", "/root", "/run", "/tmp", "/var/run", "/var/tmp")  # noqa: S108 - hidden, not used
"""Home directories with keys, sockets of the system's services, and files of other programs."""
PROTECTED: Final = (".git/config", ".git/hooks", "pegboard.lock", "pegboard.toml")
"""What makes other programs run something, or loosens this very policy: not writable in a writable workspace."""
_PACK: Final = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - a string, as it was found
"""The folder of this pack, where the supervisor's code is."""
_ENVIRONMENT: Final = ("bin", "include", "lib", "lib64", "pyvenv.cfg")
"""What makes up a virtual environment of Python."""


@frozen
class Places:
    """`private` places are hidden but for what is `readable` in them and the workspace, which is writable."""

    workspace: str
    private: tuple[str, ...]
    readable: tuple[str, ...] = ()
    own_code: tuple[str, ...] = ()
    """What lies in the workspace of the code that runs next to commands, outside of every sandbox."""
    exposed: bool = False
    """Whether a command could change what that code is: it is the workspace itself, or found by a link there."""

    @classmethod
    def of(cls, workspace: str, home: str | None, readable: Iterable[str] = ()) -> Places:
        """The places of this host."""
        homes = [home, *_registered_homes()]
        absolute = (path for path in homes if path and Path(path).is_absolute() and path != "/")
        private = {os.path.realpath(path) for path in (*PRIVATE, *absolute) if Path(path).is_dir()}
        # The outermost: a hidden place within a hidden place is hidden already. What is in the workspace is not hidden.
        hidden = (path for path in _outermost(private) if not is_inside(path, workspace))
        if workspace == "/":
            return cls(workspace, tuple(hidden), tuple(readable))
        code = (sys.prefix, sys.base_prefix, sys.executable, _PACK)
        own = _outermost(real for real in map(os.path.realpath, code) if is_below(real, workspace))
        links = [link for path in code if (found := way(path, None)) for link in found.links]
        exposed = workspace in own or any(is_below(link, workspace) and not _is_below(link, own) for link in links)
        return cls(workspace, tuple(hidden), tuple(readable), tuple(own), exposed)

    @property
    def writable(self) -> str | None:
        """The workspace, unless it is everything."""
        return None if self.workspace == "/" else self.workspace

    @property
    def protected(self) -> list[str]:
        """Names in the workspace of what stays as it is, of where links there lead, and of this program's code."""
        named = [os.path.join(self.workspace, name) for name in PROTECTED]  # noqa: PTH118 - often
        every = dict.fromkeys((*named, *map(os.path.realpath, named), *self.own_code))
        inner = (path for path in every if path != self.workspace and is_below(path, self.workspace))
        return [os.path.relpath(path, self.workspace) for path in inner]

    def is_safe(self, path: str) -> bool:
        """Whether no command can change what a path leads to."""
        return way(path, self.writable) is not None or any(is_inside(path, own) for own in self.own_code)

    def shown(self, executable: str, more: Iterable[str] = ()) -> tuple[list[str], list[tuple[str, str]]]:
        """What of the private places has to be readable so that a program can run, `more` included; and links."""
        shown: list[str] = []
        links: dict[str, str] = {}
        for path in (*self.readable, *more, *needed_by(executable, self.writable)):
            found = way(path, self.writable)
            if found is not None and os.path.exists(found.end):  # noqa: PTH110 - a string
                shown.append(found.end)
                links |= found.links
        outer = _outermost(path for path in shown if _is_below(path, self.private))
        visible = (path for path in links if _is_below(path, self.private) and not _is_below(path, outer))
        return outer, [(path, links[path]) for path in visible]


def _outermost(paths: Iterable[str]) -> list[str]:
    every = set(paths)
    return [path for path in sorted(every) if not _is_below(path, every - {path})]


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(is_below(path, place) for place in places)


def _registered_homes() -> list[str]:
    """The home that the system knows of this user, whatever the environment says."""
    if os.name == "nt":
        return []
    import pwd

    try:
        return [pwd.getpwuid(os.getuid()).pw_dir]
    except KeyError:
        return []


def needed_by(executable: str, workspace: str | None) -> Iterator[str]:
    """What a program demonstrably needs beside the system: itself, the interpreter that it names, Python's libraries.

    Not its neighbours: beside programs in a home lie keys. Nothing of what lies in the workspace, where commands could
    say what is needed.
    """
    named: str | None = executable
    for _ in range(MOST_INTERPRETERS):
        found = way(named, workspace) if named and Path(named).is_absolute() else None
        if named is None or found is None:
            return
        yield named
        for path in {named: None, **found.links, found.end: None}:
            yield from _installation(Path(path))
        named = interpreter(found.end)


def _installation(program: Path) -> Iterator[str]:
    prefix = program.parent.parent
    if program.parent.name == "bin" and (prefix / "pyvenv.cfg").is_file():
        yield from (str(prefix / name) for name in _ENVIRONMENT)
    if program.parent.name == "bin" and any(prefix.glob("lib/python3*/os.py")):
        yield str(prefix / "lib")
