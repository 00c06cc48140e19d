"""What the page about installation says of the packs is so."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.workspace.project import MEMBERS, ROOT

# The heading of what holds after the first release.
LATER = "## From a package index"
DOCS = ROOT / "docs"
PAGE = (DOCS / "installation.md").read_text(encoding="utf-8")
FOLDERS = {f"./{member.path.relative_to(ROOT).as_posix()}": member for member in MEMBERS}
# What the pages' shell blocks install.
INSTALLS = [
    pytest.param(line, id=f"{path.relative_to(DOCS).as_posix()}: {line}")
    for path in sorted(DOCS.rglob("*.md"))
    if ".site" not in path.parts  # which `nox -s docs` builds
    for block in re.split("^```", path.read_text(encoding="utf-8").partition(LATER)[0], flags=re.MULTILINE)
    if block.startswith("sh\n") and "PIP_FIND_LINKS=" not in block  # which says where wheels are before a release
    for line in re.findall(r"^(?:\S*/)?pip install (.*)$", block, re.MULTILINE)
]


@pytest.mark.parametrize("line", INSTALLS)
def test_each_command_that_a_page_shows_works_before_there_is_a_release(line: str) -> None:
    """Distributions of this checkout are named as folders, with all that they need."""
    named = [re.sub(r"\[.*", "", each.strip("'\"")) for each in line.split()]
    if "--find-links" in named or "./plugins/*" in named:
        return
    assert [each for each in named if re.match("pegboard", each)] == []
    chosen = [FOLDERS[each] for each in named if each.startswith("./")]
    needed = {Requirement(each).name for member in chosen for each in member.project["dependencies"]}
    assert {member.name for member in MEMBERS} & needed <= {member.name for member in chosen}


def test_names_every_pack_that_another_one_needs() -> None:
    folders = {member.name: member.path.relative_to(ROOT).as_posix() for member in MEMBERS}
    needed = {
        (f"./{folders[member.name]}", f"./{folders[requirement.name]}")
        for member in MEMBERS
        for requirement in map(Requirement, member.project["dependencies"])
        if requirement.name in folders and requirement.name != "pegboard"
    }
    rows = [row.split("|") for row in PAGE.splitlines() if row.startswith("| `./")]
    named = [[re.findall(r"`(\./[\w/]+)`", cell) for cell in row[1:3]] for row in rows]
    assert {(pack, each) for packs, others in named for pack in packs for each in others} == needed


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(sys.platform == "win32", reason="the page's lines are for other shells")
def test_folders_of_a_checkout_can_be_installed(tmp_path: Path) -> None:
    """In a fresh environment, from the folders that the page names as optional."""
    named = re.search(r"Name the folders that you want[^`]+`([^`]+)`", PAGE)
    assert named
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / "bin"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PEGBOARD", "PYTHON"))}
    for command in (["pip", "install", "-q", *named[1].split()], ["pegboard", "doctor", "--strict"]):
        command[0] = str(scripts / command[0])
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
