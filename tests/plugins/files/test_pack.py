"""The pack on a board: settings, schemas and calls."""

import asyncio
import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pegboard_files
from pegboard import SettingsError, Status, ToolCall, Toolkit, ToolResult, tool
from pegboard_files import DEFAULT_DENY, ChangedError, DeniedError, FileTools, UnsuitableError
from tests.support.interpreters import printed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pack needs a POSIX system")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "sub").mkdir()
    return tmp_path


def test_settings_reach_the_tools(base: Path) -> None:
    (base / "sub" / "inner.txt").write_text("inner\n" * 10)
    settings = {"base_dir": str(base / "sub"), "max_bytes": 20}
    with Toolkit(plugins=[pegboard_files], settings={"files": settings}) as toolkit:
        assert toolkit.call_sync("list_directory", {}).text == ".: 1 entry\ninner.txt (60 bytes)"
        assert "up to 20 bytes" in toolkit.call_sync("view_text_file", {"file_path": "inner.txt"}).text
        assert toolkit.call_sync("view_text_file", {"file_path": "../notes.txt"}).status is Status.ERROR


def test_default_is_the_current_directory_at_assembly(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base)
    with Toolkit(plugins=[pegboard_files]) as toolkit:
        monkeypatch.chdir("/")
        assert toolkit.call_sync("list_directory", {}).text == ".: 2 entries\nnotes.txt (14 bytes)\nsub/"


def test_missing_directory_fails_this_plugin_alone(base: Path) -> None:
    settings = {"files": {"base_dir": str(base / "missing")}}
    with Toolkit(plugins=[pegboard_files], settings=settings) as toolkit:
        toolkit.register(FileTools(base / "sub"))
        assert toolkit.call_sync("list_directory", {}).text == ".: 0 entries"
        assert [record.state for record in toolkit.plugins if record.name == "files"] == ["failed"]


READERS = ["find_files", "list_directory", "search_text", "view_text_file"]
WRITERS = ["edit_text_file", "insert_text_file", "write_text_file"]


def offered(*registered: FileTools, **settings: object) -> list[str]:
    with Toolkit(
        plugins=() if registered else [pegboard_files], settings={"files": settings} if settings else {}
    ) as kit:
        if registered:
            kit.register(*registered)
        return sorted(tool.name for tool in kit)


class TestReadOnly:
    def test_until_a_directory_is_set(self, base: Path) -> None:
        assert offered() == READERS
        assert offered(base_dir=str(base)) == sorted(READERS + WRITERS)
        assert offered(FileTools()) == READERS
        assert offered(FileTools(base)) == sorted(READERS + WRITERS)

    def test_as_set(self, base: Path) -> None:
        assert offered(read_only=False) == sorted(READERS + WRITERS)
        assert offered(base_dir=str(base), read_only=True) == READERS
        assert offered(FileTools(base, read_only=True)) == READERS
        assert offered(FileTools(read_only=False)) == sorted(READERS + WRITERS)

    def test_from_the_environment(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD__FILES__BASE_DIR", str(base))
        assert offered() == sorted(READERS + WRITERS)
        monkeypatch.setenv("PEGBOARD__FILES__READ_ONLY", "true")
        assert offered() == READERS

    @pytest.mark.parametrize("tool", WRITERS)
    def test_methods_refuse(self, base: Path, tool: str) -> None:
        with pytest.raises(DeniedError, match="read-only"):
            getattr(FileTools(base, read_only=True), tool)("notes.txt", "x", 1)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tools: pickle.loads(pickle.dumps(tools))])
    @pytest.mark.parametrize("read_only", [True, False])
    def test_copies_are_alike(self, base: Path, copied: Callable[[FileTools], FileTools], read_only: bool) -> None:
        tools = copied(FileTools(base, read_only=read_only, deny=["sub"]))
        assert isinstance(tools, FileTools)
        assert repr(tools) == f"FileTools({str(base)!r}, read_only={read_only})"
        assert offered(tools) == (READERS if read_only else sorted(READERS + WRITERS))
        with pytest.raises(DeniedError):
            tools.list_directory("sub")

    def test_subclasses_keep_their_own_tools(self, base: Path) -> None:
        class Mine(FileTools):
            @tool
            def count(self) -> int:
                """Count."""
                return 1

        assert offered(Mine(base, read_only=True)) == sorted([*READERS, "count"])
        assert isinstance(Mine(base, read_only=True), Mine)


