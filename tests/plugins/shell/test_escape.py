"""Getting out of the sandbox by changing what a path leads to, between the look at it and its use.

Eight processes exchange places in the workspace for links, as commands that run in parallel could, while others run.
`PEGBOARD_ESCAPE_SECONDS` says for how long, 35 if it does not; Landlock, which has less to change, gets a fifth of it.
"""

import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Status
from pegboard_shell import ShellTools, _performing
from tests.plugins.shell.helpers import use_sandbox
from tests.support.thinning import first

SECONDS = float(os.environ.get("PEGBOARD_ESCAPE_SECONDS", "35"))
ROUND = 150.0
SECRET = "the-secret-outside"
# Exchanges two places, in both directions, until it is ended.
SWAPPER = """
import ctypes, sys
ctypes.CDLL(None).prctl(1, 9)  # it ends with its parent
exchange = ctypes.CDLL(None).renameat2
folder, one, other = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3].encode()
while True:
    exchange(folder, one, folder, other, 2)
"""
ATTEMPTS = """
cat id .git/id .git/hooks/id .git/config pegboard.toml pegboard.lock .venv/id
for place in . .git .git/hooks .git/id .venv; do echo out > $place/authorized_keys; done
echo out >> .git/config; echo out >> pegboard.toml; echo out >> id; mkdir .git/made .git/hooks/made
"""
"""What a command tries with whatever it finds at these places."""

Swap = tuple[str, str]


def swaps(space: Path, outside: Path) -> list[Swap]:
    """Places in the workspace, and the links that they are exchanged for."""
    return [
        (f"{space}/.git", str(outside)),
        (f"{space}/.git", f"../{outside.name}"),
        (f"{space}/.git", f"/oldroot{outside}"),
        (f"{space}/.git", f"/oldroot{outside}/empty"),
        (f"{space}/.git/hooks", str(outside)),
        (f"{space}/.git/config", f"{outside}/id"),
        (f"{space}/pegboard.toml", f"{outside}/id"),
        (str(space), str(outside)),
    ]


@contextmanager
def swapping(pairs: list[Swap]) -> Iterator[None]:
    """Exchange each place for a link, all of them at once."""
    swappers = []
    places: list[tuple[int, str, str]] = []
    try:
        for number, (place, leads_to) in enumerate(pairs):
            name, link = Path(place).name, f"link-{number}"
            (Path(place).parent / link).symlink_to(leads_to)
            # Where it stands is where it stays: it must not follow another one's link, and exchange what is outside.
            places.append((os.open(Path(place).parent, os.O_PATH), name, link))
        for folder, name, link in places:
            command = [sys.executable, "-c", SWAPPER, str(folder), name, link]
            swappers.append(subprocess.Popen(command, pass_fds=[folder]))
        yield
    finally:
        for swapper in swappers:
            swapper.kill()
            swapper.wait()
        for folder, *_ in places:
            os.close(folder)


def prepared(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace with everything that is protected, and a place outside that looks the same."""
    space, outside = tmp_path / "space", tmp_path / "outside"
    for folder in (space / ".git", outside):
        (folder / "hooks").mkdir(parents=True)
        (folder / "config").write_text("", encoding="utf-8")
    (outside / "empty").mkdir()
    (space / "pegboard.toml").write_text("", encoding="utf-8")
    for file in ("id", "hooks/id", "config"):
        (outside / file).write_text(SECRET, encoding="utf-8")
    return space, outside


def contents(folder: Path) -> dict[str, str]:
    """Everything below a folder."""
    files = sorted(folder.rglob("*"))
    return {str(path): path.read_text(encoding="utf-8") if path.is_file() else "" for path in files}


async def tried(tools: ShellTools, until: float, enough: float) -> tuple[list[str], int]:
    """Run the attempts, four at a time: what commands wrote, and how many of them were started; `enough` end it."""
    seen: list[str] = []
    started = 0

    async def again() -> None:
        nonlocal started
        while time.monotonic() < until and started < enough:
            result = await tools.execute_shell_command(ATTEMPTS, 30)
            assert result.status in (Status.SUCCESS, Status.ERROR), result.text
            seen.append(result.text)
            started += result.status is Status.SUCCESS

    await asyncio.gather(*(again() for _ in range(4)))
    return seen, started


def assert_nothing_got_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str, seconds: float, enough: float = math.inf
) -> None:
    use_sandbox(sandbox, monkeypatch)
    space, outside = prepared(tmp_path)
    before = contents(outside)
    tools = ShellTools(space, shell=True, sandbox="required")
    with swapping(swaps(space, outside)):
        seen, started = asyncio.run(tried(tools, time.monotonic() + seconds, enough))
    out = [text for text in seen if SECRET in text]
    print(f"{sandbox}: {len(seen)} commands, {started} of them started, {len(out)} read what is outside")
    assert not out, out[0]
    assert contents(outside) == before
    assert started


def rounds() -> list[tuple[str, float]]:
    """Sandboxes and seconds: in parts, since a test that takes too long counts as blocked."""
    parts = max(1, math.ceil(SECONDS / ROUND))
    return [("bubblewrap", SECONDS / parts)] * parts + [("landlock", min(SECONDS, ROUND) / 5)]


@pytest.mark.slow
@pytest.mark.parametrize(("sandbox", "seconds"), rounds())
def test_eight_swappers_get_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str, seconds: float
) -> None:
    assert_nothing_got_out(tmp_path, monkeypatch, sandbox, seconds)


@pytest.mark.parametrize("sandbox", first(1, ["landlock", "bubblewrap"]))
@pytest.mark.slow
def test_fifteen_commands_get_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str) -> None:
    assert_nothing_got_out(tmp_path, monkeypatch, sandbox, 60, enough=15)


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("number", range(8))
def test_place_that_became_a_link_after_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str, number: int
) -> None:
    use_sandbox(sandbox, monkeypatch)
    space, outside = prepared(tmp_path)
    before = contents(outside)
    begin = _performing._begun
    place, leads_to = swaps(space, outside)[number]

    def swap_and_begin(*arguments: Any) -> Any:
        Path(place).rename(f"{place}-was")
        Path(place).symlink_to(leads_to)
        return begin(*arguments)

    monkeypatch.setattr(_performing, "_begun", swap_and_begin)
    result = asyncio.run(ShellTools(space, shell=True, sandbox="required").execute_shell_command(ATTEMPTS))
    assert result.status in (Status.SUCCESS, Status.ERROR)
    assert SECRET not in result.text
    assert contents(outside) == before
