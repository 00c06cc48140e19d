"""The file that keeps permissions."""

import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pegboard import SettingsError, Status, Toolkit
from pegboard_policy import Policy
from tests.support.desk import Desk
from tests.support.waiting import PATIENCE


class TestNamesakes:
    """A tool that takes the name of one that was removed."""

    @pytest.mark.parametrize(("said", "then"), [("always", "prompt"), ("never", "never"), ("prompt", "prompt")])
    def test_what_was_allowed_ends_and_what_was_refused_stays(self, tmp_path: Path, said: Any, then: str) -> None:
        path = tmp_path / "permissions.json"
        with Desk(plugins=[Policy(permissions=path)]) as desk:
            desk.toolkit.set_permission("delete", said)
            delete = desk.toolkit["delete"]
            desk.toolkit.unregister("delete")
            desk.toolkit.register(delete)
            assert desk.toolkit.permissions["delete"] == then
        with Desk(plugins=[Policy(permissions=path)]) as desk:
            assert desk.toolkit.permissions["delete"] == then


class TestTheFile:
    def board(self, path: Path | str) -> Toolkit:
        toolkit = Toolkit(plugins=[Policy(permissions=path)])
        for name in ("a", "b", "c"):
            toolkit.register(lambda: "ran", name=name)
        return toolkit

    def test_survives_the_toolkit(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        first = self.board(path)
        first.set_permission("c", "never")
        first.set_permission("b", "prompt")
        first.set_permission("b", "always")
        first_lines, _, rest = path.read_text(encoding="utf-8").partition(',\n  "$allowed": ')
        assert first_lines == '{\n  "b": "always",\n  "c": "never"'
        assert list(json.loads(rest.rpartition("}")[0])) == ["b"]
        assert [each.name for each in tmp_path.iterdir()] == ["permissions.json"]
        second = self.board(path)
        assert second.call_sync("c").status is Status.DENIED
        assert second.permissions == {"a": "always", "b": "always", "c": "never"}

    def test_names_that_are_not_registered_are_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        path.write_text('{"not_here": "never"}', encoding="utf-8")
        self.board(path).set_permission("a", "prompt")
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": "prompt", "not_here": "never"}

    def test_as_an_editor_may_leave_it(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        path.write_bytes(b'\xef\xbb\xbf{"a": "never"}\r\n')
        assert self.board(path).permissions["a"] == "never"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "null",
            "{",
            '"never"',
            "[]",
            '{"a": "Never"}',
            '{"a": null}',
            '{"a": {}}',
            '{"a": "never", "a": "always"}',
            "[" * 100_000,
        ],
    )
    def test_that_is_broken_is_an_error_and_is_left_alone(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "permissions.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SettingsError, match=r"permissions\.json: permissions are a JSON object"):
            self.board(path)
        assert path.read_text(encoding="utf-8") == text

    def test_that_is_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        path.write_bytes(b"\xff")
        with pytest.raises(SettingsError, match=r"permissions\.json"):
            self.board(path)

    def test_that_breaks_later_is_not_written_over(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        toolkit = self.board(path)
        toolkit.set_permission("a", "never")
        path.write_text('{"a": "never", "b": ', encoding="utf-8")
        with pytest.raises(SettingsError, match=r"permissions\.json"):
            toolkit.set_permission("a", "always")
        assert path.read_text(encoding="utf-8") == '{"a": "never", "b": '
        assert toolkit.call_sync("a").status is Status.DENIED

    def test_that_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="permissions are"):
            self.board(tmp_path)

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs an account that may not read everything")
    def test_that_may_not_be_read_allows_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        path.write_text('{"a": "never"}', encoding="utf-8")
        path.chmod(0)
        with pytest.raises(SettingsError, match=r"permissions\.json"):
            self.board(path)

    def test_that_cannot_be_written_changes_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "permissions.json"
        toolkit = self.board(path)
        toolkit.set_permission("a", "prompt")
        before = path.read_text(encoding="utf-8")

        def full(*args: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SettingsError, match=r"permissions\.json: the permissions cannot be saved: No space left"):
            toolkit.set_permission("a", "always")
        assert toolkit.permissions["a"] == "prompt"
        assert path.read_text(encoding="utf-8") == before
        assert [each.name for each in tmp_path.iterdir()] == ["permissions.json"]
        monkeypatch.undo()
        toolkit.set_permission("a", "always")
        assert toolkit.permissions["a"] == "always"

    def test_replaced_in_one_step(self, tmp_path: Path) -> None:
        """A reader meanwhile sees the old permissions or the new ones, and never a part of them."""
        path = tmp_path / "permissions.json"
        toolkit = self.board(path)
        toolkit.set_permission("a", "never")
        stop = threading.Event()
        seen: set[str] = set()

        def watch() -> None:
            while not stop.is_set():
                seen.add(path.read_text(encoding="utf-8"))

        with ThreadPoolExecutor(1) as pool:
            watcher = pool.submit(watch)
            for n in range(100):
                toolkit.set_permission("a", ("never", "prompt")[n % 2])
            stop.set()
            watcher.result(PATIENCE)
        assert seen <= {'{\n  "a": "never"\n}\n', '{\n  "a": "prompt"\n}\n'}
        assert len(seen) == 2

    def test_from_several_threads(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        toolkit = Toolkit(plugins=[Policy(permissions=path)])
        names = [f"tool{n}" for n in range(24)]
        for name in names:
            toolkit.register(lambda: 1, name=name)
        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(toolkit.set_permission, name, "never") for name in names]:
                future.result(PATIENCE)
        assert json.loads(path.read_text(encoding="utf-8")) == dict.fromkeys(sorted(names), "never")
        assert [each.name for each in tmp_path.iterdir()] == ["permissions.json"]

    def test_shared_by_two_programs(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        ann, bob = self.board(path), self.board(path)
        ann.set_permission("a", "never")
        bob.set_permission("b", "never")
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": "never", "b": "never"}
        assert bob.permissions["a"] == "never"

    def test_keeps_its_mode_and_its_link(self, tmp_path: Path) -> None:
        path, link = tmp_path / "real.json", tmp_path / "link.json"
        path.write_text("{}", encoding="utf-8")
        path.chmod(0o600)
        link.symlink_to(path)
        self.board(link).set_permission("a", "never")
        assert link.is_symlink()
        assert json.loads(path.read_text(encoding="utf-8")) == {"a": "never"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_in_a_folder_that_is_not_there_yet(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        toolkit = self.board("some/where/permissions.json")
        monkeypatch.chdir("/")
        toolkit.set_permission("a", "never")
        assert json.loads((tmp_path / "some/where/permissions.json").read_text(encoding="utf-8")) == {"a": "never"}

    @pytest.mark.parametrize("round_", range(10))
    def test_two_toolkits_at_once_lose_nothing(self, tmp_path: Path, round_: int) -> None:
        path = tmp_path / "permissions.json"
        names = [f"tool_{number}" for number in range(8)]
        boards = [Toolkit(plugins=[Policy(permissions=path)]) for _ in names]
        barrier = threading.Barrier(len(names))

        def decide(board: Toolkit, name: str) -> None:
            board.register(lambda: 1, name=name)
            barrier.wait(PATIENCE)
            board.set_permission(name, "never")

        with ThreadPoolExecutor(len(names)) as pool:
            for future in [pool.submit(decide, *each) for each in zip(boards, names, strict=True)]:
                future.result(PATIENCE)
        assert json.loads(path.read_text(encoding="utf-8")) == dict.fromkeys(names, "never")

    def test_two_programs_at_once_lose_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "permissions.json"
        program = (
            "import sys\nfrom pegboard import Toolkit\nfrom pegboard_policy import Policy\n"
            "board = Toolkit(plugins=[Policy(permissions=sys.argv[1])])\n"
            "for n in range(20):\n"
            "    board.register(lambda: 1, name=f'{sys.argv[2]}_{n}')\n"
            "    board.set_permission(f'{sys.argv[2]}_{n}', 'never')\n"
        )
        running = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in ("a", "b")]
        assert [each.wait(PATIENCE) for each in running] == [0, 0]
        assert len(json.loads(path.read_text(encoding="utf-8"))) == 40
