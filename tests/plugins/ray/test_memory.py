"""Ray ends a worker because memory ran out: the call says so, and only an idempotent tool is tried again.

The limit is a hundredth of the machine's memory, which is used up anyway: so Ray's own monitor kills whatever runs, and
no memory has to be filled for it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.ray.conftest import ROOT, SMALL, TOOLS

pytestmark = pytest.mark.ray

PROGRAM = f"""
import json, sys
from pegboard import ExecutionPolicy, Toolkit
from tests.plugins.ray.laborers import dawdle, dawdle_again
options = {{"num_cpus": 1, "object_store_memory": {SMALL}}}
twice = ExecutionPolicy(max_attempts=2, initial_backoff=0)
with Toolkit(plugins=["ray"], settings={{"ray": {{"tools": ["{TOOLS}"], "options": options}}}}) as toolkit:
    toolkit.register(dawdle, dawdle_again)
    for name in ("dawdle", "dawdle_again"):
        result = toolkit.call_sync(name, {{"place": sys.argv[1]}}, policy=twice)
        error = result.error and type(result.error.exception).__name__
        print(json.dumps([result.status.value, error, result.attempts, result.text]))
"""


def test_a_worker_that_ray_ends_for_want_of_memory(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RAY_memory_usage_threshold": "0.01",
        "RAY_memory_monitor_refresh_ms": "100",
    }
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    once, again = (json.loads(line) for line in made.stdout.splitlines())
    assert once[:3] == ["error", "OutOfMemoryError", 1], made.stderr
    assert "has no memory left" in once[3]
    assert again[:3] == ["error", "OutOfMemoryError", 2], made.stderr
