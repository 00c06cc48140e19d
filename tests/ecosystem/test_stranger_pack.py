"""A stranger's pack, as a wheel in a fresh environment: installed it hangs on the board, removed it is gone."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "core", ROOT / "plugins" / "files", ROOT / "docs" / "examples" / "acme-weather")

BOARD = """
import json
import pegboard

with pegboard.Toolkit() as toolkit:
    forecast = toolkit.call_sync("acme_forecast", {"city": "Oslo", "days": 2})
    print(json.dumps({
        "tools": {tool.name: tool.origin.distribution for tool in toolkit},
        "plugins": {record.name: record.state for record in toolkit.plugins},
        "problems": toolkit.problems,
        "forecast": [forecast.status, forecast.text],
    }))
"""

pytestmark = pytest.mark.slow


class Environment:
    """A fresh virtual environment with the core and the files pack installed from wheels."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        venv.create(folder / "env", with_pip=True)
        self.wheels = folder / "wheels"
        self._python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        self.pip("wheel", "--no-deps", "--wheel-dir", str(self.wheels), *map(str, SOURCES))
        self.pip("install", "--find-links", str(self.wheels), "pegboard", "pegboard-files")

    def pip(self, *arguments: str) -> None:
        """Run pip there; what it printed is in the error if it fails."""
        command = [str(self._python), "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def board(self) -> dict[str, Any]:
        """What a program in that environment finds on its board."""
        command = [str(self._python), "-I", "-W", "error", "-c", BOARD]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        board: dict[str, Any] = json.loads(done.stdout)
        return board

    def module(self, name: str) -> Path:
        """The file of an installed package."""
        return next((self._folder / "env").rglob(f"site-packages/{name}/__init__.py"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("stranger"))


def test_a_strangers_pack_comes_breaks_and_goes(environment: Environment) -> None:
    before = environment.board()
    assert "acme_forecast" not in before["tools"]
    assert before["forecast"][0] == "not_found"

    environment.pip("install", "--find-links", str(environment.wheels), "acme-weather")
    installed = environment.board()
    assert installed["tools"]["acme_forecast"] == "acme-weather"
    assert installed["plugins"]["acme"] == "active"
    assert installed["problems"] == []
    assert installed["forecast"][0] == "success"
    assert "Oslo" in installed["forecast"][1]

    source = environment.module("acme_weather")
    intact = source.read_text("utf-8")
    source.write_text(f"import acme_radar\n{intact}", "utf-8")
    broken = environment.board()
    assert broken["plugins"]["acme"] == "failed"
    assert "acme-weather" in broken["problems"][0]
    assert "acme_radar" in broken["problems"][0]
    assert broken["tools"]["view_text_file"] == "pegboard-files"
    # Asking for the tool of the broken pack says so.
    assert broken["forecast"][0] == "not_found"
    assert "acme" in broken["forecast"][1]
    source.write_text(intact, "utf-8")

    environment.pip("uninstall", "--yes", "acme-weather")
    assert environment.board() == before
