"""New interpreters: what a program prints, and what it has loaded."""

import os
import subprocess
import sys
from typing import Any, Final

from tests.support.waiting import PATIENCE

__all__ = ["as_calls_run", "complained", "printed", "printed_under_two_hash_seeds"]


def printed(code: str, *options: str, loud: bool = False, **popen: Any) -> str:
    """What a program prints to standard output, where it ends well, and prints nothing else unless it may be `loud`."""
    command = [sys.executable, *options, "-c", code]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, **popen
    )
    assert done.returncode == 0, done.stderr
    assert loud or not done.stderr, done.stderr
    return done.stdout.strip()


def printed_under_two_hash_seeds(code: str, *path: str) -> str:
    """What a program prints in two interpreters that hash differently: the same. `path` comes first on theirs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, *filter(None, sys.path)])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**environment, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "4242")
    ]
    first, second = (process.communicate(timeout=PATIENCE)[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert first == second
    return first


def as_calls_run(path: str) -> str:
    """The first line of a program whose calls run as those of a test with the fixture `path` do."""
    return "" if path == "fast" else _THROUGH_STAGES


_THROUGH_STAGES: Final = """
from pegboard._execution.bound import BoundTool
choose = BoundTool._choose_beginning
def through_stages(bound, kind):
    choose(bound, kind)
    bound.begins = bound.begins_on_loop = bound.in_thread = False
BoundTool._choose_beginning = through_stages
"""


def complained(stderr: str) -> list[str]:
    """What an interpreter under `-X dev` complains of, but for callbacks of a loop that took long: any may, if busy."""
    return [line for line in stderr.splitlines() if not line.startswith("Executing ")]
