"""Files that Pegboard and its packs write: never through a link, never to a FIFO, never half of one, nothing lost."""

import json
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import PegboardError, SettingsError, Toolkit
from pegboard.inspection import regular, write_file
from pegboard_agent import Memory
from pegboard_cli._checks.lockfile import Lock
from pegboard_policy import Policy
from pegboard_testing._snapshot import SchemaSnapshot
from tests.support.waiting import within

Write = Callable[[Path], object]


def permissions(path: Path) -> object:
    """Permissions of a toolkit."""
    toolkit = Toolkit(plugins=[Policy(permissions=path)])
    toolkit.register(lambda: 1, name="a")
    toolkit.set_permission("a", "never")
    return None


def lock(path: Path) -> object:
    """`pegboard lock`."""
    with Toolkit(plugins=()) as toolkit:
        return Lock.of(toolkit).write(path)


def history(path: Path) -> object:
    """The memory of an agent."""
    memory = Memory(path)
    memory.append(None, [{"role": "user", "content": "hello"}], len(memory.load()))
    return None


def snapshot(path: Path) -> object:
    """A snapshot of schemas."""
    SchemaSnapshot(path.parent, path.stem, update=True)([{"a": 1}])
    return None


WRITERS: list[Write] = [permissions, lock, history, snapshot]
REFUSALS = (PegboardError, OSError)
each = pytest.mark.parametrize("write", WRITERS)


def names_in(path: Path) -> list[str]:
    """The files beside a file, and itself; but for that of the locks of a memory, which stays."""
    return [each.name for each in path.parent.iterdir() if each.name != f"{path.name}.lock"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is to be written, in a folder of its own."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder / "file.json"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file whose writing was not requested."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    return victim


class TestPlaces:
    @pytest.mark.parametrize("write", WRITERS[1:])  # the program's own link to its permissions stays one, see below
    def test_a_link_is_not_written_through(self, write: Write, path: Path, victim: Path) -> None:
        path.symlink_to(victim)
        with pytest.raises(REFUSALS, match="it is no regular file but a link"):
            write(path)
        assert victim.read_text() == "precious"

    @pytest.mark.parametrize("write", WRITERS[1:])
    def test_a_link_to_nothing_makes_nothing(self, write: Write, path: Path, tmp_path: Path) -> None:
        path.symlink_to(tmp_path / "new")
        with pytest.raises(REFUSALS):
            write(path)
        assert not (tmp_path / "new").exists()

    def test_a_link_that_takes_the_place_of_permissions_leads_nowhere(self, path: Path, victim: Path) -> None:
        toolkit = Toolkit(plugins=[Policy(permissions=path)])
        toolkit.register(lambda: 1, name="a")
        path.symlink_to(victim)
        with pytest.raises(SettingsError):
            toolkit.set_permission("a", "never")
        assert victim.read_text() == "precious"

    @each
    def test_a_name_that_was_guessed_is_not_used(self, write: Write, path: Path, victim: Path) -> None:
        guesses = [f".{path.name}.{os.getpid()}.tmp", f"{path.name}.tmp", f".{path.name}.tmp", f"{path.name}~"]
        for guess in guesses:
            path.with_name(guess).symlink_to(victim)
        write(path)
        assert victim.read_text() == "precious"
        assert sorted(names_in(path)) == sorted([*guesses, path.name])

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
    @each
    def test_a_fifo_blocks_no_writer(self, write: Write, path: Path) -> None:
        os.mkfifo(path)
        with pytest.raises(REFUSALS):
            within(lambda: write(path), 20)
        assert stat.S_ISFIFO(path.lstat().st_mode)

    @each
    def test_a_folder_is_refused(self, write: Write, path: Path) -> None:
        path.mkdir()
        with pytest.raises(REFUSALS):
            write(path)
        assert list(path.parent.iterdir()) == [path]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_device_is_not_opened(self) -> None:
        with pytest.raises(OSError, match="no regular file"), open("/dev/full", "wb", opener=regular):
            raise AssertionError


class TestWriting:
    @each
    def test_leaves_one_file(self, write: Write, path: Path) -> None:
        for _ in range(2):
            write(path)
        assert names_in(path) == [path.name]

    @pytest.mark.parametrize("write", [permissions, lock, snapshot])
    def test_that_fails_changes_nothing(self, write: Write, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(path)
        before = path.read_bytes()

        def full(*given: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SettingsError, match=r"cannot be saved: No space left on device; nothing was changed"):
            write(path)
        assert path.read_bytes() == before
        assert names_in(path) == [path.name]

    @pytest.mark.parametrize("write", [permissions, lock, snapshot])
    def test_keeps_the_mode(self, write: Write, path: Path) -> None:
        write(path)
        path.chmod(0o640)
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_of_history_is_private(self, path: Path) -> None:
        history(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_of_what_no_encoding_carries(self, path: Path) -> None:
        write_file(path, json.dumps({"a": "\ud800"}, ensure_ascii=False), "it")
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": "\ud800"}


class TestDamaged:
    def test_lock_is_kept_aside(self, path: Path) -> None:
        path.write_text("{damaged")
        kept = lock(path)
        assert isinstance(kept, Path)
        assert (kept.parent, kept.read_text()) == (path.parent, "{damaged")
        assert Lock.read(path).tools == {}
        assert lock(path) is None  # one that is whole is replaced

    def test_history_keeps_every_line_and_says_so(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        history(path)
        damage = b'\x00\xff\n{"session_id": [], "record": {}}\n' + b"[" * 100_000 + b"\n"
        path.write_bytes(path.read_bytes() + damage)
        with caplog.at_level(logging.WARNING, "pegboard"):
            memory = Memory(path)
        assert "3 of 4 lines cannot be read; they stay in the file" in caplog.text
        memory.append(None, [{"role": "user", "content": "again"}], 1)
        assert damage in path.read_bytes()
        assert [each["content"] for each in Memory(path).load()] == ["hello", "again"]

    def test_history_begins_a_line_after_one_that_another_program_tore(self, path: Path) -> None:
        memory = Memory(path)
        memory.append(None, [{"role": "user", "content": "one"}], 0)
        with path.open("ab") as file:
            file.write(b'{"session_id": null, "rec')
        memory.append(None, [{"role": "user", "content": "two"}], 1)
        assert [each["content"] for each in Memory(path).load()] == ["one", "two"]
