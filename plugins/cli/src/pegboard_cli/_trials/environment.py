"""Fresh environments, and the wheels that are installed there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from pegboard_cli._trials.pythons import plain_environment
from pegboard_cli._trials.wheel import normal, read_project

__all__ = ["Environment", "Failed", "Installer", "checkout_of", "members_needed"]

_LINES: Final = 30


class Failed(Exception):  # noqa: N818 - a step that failed: the text is the end of what it printed
    """A command of a trial did not end well."""


@define
class Installer:
    """pip: that of this Python, else that of an environment made for it. Its own variables and files count."""

    folder: Path
    python: str | None = field(factory=lambda: sys.executable if find_spec("pip") else None)
    """A Python that has pip; None until there is one."""

    def wheels(self, sources: Sequence[Path], into: Path) -> list[Path]:
        """Build wheels. Raises `Failed`."""
        before = {*into.glob("*.whl")}
        self._run("wheel", "--quiet", "--no-deps", "--wheel-dir", str(into), *map(str, sources))
        return sorted({*into.glob("*.whl")} - before)

    def install(self, environment: Environment, *requirements: str, links: Path) -> None:
        """Install there. Raises `Failed`."""
        target = ("--python", str(environment.python))
        self._run(*target, "install", "--quiet", "--find-links", str(links), *requirements)

    def _run(self, *arguments: str) -> None:
        if self.python is None:
            made = Environment.make(sys.executable, self.folder / "installer", with_pip=True)
            self.python = str(made.python)
        run([self.python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments], self.folder)


@frozen
class Environment:
    """A fresh virtual environment."""

    python: Path

    @classmethod
    def make(cls, python: str, folder: Path, *, with_pip: bool = False) -> Environment:
        """Make one. Raises `Failed`."""
        run([python, "-m", "venv", *([] if with_pip else ["--without-pip"]), str(folder)], folder.parent)
        return cls(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")

    def run(self, *arguments: str, cwd: Path) -> str:
        """What its Python prints. Raises `Failed`."""
        return run([str(self.python), *arguments], cwd)


def run(command: Sequence[str], cwd: Path) -> str:
    """What a command prints. Raises `Failed` with the end of it."""
    try:
        done = subprocess.run(  # noqa: S603 - Python and pip, for the pack that the user named
            command,
            cwd=cwd,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise Failed(str(error)) from None
    if done.returncode:
        text = f"{done.stdout}\n{done.stderr}".strip() or f"it ended with {done.returncode}"
        raise Failed("\n".join(text.splitlines()[-_LINES:]))
    return done.stdout


# A checkout of Pegboard: what of it is not on the index is built from there ------------------------------------------


def checkout_of(folder: Path) -> Path | None:
    """The checkout of Pegboard that a folder is in, or that this program runs from; None for neither."""
    import pegboard

    for start in (folder, Path(pegboard.__file__)):
        for parent in start.resolve().parents:
            if _name(read_project(parent / "core")) == "pegboard":
                return parent
    return None


def members_needed(checkout: Path, requirements: Sequence[str]) -> list[Path]:
    """The folders of a checkout's distributions that some requirements lead to, the core among them."""
    known = {name: path for path, name in _members(checkout)}
    waiting, found = ["pegboard", *map(_required, requirements)], {}
    for name in waiting:  # the list grows in the loop
        if name in known and name not in found:
            found[name] = known[name]
            waiting += map(_required, read_project(known[name]).get("project", {}).get("dependencies", ()))
    return list(found.values())


def _members(checkout: Path) -> Iterator[tuple[Path, str]]:
    for path in (checkout / "core", *sorted(checkout.glob("plugins/*"))):
        yield path, _name(read_project(path))


def _name(project: Any) -> str:
    return normal(project.get("project", {}).get("name", ""))


def _required(requirement: str) -> str:
    return normal(requirement.partition(";")[0].split("[")[0].split("=")[0].strip(" <>~!"))
