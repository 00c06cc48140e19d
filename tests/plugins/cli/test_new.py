"""`pegboard new`: what it writes works as it is, for any name."""

import importlib.util
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard_cli._commands.new import Pack
from tests.plugins.cli.command import Outcome
from tests.workspace.project import ROOT

Run = Callable[..., Outcome]

NAMES = ["acme-dice", "acme-2", "x", "pegboard-zoo", f"acme-{'d' * 35}"]


def in_pack(folder: Path, *command: str) -> None:
    """Run a tool of this environment in the pack's folder; what it printed is in the error if it fails."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD")}
    environ |= {"PYTHONPATH": str(folder / "src"), "MYPY_CACHE_DIR": str(folder / ".mypy_cache")}
    environ["PEGBOARD_PLUGINS"] = "files"  # what a user has set for another program changes no test
    command_line = [sys.executable, "-m", *command]
    done = subprocess.run(command_line, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_writes_a_pack(here: Path, run: Run) -> None:
    made = run("new", "Acme_Dice")
    assert made.code == 0
    files = {path.relative_to(here / "acme-dice").as_posix() for path in here.rglob("*") if path.is_file()}
    assert files == {
        ".github/workflows/ci.yml",
        ".gitignore",
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "src/acme_dice/__init__.py",
        "src/acme_dice/py.typed",
        "tests/schemas/test_schemas.json",
        "tests/test_acme_dice.py",
    }
    assert [line for line in made.out.splitlines() if line][:-1] == sorted(f"acme-dice/{name}" for name in files)
    assert "pegboard call dice_repeat" in made.out


def test_as_data(here: Path, run: Run) -> None:
    made = run("new", "pegboard-zoo", "--into", "packs", "--json").data
    assert (made["folder"], made["module"], made["plugin"]) == ("packs/pegboard-zoo", "pegboard_zoo", "zoo")
    assert (here / "packs" / "pegboard-zoo" / "pyproject.toml").is_file()


def test_leaves_no_placeholder(here: Path, run: Run) -> None:
    run("new", "acme-dice")
    for path in (here / "acme-dice").rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8")
            assert "$" not in text.replace("${{ matrix.python }}", ""), path
    assert "${{ matrix.python }}" in (here / "acme-dice" / ".github" / "workflows" / "ci.yml").read_text()


def test_admits_the_core_that_it_was_written_with(here: Path, run: Run) -> None:
    run("new", "acme-dice")
    project = tomllib.loads((here / "acme-dice" / "pyproject.toml").read_text("utf-8"))["project"]
    ours = tomllib.loads((ROOT / "plugins" / "cli" / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["dependencies"]) <= set(ours["dependencies"])
    assert project["entry-points"] == {"pegboard": {"acme_dice": "acme_dice"}}


def test_overwrites_nothing(here: Path, run: Run) -> None:
    run("new", "acme-dice")
    module = here / "acme-dice" / "src" / "acme_dice" / "__init__.py"
    module.write_text("mine")
    refused = run("new", "acme-dice")
    assert refused.code == 1
    assert "acme-dice is there already" in refused.complaint
    assert module.read_text() == "mine"


@pytest.mark.parametrize("name", ["a b", "1st", "", "pegboard", "json", "class", "x" * 41, "../x", "ä"])
def test_refuses_names_that_python_or_installers_refuse(here: Path, run: Run, name: str) -> None:
    refused = run("new", "--", name)
    assert refused.code == 2
    assert "such as acme-dice" in refused.complaint
    assert list(here.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_passes_tests_and_checks_under_any_name(here: Path, run: Run, name: str) -> None:
    run("new", name)
    for tool in (["pytest", "-q"], ["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        if importlib.util.find_spec(tool[0]) is None:
            pytest.skip(f"{tool[0]} is not installed here")
        in_pack(here / Pack.named(name).distribution, *tool)


class Environment:
    """A fresh virtual environment."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")

    def run(self, program: str, *arguments: str, cwd: Path) -> str:
        """Run a program of the environment and return what it prints."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PEGBOARD", "PYTHON"))}
        command = [str(self.scripts / program), *arguments]
        done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def pip(self, *arguments: str, cwd: Path) -> None:
        """Run pip."""
        self.run("python", "-m", "pip", "--disable-pip-version-check", "-q", *arguments, cwd=cwd)


@pytest.mark.slow
@pytest.mark.network
def test_two_minutes_to_a_published_pack(tmp_path: Path) -> None:
    """From nothing to a wheel that works elsewhere, by the commands that the page shows."""
    wheels = tmp_path / "wheels"
    author = Environment(tmp_path / "author")
    author.pip(
        "wheel",
        "--no-deps",
        "--wheel-dir",
        str(wheels),
        *(str(ROOT / part) for part in ("core", "plugins/policy", "plugins/cli", "plugins/testing")),
        cwd=tmp_path,
    )
    found = ["--find-links", str(wheels)]
    author.pip("install", *found, "pegboard-cli", cwd=tmp_path)

    author.run("pegboard", "new", "acme-dice", cwd=tmp_path)
    pack = tmp_path / "acme-dice"
    assert (pack / ".github" / "workflows" / "ci.yml").is_file()
    author.pip("install", *found, "-e", ".[dev]", cwd=pack)
    author.run("pytest", "-q", cwd=pack)
    author.run("ruff", "check", ".", cwd=pack)
    author.run("mypy", cwd=pack)
    assert author.run("pegboard", "doctor", "--strict", cwd=pack) == "Nothing is wrong.\n"

    module, tests = pack / "src" / "acme_dice" / "__init__.py", pack / "tests" / "test_acme_dice.py"
    module.write_text(
        module.read_text("utf-8").replace('" ".join([text] * times)', '"-".join([text] * times)'), "utf-8"
    )
    tests.write_text(tests.read_text("utf-8").replace("ho ho ho", "ho-ho-ho"), "utf-8")
    author.run("pytest", "-q", cwd=pack)
    author.pip("wheel", "--no-deps", "--wheel-dir", str(wheels), ".", cwd=pack)

    user = Environment(tmp_path / "user")
    user.pip("install", *found, "acme-dice", "pegboard-cli", cwd=tmp_path)
    assert "dice_repeat" in user.run("pegboard", "tools", cwd=tmp_path)
    called = user.run("pegboard", "call", "dice_repeat", "--arg", "text=ho", "--arg", "times=2", cwd=tmp_path)
    assert called == "ho-ho\n"
    assert user.run("pegboard", "doctor", "--strict", cwd=tmp_path) == "Nothing is wrong.\n"


@pytest.mark.skipif(os.name == "nt", reason="needs links")
@pytest.mark.parametrize("there", [True, False])
def test_writes_nothing_through_a_link(here: Path, run: Run, there: bool) -> None:
    elsewhere = here / "elsewhere"
    if there:
        elsewhere.mkdir()
    (here / "acme-dice").symlink_to(elsewhere)
    refused = run("new", "acme-dice")
    assert (refused.code, "is a link" in refused.complaint) == (1, True)
    assert not elsewhere.exists() or not list(elsewhere.iterdir())
