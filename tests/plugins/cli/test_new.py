"""`pegboard new`: what it writes works as it is, for any name."""

import importlib.util
import os
import re
import shutil
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
    assert [line for line in made.out.splitlines() if line][:-2] == sorted(f"acme-dice/{name}" for name in files)
    assert "pegboard call dice_repeat" in made.out
    assert "put your own tool into acme-dice/src/acme_dice/__init__.py" in made.out


def test_as_data(here: Path, run: Run) -> None:
    made = run("new", "pegboard-zoo", "--into", "packs", "--json").data
    assert (made["folder"], made["module"], made["plugin"]) == ("packs/pegboard-zoo", "pegboard_zoo", "zoo")
    assert (here / "packs" / "pegboard-zoo" / "pyproject.toml").is_file()


def test_leaves_no_placeholder(here: Path, run: Run) -> None:
    run("new", "acme-dice")
    for path in (here / "acme-dice").rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8")
            assert "$" not in text.replace("${{ matrix.python }}", "").replace(']+$"', ""), path
    assert "${{ matrix.python }}" in (here / "acme-dice" / ".github" / "workflows" / "ci.yml").read_text()


def test_admits_the_core_that_it_was_written_with(here: Path, run: Run) -> None:
    run("new", "acme-dice")
    project = tomllib.loads((here / "acme-dice" / "pyproject.toml").read_text("utf-8"))["project"]
    ours = tomllib.loads((ROOT / "plugins" / "cli" / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["dependencies"]) <= set(ours["dependencies"])
    # What the folder needs of the index is what it is written with.
    assert {each for each in project["optional-dependencies"]["dev"] if each.startswith("pegboard-cli")} == {
        f"pegboard-cli[diff]>={ours['version'].rpartition('.')[0]},<0.2"
    }
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


WRITING = ROOT / "docs" / "writing-a-pack.md"
WRITTEN = ["core", "plugins/policy", "plugins/schemas", "plugins/cli", "plugins/testing"]


class Environment:
    """A fresh virtual environment, with a folder of wheels before the index."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        venv.create(folder, with_pip=True)
        self.scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PEGBOARD", "PYTHON"))}
        # With no Python but its own, for `pegboard test-pack` would try all of the machine.
        path = os.pathsep.join([str(self.scripts), "/usr/bin", "/bin"])
        self.environ = {**inherited, "PATH": path, "PYENV_ROOT": str(folder), "PIP_FIND_LINKS": str(wheels)}

    def run(self, program: str, *arguments: str, cwd: Path) -> str:
        """Run a program of the environment and return what it prints."""
        command = [str(self.scripts / program), *arguments]
        return self._run(command, cwd)

    def pip(self, *arguments: str, cwd: Path) -> None:
        """Run pip."""
        self.run("python", "-m", "pip", "--disable-pip-version-check", "-q", *arguments, cwd=cwd)

    def shell(self, commands: str, cwd: Path) -> str:
        """Run commands as a reader of a page does."""
        return self._run(["bash", "-e", "-c", commands], cwd)

    def _run(self, command: list[str], cwd: Path) -> str:
        done = subprocess.run(command, cwd=cwd, env=self.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


def later_core(folder: Path) -> Path:
    """The core as its next release, so that there are two to try a pack with."""
    shutil.copytree(ROOT / "core", folder, ignore=shutil.ignore_patterns("__pycache__"))
    project = folder / "pyproject.toml"
    project.write_text(project.read_text("utf-8").replace('version = "0.1.0"', 'version = "0.1.1"'), "utf-8")
    return folder


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def commands(block: str) -> set[str]:
    """The lines of a block of commands, without comments."""
    return {line.partition("  #")[0].strip() for line in block.splitlines()}


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(os.name == "nt", reason="needs bash")
def test_from_an_empty_folder_to_a_published_pack(tmp_path: Path) -> None:
    """By the commands and the code of the page, then by the commands of the README that is written, in their order."""
    wheels = tmp_path / "wheels"
    author = Environment(tmp_path / "author", wheels)
    for sources in ([ROOT / part for part in WRITTEN], [later_core(tmp_path / "core")]):
        author.pip("wheel", "--no-deps", "--wheel-dir", str(wheels), *map(str, sources), cwd=tmp_path)

    first, second = (each.replace("~/pegboard/dist", str(wheels)) for each in blocks(WRITING, "sh"))
    tool, test = blocks(WRITING, "py")
    tool = tool.partition("# what is there stays\n\n")[2]
    assert author.shell(first, tmp_path).endswith("\nho ho ho\n")
    pack = tmp_path / "acme-dice"
    module, tests = pack / "src" / "acme_dice" / "__init__.py", pack / "tests" / "test_acme_dice.py"
    module.write_text(module.read_text("utf-8").replace("\n\n@pegboard.hookimpl", f"\n{tool}\n\n@pegboard.hookimpl", 1))
    tests.write_text(f"{tests.read_text('utf-8')}\n\n{test}", "utf-8")
    activated = f". {tmp_path / '.venv' / 'bin' / 'activate'}\n"
    printed = author.shell(activated + second, pack)
    assert "Nothing is wrong.\n" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith("3.")]
    assert {tuple(row[1:5]) for row in rows} == {(core, "passed", "passed", "passed") for core in ("0.1.0", "0.1.1")}

    readme = pack / "README.md"
    install, call, checks, lock = blocks(readme, "sh")
    assert commands(checks) <= commands(first) | commands(second)
    assert author.shell(activated + install + call, pack).endswith("ho ho ho\n")
    assert author.shell(activated + lock, pack).endswith("No tool has changed.\n")
    assert author.shell(f"{activated}python - <<'E'\n{''.join(blocks(readme, 'python'))}E\n", tmp_path) == "ho ho ho\n"

    author.pip("wheel", "--no-deps", "--wheel-dir", str(wheels), ".", cwd=pack)

    user = Environment(tmp_path / "user", wheels)
    user.pip("install", "acme-dice", "pegboard-cli", cwd=tmp_path)
    assert "dice_average" in user.run("pegboard", "tools", cwd=tmp_path)
    assert user.run("pegboard", "call", "dice_average", "--arg", "dice=2", cwd=tmp_path) == "7.0\n"
    assert user.run("pegboard", "doctor", "--strict", cwd=tmp_path) == "Nothing is wrong.\n"


def test_names_only_commands_that_there_are(here: Path, run: Run) -> None:
    run("new", "acme-dice")
    pack = here / "acme-dice"
    written = "\n".join(blocks(pack / "README.md", "sh")) + (pack / ".github" / "workflows" / "ci.yml").read_text(
        "utf-8"
    )
    lines = re.findall(r"\bpegboard ((?:[a-z-]+)(?: --?[a-z-]+(?:=\S+)?| [\w.,=]+)*)", written)
    assert len(lines) >= 7
    for line in lines:
        # `--help` is answered once the rest of the line is understood.
        told = run(*line.split(), "--help")
        assert (told.code, told.out.startswith(f"Usage: pegboard {line.split()[0]}")) == (0, True), told.err


def test_workflow_does_what_the_page_says(here: Path, run: Run) -> None:
    yaml = pytest.importorskip("yaml")
    run("new", "acme-dice")
    jobs = yaml.safe_load((here / "acme-dice" / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
    commands = {name: [step.get("run", step.get("uses", "")) for step in job["steps"]] for name, job in jobs.items()}
    assert "pegboard test-pack --core lowest,newest --python 3.11,3.13" in commands["test-pack"]
    assert (jobs["build"]["needs"], jobs["publish"]["needs"]) == (["test", "test-pack"], "build")
    assert jobs["publish"]["permissions"] == {"attestations": "write", "contents": "read", "id-token": "write"}
    assert [each.partition("@")[0] for each in commands["publish"]][1:] == [
        "actions/attest",
        "pypa/gh-action-pypi-publish",
    ]


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
