"""A process swaps a directory, or a file, with a link that leads outside, as fast as the kernel can."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from pegboard_files import FileToolError, FileTools
from tests.plugins.files.conftest import CONFINED, Make
from tests.support.thinning import one_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux swaps two names in one call")

SECRET, INSIDE = "secret", "inside"
SWAPPER = Path(__file__).with_name("swapper.py")
# What is swapped, with what, and where that leads.
SWAPS = {
    "directory": ("docs", "link", "../outside"),
    "file": ("docs/a.txt", "docs/link", "../../outside/a.txt"),
    "parent": ("docs/deep", "docs/link", "../../outside"),
}


@contextmanager
def swapping(root: Path, swap: str) -> Iterator[None]:
    place, link, target = SWAPS[swap]
    if not os.path.lexists(root / link):
        (root / link).symlink_to(target)
    command = [sys.executable, str(SWAPPER), str(root / place), str(root / link), target]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout
        assert swapper.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            swapper.kill()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("outside", "root/docs", "root/docs/deep"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.txt").write_text(SECRET if folder == "outside" else INSIDE)
    (tmp_path / "outside" / "a.txt").chmod(0o600)
    return tmp_path / "root"


def read(tools: FileTools, path: str) -> str:
    """The last line: before it stands what a change inserted whose second half was refused."""
    return tools.view_text_file(path).rpartition(": ")[2]


def look_around(tools: FileTools, path: str) -> str:
    return tools.search_text(SECRET, "docs").text + tools.find_files("**").text + tools.list_directory("docs").text


def write(tools: FileTools, path: str) -> str:
    tools.write_text_file(path, INSIDE)
    return "written"


def change(tools: FileTools, path: str) -> str:
    """Changes read what was there, so they could bring a secret in."""
    shown = tools.insert_text_file(path, "one line", 1).text + tools.edit_text_file(path, "one line\n", "").text
    return SECRET if SECRET in shown else "written"


Act: TypeAlias = Callable[[FileTools, str], str]


def attempt(act: Act, tools: FileTools, path: str) -> str:
    """What an act says, or the name of its refusal."""
    try:
        outcome = act(tools, path)
    except FileToolError as refusal:
        outcome = type(refusal).__name__
    assert f" {SECRET}" not in outcome
    assert outcome != SECRET
    return "looked around" if act is look_around else outcome


def check(tools: FileTools, root: Path, swap: str, reads: int, writes: int) -> Counter[str]:
    """So many reads and writes: none of them gets anything from outside or puts anything there."""
    outcomes: Counter[str] = Counter()
    path = "docs/deep/a.txt" if swap == "parent" else "docs/a.txt"
    with swapping(root, swap):
        for number in range(reads):
            outcomes[attempt(look_around if number % 50 == 0 else read, tools, path)] += 1
        for number in range(writes):
            outcomes[attempt(change if number % 2 else write, tools, path)] += 1
            if number % 100 == 0:
                assert outside(root) == {"a.txt": SECRET}
    assert outside(root) == {"a.txt": SECRET}
    known = {INSIDE, "written", "looked around", "OutsideError", "MissingError", "UnsuitableError", "ChangedError"}
    assert set(outcomes) <= known | {"RangeError"}
    return outcomes


def outside(root: Path) -> dict[str, str]:
    return {entry.name: entry.read_text() for entry in (root.parent / "outside").iterdir()}


@pytest.mark.parametrize("engine", sorted(CONFINED))
@pytest.mark.parametrize("swap", one_in(2, SWAPS))
def test_nothing_outside_is_reached(swap: str, engine: str, root: Path, make: Make) -> None:
    outcomes: Counter[str] = Counter()
    for _ in range(50):
        outcomes += check(make(root), root, swap, 1_000, 200)
        # Both have had their turns: where one processor is shared, the swapper may sleep for a while.
        if outcomes[INSIDE] and outcomes["written"] and outcomes["OutsideError"]:
            return
    pytest.fail(f"there was no race: {outcomes}")


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(CONFINED))
@pytest.mark.parametrize("swap", SWAPS)
def test_nothing_outside_is_reached_in_120_000_attempts(swap: str, engine: str, root: Path, make: Make) -> None:
    start = time.monotonic()
    outcomes = check(make(root), root, swap, 100_000, 20_000)
    print(f"{swap}, {engine}: {dict(outcomes)} in {time.monotonic() - start:.0f} s")
    assert outcomes["written"] > 10
    # The race was on: some attempts met the link, others what is inside.
    assert outcomes["OutsideError"] > 100
    assert outcomes[INSIDE] > 100
