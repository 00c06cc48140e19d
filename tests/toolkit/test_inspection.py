"""What hosts may ask a toolkit: its plugins, its board, and which tools were imported."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard import Middleware, PegboardError, Toolkit
from pegboard.inspection import Plugins, board_of, is_loaded, plugins_of, program_toolkit, watch_calls
from pegboard_testing import fake_distribution
from tests.support.plugin_site import Site


def test_what_is_installed_without_importing_it(site: Site) -> None:
    site.add("dice")
    (record,) = Plugins.load(imports=False, environ={}).records
    assert (record.name, record.state) == ("dice", "found")
    assert "site_dice" not in sys.modules


def test_who_contributes_what(site: Site) -> None:
    site.add("dice")
    with Toolkit() as toolkit:
        plugins = plugins_of(toolkit)
        offered, *own = plugins.contributions("provide_tools")
        assert (offered.origin.distribution, offered.pack, offered.builtin) == ("acme-dice", "dice", False)
        assert own
        assert all(each.builtin for each in own)
        assert all(each.builtin for each in plugins.contributions("provide_types"))
        assert set(plugins.import_seconds) == {"dice"}


def test_calls_are_followed_until_it_is_removed() -> None:
    seen: list[str] = []
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(lambda: 1, name="one")
        assert toolkit.call_sync("one").value == 1

        def watcher(name: str) -> Middleware:
            def around(call: Any, proceed: Callable[[], Any]) -> Any:
                seen.append(f"{name} {call.call_id}")
                return proceed()

            return Middleware(around, whole=True)

        removals = [watch_calls(toolkit, watcher(name)) for name in ("inner", "outer")]
        assert toolkit.call_sync("one", call_id="c1").value == 1
        assert toolkit.prepare("two", call_id="c2").status == "not_found"
        assert seen == ["outer c1", "inner c1", "outer c2", "inner c2"]
        for remove in (*removals, removals[0]):
            remove()
        assert toolkit.call_sync("one").value == 1
        assert len(seen) == 4


def test_names_that_clash(site: Site) -> None:
    for name in ("dice", "drum"):
        site.add(name, "def roll(): ...\n@hookimpl\ndef provide_tools(settings): return [roll]")
    with Toolkit() as toolkit:
        assert [tool.name for tool in board_of(toolkit).clashes["roll"].sides] == ["dice__roll", "drum__roll"]


def test_import_string_is_loaded_when_it_is_described(site: Site) -> None:
    site.add("lazy", "@hookimpl\ndef provide_tools(settings): return ['site_behind:heavy']")
    fake_distribution(site.path, "behind", modules={"site_behind": "def heavy(): 'Lift.'"})
    with Toolkit() as toolkit:
        toolkit.register(len, name="own")
        heavy, own = toolkit["heavy"], toolkit["own"]
        assert (is_loaded(heavy), is_loaded(own)) == (False, True)
        assert heavy.description == "Lift."
        assert is_loaded(heavy)


class TestProgramToolkit:
    """The toolkit that a command line names."""

    @pytest.fixture(autouse=True)
    def program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = tmp_path / "inspected" / "program_here.py"
        path.parent.mkdir()
        path.write_text(
            "from pegboard import Toolkit\n"
            "from beside_it import name\n\n\n"
            "class Boards:\n"
            "    @staticmethod\n"
            "    def small() -> Toolkit:\n"
            "        made = Toolkit(plugins=())\n"
            "        made.register(len, name=name)\n"
            "        return made\n\n\n"
            "toolkit = Boards.small()\n"
            "number = 1\n",
            encoding="utf-8",
        )
        path.with_name("beside_it.py").write_text("name = 'measure'\n", encoding="utf-8")
        monkeypatch.chdir(path.parent)
        monkeypatch.setattr(sys, "path", list(sys.path))
        for module in ("program_here", "beside_it", "_pegboard_program_program_here"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        return path

    @pytest.mark.parametrize(
        "target",
        ["program_here:toolkit", "program_here:Boards.small", "program_here.py", "program_here.py:Boards.small"],
    )
    def test_is_of_a_module_or_a_file(self, target: str) -> None:
        with program_toolkit(target) as toolkit:
            assert [tool.name for tool in toolkit] == ["measure"]

    def test_a_file_is_found_from_elsewhere_with_what_stands_beside_it(
        self, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with program_toolkit(str(program)) as toolkit:
            assert [tool.name for tool in toolkit] == ["measure"]

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            ("", "'' names no program; write MODULE:NAME or FILE.py"),
            ("program_here", "'program_here' names no program"),
            ("program_here:", "names no program"),
            (":toolkit", "names no program"),
            ("no_such_program:toolkit", "cannot be loaded: ModuleNotFoundError"),
            ("no_such_program.py", "cannot be loaded: FileNotFoundError"),
            ("program_here:missing", "cannot be loaded: AttributeError"),
            ("program_here:number", "is of type int; name a Toolkit, or a function that returns one"),
            ("json:loads", "json:loads cannot be loaded: TypeError"),
        ],
    )
    def test_says_what_is_wrong(self, target: str, message: str) -> None:
        with pytest.raises(PegboardError, match=message):
            program_toolkit(target)
