"""The Python examples of each distribution's README run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.thinning import one_in
from tests.workspace.project import MEMBERS

EXAMPLES = [
    pytest.param(code, id=f"{member.name}-{number}")
    for member in MEMBERS
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```$", (member.path / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.parametrize("code", one_in(4, EXAMPLES))
def test_example_runs(code: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    command = [sys.executable, "-W", "error", script.name]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
