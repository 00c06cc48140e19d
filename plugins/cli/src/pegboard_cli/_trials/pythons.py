"""The Pythons of this machine. None is ever downloaded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

__all__ = ["Python", "find_pythons", "plain_environment"]

_MINORS: Final = range(11, 30)
"""Versions of Python 3 that Pegboard may run on."""
_ASK: Final = "import sys; print(sys.version.split()[0], sys.executable)"
_ANSWER: Final = re.compile(r"((3\.\d+)\.\d+)\S* (.+)")


@frozen
class Python:
    """A Python: its version, `3.12`, its release, `3.12.1`, and where it is."""

    version: str
    release: str
    path: str


def find_pythons() -> dict[str, Python]:
    """The Pythons of this machine by version, lowest first: that of this program, those on the path, pyenv's."""
    found: dict[str, Python] = {}
    for version, command in _candidates():
        match = None if version in found else _ANSWER.match(_answer(command))
        if match and match[2] == version:
            # Where it really is: what is on the path may lead elsewhere from another directory.
            found[version] = Python(version, match[1], match[3])
    return dict(sorted(found.items(), key=lambda each: [*map(int, each[0].split("."))]))


def plain_environment() -> dict[str, str]:
    """This program's environment without what is about this program: the installer's own variables stay."""
    left_out = ("PEGBOARD", "PYTHON", "VIRTUAL_ENV", "COV_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def _candidates() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Versions, and commands that may start them."""
    yield f"3.{sys.version_info.minor}", (sys.executable,)
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    for minor in _MINORS:
        version = f"3.{minor}"
        path = shutil.which(f"python{version}")
        if path is not None:
            yield version, (path,)
        elif os.name == "nt" and shutil.which("py"):
            yield version, ("py", f"-{version}")
        yield from ((version, (str(each),)) for each in sorted(root.glob(f"versions/{version}.*/bin/python3")))


def _answer(command: tuple[str, ...]) -> str:
    """What it says of itself: a name on the path may lead to nothing."""
    try:
        done = subprocess.run(  # noqa: S603 - a Python of this machine
            [*command, "-c", _ASK],
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
