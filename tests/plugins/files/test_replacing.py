"""A file is the old one or the new one, whatever happens while it is written, and nothing else is left behind."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pegboard_files import ChangedError, DeniedError, FileToolError, FileTools, StorageError
from pegboard_files._directory import replacing as _replacing
from pegboard_files._directory.folder import temporary_names
from pegboard_files._text import changes as _changes
from pegboard_files._text import edits as _edits
from tests.plugins.files.conftest import Make, names_in
from tests.support.thinning import first

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pack is weaker there")

OLD, NEW = "old\n" * 100, "new\n" * 100
WAYS = ["unnamed", "named temporary file"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files without a name where they are known, and without them, as on macOS."""
    if request.param != "unnamed":
        monkeypatch.setattr(_replacing, "_unnamed", lambda *_: -1)
    return str(request.param)


@pytest.fixture
def tools(tmp_path: Path, way: str) -> FileTools:
    (tmp_path / "a.txt").write_text(OLD)
    return FileTools(tmp_path)


CHANGES: dict[str, Callable[[FileTools], object]] = {
    "write": lambda tools: tools.write_text_file("a.txt", NEW),
    "create": lambda tools: tools.write_text_file("new/b.txt", NEW),
    "replace lines": lambda tools: tools.write_text_file("a.txt", NEW, "1,100"),
    "insert": lambda tools: tools.insert_text_file("a.txt", NEW, 1),
    "edit": lambda tools: tools.edit_text_file("a.txt", OLD, NEW),
}
AFTER = {"write": NEW, "create": OLD, "replace lines": NEW, "insert": NEW + OLD, "edit": NEW}

changing = pytest.mark.parametrize("change", CHANGES)


class TestKilled:
    def run(self, base: Path, way: str, kills: int) -> dict[str, Any]:
        command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(base), way, str(kills)]
        run = subprocess.run(command, capture_output=True, check=True, text=True, timeout=280)
        print(f"{way}: {kills} kills: {run.stdout}")
        return dict(json.loads(run.stdout))

    @pytest.mark.parametrize("way", first(1, WAYS))
    def test_writer_leaves_nothing_torn_and_nothing_else(self, tmp_path: Path, way: str) -> None:
        counts = self.run(tmp_path, way, 28 if way == "unnamed" else 14)
        assert (counts["torn"], counts["left at last"]) == (0, 0)
        assert counts["kills after a write"] > 0

    @pytest.mark.slow
    @pytest.mark.parametrize("way", WAYS)
    def test_thousand_writers_leave_nothing_torn_and_nothing_else(self, tmp_path: Path, way: str) -> None:
        counts = self.run(tmp_path, way, 1_000)
        assert (counts["torn"], counts["left at last"]) == (0, 0)
        assert counts["kills after a write"] > 0.3 * counts["kills"]
        if way == "unnamed":
            # Between getting a temporary name and taking the place of the file are some microseconds.
            assert counts["left by kills"] < 20


FULL = """
import resource, sys
from pathlib import Path
from pegboard_files import FileTools, StorageError

base = Path(sys.argv[1])
tools = FileTools(base)
{limit}
for change in ({changes}):
    try:
        change()
    except StorageError as refusal:
        print(refusal)
"""
WRITES = """
    lambda: tools.write_text_file("a.txt", "x" * 9_000_000),
    lambda: tools.write_text_file("b.txt", "x" * 9_000_000),
    lambda: tools.insert_text_file("a.txt", "x" * 9_000_000, 1),
    lambda: tools.edit_text_file("a.txt", "old", "x" * 90_000, 100),
"""


