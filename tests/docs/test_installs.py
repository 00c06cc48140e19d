"""Each line of the pages that installs something can be resolved: the folders, the distributions and the extras."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from tests.docs.places import INSTALLS, run_by
from tests.workspace.project import MEMBERS, ROOT

T = TypeVar("T")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.skipif(shutil.which("uv") is None, reason="there is no uv to resolve with"),
]
PACKS = sorted(f"./{path.parent.relative_to(ROOT)}" for path in ROOT.glob("plugins/*/pyproject.toml"))
LINES = list(dict.fromkeys(piece.words for piece in run_by(INSTALLS)))


def uv(command: Sequence[str], given: str = "") -> str | None:
    """Run uv in the checkout; return what it complains of, or None."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        ["uv", *command], input=given, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    wrong = done.returncode or "does not have an extra" in done.stderr  # of which uv only warns
    return f"{command}\n{given}\n{done.stderr}" if wrong else None


def complaints(function: Callable[[T], str | None], given: Iterable[T]) -> list[str]:
    """What a function returns but for None; in several threads, for uv waits most of the time."""
    with ThreadPoolExecutor(4) as pool:
        return [found for found in pool.map(function, given) if found]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All distributions as wheels, which an index will have."""
    folder = tmp_path_factory.mktemp("wheels")
    examples = [path.parent for path in ROOT.glob("docs/examples/*/pyproject.toml")]
    folders = [*(member.path for member in MEMBERS), *examples]
    build = ("build", "--wheel", "--no-sources", "--out-dir", str(folder))
    assert complaints(lambda path: uv([*build, str(path)]), folders) == []
    return folder


def resolve(words: Sequence[str], wheels: Path) -> str | None:
    """Resolve what a line installs; return what is wrong with it, or None.

    A line that names folders gets no wheels, for pip would not find what it leaves out. Nothing is installed, and uv
    is not told of an environment, for it would let one line wait for the others.
    """
    given = list(words[2:])
    command = ["pip", "compile", "--no-sources", "--python", sys.executable, "-"]
    if "--find-links" in given:  # the folder that the line before it fills
        at = given.index("--find-links")
        del given[at : at + 2]
    if not any(word.startswith("./") for word in given):
        command += ["--find-links", str(wheels)]
    if "./plugins/*" in given:
        given[given.index("./plugins/*") :] = PACKS
    return uv(command, "\n".join(given))


def test_what_the_pages_install_can_be_resolved(wheels: Path) -> None:
    lines = [words for words in LINES if words[1] == "install"]
    assert len(lines) > len(MEMBERS)
    assert complaints(lambda words: resolve(words, wheels), lines) == []


@pytest.mark.parametrize("what", ["pegboard-ufo", "pegboard[ufo]", "./plugins/web"])
def test_what_cannot_be_installed_is_found(what: str, wheels: Path) -> None:
    """The last one leaves out the distributions of the checkout that it needs."""
    assert resolve(["pip", "install", what], wheels) is not None
