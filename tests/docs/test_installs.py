"""Each line of the pages that installs something can be resolved: the folders, the distributions and the extras."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.places import INSTALLS, run_by
from tests.workspace.project import MEMBERS, ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.skipif(shutil.which("uv") is None, reason="there is no uv to resolve with"),
]
PACKS = sorted(f"./{path.parent.relative_to(ROOT)}" for path in ROOT.glob("plugins/*/pyproject.toml"))
LINES = list(dict.fromkeys(piece.words for piece in run_by(INSTALLS)))


def uv(*arguments: str) -> str | None:
    """Run uv in the checkout; return what it complains of, or None."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(["uv", *arguments], cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    wrong = done.returncode or "does not have an extra" in done.stderr  # of which uv only warns
    return f"{arguments}\n{done.stderr}" if wrong else None


def complaints(lines: Iterable[Sequence[str]]) -> list[str]:
    """What is wrong with commands of uv; they run side by side, for they wait most of the time."""
    with ThreadPoolExecutor(4) as pool:
        return [found for found in pool.map(lambda line: uv(*line), lines) if found]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All distributions as wheels, which an index will have, and an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("wheels")
    examples = [path.parent for path in ROOT.glob("docs/examples/*/pyproject.toml")]
    assert uv("venv", "--python", sys.executable, str(folder / "empty")) is None
    folders = [*(member.path for member in MEMBERS), *examples]
    assert (
        complaints(("build", "--wheel", "--no-sources", "--out-dir", str(folder), str(each)) for each in folders) == []
    )
    return folder


def resolving(words: Sequence[str], wheels: Path) -> list[str]:
    """The command of uv that resolves what a line installs and installs nothing.

    A line that names folders gets no wheels, for pip would not find what it leaves out.
    """
    given = list(words[2:])
    if "--find-links" in given:  # the folder that the line before it fills
        given[given.index("--find-links") + 1] = str(wheels)
    elif not any(word.startswith("./") for word in given):
        given += ["--find-links", str(wheels)]
    if "./plugins/*" in given:
        given[given.index("./plugins/*") :] = PACKS
    return ["pip", "install", "--dry-run", "--no-sources", "--python", str(wheels / "empty"), *given]


def test_what_the_pages_install_can_be_resolved(wheels: Path) -> None:
    lines = [resolving(words, wheels) for words in LINES if words[1] == "install"]
    assert len(lines) > len(MEMBERS)
    assert complaints(lines) == []


@pytest.mark.parametrize("what", ["pegboard-ufo", "pegboard[ufo]", "./plugins/web"])
def test_what_cannot_be_installed_is_found(what: str, wheels: Path) -> None:
    """The last one leaves out the distributions of the checkout that it needs."""
    assert complaints([resolving(["pip", "install", what], wheels)]) != []
