"""Two nodes with environments of their own: each runs the pack that is installed there, or refuses; doctor compares."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import Status
from tests.plugins.ray.conftest import ROOT, Board

pytestmark = pytest.mark.ray


@pytest.fixture
def lab(board: Board, labs: list[Path], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A toolkit with the release of the pack that the first node has too."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(labs[0])])  # Ray takes the first along to all workers
    yield board(plugins=("lab",))
    sys.modules.pop("acme_lab", None)


def test_a_tool_is_that_of_the_node_where_its_resources_are(lab: Any) -> None:
    results = [lab.call_sync(name) for name in ("release_first", "release_second")]
    assert [each.text for each in results] == ["1.0", "2.0"], [each.error and each.error.details for each in results]


def test_another_release_with_other_parameters_is_refused_with_both(lab: Any) -> None:
    result = lab.call_sync("mix", {"a": 1})
    assert result.status is Status.ERROR
    assert type(result.error.exception).__name__ == "MismatchError"
    assert "its worker has acme-lab 2.0 and pegboard " in result.text
    assert "while the program has acme-lab 1.0 and pegboard " in result.text


def test_doctor_names_the_node_that_has_another_release(cluster: Any, labs: list[Path]) -> None:
    pytest.importorskip("pegboard_cli")
    environment = {
        **os.environ,
        "PEGBOARD__RAY__ADDRESS": cluster.address,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(labs[0])]),
        "COLUMNS": "400",
    }
    command = [sys.executable, "-m", "pegboard_cli", "doctor"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    said = " ".join(told.stdout.split())
    assert "has 2 nodes with 2 CPUs and 0 GPUs" in said, told.stderr
    assert said.count("has other packs: acme-lab 1.0 here, acme-lab 2.0 there") == 1, said
    assert "install the same versions there" in said
