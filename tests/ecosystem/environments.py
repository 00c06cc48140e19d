"""Fresh virtual environments: what is in them was built as wheels from this checkout, and installed."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from tests.workspace.project import ROOT

__all__ = ["CORE", "Environment"]

CORE = ROOT / "core"


class Environment:
    """A fresh virtual environment, and the wheels of some folders; those of `installed` are installed."""

    def __init__(self, folder: Path, sources: tuple[Path, ...], *installed: str) -> None:
        self._folder = folder
        venv.create(folder / "env", with_pip=True)
        self.wheels = folder / "wheels"
        self._python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        self.pip("wheel", "--no-deps", "--wheel-dir", str(self.wheels), *map(str, sources))
        self.install(*installed)

    def install(self, *names: str) -> None:
        """Install what was built, and whatever it needs."""
        self.pip("install", "--find-links", str(self.wheels), *names)

    def pip(self, *arguments: str) -> None:
        """Run pip there; what it printed is in the error if it fails."""
        command = [str(self._python), "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, code: str) -> Any:
        """What a program prints there as JSON; a warning is an error."""
        command = [str(self._python), "-I", "-W", "error", "-c", code]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def module(self, name: str) -> Path:
        """The file of an installed package."""
        return next((self._folder / "env").rglob(f"site-packages/{name}/__init__.py"))
