"""A million random paths, and files that would not fit into memory."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import ToolResult
from pegboard_files import FileTools, RangeError, UnsuitableError
from pegboard_files._directory.folder import Rules
from pegboard_files._directory.names import Denied
from pegboard_files._text import lines as _lines
from tests.plugins.files import hostile
from tests.plugins.files.conftest import CONFINED, names_in
from tests.support.measuring import paces

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the traps are those of POSIX systems")

NAMES = ["..", "docs", "deep", "self", "a.txt"] * 5 + sorted(
    {part for link in hostile.LINKS for part in link.split("/")}
    | {"..", ".", "", "docs", "deep", "a.txt", "b.txt", "outside", "secret", "sub", "root", "root2"}
    | {"fifo", "socket", ".git", "config", ".env", "etc", "passwd", "missing", "~", "\\", "a.txt ", "\u4e2d", "\udcff"}
)


def wander(engine: str, parent: Path, paths: int, seed: int) -> tuple[int, int]:
    """Open random paths; how many were opened, and how many of these were outside or denied."""
    root = hostile.build(parent)
    allowed = {(path.lstat().st_dev, path.lstat().st_ino) for path in root.rglob("*") if ".git" not in path.parts}
    secrets = {(path.stat().st_dev, path.stat().st_ino) for path in root.rglob("*") if denied(path)}
    confined = CONFINED[engine](str(root), Rules(Denied([".git/**", ".env*"])))
    choose = random.Random(seed)
    opened = escaped = 0
    for _ in range(paths):
        path = "/".join(choose.choices(NAMES, k=choose.randint(1, 7)))
        try:
            with confined.file(path) as file:
                opened += 1
                found = (file.status.st_dev, file.status.st_ino)
                escaped += found not in allowed or found in secrets
        except OSError:
            continue
    return opened, escaped


def denied(path: Path) -> bool:
    return not path.is_symlink() and path.is_file() and (path.name.lower().startswith(".env") or ".git" in path.parts)


@pytest.mark.parametrize("engine", sorted(CONFINED))
def test_random_paths_stay_inside(engine: str, tmp_path: Path) -> None:
    opened, escaped = wander(engine, tmp_path, 10_000, 1)
    assert opened > 50
    assert escaped == 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(CONFINED))
def test_million_random_paths_stay_inside(engine: str, tmp_path: Path) -> None:
    start = time.monotonic()
    opened, escaped = wander(engine, tmp_path, 1_000_000, 2)
    print(f"{engine}: 1,000,000 paths, {opened:,} opened, {escaped} escaped in {time.monotonic() - start:.0f} s")
    assert opened > 5_000
    assert escaped == 0


SPARSE: dict[str, Callable[[FileTools], str | ToolResult]] = {
    "view": lambda tools: tools.view_text_file("huge"),
    "view the first": lambda tools: tools.view_text_file("huge", "1,1"),
    "view the last": lambda tools: tools.view_text_file("huge", "-1,-1"),
    "replace lines": lambda tools: tools.write_text_file("huge", "x", "1,1"),
    "insert": lambda tools: tools.insert_text_file("huge", "x", 1),
    "edit": lambda tools: tools.edit_text_file("huge", "x", "y"),
    "edit with version": lambda tools: tools.edit_text_file("huge", "x", "y", version="12345678"),
}


@pytest.mark.parametrize("use", SPARSE)
def test_terabyte_without_lines_is_refused(use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No caller waits until all of it has been read, or copied."""
    monkeypatch.setattr(_lines, "_MAX_SCAN", 1 << 24)
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 40)

    def refuse() -> None:
        with pytest.raises((RangeError, UnsuitableError)):
            SPARSE[use](FileTools(tmp_path))

    # A terabyte is 100,000 at least.
    assert paces(refuse, most=5_000) < 5_000
    assert names_in(tmp_path) == ["huge"]


@pytest.mark.slow
def test_millions_of_empty_lines_are_not_all_shown(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"\n" * 9_000_000)
    tools, small = FileTools(tmp_path), FileTools(tmp_path, max_bytes=1_000_000)
    for ranges in (None, "1,9000000", "-600000,-1"):
        with pytest.raises(RangeError, match="at most 500,000"):
            tools.view_text_file("empty", ranges)
        with pytest.raises(RangeError, match="at most 500,000" if ranges == "-600000,-1" else "bytes"):
            small.view_text_file("empty", ranges)
    assert tools.view_text_file("empty", "9000000,9000000").endswith("\n9000000: ")


MEASURE = """
import json, resource, sys
from pegboard_files import FileTools

def read_so_far():
    with open("/proc/self/io") as counters:
        return int(counters.readline().split()[1])

tools = FileTools(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read = read_so_far()
lines = tools.view_text_file("huge", "-50,-1").split("\\n")
print(json.dumps({
    "lines": lines,
    "bytes": read_so_far() - read,
    "grown": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes that a process reads")
def test_end_of_a_gigabyte_is_viewed_in_little_memory(tmp_path: Path) -> None:
    block = b"".join(b"line %07d of the log, with some text behind it\n" % number for number in range(20_000))
    with (tmp_path / "huge").open("wb") as file:
        while file.tell() < 1_000_000_000:
            file.write(block)
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, check=True, text=True, timeout=300
    )
    measured = json.loads(run.stdout)
    header, *lines = measured.pop("lines")
    print(f"{header}: {measured}")
    assert [line.split(": ")[1] for line in lines] == block.decode().splitlines()[-50:]
    assert measured["bytes"] < 1_000_000
    assert measured["grown"] < 5_000  # KiB; what the interpreter itself takes depends on the system
