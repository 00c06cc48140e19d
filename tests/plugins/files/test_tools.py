"""What the model reads when it views files and lists directories."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import ToolError
from pegboard_files import FileTools
from pegboard_files._text import views as _views

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pack needs a POSIX system")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "base"
    base.mkdir()
    return base


@pytest.fixture
def tools(base: Path) -> FileTools:
    return FileTools(base, read_only=True, max_bytes=1_000)


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        action()
    return str(caught.value)


class TestView:
    @pytest.fixture(autouse=True)
    def notes(self, base: Path) -> None:
        (base / "notes.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))

    def test_whole_file(self, base: Path, tools: FileTools) -> None:
        (base / "short.txt").write_text("one\ntwo")
        assert tools.view_text_file("short.txt") == "short.txt: lines 1-2 of 2\n1: one\n2: two"

    @pytest.mark.parametrize("ranges", ["2,3", "[2,3]", [2, 3], "-9,-8", "2,-8"])
    def test_range(self, tools: FileTools, ranges: str | list[int]) -> None:
        assert tools.view_text_file("notes.txt", ranges) == "notes.txt: lines 2-3 of 10\n2: line 2\n3: line 3"

    def test_one_line(self, tools: FileTools) -> None:
        assert tools.view_text_file("notes.txt", "10,100") == "notes.txt: line 10 of 10\n10: line 10"

    @pytest.mark.parametrize("ranges", ["1,100", "-50,-1", "-50,100"])
    def test_range_is_cut_to_the_file(self, tools: FileTools, ranges: str) -> None:
        assert tools.view_text_file("notes.txt", ranges) == tools.view_text_file("notes.txt")

    @pytest.mark.parametrize("ranges", ["11,20", "-50,-20", "8,-5", "-2,3"])
    def test_range_without_lines_says_how_many_there_are(self, tools: FileTools, ranges: str) -> None:
        assert refusal(lambda: tools.view_text_file("notes.txt", ranges)) == (
            f"Lines {ranges} do not exist: the file has 10 lines."
        )

    def test_end_of_a_large_file_is_counted_from_the_end(self, base: Path, tools: FileTools) -> None:
        (base / "log").write_text("".join(f"entry {number}\n" for number in range(1_000)))
        assert tools.view_text_file("log", "-2,-1") == (
            "log: lines -2 to -1, counted from the end\n-2: entry 998\n-1: entry 999"
        )

    def test_start_of_a_large_file(self, base: Path, tools: FileTools) -> None:
        (base / "log").write_text("".join(f"entry {number}\n" for number in range(1_000)))
        header, *lines = tools.view_text_file("log", "2,3").split("\n")
        assert header == "log: lines 2-3 of a large file that was not counted to the end"
        assert lines == ["2: entry 1", "3: entry 2"]

    def test_large_file_without_ranges_is_refused_with_the_remedy(self, base: Path, tools: FileTools) -> None:
        (base / "log").write_text("x\n" * 1_000)
        message = refusal(lambda: tools.view_text_file("log"))
        assert "2,000 bytes" in message
        assert '"-100,-1"' in message

    def test_empty_file(self, base: Path, tools: FileTools) -> None:
        (base / "empty").touch()
        assert tools.view_text_file("empty", "1,5") == "empty: the file is empty (0 lines)."

    def test_byte_order_mark_is_mentioned_and_not_shown(self, base: Path, tools: FileTools) -> None:
        (base / "bom").write_bytes("\ufeffone\ntwo\n".encode())
        assert tools.view_text_file("bom") == (
            "bom: lines 1-2 of 2; the byte order mark at the start is not shown\n1: one\n2: two"
        )
        assert tools.view_text_file("bom", "2,2") == "bom: line 2 of 2\n2: two"

    def test_bytes_that_are_no_utf8_are_marked(self, base: Path, tools: FileTools) -> None:
        (base / "latin").write_bytes(b"caf\xe9\n\xe4\xb8\xad\xff\n")
        assert tools.view_text_file("latin") == (
            "latin: lines 1-2 of 2; bytes that are not UTF-8 are shown as <FF>: 2\n1: caf<E9>\n2: \u4e2d<FF>"
        )

    @pytest.mark.parametrize(
        ("content", "reason"),
        [(b"\x7fELF\0\0", "binary"), ("text".encode("utf-16"), "UTF-16"), ("\u4e2d\u6587".encode("utf-16"), "UTF-16")],
    )
    def test_other_content_is_refused(self, base: Path, tools: FileTools, content: bytes, reason: str) -> None:
        (base / "blob").write_bytes(content)
        assert reason in refusal(lambda: tools.view_text_file("blob"))

    def test_line_ends_are_mentioned_and_not_shown(self, base: Path, tools: FileTools) -> None:
        (base / "dos").write_bytes(b"a\r\nb\r\n")
        (base / "mixed").write_bytes(b"a\r\nb\nc\rd\n")
        assert tools.view_text_file("dos") == "dos: lines 1-2 of 2; CRLF ends them\n1: a\n2: b"
        assert tools.view_text_file("mixed") == "mixed: lines 1-3 of 3; CRLF ends 1 line of them\n1: a\n2: b\n3: c\rd"

    def test_absolute_path_inside_is_shown_as_relative(self, base: Path, tools: FileTools) -> None:
        assert tools.view_text_file(f"{base}/notes.txt") == tools.view_text_file("notes.txt")


class TestRefusals:
    @pytest.mark.parametrize(
        ("path", "act"),
        [
            ("missing", "list_directory"),
            ("missing/x", "list_directory"),
            ("sub", "list_directory"),
            ("../secret", "relative to it"),
            ("/etc/passwd", "relative to it"),
            ("", "must not be empty"),
        ],
    )
    def test_say_the_next_act(self, base: Path, tools: FileTools, path: str, act: str) -> None:
        (base / "sub").mkdir()
        message = refusal(lambda: tools.view_text_file(path))
        assert message.startswith(f"Cannot open {path}: ")
        assert act in message

    @pytest.mark.parametrize("path", ["link", "absolute", "missing", "sub", "loop", "x" * 5_000, "\ud800"])
    def test_name_no_path_of_the_host(self, base: Path, tools: FileTools, path: str) -> None:
        (base / "link").symlink_to("../outside")
        (base / "absolute").symlink_to(base.parent / "outside")
        (base / "loop").symlink_to("loop")
        (base / "sub").mkdir()
        for action in (lambda: tools.view_text_file(path), lambda: tools.list_directory(f"{path}/x").text):
            message = refusal(action)
            assert str(base.parent) not in message
            assert "outside/" not in message
            assert len(message) < 400
            message.encode()  # whole text, no half characters

    def test_path_is_one_line_of_printable_text(self, tools: FileTools) -> None:
        assert refusal(lambda: tools.view_text_file("a\nb\x1b[2J\u202e")).startswith(
            "Cannot open a\\nb\\x1b[2J\\u202e: "
        )

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
    def test_permission(self, base: Path, tools: FileTools) -> None:
        (base / "private").touch(mode=0)
        assert "permission denied" in refusal(lambda: tools.view_text_file("private"))


class TestList:
    def test_entries_are_sorted_and_described(self, base: Path, tools: FileTools) -> None:
        (base / "b.txt").write_text("x" * 1_234)
        (base / "a").mkdir()
        (base / "a" / "inner").touch()
        (base / "link").symlink_to("/etc")
        os.mkfifo(base / "pipe")
        assert tools.list_directory().text == (
            ".: 4 entries\na/\nb.txt (1,234 bytes)\nlink (symbolic link)\npipe (not a regular file)"
        )
        assert tools.list_directory("a").text == "a: 1 entry\ninner (0 bytes)"

    def test_empty_directory(self, base: Path, tools: FileTools) -> None:
        assert tools.list_directory("").text == tools.list_directory(str(base)).text == ".: 0 entries"

    def test_no_name_forges_an_entry(self, base: Path, tools: FileTools) -> None:
        (base / "a\nb (1 bytes)").touch()
        assert tools.list_directory().text == ".: 1 entry\na\\nb (1 bytes) (0 bytes)"

    @pytest.mark.skipif(os.fsencode("\udcff") != b"\xff", reason="file names are not bytes here")
    def test_name_that_is_no_utf8_can_be_opened_as_shown(self, base: Path, tools: FileTools) -> None:
        try:
            (base / "\udcff").write_text("found\n")
        except OSError:
            pytest.skip("this file system has only UTF-8 names")
        assert tools.list_directory().text == ".: 1 entry\n\\udcff (6 bytes)"
        assert tools.view_text_file("\udcff") == "\\udcff: line 1 of 1\n1: found"

    def test_what_is_left_out_is_counted(self, base: Path, tools: FileTools, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in "edcba":
            (base / name).touch()
        monkeypatch.setattr(_views, "MAX_ENTRIES", 2)
        assert tools.list_directory().text == ".: 5 entries\na (0 bytes)\nb (0 bytes)\n... and 3 more"

    @pytest.mark.parametrize("path", ["..", "/", "notes.txt", "missing"])
    def test_only_directories_inside(self, base: Path, tools: FileTools, path: str) -> None:
        (base / "notes.txt").touch()
        assert refusal(lambda: tools.list_directory(path).text).startswith(f"Cannot open {path}: ")


class TestBaseDirectory:
    def test_is_the_current_one_of_the_moment(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (base / "here").touch()
        monkeypatch.chdir(base)
        tools = FileTools()
        monkeypatch.chdir("/")
        assert tools.list_directory().text == ".: 1 entry\nhere (0 bytes)"
        assert tools.base_dir == str(base)

    def test_must_exist(self, base: Path) -> None:
        with pytest.raises(FileNotFoundError, match="missing"):
            FileTools(base / "missing")

    def test_limit_must_be_positive(self, base: Path) -> None:
        with pytest.raises(ValueError, match="max_bytes"):
            FileTools(base, max_bytes=0)
