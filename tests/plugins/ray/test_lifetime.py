"""How long a Ray that the pack has started lasts, and what becomes of calls when it ends before them.

Each is a program of its own, for a process has one Ray, and Ray may end a process.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.ray.conftest import ROOT, SMALL, TOOLS

pytestmark = pytest.mark.ray

BEGIN = f"""
import json, os, signal, sys, threading, time
from pegboard import ExecutionPolicy, Toolkit
from tests.plugins.ray import laborers

def board(*tools, **more):
    options = {{"num_cpus": 1, "object_store_memory": {SMALL}}}
    made = Toolkit(plugins=["ray"], settings={{"ray": {{"tools": ["{TOOLS}"], "options": options, **more}}}})
    made.register(*tools)
    return made

def told(**said):
    print(json.dumps(said), flush=True)

def error(result):
    return result.error and type(result.error.exception).__name__
"""


def run(program: str, *arguments: str) -> tuple[dict[str, Any], str]:
    """What a program tells, and all that it prints."""
    made = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    said: dict[str, Any] = {}
    for line in made.stdout.splitlines():
        if line.startswith("{"):
            said |= json.loads(line)
    return said, made.stdout


def test_ray_ends_with_its_last_toolkit_and_not_with_the_one_that_started_it() -> None:
    said, _ = run("""
        import ray
        first, second = board(laborers.add), board(laborers.add)
        told(first=first.call_sync("add", {"a": 1, "b": 2}).text, second=second.call_sync("add", {"a": 1, "b": 2}).text)
        first.close()
        time.sleep(3)
        told(dead=len(ray._private.worker._global_node.dead_processes()))
        told(again=second.call_sync("add", {"a": 2, "b": 2}, policy=ExecutionPolicy(timeout=60)).text)
        second.close()
        told(there=ray.is_initialized())
    """)
    assert said == {"first": "3", "second": "3", "dead": 0, "again": "4", "there": False}


@pytest.mark.parametrize("vital", ["gcs_server", "raylet"])
def test_a_call_is_lost_with_the_ray_that_it_runs_on_and_the_next_starts_another(vital: str, tmp_path: Path) -> None:
    said, printed = run(
        """
        import ray
        toolkit = board(laborers.dawdle, laborers.add)
        def kill():
            while not os.listdir(sys.argv[2]):
                time.sleep(0.05)
            (process,) = ray._private.worker._global_node.all_processes[sys.argv[1]]
            os.kill(process.process.pid, signal.SIGKILL)
        threading.Thread(target=kill, daemon=True).start()
        result = toolkit.call_sync("dawdle", {"place": sys.argv[2]})
        told(status=result.status.value, error=error(result))
        told(next=toolkit.call_sync("add", {"a": 1, "b": 2}).text)
        toolkit.close()
        told(there=ray.is_initialized())
        """,
        vital,
        str(tmp_path),
    )
    assert said == {"status": "error", "error": "WorkerLostError", "next": "3", "there": False}
    assert "(raylet)" not in printed