class TestFullDisk:
    def run(self, base: Path, limit: str, *wrapper: str) -> list[str]:
        script = FULL.format(limit=limit, changes=WRITES)
        run = subprocess.run(
            [*wrapper, sys.executable, "-c", script, str(base)], capture_output=True, check=True, text=True, timeout=60
        )
        return run.stdout.splitlines()

    def test_limit_on_the_size_of_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text(OLD)
        refusals = self.run(tmp_path, "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))")
        assert len(refusals) == 4
        assert all("larger than the system allows. Nothing was changed." in refusal for refusal in refusals)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": OLD}

    def test_small_file_system(self, tmp_path: Path) -> None:
        mounted = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", f"mount -t tmpfs -o size=1m none {tmp_path}"],
            capture_output=True,
            check=False,
        )
        if mounted.returncode:
            pytest.skip("this system does not allow a small file system to be mounted")
        (tmp_path / "keep").mkdir()
        shell = 'mount -t tmpfs -o size=1m none "$0"; cp "$1" "$0/a.txt"; shift; "$@"; cat "$0/a.txt" >&2; ls -A "$0"'
        source = tmp_path.parent / "a.txt"
        source.write_text(OLD)
        refusals = self.run(
            tmp_path, "", "unshare", "--map-root-user", "--mount", "sh", "-c", shell, str(tmp_path), str(source)
        )
        *refusals, listing = refusals
        assert len(refusals) == 4
        assert all("no space left. Nothing was changed." in refusal for refusal in refusals)
        assert listing == "a.txt"


class Faults:
    """Makes the n-th call of the system fail."""

    NAMES = ("open", "write", "fsync", "link", "replace", "fchmod", "fchown", "fstat", "stat", "mkdir", "pread")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.failed = ""
        for name in self.NAMES:
            monkeypatch.setattr(os, name, self.failing(name, getattr(os, name)))
        # Packs that look for these in `os` must find the new ones.
        monkeypatch.setattr(os, "supports_dir_fd", os.supports_dir_fd | {os.open})

    def failing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.left == 0:
                self.left, self.failed = -1, name
                raise OSError(errno.EIO, "made up")
            self.left -= self.left > 0
            return real(*args, **kwargs)

        return call


