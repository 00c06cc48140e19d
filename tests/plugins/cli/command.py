"""The real command, run in an interpreter of its own on packs of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs

from tests.support.plugin_site import Site

COMMAND = [str(Path(sys.executable).with_name("pegboard"))]

TOOL = '''
import pegboard

@pegboard.tool({options})
def {name}(text: str, times: int = 1) -> str:
    """Repeat a text.

    Args:
        text: The text
        times: How often
    """
    return text * times

@hookimpl
def provide_tools(settings):
    return [{name}]
'''


def tool(name: str, /, **options: Any) -> str:
    """The source of a plugin with one tool that repeats a text."""
    return TOOL.format(name=name, options=", ".join(f"{key}={value!r}" for key, value in options.items()))


@attrs.frozen
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON document that it printed."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on standard error that an error is."""
        (line,) = self.err.splitlines()
        return line


@attrs.frozen
class Installation:
    """Packs in a directory on the path; those of the environment are blocked."""

    path: Path
    cwd: Path

    def add(self, name: str, source: str | None = None, **options: Any) -> Path:
        """Install a plugin; see `Site.add`."""
        self.path.mkdir(exist_ok=True)
        return Site(self.path).add(name, source, **options)

    def run(self, *arguments: str, stdin: str = "", **environ: str) -> Outcome:
        """Run the command."""
        own = {"PYTHONPATH": str(self.path), "PEGBOARD_BLOCK": "pegboard-*"}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD")}
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.cwd,
            env=inherited | own | environ,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)
