"""Where temporary names are while a file takes another's place, and who removes those that killed writers leave."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard_files import FileTools, StorageError
from pegboard_files._directory import folder as _folder
from pegboard_files._directory import replacing as _replacing
from pegboard_files._directory.folder import temporary_names
from tests.plugins.files.conftest import Make

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pack is weaker there")

USES: dict[str, Callable[[FileTools], Any]] = {
    "view": lambda tools: tools.view_text_file("sub/a.txt"),
    "list": lambda tools: tools.list_directory("sub"),
    "find": lambda tools: tools.find_files("*.md"),
    "search": lambda tools: tools.search_text("x", "sub/a.txt"),
    "write": lambda tools: tools.write_text_file("sub/b.txt", "x"),
    "insert": lambda tools: tools.insert_text_file("sub/a.txt", "x", 1),
    "edit": lambda tools: tools.edit_text_file("sub/a.txt", "old", "new"),
}

every_use = pytest.mark.parametrize("use", USES)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("old\n")
    return tmp_path


def leave(folder: Path, *numbers: int) -> None:
    """What a killed writer leaves."""
    for number in numbers:
        (folder / temporary_names[number]).write_text("left")


def is_folder(descriptor: int, folder: Path) -> bool:
    return os.path.samestat(os.fstat(descriptor), folder.stat())


def left_in(base: Path) -> list[str]:
    return sorted(str(path.relative_to(base)) for path in base.rglob(".pegboard-tmp-*"))


class TestRecovery:
    @every_use
    def test_first_use_of_any_tool(self, make: Make, base: Path, use: str) -> None:
        leave(base, 0, 7, 15)
        USES[use](make(base))
        assert left_in(base) == []

    @every_use
    def test_next_use_of_any_tool(self, make: Make, base: Path, use: str) -> None:
        tools = make(base)
        USES[use](tools)
        os.utime(base, (1, 1))  # long ago
        tools.view_text_file("sub/a.txt")
        leave(base, 3)
        tools.view_text_file("sub/a.txt")
        assert left_in(base) == []

    def test_directory_that_did_not_change_is_not_looked_through(
        self, make: Make, base: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tools = make(base)
        os.utime(base, (1, 1))
        tools.view_text_file("sub/a.txt")
        with monkeypatch.context() as patch:
            patch.setattr(_folder.Folder, "sweep", lambda folder: pytest.fail("looked through"))
            tools.view_text_file("sub/a.txt")
        os.utime(base)  # just now: two changes may bear the same time
        looked: list[str] = []

        def sweep(folder: _folder.Folder) -> bool:
            looked.append(folder.path)
            return True

        monkeypatch.setattr(_folder.Folder, "sweep", sweep)
        tools.view_text_file("sub/a.txt")
        tools.view_text_file("sub/a.txt")
        assert looked == [".", "."]

    def test_name_in_use_is_removed_when_its_user_is_gone(self, base: Path) -> None:
        """Though the directory does not change when a process ends."""
        import fcntl

        tools = FileTools(base)
        with (base / temporary_names[5]).open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            os.utime(base, (1, 1))
            tools.view_text_file("sub/a.txt")
            assert left_in(base) == [temporary_names[5]]
        tools.view_text_file("sub/a.txt")
        assert left_in(base) == []

    @pytest.mark.parametrize("use", ["view", "list", "find", "search"])
    def test_tools_that_only_read_change_nothing(self, make: Make, base: Path, use: str) -> None:
        leave(base, 1)
        leave(base / "sub", 2)
        result = USES[use](make(base, read_only=True))
        assert left_in(base) == [temporary_names[1], f"sub/{temporary_names[2]}"]
        assert "pegboard-tmp" not in str(getattr(result, "text", result))

    @pytest.mark.parametrize("use", ["list", "find", "write", "edit"])
    def test_beside_a_file_it_is_removed_by_writes_and_by_readers(self, make: Make, base: Path, use: str) -> None:
        leave(base / "sub", 2)
        USES[use](make(base))
        assert left_in(base) == []

    def test_roots_in_each_other(self, base: Path) -> None:
        """What writers of the inner one leave is hidden from the outer one, which removes it as well."""
        leave(base / "sub", 4)
        outer, inner = FileTools(base), FileTools(base / "sub")
        assert outer.list_directory("sub").text == "sub: 1 entry\na.txt (4 bytes)"
        assert left_in(base) == []
        leave(base / "sub", 4)
        inner.view_text_file("a.txt")
        assert left_in(base) == []
        leave(base, 4)
        inner.view_text_file("a.txt")
        outer.view_text_file("sub/a.txt")
        assert left_in(base) == []

    def test_what_is_no_file_stays(self, make: Make, base: Path) -> None:
        (base / temporary_names[0]).mkdir()
        (base / temporary_names[1]).symlink_to("sub/a.txt")
        os.mkfifo(base / temporary_names[2])
        tools = make(base)
        tools.view_text_file("sub/a.txt")
        tools.edit_text_file("sub/a.txt", "old", "new")
        assert left_in(base) == list(temporary_names[:3])
        assert (base / "sub" / "a.txt").read_text() == "new\n"

    def test_where_files_have_no_locks(self, make: Make, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Windows, where a file that is open cannot be removed; elsewhere that is unknown, and it stays."""
        monkeypatch.setattr(_folder, "lock", lambda descriptor, unknown=True: unknown)
        leave(base, 1)
        tools = make(base)
        tools.view_text_file("sub/a.txt")
        is_named = type(tools._root).__name__ == "NamedRoot"
        assert left_in(base) == ([] if is_named else [temporary_names[1]])


