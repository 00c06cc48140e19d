"""Permissions: what may run unasked, what is asked about, what never runs; and the file that keeps them."""

import json
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pegboard import ApprovalRequest, PegboardError, SettingsError, Status, Toolkit, tool
from tests.support.desk import Desk, run, sent
from tests.support.waiting import PATIENCE


class TestEach:
    def make(self, **options: Any) -> Toolkit:
        toolkit = Toolkit(plugins=(), **options)
        toolkit.register(lambda: 1, name="free")
        toolkit.register(tool(requires_approval=True)(lambda: 2), name="asks")
        return toolkit

    def test_defaults(self) -> None:
        assert self.make().permissions == {"asks": "prompt", "free": "always"}

    def test_counts_at_once(self) -> None:
        toolkit = self.make()
        toolkit.set_permission("asks", "always")
        assert toolkit.call_sync("asks").value == 2
        toolkit.set_permission("free", "prompt")
        assert toolkit.call_sync("free").status is Status.DENIED
        toolkit.set_permission("free", "never")
        call = toolkit.prepare("free")
        assert call.status is Status.DENIED
        assert "not permitted" in toolkit.call_sync("free").text
        assert "free" in [each.name for each in toolkit.tools]

    def test_what_does_not_exist(self) -> None:
        with pytest.raises(PegboardError, match="free"):
            self.make().set_permission("fre", "never")
        with pytest.raises(ValueError, match="sometimes"):
            self.make().set_permission("free", "sometimes")  # type: ignore[arg-type]

    def test_of_a_session_do_not_leak(self) -> None:
        toolkit = self.make()
        session = toolkit.session()
        session.set_permission("free", "never")
        assert session.call_sync("free").status is Status.DENIED
        assert toolkit.call_sync("free").value == 1


class TestPermissionsAreThoseOfTheMoment:
    @pytest.mark.parametrize("on_a_loop", [False, True])
    def test_never_wins(self, on_a_loop: bool) -> None:
        with Desk(requires_approval=False) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")
            result = run(call, on_a_loop=on_a_loop)
            assert (result.status, result.text) == (Status.DENIED, "Error: delete is not permitted")
            assert desk.ran == []

    def test_never_wins_over_an_approver(self) -> None:
        asked: list[Any] = []
        with Desk(asked.append) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")
            assert call.execute_sync().status is Status.DENIED
            assert asked == []

    def test_prompt_asks(self) -> None:
        asked: list[str] = []
        with Desk(lambda request: asked.append(request.reason), requires_approval=False) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "prompt")
            assert call.execute_sync().status is Status.DENIED
            assert asked == ["delete always asks"]

    def test_always_asks_no_more(self) -> None:
        """Whoever says "always" to the first of several calls is not asked about the others."""
        asked: list[str] = []

        def approver(request: ApprovalRequest) -> bool:
            asked.append(request.call_id)
            desk.toolkit.set_permission("delete", "always")
            return True

        with Desk(approver) as desk:
            calls = [desk.toolkit.prepare("delete", sent(), call_id=f"c{n}") for n in range(3)]
            assert [call.status for call in calls] == [Status.AWAITING_APPROVAL] * 3
            assert [call.execute_sync().status for call in calls] == [Status.SUCCESS] * 3
            assert asked == ["c0"]

    def test_of_the_calls_own_session(self) -> None:
        with Desk(requires_approval=False) as desk:
            ann, bob = desk.toolkit.session(), desk.toolkit.session()
            calls = [session.prepare("delete", sent()) for session in (ann, bob)]
            ann.set_permission("delete", "never")
            assert [call.execute_sync().status for call in calls] == [Status.DENIED, Status.SUCCESS]
            call = bob.prepare("delete", sent())
            desk.toolkit.set_permission("delete", "never")  # a session is as its toolkit unless it says otherwise
            assert call.execute_sync().status is Status.DENIED

    def test_of_a_tool_that_is_gone(self) -> None:
        with Desk(lambda request: True) as desk:
            call = desk.toolkit.prepare("delete", sent())
            desk.toolkit.unregister("delete")
            assert call.execute_sync().status is Status.NOT_FOUND

    def test_a_result_that_is_there_stays(self) -> None:
        with Desk(lambda request: True) as desk:
            call = desk.toolkit.prepare("delete", sent())
            result = call.execute_sync()
            desk.toolkit.set_permission("delete", "never")
            assert call.execute_sync() is result


class TestNamesakes:
    """A tool that takes the name of one that was taken down."""

    @pytest.mark.parametrize(("said", "then"), [("always", "prompt"), ("never", "never"), ("prompt", "prompt")])
    def test_what_was_allowed_ends_and_what_was_refused_stays(self, tmp_path: Path, said: Any, then: str) -> None:
        path = tmp_path / "permissions.json"
        with Desk(permissions=path) as desk:
            desk.toolkit.set_permission("delete", said)
            delete = desk.toolkit["delete"]
            desk.toolkit.unregister("delete")
            desk.toolkit.register(delete)
            assert desk.toolkit.permissions["delete"] == then
        with Desk(permissions=path) as desk:
            assert desk.toolkit.permissions["delete"] == then

    def test_of_a_group(self) -> None:
        with Desk() as desk:
            desk.toolkit.create_group("files")
            desk.toolkit.register(tool(requires_approval=True)(lambda: 1), name="wipe", group="files")
            desk.toolkit.set_permission("wipe", "always")
            desk.toolkit.remove_groups("files")
            desk.toolkit.register(tool(requires_approval=True)(lambda: 2), name="wipe")
            assert desk.toolkit.permissions["wipe"] == "prompt"


class TestTheFile:
    def board(self, path: Path | str) -> Toolkit:
        toolkit = Toolkit(plugins=(), permissions=path)
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

    def test_names_that_hang_nowhere_are_kept(self, tmp_path: Path) -> None:
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
        """Whoever reads meanwhile sees the old permissions or the new ones, and never a part of them."""
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
        toolkit = Toolkit(plugins=(), permissions=path)
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
