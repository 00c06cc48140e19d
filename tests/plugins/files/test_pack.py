"""The pack on a board: settings, schemas and calls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pegboard_files
from pegboard import Status, Toolkit
from pegboard_files import FileTools

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


class TestCalls:
    @pytest.fixture
    def toolkit(self, base: Path) -> Toolkit:
        toolkit = Toolkit(plugins=())
        toolkit.register(FileTools(base))
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
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True, text=True, timeout=60)
    assert run.stdout.strip() == "[]"
