"""Finding files and lines: all that is there, in order, and an honest word where something was left out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard import ToolResult
from pegboard_files import FileToolError, FileTools, OutsideError, UnsuitableError, _tools
from pegboard_files._text import search as _search
from pegboard_files._text.search import Budget
from tests.support.measuring import paces

LOADED = """
import sys
from pegboard_files import FileTools

tools = FileTools(sys.argv[1])
print("pegboard_schemas" in sys.modules)
tools.search_text("return")
print("re2" in sys.modules)
tools.search_text("return", regex=True)
print("re2" in sys.modules)
"""


def lines_of(result: ToolResult) -> list[int]:
    return [match["line"] for match in result.data["matches"]]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "base"
    (base / "src" / "deep").mkdir(parents=True)
    (base / "docs").mkdir()
    (base / "src" / "a.py").write_text("import os\n\n\ndef One():\n    return 1\n")
    (base / "src" / "deep" / "b.py").write_bytes(b"def two():\r\n    return 'caf\xe9'\r\n")
    (base / "docs" / "a.md").write_text("# One\nreturn to sender\n")
    (base / ".env").write_text("return=secret\n")
    (base / "blob").write_bytes(b"return\0")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "c.py").write_text("return outside\n")
    return base


@pytest.fixture
def tools(base: Path) -> FileTools:
    return FileTools(base)


class TestFind:
    def test_by_name(self, tools: FileTools) -> None:
        result = tools.find_files("*.py")
        assert result.text == "2 files found\nsrc/a.py\nsrc/deep/b.py"
        assert result.data == {"files": ["src/a.py", "src/deep/b.py"], "complete": True}

    def test_beneath_a_directory(self, tools: FileTools) -> None:
        assert tools.find_files("a.*", "docs").data["files"] == ["docs/a.md"]
        assert tools.find_files("deep/*", "src").data["files"] == ["src/deep/b.py"]
        assert tools.find_files("/*", "").data["files"] == ["blob"]

    def test_what_is_denied_is_not_found(self, tools: FileTools) -> None:
        assert ".env" not in tools.find_files("**").data["files"]

    def test_nothing(self, tools: FileTools) -> None:
        assert tools.find_files("*.rs").text == "0 files found"

    @pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
    def test_links_are_not_followed(self, base: Path, tools: FileTools) -> None:
        (base / "out").symlink_to("../outside")
        (base / "again").symlink_to(".")
        (base / "c.py").symlink_to("../outside/c.py")
        assert tools.find_files("c.py").data["files"] == []
        assert tools.search_text("outside").data["matches"] == []
        with pytest.raises(OutsideError):
            tools.find_files("*", "out")

    @pytest.mark.parametrize("pattern", ["", "..", "../*"])
    def test_pattern_that_means_nothing(self, tools: FileTools, pattern: str) -> None:
        if pattern:
            with pytest.raises(FileToolError, match="no pattern"):
                tools.find_files(pattern)
        else:
            assert len(tools.find_files(pattern).data["files"]) == 4

    def test_too_many(self, base: Path, tools: FileTools, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_tools, "MAX_FILES", 2)
        result = tools.find_files("**")
        assert result.text.startswith(
            "2 files found; the search ended early because there are more than 2: narrow it\n"
        )
        assert result.data["complete"] is False

    @pytest.mark.skipif(os.name == "nt", reason="paths are short there")
    def test_deep_trees_end_where_paths_end(self, base: Path, tools: FileTools) -> None:
        deep = base / "docs"
        for _ in range(100):
            deep = deep / "d"
            deep.mkdir()
        (deep / "far.py").touch()
        assert tools.find_files("far.py").data["files"] == []
        assert FileTools(base, max_depth=120).find_files("far.py").data["files"] == ["docs/" + "d/" * 100 + "far.py"]


class TestSearch:
    def test_text(self, tools: FileTools) -> None:
        result = tools.search_text("return")
        assert result.text == (
            "3 lines found\ndocs/a.md:2: return to sender\nsrc/a.py:5:     return 1\n"
            "src/deep/b.py:2:     return 'caf<E9>'"
        )
        assert result.data["matches"][0] == {"path": "docs/a.md", "line": 2, "text": "return to sender"}

    def test_is_exact(self, base: Path, tools: FileTools) -> None:
        (base / "dots").write_text("a.b\naxb\n")
        assert [match["line"] for match in tools.search_text("a.b").data["matches"]] == [1]

    def test_regular_expression(self, tools: FileTools) -> None:
        found = tools.search_text(r"^def \w+\(\):$", regex=True).data["matches"]
        assert [(match["path"], match["line"]) for match in found] == [("src/a.py", 4), ("src/deep/b.py", 1)]

    def test_ignoring_case(self, tools: FileTools) -> None:
        assert len(tools.search_text("ONE").data["matches"]) == 0
        assert len(tools.search_text("ONE", ignore_case=True).data["matches"]) == 2
        assert len(tools.search_text("o.e", regex=True, ignore_case=True).data["matches"]) == 2

    def test_only_some_files(self, tools: FileTools) -> None:
        assert len(tools.search_text("return", glob="*.md").data["matches"]) == 1
        assert len(tools.search_text("return", "src", "*.py").data["matches"]) == 2
        assert len(tools.search_text("return", "src/a.py").data["matches"]) == 1

    def test_binary_and_denied_files_are_left_out(self, tools: FileTools) -> None:
        paths = {match["path"] for match in tools.search_text("return").data["matches"]}
        assert paths.isdisjoint({"blob", ".env"})

    @pytest.mark.parametrize("pattern", ["", "a\nb", "\ud800"])
    def test_pattern_that_is_in_no_line(self, tools: FileTools, pattern: str) -> None:
        with pytest.raises(FileToolError):
            tools.search_text(pattern)

    def test_too_many(self, base: Path, tools: FileTools) -> None:
        (base / "many").write_text("match\n" * 500)
        result = tools.search_text("match")
        assert result.text.startswith("200 lines found; the search ended early because there are more than 200")
        assert len(result.data["matches"]) == 200

    def test_long_lines_are_cut(self, base: Path, tools: FileTools) -> None:
        (base / "long").write_text("y" * 100_000 + "needle\n")
        (match,) = tools.search_text("needle").data["matches"]
        assert match["text"] == "y" * 300 + "..."

    def test_numbers_are_right_across_blocks(
        self, base: Path, tools: FileTools, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_search, "_PIECE", 64)
        lines = [f"line {number} {'needle' if number % 7 == 0 else ''}" for number in range(1, 200)]
        (base / "blocks").write_text("\n".join(lines))
        found = tools.search_text("needle", "blocks").data["matches"]
        assert [match["line"] for match in found] == list(range(7, 200, 7))
        found = tools.search_text("e.*le$", "blocks", regex=True).data["matches"]
        assert [match["line"] for match in found] == list(range(7, 200, 7))

    def test_line_that_is_searched_in_pieces_is_found_once(
        self, base: Path, tools: FileTools, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_search, "_PIECE", 64)
        (base / "long").write_text(f"{'y needle ' * 50}\nneedle\n")
        for regex, ignore_case in ((False, False), (True, False), (False, True)):
            found = tools.search_text("needle", "long", regex=regex, ignore_case=ignore_case)
            assert lines_of(found) == [1, 2]

    def test_text_in_any_case_is_no_regular_expression(self, base: Path, tools: FileTools) -> None:
        (base / "dots").write_text("a.b(\nA.B(\u00c9\naxb(\n")
        assert lines_of(tools.search_text("A.b(", "dots", ignore_case=True)) == [1, 2]
        assert lines_of(tools.search_text("a.B(\u00e9", "dots", ignore_case=True)) == [2]

    def test_exact_text_needs_no_engine(self, tools: FileTools, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pegboard_schemas", None)
        assert len(tools.search_text("return").data["matches"]) == 3

    def test_the_engine_is_loaded_by_the_first_search(self, base: Path) -> None:
        run = subprocess.run([sys.executable, "-c", LOADED, str(base)], capture_output=True, check=True, text=True)
        assert run.stdout.split() == ["False", "False", "True"]


class TestRegularExpressions:
    """What a line is, and what bytes are; the language itself is that of `pegboard-schemas`."""

    @pytest.mark.parametrize(
        ("pattern", "lines"),
        [
            ("^import", [1]),
            (r"\Aimport os\Z", [1]),
            (";$", [2]),
            ("^$", [3, 5]),
            ("x*", [1, 2, 3, 4, 5, 6]),
            ("caf.$", [4, 6]),
            (r"caf\W$", [4]),
            (r"^\w+$", [6]),
            ("(?i)CAF\u00c9", [6]),
            (r"[^\x00-\x7f]", [6]),
        ],
    )
    def test_lines(self, base: Path, tools: FileTools, pattern: str, lines: list[int]) -> None:
        text = b"\xef\xbb\xbfimport os\r\na\rb;\r\n\r\ncaf\xe9\n\ncaf\xc3\xa9"
        (base / "lines").write_bytes(text)
        assert lines_of(tools.search_text(pattern, "lines", regex=True)) == lines

    def test_text_shown_is_that_of_the_file(self, base: Path, tools: FileTools) -> None:
        (base / "lines").write_bytes(b"\xef\xbb\xbfa\xe9 \x1a\xc3\xa9 needle\r\n")
        (match,) = tools.search_text("need.e", "lines", regex=True).data["matches"]
        assert match["text"] == "a<E9> \x1a\u00e9 needle"

    @pytest.mark.parametrize(
        ("pattern", "reason"),
        [
            (r"load_(?!user)", "look-around is not supported: search for what must be there"),
            (r"(\w+) \1", "back references are not supported: write the repeated text itself"),
            (r"(\w{9}){9}", "use smaller counts"),
            (r"a\nb", "no line has a line feed"),
            ("(" * 600, "missing"),
        ],
    )
    def test_refusals_are_for_the_model(self, tools: FileTools, pattern: str, reason: str) -> None:
        with pytest.raises(UnsuitableError, match=reason) as refused:
            tools.search_text(pattern, regex=True)
        assert str(refused.value).startswith("The pattern ")
        assert len(str(refused.value)) < 1_200

    @pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)(.*)(.*)x", "(((a{1,5}){1,5}){1,5})b"])
    @pytest.mark.parametrize("text", ["a" * 1_000_000 + "!", "a!\n" * 300_000], ids=["one line", "many lines"])
    def test_hostile_pattern_on_hostile_text(self, base: Path, tools: FileTools, pattern: str, text: str) -> None:
        (base / "hostile").write_text(text)
        # What backtracks on this never ends.
        assert paces(lambda: tools.search_text(pattern, regex=True), most=5_000, tries=2) < 5_000

    def test_time_is_kept_within_a_file(self, base: Path, tools: FileTools, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_tools, "Budget", lambda: Budget(seconds=0.5))
        (base / "hostile").write_text("abbababaabab" * 1_000_000)
        result = tools.search_text("[ab]*a[ab]{1000}c", "hostile", regex=True)
        assert "the search ended early because it took more than 0.5 seconds" in result.text


class TestBudget:
    @pytest.mark.parametrize(
        ("budget", "reason"),
        [({"seconds": 0.0}, "it took more than 0 seconds"), ({"entries": 1}, "there are too many files")],
    )
    def test_is_kept_and_told(
        self, tools: FileTools, monkeypatch: pytest.MonkeyPatch, budget: dict[str, float], reason: str
    ) -> None:
        monkeypatch.setattr(_tools, "Budget", lambda: Budget(**budget))  # type: ignore[arg-type]
        assert reason in tools.find_files("**").text
        assert reason in tools.search_text("return").text
        assert tools.search_text("return").data["complete"] is False

    def test_huge_directory_is_not_read_to_its_end(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(300):
            (base / f"file{number}").touch()
        budget = Budget(entries=100)
        with FileTools(base)._root.folder(".") as folder:
            assert len(list(_search.files_beneath(folder, budget))) <= 101
        assert budget.spent