class TestPlace:
    """Where the name is before the file takes its place."""

    @pytest.fixture(params=["unnamed", "named temporary file"])
    def seen(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, base: Path) -> list[list[str]]:
        """Temporary names at the moment of each move."""
        if request.param != "unnamed":
            monkeypatch.setattr(_replacing, "_unnamed", lambda *_: -1)
        seen: list[list[str]] = []

        def replace(*arguments: Any, **options: Any) -> None:
            seen.append([name.rpartition("-")[0] for name in left_in(base)])
            move(*arguments, **options)

        move = os.replace
        monkeypatch.setattr(os, "replace", replace)
        return seen

    def test_is_the_base_directory(self, base: Path, seen: list[list[str]]) -> None:
        tools = FileTools(base)
        tools.write_text_file("sub/a.txt", "new\n")
        tools.edit_text_file("sub/a.txt", "new", "newer")
        assert seen == [[".pegboard-tmp"], [".pegboard-tmp"]]
        assert (base / "sub" / "a.txt").read_text() == "newer\n"
        assert left_in(base) == []

    def test_is_beside_the_file_where_the_base_directory_takes_none(
        self, base: Path, seen: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(real: Callable[..., Any], argument: str) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                directory = options.get(argument)
                if "tmp" in str(arguments) and directory and is_folder(directory, base):
                    raise PermissionError(errno.EACCES, "made up")
                return real(*arguments, **options)

            return call

        monkeypatch.setattr(os, "link", refuse(os.link, "dst_dir_fd"))
        monkeypatch.setattr(os, "open", refuse(os.open, "dir_fd"))
        FileTools(base).write_text_file("sub/a.txt", "new\n")
        assert seen == [["sub/.pegboard-tmp"]]
        assert (base / "sub" / "a.txt").read_text() == "new\n"
        assert left_in(base) == []

    def test_is_beside_the_file_where_it_cannot_be_moved(
        self, base: Path, seen: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same file system in two places: only the attempt tells."""

        def replace(*arguments: Any, src_dir_fd: int, dst_dir_fd: int) -> None:
            if is_folder(src_dir_fd, base) and not is_folder(dst_dir_fd, base):
                raise OSError(errno.EXDEV, "made up")
            move(*arguments, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        move = os.replace
        monkeypatch.setattr(os, "replace", replace)
        (base / "sub" / "a.txt").chmod(0o640)
        tools = FileTools(base)
        tools.write_text_file("sub/a.txt", "new\n" * 100_000)
        assert [names[-1] for names in seen] == ["sub/.pegboard-tmp"]
        assert (base / "sub" / "a.txt").read_text() == "new\n" * 100_000
        assert stat.S_IMODE((base / "sub" / "a.txt").stat().st_mode) == 0o640
        tools.write_text_file("sub/new.txt", "new\n")
        assert (base / "sub" / "new.txt").read_text() == "new\n"
        assert left_in(base) == []

    def test_interrupt_before_the_move(
        self, base: Path, seen: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            FileTools(base).write_text_file("sub/a.txt", "new\n")
        assert left_in(base) == []
        assert (base / "sub" / "a.txt").read_text() == "old\n"

    def test_directory_that_is_swapped_before_the_move(
        self, base: Path, seen: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The file goes into the directory that was opened, wherever that is now, and not into another of its name."""
        (base / "other").mkdir()

        def replace(*arguments: Any, **options: Any) -> None:
            (base / "sub").rename(base / "away")
            (base / "sub").symlink_to("other")
            move(*arguments, **options)

        move = os.replace
        monkeypatch.setattr(os, "replace", replace)
        FileTools(base).write_text_file("sub/a.txt", "new\n")
        assert (base / "away" / "a.txt").read_text() == "new\n"
        assert list((base / "other").iterdir()) == []
        assert left_in(base) == []

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser gives files away")
    @pytest.mark.parametrize("bit", [0, stat.S_ISGID])
    def test_new_file_has_the_group_of_its_own_place(self, base: Path, seen: list[list[str]], bit: int) -> None:
        os.chown(base, -1, 11111)
        os.chown(base / "sub", -1, 22222)
        base.chmod(0o755 | stat.S_ISGID)
        (base / "sub").chmod(0o755 | bit)
        FileTools(base).write_text_file("sub/new.txt", "new\n")
        (base / "sub" / "plain.txt").write_text("new\n")
        new, plain = (base / "sub" / "new.txt").stat(), (base / "sub" / "plain.txt").stat()
        assert (new.st_uid, new.st_gid, new.st_mode) == (plain.st_uid, plain.st_gid, plain.st_mode)

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser gives files away")
    def test_other_systems_take_the_group_of_the_directory(
        self, base: Path, seen: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        os.chown(base / "sub", -1, 22222)
        tools = FileTools(base)
        monkeypatch.setattr(_replacing, "_unnamed", lambda *_: -1)
        monkeypatch.setattr(sys, "platform", "darwin")
        tools.write_text_file("sub/new.txt", "new\n")
        assert (base / "sub" / "new.txt").stat().st_gid == 22222


MOUNTED = """
import os, sys
from pathlib import Path
from pegboard_files import FileTools
from pegboard_files._directory import replacing as _replacing

if sys.argv[1] != "unnamed":
    _replacing._unnamed = lambda *_: -1
tools = FileTools(".")
for folder in ("same", "other"):
    tools.write_text_file(f"{folder}/new.txt", "new")
    for text in ("once", "twice"):
        tools.write_text_file(f"{folder}/a.txt", text)
    assert Path(folder, "a.txt").read_text() == "twice"
    Path(folder, ".pegboard-tmp-3").write_text("left")
    tools.list_directory(folder)
print(sorted(str(path) for path in Path().rglob("*")))
"""


@pytest.mark.parametrize("way", ["unnamed", "named temporary file"])
def test_other_file_systems_below(tmp_path: Path, way: str) -> None:
    """A directory of the same file system that is mounted, and one of another one."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    for name in ("outside", "base", "base/same", "base/other"):
        (tmp_path / name).mkdir()
    mount = 'mount --bind ../outside same && mount -t tmpfs none other && exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    trial = subprocess.run([*command, "true"], cwd=tmp_path / "base", capture_output=True, check=False)
    if trial.returncode:
        pytest.skip("this system does not allow mounts")
    python = [sys.executable, "-c", MOUNTED, way]
    run = subprocess.run([*command, *python], cwd=tmp_path / "base", capture_output=True, check=False, text=True)
    assert run.stderr == ""
    assert run.stdout.strip() == "['other', 'other/a.txt', 'other/new.txt', 'same', 'same/a.txt', 'same/new.txt']"


def test_all_names_taken_everywhere(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (base, base / "sub"):
        for name in temporary_names:
            (folder / name).mkdir()
    monkeypatch.setattr(_replacing, "_ROUNDS", 2)
    tools = FileTools(base)
    with pytest.raises(StorageError, match="busy"):
        tools.write_text_file("sub/a.txt", "new")
    (base / "sub" / temporary_names[0]).rmdir()
    tools.write_text_file("sub/a.txt", "new")
    assert (base / "sub" / "a.txt").read_text() == "new"


def test_clock_that_runs_behind(base: Path) -> None:
    """A file system with a clock of its own: names are still removed, at the next change at the latest."""
    tools = FileTools(base)
    later = time.time() + 3600
    os.utime(base, (later, later))
    tools.view_text_file("sub/a.txt")
    leave(base, 1)
    os.utime(base, (later, later))
    tools.view_text_file("sub/a.txt")
    assert left_in(base) == []
