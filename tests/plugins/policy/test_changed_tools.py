"""Tools that change after they were reviewed: what a file allows, and what a lock file pins."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pegboard import PegboardError, PluginError, SettingsError, Status, Toolkit, tool
from pegboard.inspection import board_of
from pegboard_policy import LockFile, Policy, unenforced
from tests.board.test_changed_tools import CALL, CHANGES, each_change
from tests.toolkit.test_live_sources import Far


@pytest.fixture
def far() -> Far:
    return Far("send")


class TestAllowedInAFile:
    def board(self, path: Path, description: str) -> Toolkit:
        toolkit = Toolkit(plugins=[Policy(permissions=path)])
        toolkit.register(tool(requires_approval=True)(lambda: "sent"), name="send", description=description)
        return toolkit

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "permissions.json"

    def test_survives_the_program(self, path: Path) -> None:
        self.board(path, "Send.").set_permission("send", "always")
        assert self.board(path, "Send.").call_sync("send").text == "sent"
        changed = self.board(path, "Send it to me first.")
        assert changed.call_sync("send").status is Status.DENIED
        assert "its description" in changed.problems[0]
        assert self.board(path, "Send.").permissions["send"] == "always"
        changed.set_permission("send", "always")
        assert changed.call_sync("send").text == "sent"
        assert self.board(path, "Send.").permissions["send"] == "prompt"

    @pytest.mark.parametrize("spoilt", ['{"send": {"description": "0"}}', '{"send": {}}'])
    def test_with_other_hashes_it_asks(self, path: Path, spoilt: str) -> None:
        path.write_text(f'{{"send": "always", "$allowed": {spoilt}}}', encoding="utf-8")
        assert self.board(path, "Send.").permissions["send"] == "prompt"

    @pytest.mark.parametrize("spoilt", ["[]", '"send"', '{"send": []}', '{"send": "always"}', "null"])
    def test_that_is_broken(self, path: Path, spoilt: str) -> None:
        path.write_text(f'{{"send": "always", "$allowed": {spoilt}}}', encoding="utf-8")
        with pytest.raises(SettingsError, match="permissions are a JSON object"):
            self.board(path, "Send.")

    def test_what_a_person_wrote_is_about_the_tool_that_is_there(self, path: Path, far: Far) -> None:
        path.write_text('{"send": "always", "other": "never"}', encoding="utf-8")
        with Toolkit(plugins=[Policy(permissions=path)]) as toolkit:
            toolkit.register(far)
            assert toolkit.call_sync("send", CALL).status is Status.SUCCESS
            far.offer(CHANGES["description"](), "more")
            assert toolkit.permissions["send"] == "prompt"
            toolkit.set_permission("more", "never")  # what is in the file alone is kept, and so is what was seen
            assert toolkit.permissions["send"] == "prompt"
        saved = json.loads(path.read_text(encoding="utf-8"))
        assert (saved["send"], saved["other"], list(saved["$allowed"])) == ("always", "never", ["send"])


def lock(toolkit: Toolkit, path: Path) -> Path:
    tools = {name: LockFile.pinned(each) for name, each in board_of(toolkit).tools.items()}
    path.write_text(json.dumps({"format": 1, "distributions": {}, "tools": tools}), encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(Far("send", "look"))
        return lock(toolkit, tmp_path / "pegboard.lock")


class TestLock:
    @each_change
    def test_what_is_not_as_it_was_is_neither_offered_nor_called(self, path: Path, far: Far, fact: str) -> None:
        with Toolkit(plugins=[Policy(lock=path)]) as toolkit:
            toolkit.register(far)
            assert toolkit.call_sync("send", CALL).status is Status.SUCCESS
            assert toolkit.problems == []

            far.offer(CHANGES[fact](), "look")
            assert [each.name for each in toolkit.tools] == ["look"]
            assert [each.name for each in toolkit.schemas()] == ["look"]
            refused = toolkit.session().call_sync("send", CALL)
            assert (refused.status, refused.text) == (
                Status.DENIED,
                "Error: send cannot be called: it is not offered here",
            )
            (problem,) = toolkit.problems
            assert problem == (
                f"'send' is not offered: its {fact} changed since {path} was written; to accept it: pegboard lock"
            )
            assert refused.error is not None
            assert refused.error.details["remedy"] == problem

            far.offer("send")
            assert toolkit.call_sync("send", CALL).status is Status.SUCCESS
            assert toolkit.problems == []

    def test_what_asks_no_more(self, tmp_path: Path) -> None:
        def board(asks: Any, **options: Any) -> Toolkit:
            toolkit = Toolkit(plugins=[Policy(**options)], approver=lambda request: True)
            toolkit.register(tool(requires_approval=asks)(lambda: 1), name="wipe")
            return toolkit

        path = lock(board(True), tmp_path / "pegboard.lock")
        assert board(True, lock=path).call_sync("wipe").value == 1
        for asks in (False, lambda arguments: False):
            other = board(asks, lock=path)
            assert other.call_sync("wipe").status is Status.DENIED
            assert "its approval changed" in other.problems[0]

    def test_what_is_new(self, path: Path) -> None:
        with Toolkit(plugins=[Policy(lock=path)]) as toolkit:
            toolkit.register(Far("send", "more"))
            assert [each.name for each in toolkit.tools] == ["send"]
            assert "'more' is not offered: it was not there when" in toolkit.problems[0]
            assert toolkit.call_sync("more", CALL).status is Status.DENIED

    def test_under_another_name_in_a_view(self, path: Path, far: Far) -> None:
        with Toolkit(plugins=[Policy(lock=path)]) as toolkit:
            toolkit.register(far)
            view = toolkit.view(prefix="far_")
            assert view.call_sync("far_send", CALL).status is Status.SUCCESS
            far.offer(CHANGES["hints"]())
            assert view.tools == []
            assert view.call_sync("far_send", CALL).status is Status.DENIED

    def test_presets_and_groups_are_the_programs(self, path: Path, far: Far) -> None:
        with Toolkit(plugins=[Policy(lock=path)]) as toolkit:
            toolkit.create_group("mail", active=False)
            toolkit.register(far, group="mail", presets={"send": {"key": "k"}})
            toolkit.register_meta_tool()
            assert toolkit.call_sync("reset_equipped_tools", {"to_activate": ["mail"]}).status is Status.SUCCESS
            assert toolkit.call_sync("send", {"text": "a"}).status is Status.SUCCESS
            assert toolkit.problems == []

    @pytest.mark.parametrize(
        ("damage", "told"),
        [
            (None, r"there is no .*pegboard\.lock; write one with: pegboard lock"),
            ("", "cannot be read as a lock file"),
            ("{}", "cannot be read as a lock file"),
            ('{"format": 1, "distributions": {}, "tools": {"send": 1}}', "cannot be read as a lock file"),
            ('{"format": 2, "distributions": {}, "tools": {}}', "does not agree with itself"),
            ("edited", "does not agree with itself"),
        ],
    )
    def test_without_a_lock_file_there_is_no_toolkit(self, path: Path, damage: str | None, told: str) -> None:
        if damage is None:
            path.unlink()
        elif damage == "edited":
            path.write_text(path.read_text(encoding="utf-8").replace("Remote.", "Anything."), encoding="utf-8")
        else:
            path.write_text(damage, encoding="utf-8")
        with pytest.raises(SettingsError, match=told):
            Toolkit(plugins=[Policy(lock=path)])


def test_who_writes_a_lock_is_alone_not_held_to_it(path: Path) -> None:
    def board() -> Toolkit:
        toolkit = Toolkit(plugins=[Policy(lock=path)])
        toolkit.register(Far("new"))
        return toolkit

    with unenforced():
        assert [each.name for each in board().tools] == ["new"]
        with ThreadPoolExecutor(1) as other:
            assert other.submit(board).result().tools == []


class TestEnvironment:
    """What no program can weaken or write."""

    @pytest.fixture(autouse=True)
    def files(self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        permissions = tmp_path / "permissions.json"
        permissions.write_text('{"send": "prompt", "look": "never"}', encoding="utf-8")
        monkeypatch.setenv("PEGBOARD_LOCK", str(path))
        monkeypatch.setenv("PEGBOARD_PERMISSIONS", str(permissions))
        return permissions

    @pytest.mark.parametrize("plugins", [["policy"], [Policy()], ["installed", Policy()]])
    def test_counts_whatever_the_program_says(self, plugins: Any, files: Path) -> None:
        with Toolkit(plugins=plugins) as toolkit:
            toolkit.register(Far("send", "look", "more"))
            offered = [each.name for each in toolkit.tools]
            assert ("send" in offered, "more" in offered) == (True, False)
            assert (toolkit.permissions["send"], toolkit.permissions["look"]) == ("prompt", "never")
            with pytest.raises(PegboardError, match=r"the guard 'PEGBOARD_PERMISSIONS' of .* holds 'send' at 'prompt'"):
                toolkit.set_permission("send", "always")
            toolkit.set_permission("send", "never")
            assert toolkit.permissions["send"] == "never"
            assert not [each for each in toolkit.problems if "both offer" in each]
        assert json.loads(files.read_text(encoding="utf-8")) == {"send": "prompt", "look": "never"}

    @pytest.mark.parametrize("variable", ["PEGBOARD_LOCK", "PEGBOARD_PERMISSIONS"])
    @pytest.mark.parametrize("damage", ["missing", "damaged"])
    def test_a_file_that_cannot_be_read_stops_the_program(
        self, variable: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = tmp_path / "named"
        if damage == "damaged":
            named.write_text("{", encoding="utf-8")
        monkeypatch.setenv(variable, str(named))
        with pytest.raises(SettingsError, match=f"{variable}: "):
            Toolkit(plugins=["policy"])

    def test_without_an_active_policy_pack_there_is_no_toolkit(self) -> None:
        with pytest.raises(PluginError, match=r"PEGBOARD_LOCK is set, and no active pack holds tools to it"):
            Toolkit(plugins=())

    def test_empty_means_unset(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEGBOARD_LOCK", "")
        monkeypatch.setenv("PEGBOARD_PERMISSIONS", "")
        Toolkit(plugins=()).close()


def test_settings_name_the_files_too(path: Path, tmp_path: Path) -> None:
    settings = {"policy": {"lock": str(path), "permissions": str(tmp_path / "permissions.json")}}
    with Toolkit(plugins=["policy"], settings=settings) as toolkit:
        toolkit.register(Far("send", "more"))
        assert [each.name for each in toolkit.tools] == ["send"]
        toolkit.set_permission("send", "never")
    assert json.loads((tmp_path / "permissions.json").read_text(encoding="utf-8")) == {"send": "never"}
    with pytest.raises(SettingsError, match="there is no"):
        Toolkit(plugins=["policy"], settings={"policy": {"lock": str(tmp_path / "none")}})
