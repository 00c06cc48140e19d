"""What the tests of the pack share: running commands, looking for processes, and being fair to a slow machine."""

import asyncio
import itertools
import os
import random
import statistics

import pytest

from pegboard import ToolResult
from pegboard_shell import ShellTools
from pegboard_shell._sandbox import sandboxes
from pegboard_shell._sandbox.places import Places
from tests.support.measuring import seconds
from tests.support.waiting import PATIENCE, eventually

SANDBOXES = ("none", "landlock", "bubblewrap")

_numbers = itertools.count(random.SystemRandom().randrange(10**6, 10**8))


def run(tools: ShellTools, command: str, timeout: float | None = None) -> ToolResult:
    """Run a command outside of a toolkit, in an event loop of its own."""
    return asyncio.run(tools.execute_shell_command(command, timeout))


def output(result: ToolResult) -> str:
    """What a command wrote. Fails if it did not end well."""
    assert result.data is not None, result.text
    assert result.data["exit_code"] == 0, result.text
    return str(result.data["stdout"])


def unique_seconds() -> str:
    """How long a sleeper sleeps: far too long, and known by that number."""
    return f"597.{next(_numbers)}"


def processes(marker: str) -> list[str]:
    """The command lines of processes that mention `marker`, this one and the dead not counted."""
    found = []
    # As cheap as can be: tests look many times.
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb", buffering=0) as file:  # noqa: PTH123
                line = file.read()
        except OSError:
            continue
        if marker.encode() in line and name != str(os.getpid()):
            found.append(line.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def gone(marker: str, seconds: float = PATIENCE) -> bool:
    """Whether no process mentions `marker`, now or soon: the system takes a moment to forget what was killed."""
    return eventually(lambda: not processes(marker), seconds)


def baseline(tools: ShellTools) -> float:
    """Seconds that a command takes here that does nothing: what a busy machine adds to everything else."""
    return statistics.median(seconds(lambda: run(tools, "true")) for _ in range(5))


def use_sandbox(sandbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this sandbox and no other, or skip."""
    there = {"none": True, "landlock": sandboxes.has_landlock()}
    there["bubblewrap"] = sandboxes.find_bubblewrap(Places("/", ())) is not None
    if not there[sandbox]:
        pytest.skip(f"{sandbox} cannot be had here")
    monkeypatch.setattr(sandboxes, "_best", lambda places: sandbox)
