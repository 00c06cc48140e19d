"""The pack as a toolkit finds it: settings, and the place that an instance takes."""

from pathlib import Path

import pytest

import pegboard_shell
from pegboard import PluginError, Status, Toolkit
from pegboard_shell import Settings, ShellTools
from tests.docs.page import Page
from tests.plugins.shell.helpers import SANDBOXES, output, use_sandbox
from tests.support.interpreters import printed
from tests.workspace.project import ROOT

TOOL = "execute_shell_command"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_installed_pack_asks_before_everything() -> None:
    board = Toolkit(plugins=["shell"])
    assert [tool.name for tool in board] == [TOOL]
    assert board.call_sync(TOOL, {"command": "echo a"}).status is Status.DENIED
    board = Toolkit(plugins=["shell"], approver=lambda request: True)
    assert output(board.call_sync(TOOL, {"command": "echo a"})) == "a\n"


def test_settings_reach_the_tool(tmp_path: Path) -> None:
    (tmp_path / "space").mkdir()
    settings = {"base_dir": "space", "allow": ["pwd", "env"], "variables": {"A": "b"}, "limits": {"open_files": 99}}
    board = Toolkit(plugins=["shell"], settings={"shell": settings})
    assert output(board.call_sync(TOOL, {"command": "pwd"})) == f"{tmp_path / 'space'}\n"
    assert "A=b\n" in output(board.call_sync(TOOL, {"command": "env"}))


def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD__SHELL__TIMEOUT", "0.3")
    monkeypatch.setenv("PEGBOARD__SHELL__ALLOW", '["sleep"]')
    result = Toolkit(plugins=["shell"]).call_sync(TOOL, {"command": "sleep 597"})
    assert result.status is Status.TIMEOUT


@pytest.mark.parametrize("settings", [{"allow": "echo"}, {"sandbox": "maybe"}, {"shell": True, "allow": ["ls"]}])
def test_settings_that_cannot_be_meant(settings: dict[str, object]) -> None:
    with pytest.raises((PluginError, Exception), match="shell"):
        Toolkit(plugins=["shell"], settings={"shell": settings}, on_plugin_error="raise")


def test_settings_are_what_the_constructor_takes() -> None:
    made = pegboard_shell.provide_tools(Settings())
    assert [type(each) for each in made] == [ShellTools]


def test_instance_takes_the_place_of_the_packs_tool() -> None:
    board = Toolkit(plugins=["shell"])
    board.register(ShellTools(".", allow=["echo"]))
    assert [tool.name for tool in board] == [TOOL]
    assert output(board.call_sync(TOOL, {"command": "echo a"})) == "a\n"


def test_tools_of_two_agents_have_their_own_directories(tmp_path: Path) -> None:
    boards = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        board = Toolkit(plugins=())
        board.register(ShellTools(tmp_path / name, allow=["pwd"]))
        boards.append(board)
    found = [output(board.call_sync(TOOL, {"command": "pwd"})) for board in boards]
    assert found == [f"{tmp_path / 'one'}\n", f"{tmp_path / 'two'}\n"]


def test_repr_of_settings_shows_no_values_of_variables() -> None:
    assert "secret" not in repr(Settings(variables={"KEY": "secret"}))


def test_pack_is_light_to_load() -> None:
    """It is imported whenever a toolkit is put together; what runs commands is needed later, if at all."""
    loaded = (
        "import sys, pegboard_shell; print(sorted({'asyncio', 'subprocess', 'ctypes', 'socket'} & set(sys.modules)))"
    )
    assert printed(loaded) == "[]"


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_packs_page_holds_in_every_sandbox(sandbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox(sandbox, monkeypatch)
    assert Page(ROOT / "docs" / "packs" / "shell.md").run()
