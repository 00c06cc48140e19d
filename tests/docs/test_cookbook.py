"""Every program of the cookbook can be pasted, run by the command of its page, and prints what the page shows."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.page import Page
from tests.workspace.project import ROOT

COOKBOOK = ROOT / "docs" / "cookbook"
RECIPES = [path for path in sorted(COOKBOOK.glob("*.md")) if path.stem != "index"]
# What runs in the process of the tests too, and takes less than a third of a second there.
QUICK = ("database", "long-job", "two-providers", "web-search")


class Recipe(NamedTuple):
    """A program, how it is run, and what it prints."""

    program: str
    command: list[str]
    output: str


def recipe(path: Path) -> Recipe:
    """Read a page: one program, then the command that runs it, then what it prints."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks[-3:]] == ["python", "sh", "text"]
    assert [language for language, _ in blocks].count("python") == 1
    program, command, output = (text for _, text in blocks[-3:])
    return Recipe(program, command.split(), output)


def test_index_names_the_thirteen() -> None:
    named = re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\) \|", (COOKBOOK / "index.md").read_text("utf-8"), re.MULTILINE)
    assert len(named) == 13
    assert sorted(named) == [path.name for path in RECIPES]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_page_begins_with_what_it_does_and_how_to_install_it(path: Path) -> None:
    title, does, install = path.read_text(encoding="utf-8").split("\n\n")[:3]
    assert title.startswith("# ")
    assert does.endswith(".")
    lines = re.fullmatch(
        r"```sh\n# In a checkout. Once there is a release: pip install (.+)\npip install (.+)\n```", install
    )
    assert lines
    later, now = lines[1].split(), lines[2].split()
    assert {f"./plugins/{name.removeprefix('pegboard-')}" for name in later if "pegboard-" in name} <= set(now)
    assert [name for name in now if "./" not in name] == [name for name in later if not name.startswith("pegboard")]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_page_says_where_the_program_goes(path: Path) -> None:
    assert f"Save it as `{recipe(path).command[-1]}`" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUICK)
def test_prints_what_its_page_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Page(COOKBOOK / f"{name}.md").run() == 2


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_pasted_into_a_file_it_runs(path: Path, tmp_path: Path) -> None:
    program, (command, *arguments), output = recipe(path)
    (tmp_path / arguments[-1]).write_text(program, encoding="utf-8")
    module = ["-m", "pytest"] if command == "pytest" else []
    run = [sys.executable, "-W", "error", *module, *arguments]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, check=False, encoding="utf-8", timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    if module:
        assert output.strip() in done.stdout
    else:
        assert done.stdout == output
