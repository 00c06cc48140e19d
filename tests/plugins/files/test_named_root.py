"""The engine of Windows, as far as it can be tried elsewhere: names that are refused, and where opened files are."""

import os
import sys
from pathlib import Path

import pytest

from pegboard_files import FileToolError, FileTools, OutsideError, UnsuitableError, _tools
from pegboard_files._directory import named_root as _named_root
from pegboard_files._directory.folder import Rules
from pegboard_files._directory.named_root import NamedRoot
from pegboard_files._directory.names import Denied
from tests.plugins.files.conftest import names_in

pytestmark = pytest.mark.skipif(sys.platform not in ("linux", "win32"), reason="nothing tells where an open file is")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("outside")
    (tmp_path / "base" / "docs").mkdir(parents=True)
    (tmp_path / "base" / "docs" / "a.txt").write_text("inside\n")
    return tmp_path / "base"


@pytest.fixture
def tools(base: Path, monkeypatch: pytest.MonkeyPatch) -> FileTools:
    monkeypatch.setattr(_tools, "open_root", NamedRoot)
    return FileTools(base)


def test_is_taken_where_files_cannot_be_opened_relative_to_a_directory(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = Rules(Denied(()))
    assert not isinstance(_named_root.open_root(str(base), rules), NamedRoot) or os.name == "nt"
    monkeypatch.setattr(os, "supports_dir_fd", set())
    assert isinstance(_named_root.open_root(str(base), rules), NamedRoot)


def test_all_tools_work(tools: FileTools, base: Path) -> None:
    assert tools.view_text_file("docs/a.txt").endswith("1: inside")
    assert tools.view_text_file(str(base / "docs" / "a.txt")).endswith("1: inside")
    tools.write_text_file("new/b.txt", "one\ntwo\n")
    tools.insert_text_file("new/b.txt", "zero", 1)
    tools.edit_text_file("new/b.txt", "two", "2")
    tools.write_text_file("new/b.txt", "1", "2,2")
    assert (base / "new" / "b.txt").read_text() == "zero\n1\n2\n"
    assert names_in(base / "new") == ["b.txt"]
    assert tools.list_directory("new").text == "new: 1 entry\nb.txt (9 bytes)"
    assert tools.find_files("*.txt").data["files"] == ["docs/a.txt", "new/b.txt"]
    assert [match["line"] for match in tools.search_text("2").data["matches"]] == [3]


@pytest.mark.parametrize(
    "name",
    [
        "CON",
        "con.txt",
        "NUL .txt",
        "aux",
        "COM1",
        "lpt9.log",
        "COM\u00b2",
        "CONOUT$",
        "a:b",
        "a.txt::$DATA",
        "C:",
        "a?",
        "a*",
        "a<b",
        'a"b',
        "a|b",
        "trailing.",
        "trailing ",
        "PROGRA~1",
        "a\x01b",
    ],
)
def test_names_that_mean_something_else_there(tools: FileTools, base: Path, name: str) -> None:
    for path in (name, f"docs/{name}", f"{name}/a.txt"):
        with pytest.raises(UnsuitableError):
            tools.view_text_file(path)
        with pytest.raises(UnsuitableError):
            tools.write_text_file(path, "x")
    assert names_in(base) == ["docs"]


@pytest.mark.parametrize("name", ["console", "com10.txt", "nul1", "a.b.c", ".hidden", "a~b", "community"])
def test_names_that_only_look_so(tools: FileTools, name: str) -> None:
    tools.write_text_file(name, "x")
    assert tools.view_text_file(name).endswith("1: x")


@pytest.mark.parametrize(
    "path", ["..", "../outside/a.txt", "docs/../../outside/a.txt", "//server/share", "/etc/passwd"]
)
def test_outside(tools: FileTools, path: str) -> None:
    with pytest.raises(OutsideError):
        tools.view_text_file(path)
    with pytest.raises(FileToolError):
        tools.write_text_file(path, "x")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_link_that_leads_outside(tools: FileTools, base: Path) -> None:
    (base / "out").symlink_to("../outside")
    (base / "file").symlink_to("../outside/a.txt")
    (base / "docs" / "again").symlink_to("a.txt")
    assert tools.view_text_file("docs/again").endswith("1: inside")
    for path in ("out/a.txt", "file"):
        for act in (tools.view_text_file, lambda path: tools.write_text_file(path, "x")):
            with pytest.raises(OutsideError):
                act(path)
    # Writing follows no links at all: nothing tells there where a link leads while it is followed.
    with pytest.raises(OutsideError):
        tools.write_text_file("docs/again", "x")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_members_of_an_open_directory_are_no_links(tools: FileTools, base: Path) -> None:
    """A junction of Windows looks like a directory until it is opened."""
    (base / "out").symlink_to("../outside")
    (base / "file").symlink_to("../outside/a.txt")
    with tools._root.folder(".") as folder:
        for enter in (folder.folder("out"), folder.file("file")):
            with pytest.raises(OSError, match="cross-device"), enter:
                pytest.fail("it was opened")


def test_base_must_be_a_directory(base: Path) -> None:
    with pytest.raises(NotADirectoryError):
        NamedRoot(str(base / "docs" / "a.txt"))
    with pytest.raises(FileNotFoundError):
        NamedRoot(str(base / "missing"))
