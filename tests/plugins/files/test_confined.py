"""The confinement for other packs: names of a directory, without links, without writing."""

import os
from pathlib import Path

import pytest

from pegboard import ToolError
from pegboard_files import ConfinedFolder, DeniedError, FolderNames, UnsuitableError
from tests.support.interpreters import printed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pack needs a POSIX system")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "base"
    (base / "sub" / "inner").mkdir(parents=True)
    (base / "sub" / "b.txt").write_text("b")
    (base / "a.txt").write_text("a")
    (base / ".env").write_text("secret")
    (base / ".git").mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    (base / "near").symlink_to("sub")
    (base / "near.txt").symlink_to("a.txt")
    (base / "far").symlink_to(tmp_path)
    os.mkfifo(base / "fifo")
    return base


def test_names_are_sorted_by_kind_and_denied_ones_left_out(base: Path) -> None:
    folder = ConfinedFolder(base)
    assert folder.names() == FolderNames(("sub",), ("a.txt",), ("far", "fifo", "near", "near.txt"))
    assert folder.names("sub") == FolderNames(("inner",), ("b.txt",), ())


def test_too_many_names_are_refused_with_their_number(base: Path) -> None:
    with pytest.raises(UnsuitableError, match="holds more than 3 names"):
        ConfinedFolder(base).names(most=3)


@pytest.mark.parametrize("path", ["near", "near/inner", "far", "..", "sub/../.."])
def test_no_link_leads_to_names(base: Path, path: str) -> None:
    with pytest.raises(ToolError):
        ConfinedFolder(base, links=False).names(path)


@pytest.mark.parametrize("path", ["near.txt", "near/b.txt", "far/outside.txt", "sub/../near.txt"])
def test_no_link_leads_to_a_file(base: Path, path: str) -> None:
    folder = ConfinedFolder(base, links=False)
    with pytest.raises(UnsuitableError, match="symbolic links") if "far" not in path else pytest.raises(ToolError):
        folder.read(path)
    with pytest.raises(ToolError):
        folder.write(path, b"changed")
    assert {path.name: path.read_text() for path in base.rglob("*.txt")} == {
        "a.txt": "a",
        "b.txt": "b",
        "near.txt": "a",
    }


def test_other_paths_lead_where_they_did(base: Path) -> None:
    folder = ConfinedFolder(base, links=False)
    assert folder.read("sub/../a.txt") == folder.read(f"{base}/./a.txt") == b"a"
    folder.write("new/c.txt", b"c")
    assert folder.read("new/c.txt") == b"c"
    assert ConfinedFolder(base).read("near/b.txt") == b"b"


def test_what_is_only_read_is_not_changed(base: Path) -> None:
    (base / ".pegboard-tmp-0").write_text("of a killed writer")
    folder = ConfinedFolder(base, read_only=True)
    with pytest.raises(DeniedError, match="only read"):
        folder.write("a.txt", b"changed")
    assert folder.read("a.txt") == b"a"
    assert (base / ".pegboard-tmp-0").exists()
    assert folder.names().files == ("a.txt",)


def test_loads_no_tools() -> None:
    code = (
        "import sys; from pegboard_files import ConfinedFolder; print([m for m in sys.modules if m.endswith('_tools')])"
    )
    assert printed(code) == "[]"