class TestSettings:
    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("max_bytes", 0, "must be positive"),
            ("max_depth", -1, "must be positive"),
            ("deny", [".."], "no pattern for paths"),
            ("hardlinks", "maybe", "hardlinks"),
            ("durability", "never", "durability"),
            ("base", ".", "base_dir"),
        ],
    )
    def test_wrong_ones_are_refused_with_the_key(self, key: str, value: object, message: str) -> None:
        with pytest.raises(SettingsError, match=message):
            Toolkit(plugins=[pegboard_files], settings={"files": {key: value}})

    @pytest.mark.parametrize(
        ("options", "message"), [({"max_bytes": 0}, "max_bytes"), ({"hardlinks": "maybe"}, "hardlinks")]
    )
    def test_wrong_arguments_are_refused(self, base: Path, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            FileTools(base, **options)

    def test_deny_replaces_the_default(self, base: Path) -> None:
        (base / ".env").write_text("x\n")
        assert FileTools(base, deny=["notes.*"]).view_text_file(".env").endswith("1: x")
        with pytest.raises(DeniedError):
            FileTools(base, deny=["notes.*"]).view_text_file("notes.txt")
        with pytest.raises(DeniedError):
            FileTools(base, deny=[*DEFAULT_DENY, "notes.*"]).view_text_file(".env")

    def test_denied_entries_are_marked_in_listings(self, base: Path) -> None:
        (base / ".env").touch()
        (base / ".git").mkdir()
        assert FileTools(base).list_directory().text == (
            ".: 4 entries\n.env (0 bytes, denied)\n.git/ (denied)\nnotes.txt (14 bytes)\nsub/"
        )

    def test_hard_links(self, base: Path) -> None:
        (base / "other.txt").hardlink_to(base / "notes.txt")
        assert "1: one" in FileTools(base).view_text_file("other.txt")
        strict = FileTools(base, hardlinks="deny")
        with pytest.raises(DeniedError, match="hard links"):
            strict.view_text_file("other.txt")
        with pytest.raises(DeniedError, match="hard links"):
            strict.write_text_file("other.txt", "x")
        assert strict.search_text("one").data["matches"] == []
        assert (base / "notes.txt").read_text() == "one\ntwo\nthree\n"

    def test_largest_write(self, base: Path) -> None:
        tools = FileTools(base, max_bytes=20)
        writes: list[Callable[[], object]] = [
            lambda: tools.write_text_file("new.txt", "x" * 21),
            lambda: tools.insert_text_file("notes.txt", "x" * 21, 1),
            lambda: tools.edit_text_file("notes.txt", "t", "x" * 11, 2),
        ]
        for write in writes:
            with pytest.raises(UnsuitableError, match="at most 20"):
                write()
        assert [path.name for path in sorted(base.iterdir())] == ["notes.txt", "sub"]


class TestVersions:
    """`version` is the optional check that the file is unchanged since it was viewed."""

    @pytest.fixture
    def tools(self, base: Path) -> FileTools:
        return FileTools(base)

    @staticmethod
    def seen(tools: FileTools) -> str:
        return tools.view_text_file("notes.txt").partition("\n")[0].partition("version ")[2]

    def test_same_version_is_written(self, tools: FileTools, base: Path) -> None:
        version = self.seen(tools)
        writes: list[Callable[[str], ToolResult]] = [
            lambda version: tools.edit_text_file("notes.txt", "two", "2", version=version),
            lambda version: tools.insert_text_file("notes.txt", "zero", 1, version=version),
            lambda version: tools.write_text_file("notes.txt", "last", [-1, -1], version=version),
            lambda version: tools.write_text_file("notes.txt", "one\ntwo\nthree\n", version=version),
        ]
        for write in writes:
            version = write(version).data["version"]
            assert version == self.seen(tools)
        assert (base / "notes.txt").read_text() == "one\ntwo\nthree\n"

    def test_empty_version_is_none(self, tools: FileTools) -> None:
        """Models fill in what they could leave out."""
        tools.write_text_file("notes.txt", "one\n", version="")
        tools.edit_text_file("notes.txt", "one", "two", version="")
        assert tools.view_text_file("notes.txt").endswith("\n1: two")

    def test_other_version_is_not(self, tools: FileTools, base: Path) -> None:
        version = self.seen(tools)
        (base / "notes.txt").write_text("one\nTWO\nthree\n")
        writes: list[Callable[[], object]] = [
            lambda: tools.edit_text_file("notes.txt", "one", "1", version=version),
            lambda: tools.insert_text_file("notes.txt", "zero", 1, version=version),
            lambda: tools.write_text_file("notes.txt", "last", [-1, -1], version=version),
            lambda: tools.write_text_file("notes.txt", "all", version=version),
        ]
        for write in writes:
            with pytest.raises(ChangedError, match=f"changed since version {version}"):
                write()
        assert (base / "notes.txt").read_text() == "one\nTWO\nthree\n"

    def test_of_large_files_is_their_size_and_time(self, base: Path) -> None:
        tools = FileTools(base, max_bytes=10)
        version = tools.view_text_file("notes.txt", "1,1").partition("\n")[0].partition("version ")[2]
        assert tools.edit_text_file("notes.txt", "one", "1", version=version).data["lines"] == 3
        with pytest.raises(ChangedError):
            tools.edit_text_file("notes.txt", "two", "2", version=version)

    def test_is_not_shown_to_those_who_cannot_write(self, base: Path) -> None:
        assert "version" not in FileTools(base, read_only=True).view_text_file("notes.txt")


class TestResults:
    @pytest.fixture
    def toolkit(self, base: Path) -> Toolkit:
        toolkit = Toolkit(plugins=())
        toolkit.register(FileTools(base))
        return toolkit

    def test_change_shows_the_lines_around_it(self, toolkit: Toolkit, base: Path) -> None:
        (base / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 21)))
        arguments = {"file_path": "long.txt", "old_text": "line 10\n", "new_text": "line ten\nand more\n"}
        result = toolkit.call_sync("edit_text_file", arguments)
        header, *lines = result.text.split("\n")
        assert header == f"Replaced 1 occurrence in long.txt: 21 lines, 161 bytes; version {result.data['version']}"
        assert lines == [
            *(f"{number}: line {number}" for number in (7, 8, 9)),
            "10: line ten",
            "11: and more",
            *(f"{number}: line {number - 1}" for number in (12, 13, 14)),
            "... 7 more lines",
        ]
        assert {key: result.data[key] for key in ("path", "created", "first_line", "changed_lines", "lines")} == {
            "path": "long.txt",
            "created": False,
            "first_line": 10,
            "changed_lines": 2,
            "lines": 21,
        }

    def test_long_change_is_not_repeated_to_the_model(self, toolkit: Toolkit) -> None:
        for content in ("line\n" * 1_000, "x" * 100_000):
            result = toolkit.call_sync("write_text_file", {"file_path": "new.txt", "content": content})
            assert len(result.text) < 5_000

    def test_new_file_in_new_directories(self, toolkit: Toolkit, base: Path) -> None:
        result = toolkit.call_sync("write_text_file", {"file_path": "a/b/c.txt", "content": "hello\n"})
        assert result.text.startswith("Created a/b/c.txt: 1 line, 6 bytes; version ")
        assert result.data["created"] is True
        assert (base / "a" / "b" / "c.txt").read_bytes() == b"hello\n"

    def test_emptied_file(self, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("write_text_file", {"file_path": "notes.txt", "content": "", "ranges": "1,-1"})
        assert result.text.split("\n")[1:] == ["The file is empty now."]

    @pytest.mark.parametrize(
        ("tool", "arguments", "message"),
        [
            ("write_text_file", {"content": "x", "ranges": "2,9"}, "the file has 3 lines. Nothing changed."),
            ("write_text_file", {"content": "x", "ranges": "3,2"}, 'use "2,3"'),
            ("write_text_file", {"content": "x", "ranges": "-9,-1"}, "the file has 3 lines"),
            ("insert_text_file", {"content": "x", "line_number": 5}, "line_number is 1 to 4"),
            ("insert_text_file", {"content": "x", "line_number": 0}, "line_number is 1 to 4"),
            ("edit_text_file", {"old_text": "four", "new_text": "4"}, "was not found"),
            ("edit_text_file", {"old_text": "o", "new_text": "0"}, "found 2 times, not 1: in lines 1, 2"),
            ("edit_text_file", {"old_text": "", "new_text": "0"}, "must not be empty"),
            ("edit_text_file", {"old_text": "two", "new_text": "two"}, "must differ"),
            ("edit_text_file", {"old_text": "two", "new_text": "2", "expected_count": 0}, "at least 1"),
            ("write_text_file", {"content": "\ud800"}, "half a character"),
        ],
    )
    def test_refusal_says_what_to_correct_and_changes_nothing(
        self, toolkit: Toolkit, base: Path, tool: str, arguments: dict[str, Any], message: str
    ) -> None:
        result = toolkit.call_sync(tool, {"file_path": "notes.txt", **arguments})
        assert result.status in (Status.ERROR, Status.INVALID)
        assert message in result.text or result.status is Status.INVALID
        assert (base / "notes.txt").read_text() == "one\ntwo\nthree\n"

    def test_parallel_edits_of_one_turn_all_arrive(self, toolkit: Toolkit, base: Path) -> None:
        calls = [
            ToolCall(
                f"call_{number}", "edit_text_file", {"file_path": "notes.txt", "old_text": old, "new_text": old * 2}
            )
            for number, old in enumerate(["one", "two", "three"])
        ]
        assert {result.status for result in asyncio.run(toolkit.call_many(calls))} == {Status.SUCCESS}
        assert (base / "notes.txt").read_text() == "oneone\ntwotwo\nthreethree\n"

    def test_hints(self, toolkit: Toolkit) -> None:
        hints = {tool.name: tool.hints for tool in toolkit}
        assert {name for name, hint in hints.items() if hint.read_only} == set(READERS)
        assert {name for name, hint in hints.items() if hint.destructive} == {"edit_text_file", "write_text_file"}
        assert {name for name, hint in hints.items() if hint.idempotent} == set(READERS)
        assert {hint.open_world for hint in hints.values()} == {False}

    def test_every_parameter_is_described(self, toolkit: Toolkit) -> None:
        assert [
            (tool.name, name)
            for tool in toolkit
            for name, schema in tool.parameters["properties"].items()
            if not schema.get("description")
        ] == []


class TestCalls:
    @pytest.fixture
    def toolkit(self, base: Path) -> Toolkit:
        toolkit = Toolkit(plugins=())
        toolkit.register(FileTools(base, read_only=True))
        return toolkit

    def test_schema_describes_every_parameter(self, toolkit: Toolkit) -> None:
        view = toolkit["view_text_file"]
        assert view.parameters["required"] == ["file_path"]
        assert all(schema.get("description") for schema in view.parameters["properties"].values())
        assert view.description.startswith("View a text file")
        assert "Args" not in view.description
        assert (view.hints.read_only, view.hints.idempotent, view.hints.open_world) == (True, True, False)
        assert toolkit["list_directory"].parameters["properties"]["dir_path"]["default"] == "."

    @pytest.mark.parametrize("ranges", ["2,3", "[2,3]", [2, 3], "-2,-1", [-2, -1]])
    def test_ranges(self, toolkit: Toolkit, ranges: object) -> None:
        result = toolkit.call_sync("view_text_file", {"file_path": "notes.txt", "ranges": ranges})
        assert result.status is Status.SUCCESS
        assert result.text == "notes.txt: lines 2-3 of 3\n2: two\n3: three"

    @pytest.mark.parametrize("ranges", ["3,2", "0,1", "x", [1, 2, 3]])
    def test_refusals_are_errors_for_the_model_as_they_are(self, toolkit: Toolkit, ranges: object) -> None:
        result = toolkit.call_sync("view_text_file", {"file_path": "notes.txt", "ranges": ranges})
        assert result.status is Status.ERROR
        assert not result.text.startswith("Error")

    def test_ranges_of_another_type_never_reach_the_tool(self, toolkit: Toolkit) -> None:
        result = toolkit.call_sync("view_text_file", {"file_path": "notes.txt", "ranges": {"first": 1}})
        assert result.status is Status.INVALID


def test_import_is_light() -> None:
    check = "import sys, pegboard_files; print(sorted({'ctypes', 'socket', 'asyncio'} & set(sys.modules)))"
    assert printed(check) == "[]"
