"""What packs bring: what is read from the workspace, and what is measured in a folder."""

import subprocess
from pathlib import Path

import pytest

from tests.benchmarks import packs
from tests.workspace.project import CORE, PACKS, Member, each_pack


@each_pack
def test_what_a_pack_needs_of_the_workspace_comes_before_it(pack: Member) -> None:
    found = packs.members(pack)
    assert (found[0], found[-1]) == (CORE, pack)
    for number, member in enumerate(found):
        needed = {each.name for each in packs.members(member)}
        assert needed <= {each.name for each in found[: number + 1]}


def test_a_library_of_a_library_is_needed() -> None:
    (ray,) = (pack for pack in PACKS if pack.path.name == "ray")
    assert [each.path.name for each in packs.members(ray)] == ["core", "process", "ray"]


def test_size_is_that_of_files_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_bytes(b"#" * 250_000)
    (tmp_path / "b.py").write_bytes(b"#" * 750_000)
    assert packs.size(tmp_path) == 1.0


def test_only_the_statement_is_timed(tmp_path: Path) -> None:
    (tmp_path / "clock.py").write_text("ticks = iter([1.0, 3.5])", encoding="utf-8")
    before = "from clock import ticks; time.process_time = lambda: next(ticks)"
    assert packs.milliseconds(tmp_path, before, "pass", 1) == 2500


def test_what_is_not_in_the_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        packs.milliseconds(tmp_path, "", "import attrs", 1)
