"""Programs that pages start: a folder with the files that their commands name, and servers instead of those fetched."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired

import pytest

from pegboard_testing import fake_distribution
from tests.workspace.project import ROOT

PROGRAM = '''
from pegboard import Toolkit, tool


@tool(read_only=True)
def find_desk(number: int) -> str:
    """Find a desk."""
    return f"desk {number}"


toolkit = Toolkit(plugins=())
toolkit.register(find_desk)
'''
PACK = '''
from pegboard import Group, Offer, hookimpl
from board import find_desk


class Office:
    """A source that brings a group."""

    name = "office"
    groups = (Group("office", "The office"),)
    problems = ()

    def tools(self):
        return []

    def watch(self, changed):
        return lambda: None


@hookimpl
def provide_tools():
    return [Office(), Offer(find_desk, group="office")]
'''
SERVER = ROOT / "tests" / "plugins" / "mcp" / "bad_server.py"


def skip_if_taken(port: int) -> None:
    """Skip the test if another program listens at a port that the page prints."""
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            pytest.skip(f"port {port} of the page is taken")


class Desk:
    """A folder with `board.py`, `myprogram.py`, an installed `tidy_board`, `mcp.json` and folders of skills.

    `npx` and `uvx` are first in `PATH` and start a server of the tests, whose tool is `echo`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        for name in ("home", "bin", "skills/offers", "skills/business-letters"):
            (folder / name).mkdir(parents=True)
        for name in ("board", "myprogram"):
            (folder / f"{name}.py").write_text(PROGRAM, "utf-8")
        self._install()
        for name in ("npx", "uvx"):
            program = folder / "bin" / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SERVER}" good\n', "utf-8")
            program.chmod(0o755)
        servers = {"far": {"command": "npx", "args": ["-y", "a-server"]}}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PEGBOARD", "XDG"))}
        path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), "/usr/bin", "/bin"])
        shell = {"HOME": str(self.home), "SHELL": "/bin/bash", "DESK_KEY": "a key of the test"}
        self.environ = {**inherited, **shell, "PATH": path, "PYTHONPATH": str(folder)}

    def _install(self) -> None:
        """Install a pack with a tool in the group `office`, and a distribution that can be published."""
        entry_points = {"pegboard": {"office": "acme_office"}}
        fake_distribution(self.folder, "acme-office", entry_points=entry_points, modules={"acme_office": PACK})
        scripts = {"console_scripts": {"tidy-board": "pegboard_cli:main"}}
        info = fake_distribution(self.folder, "tidy-board", entry_points=scripts, modules={"tidy_board": PROGRAM})
        with (info / "METADATA").open("a", encoding="utf-8") as metadata:
            metadata.write("Summary: Keeps a desk tidy.\n\nmcp-name: io.github.ada/tidy-board\n")

    @contextmanager
    def started(self, words: tuple[str, ...]) -> Iterator[Popen[str]]:
        """Start a command in the folder; end it by its id."""
        with Popen(words, cwd=self.folder, env=self.environ, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as found:
            try:
                yield found
            finally:
                found.terminate()
                try:
                    found.wait(20)
                except TimeoutExpired:
                    found.kill()
