"""The hooks of `.pre-commit-config.yaml` check what `nox` checks, and find what they are there to find."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workspace.project import ROOT, WORKSPACE

yaml = pytest.importorskip("yaml")

CONFIG = ROOT / ".pre-commit-config.yaml"
HOOKS = {hook["id"]: hook for repo in yaml.safe_load(CONFIG.read_text("utf-8"))["repos"] for hook in repo["hooks"]}
MESSY = "import sys, os\nx = {  'a':1 }\n"


def test_each_hook_comes_from_the_package_index() -> None:
    assert {repo["repo"] for repo in yaml.safe_load(CONFIG.read_text("utf-8"))["repos"]} == {"local"}
    assert {hook["language"] for hook in HOOKS.values()} == {"python"}
    assert all(hook["additional_dependencies"] for hook in HOOKS.values())


def test_ruff_is_that_of_the_lint_session() -> None:
    (ruff,) = [each for each in WORKSPACE["dependency-groups"]["lint"] if each.startswith("ruff")]
    assert [HOOKS[name]["additional_dependencies"] for name in ("ruff-check", "ruff-format")] == [[ruff], [ruff]]


def test_nox_is_that_of_the_noxfile() -> None:
    (nox,) = HOOKS["types"]["additional_dependencies"]
    assert f'nox>={nox.partition(">=")[2]}"]' in (ROOT / "noxfile.py").read_text("utf-8")
    assert HOOKS["types"]["entry"] == "nox -s types"


def in_repository(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PRE_COMMIT_HOME": str(folder.parent / "hooks")}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.network
def test_hooks_correct_a_messy_commit(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit", reason="pre-commit is not installed here (nox -s slow)")
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in (".pre-commit-config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "messy.py").write_text(MESSY, "utf-8")
    for command in ("init --quiet", "add --all"):
        assert in_repository(folder, "git", *command.split()).returncode == 0
    told = in_repository(folder, sys.executable, "-m", "pre_commit", "run", "--all-files")
    assert told.returncode == 1, told.stdout + told.stderr
    found = [line.rpartition("...")[2].strip(".") for line in told.stdout.splitlines() if "....." in line]
    assert found == ["Failed", "Failed"], told.stdout + told.stderr
    assert (folder / "messy.py").read_text("utf-8") != MESSY