@changing
def test_fault_of_any_call_leaves_the_old_file_or_the_new_one(
    change: str, tools: FileTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        faults = Faults(patch)
        failed, came = [], set()
        for number in range(1_000):
            faults.left = number
            try:
                CHANGES[change](tools)
            except FileToolError as refusal:
                assert "Input/output error" in str(refusal) or isinstance(refusal, ChangedError)  # noqa: PT017
                failed.append(faults.failed)
            faults.left = -1
            assert [name for name in names_in(tmp_path) if name.startswith(".")] == [], faults.failed
            content = (tmp_path / "a.txt").read_text()
            assert content in (OLD, AFTER[change])
            if content != OLD:
                (tmp_path / "a.txt").write_text(OLD)
            created = tmp_path / "new" / "b.txt"
            if created.exists():
                assert created.read_text() == NEW
                created.unlink()
            if not faults.failed:
                break
            came.add(faults.failed)
            faults.failed = ""
    assert {"open", "write", "fsync"} <= came
    assert {"write", "fsync"} <= set(failed)  # what else fails may have another way
    assert number < 999


class TestConcurrent:
    def test_last_writer_wins_whole(self, tools: FileTools, tmp_path: Path) -> None:
        contents = [letter * 200_000 for letter in "abcd"]
        done = threading.Event()
        torn: list[int] = []

        def read() -> None:
            while not done.is_set():
                content = (tmp_path / "a.txt").read_text()
                if content != OLD and content not in contents:
                    torn.append(len(content))

        reader = threading.Thread(target=read)
        reader.start()
        others = [FileTools(tmp_path, durability="rename") for _ in range(3)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: [tools, *others][n % 4].write_text_file("a.txt", contents[n // 3 % 4]), range(120)))
        done.set()
        reader.join()
        assert torn == []
        assert (tmp_path / "a.txt").read_text() in contents
        assert names_in(tmp_path) == ["a.txt"]

    def test_edits_at_the_same_time_all_arrive(self, tools: FileTools, tmp_path: Path) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: tools.insert_text_file("a.txt", f"line {number}", 1), range(40)))
        lines = (tmp_path / "a.txt").read_text().splitlines()
        assert sorted(lines[:40]) == sorted(f"line {number}" for number in range(40))
        assert "\n".join(lines[40:]) + "\n" == OLD

    def test_change_by_another_program_is_not_overwritten(
        self, tools: FileTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def meanwhile(*arguments: Any) -> Iterator[bytes]:
            (tmp_path / "a.txt").write_text("another program's\n")
            return real(*arguments)

        real = _edits.spliced
        monkeypatch.setattr(_changes, "spliced", meanwhile)
        with pytest.raises(ChangedError, match="meanwhile"):
            tools.insert_text_file("a.txt", "x", 1)
        assert (tmp_path / "a.txt").read_text() == "another program's\n"
        assert names_in(tmp_path) == ["a.txt"]


class TestTemporaryNames:
    def test_what_a_killed_writer_has_left_is_removed_by_the_next(self, tools: FileTools, tmp_path: Path) -> None:
        for name in temporary_names[3:9]:
            (tmp_path / name).write_text("left")
        tools.write_text_file("a.txt", NEW)
        assert names_in(tmp_path) == ["a.txt"]

    def test_what_another_writer_uses_stays(self, tools: FileTools, tmp_path: Path) -> None:
        import fcntl

        with (tmp_path / temporary_names[5]).open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            tools.write_text_file("a.txt", NEW)
            assert names_in(tmp_path) == [temporary_names[5], "a.txt"]

    def test_whatever_has_such_a_name_disturbs_no_write(
        self, tools: FileTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in temporary_names[:-1]:
            (tmp_path / name).mkdir()
        tools.write_text_file("a.txt", NEW)
        assert (tmp_path / "a.txt").read_text() == NEW
        (tmp_path / temporary_names[-1]).mkdir()
        monkeypatch.setattr(_replacing, "_ROUNDS", 2)
        with pytest.raises(StorageError, match="busy"):
            tools.write_text_file("a.txt", OLD)
        assert (tmp_path / "a.txt").read_text() == NEW

    def test_no_tool_shows_or_opens_them(self, tools: FileTools, tmp_path: Path) -> None:
        (tmp_path / temporary_names[0]).write_text("old")
        assert tools.list_directory().text == ".: 1 entry\na.txt (400 bytes)"
        assert tools.find_files("**").data["files"] == ["a.txt"]
        with pytest.raises(DeniedError):
            tools.view_text_file(temporary_names[0])
        with pytest.raises(DeniedError):
            tools.write_text_file(f"sub/{temporary_names[0]}", "x")


class TestWhatIsKept:
    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o660])
    @changing
    def test_mode(self, change: str, tools: FileTools, tmp_path: Path, mode: int) -> None:
        (tmp_path / "a.txt").chmod(mode)
        CHANGES[change](tools)
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == mode

    def test_right_to_act_as_the_owner_is_dropped(self, tools: FileTools, tmp_path: Path) -> None:
        (tmp_path / "a.txt").chmod(0o4755)
        tools.write_text_file("a.txt", NEW)
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o755

    def test_new_files_have_the_mode_of_new_files(self, tools: FileTools, tmp_path: Path) -> None:
        mask = os.umask(0o027)
        try:
            tools.write_text_file("new/b.txt", NEW)
        finally:
            os.umask(mask)
        assert stat.S_IMODE((tmp_path / "new" / "b.txt").stat().st_mode) == 0o640
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o750

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser gives files away")
    def test_owner(self, tools: FileTools, tmp_path: Path) -> None:
        os.chown(tmp_path / "a.txt", 12345, 54321)
        tools.edit_text_file("a.txt", OLD, NEW)
        status = (tmp_path / "a.txt").stat()
        assert (status.st_uid, status.st_gid) == (12345, 54321)

    @pytest.mark.skipif(not hasattr(os, "setxattr"), reason="there are no extended attributes")
    def test_extended_attributes(self, tools: FileTools, tmp_path: Path) -> None:
        try:
            os.setxattr(tmp_path / "a.txt", "user.colour", b"green")
        except OSError:
            pytest.skip("this file system has no extended attributes")
        tools.insert_text_file("a.txt", "x", 1)
        assert os.getxattr(tmp_path / "a.txt", "user.colour") == b"green"

    def test_write_protected_file(self, tools: FileTools, tmp_path: Path) -> None:
        (tmp_path / "a.txt").chmod(0o444)
        for change in ("write", "replace lines", "insert", "edit"):
            with pytest.raises(DeniedError, match="write-protected"):
                CHANGES[change](tools)
        assert (tmp_path / "a.txt").read_text() == OLD

    def test_other_name_of_a_file_keeps_its_content(self, tools: FileTools, tmp_path: Path) -> None:
        (tmp_path / "other").hardlink_to(tmp_path / "a.txt")
        tools.write_text_file("a.txt", NEW)
        assert ((tmp_path / "a.txt").read_text(), (tmp_path / "other").read_text()) == (NEW, OLD)


class TestLinks:
    def test_file_that_a_link_leads_to_is_written(self, tmp_path: Path, make: Make, engine: str) -> None:
        if engine == "named":
            pytest.skip("links are not followed there")
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a.txt").write_text(OLD)
        (tmp_path / "link").symlink_to("docs/to_a")
        (tmp_path / "docs" / "to_a").symlink_to("../docs/a.txt")
        (tmp_path / "docs" / "to_new").symlink_to("new.txt")
        tools = make(tmp_path)
        tools.edit_text_file("link", OLD, NEW)
        assert (tmp_path / "docs" / "a.txt").read_text() == NEW
        tools.write_text_file("docs/to_new", NEW)
        assert (tmp_path / "docs" / "new.txt").read_text() == NEW
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "docs" / "to_new").is_symlink()


class TestNewNames:
    @pytest.mark.parametrize("name", ["a\nb", "a\\b", "\x1b[2J", "a\u2028b", "sub\\x/file", "a\x7f"])
    def test_that_mislead_are_refused(self, name: str, tools: FileTools, tmp_path: Path) -> None:
        with pytest.raises(FileToolError, match="new name"):
            tools.write_text_file(name, NEW)
        assert names_in(tmp_path) == ["a.txt"]

    def test_of_files_that_are_there_are_taken(self, tools: FileTools, tmp_path: Path) -> None:
        (tmp_path / "a\nb").write_text(OLD)
        tools.write_text_file("a\nb", NEW)
        assert (tmp_path / "a\nb").read_text() == NEW

    @pytest.mark.parametrize("path", ["a.txt/b", "new/../../b", "missing/../b.txt", "x/", "", "."])
    def test_nothing_is_made_for_a_path_that_is_refused(self, path: str, tools: FileTools, tmp_path: Path) -> None:
        with pytest.raises(FileToolError):
            tools.write_text_file(path, NEW)
        assert names_in(tmp_path) == ["a.txt"]

    def test_depth_is_bounded(self, tools: FileTools, tmp_path: Path) -> None:
        with pytest.raises(FileToolError, match="too deep"):
            tools.write_text_file("d/" * 64 + "b.txt", NEW)
        tools.write_text_file("d/" * 63 + "b.txt", NEW)
        assert (tmp_path / ("d/" * 63) / "b.txt").read_text() == NEW


def test_without_durability_nothing_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    FileTools(tmp_path, durability="rename").write_text_file("a.txt", NEW)
    assert synced == []
    FileTools(tmp_path).write_text_file("a.txt", NEW)
    assert len(synced) == 2  # the file, and the directory
