"""The program of `docs/packs/ray.md`, in a Ray that it starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.places import Piece, run_by
from tests.workspace.project import ROOT

pytestmark = pytest.mark.ray


@pytest.mark.parametrize("piece", run_by(Path(__file__).relative_to(ROOT).as_posix()), ids=lambda piece: piece.label)
def test_prints_what_the_page_says(piece: Piece, tmp_path: Path) -> None:
    """The first line of the block names the file, and a comment behind the last one says what is printed."""
    name, printed = piece.text.splitlines()[0].removeprefix("# "), piece.text.rpartition("#")[2].strip()
    (tmp_path / name).write_text(piece.text, "utf-8")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, name], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == printed
