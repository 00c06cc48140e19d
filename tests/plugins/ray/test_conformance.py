"""A Ray on this machine does what every backend does, and leaves nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard_testing import assert_backend_conforms, assert_conforms
from tests.plugins.ray.conftest import ROOT, SMALL, TOOLS

pytestmark = pytest.mark.ray

PROGRAM = f"""
from pegboard import Toolkit
from tests.plugins.ray.laborers import add
options = {{"num_cpus": 1, "object_store_memory": {SMALL}}}
with Toolkit(plugins=["ray"], settings={{"ray": {{"tools": ["{TOOLS}"], "options": options}}}}) as toolkit:
    toolkit.register(add)
    print(toolkit.call_sync("add", {{"a": 1, "b": 2}}).text)
import os, ray
print(ray.is_initialized(), sorted(name for name in os.environ if name.startswith(("RAY_AUTH", "RAY_USAGE"))))
"""


def test_it_conforms() -> None:
    assert_backend_conforms("ray", settings={"ray": {"options": {"num_cpus": 2, "object_store_memory": 2 * SMALL}}})


def test_starting_one_leaves_no_token_at_home(tmp_path: Path) -> None:
    left_out = ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=180, check=True
    )
    assert made.stdout.split("\n")[:2] == ["3", "False []"], made.stderr
    assert not Path(tmp_path, ".ray").exists()


def test_the_pack_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_conforms("ray")
