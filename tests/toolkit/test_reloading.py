"""A toolkit that runs takes in what was installed meanwhile, and lets go of what was removed; all or nothing."""

import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pegboard import PluginError, RegistrationError, Secret, SettingsError, Toolkit, tool
from pegboard._board.board import Registry
from pegboard.inspection import plugins_of
from tests.support.plugin_site import Site

SOURCE = """
import attrs, pegboard
asked = []

@attrs.frozen
class Settings:
    unit: str = "celsius"

def roll(sides: int = 6, key: str = "") -> str:
    return f"{sides} {key}"

@hookimpl
def settings_type():
    return Settings

@hookimpl
def provide_tools(settings):
    asked.append(settings.unit)
    return [roll]
"""
ANIMAL = """
from pegboard import TypeHandler, Middleware, Dialect, Injector, Converter

class Animal:
    def __init__(self, name): self.name = name

@hookimpl
def provide_types():
    return [TypeHandler(Animal, lambda annotation, types: types.plan(str))]

@hookimpl
def provide_converters():
    return [Converter(Animal, lambda animal: animal.name)]

@hookimpl
def provide_dialects():
    return [Dialect("zoo", lambda tools: ["zoo"])]

@hookimpl
def provide_tools(settings):
    def pet(animal: Animal) -> str: return str(animal)
    return [pet]
"""


def uninstall(site: Site, name: str) -> None:
    for path in site.path.glob(f"*{name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def names(toolkit: Toolkit) -> list[str]:
    return [tool.name for tool in toolkit]


class TestWhatChanges:
    def test_nothing(self, site: Site) -> None:
        site.add("ant")
        toolkit = Toolkit()
        tool = toolkit["ant_tool"]
        changes = toolkit.reload_plugins()
        assert not changes
        assert toolkit["ant_tool"].definition is tool.definition

    def test_installed_meanwhile(self, site: Site) -> None:
        site.add("bee")
        toolkit = Toolkit()
        site.add("ant", version="1.2")
        changes = toolkit.reload_plugins()
        assert [str(record.origin) for record in changes.added] == ["acme-ant 1.2"]
        assert (changes.tools_added, changes.tools_removed, changes.removed) == (("ant_tool",), (), ())
        assert names(toolkit) == names(Toolkit()) == ["ant_tool", "bee_tool"]
        assert toolkit.call_sync("ant_tool").status == "success"

    def test_uninstalled_meanwhile(self, site: Site) -> None:
        site.add("ant")
        site.add("bee")
        toolkit = Toolkit()
        uninstall(site, "ant")
        changes = toolkit.reload_plugins()
        assert [record.name for record in changes.removed] == ["ant"]
        assert changes.tools_removed == ("ant_tool",)
        assert names(toolkit) == ["bee_tool"]
        assert toolkit.call_sync("ant_tool").status == "not_found"
        assert "site_ant" not in sys.modules

    def test_installed_again_runs_the_new_code(self, site: Site) -> None:
        site.add("ant", "@hookimpl\ndef provide_tools():\n    def old(): ...\n    return [old]")
        toolkit = Toolkit()
        uninstall(site, "ant")
        toolkit.reload_plugins()
        site.add("ant", "@hookimpl\ndef provide_tools():\n    def fresh(): ...\n    return [fresh]", version="2")
        toolkit.reload_plugins()
        assert names(toolkit) == ["fresh"]

    def test_another_version_runs_on_and_says_so(self, site: Site) -> None:
        site.add("ant", version="1.0")
        toolkit = Toolkit()
        uninstall(site, "ant")
        site.add("ant", "raise SystemExit", version="2.0")
        changes = toolkit.reload_plugins()
        (record,) = changes.changed
        assert (record.version, record.state) == ("1.0", "active")
        assert record.reason == "2.0 is installed by now; restart the program to use it"
        assert names(toolkit) == ["ant_tool"]
        assert not toolkit.reload_plugins()

    def test_one_that_failed_is_tried_again(self, site: Site) -> None:
        site.add("ant", "import site_missing\n@hookimpl\ndef provide_tools(): return [site_missing.f]")
        toolkit = Toolkit()
        assert toolkit.plugins[0].state == "failed"
        (site.path / "site_missing.py").write_text("def f(): ...", encoding="utf-8")
        changes = toolkit.reload_plugins()
        assert [record.state for record in changes.added] == ["active"]
        assert names(toolkit) == ["f"]
        assert toolkit.plugin_errors == []

    def test_a_broken_newcomer_fails_alone(self, site: Site) -> None:
        site.add("ant")
        toolkit = Toolkit()
        site.add("bad", "raise ValueError('boom')")
        changes = toolkit.reload_plugins()
        assert [record.state for record in changes.changed] == ["failed"]
        assert names(toolkit) == ["ant_tool"]
        assert "boom" in toolkit.problems[0]

    def test_a_newcomer_does_not_take_a_running_ones_name(self, site: Site) -> None:
        site.add("dice", distribution="acme-dice")
        toolkit = Toolkit()
        other: dict[str, Any] = {"entry_points": {"dice": "site_other"}, "modules": {"site_other": "raise SystemExit"}}
        site.add("dice", distribution="pegboard-dice", **other)
        toolkit.reload_plugins()
        assert {record.distribution: record.state for record in toolkit.plugins} == {
            "acme-dice": "active",
            "pegboard-dice": "shadowed",
        }

    def test_copies_in_two_places(self, site: Site, tmp_path: Path) -> None:
        site.add("ant")
        sys.path.append(str(tmp_path / "later"))
        Site(tmp_path / "later").add("ant")
        toolkit = Toolkit()
        assert not toolkit.reload_plugins()
        uninstall(site, "ant")
        uninstall(Site(tmp_path / "later"), "ant")
        assert [record.state for record in toolkit.reload_plugins().removed] == ["active"]

    def test_clash_comes_and_goes(self, site: Site) -> None:
        one = "@hookimpl\ndef provide_tools():\n    def same(): ...\n    return [same]"
        site.add("ant", one)
        toolkit = Toolkit()
        site.add("bee", one)
        assert toolkit.reload_plugins().tools_added == ("ant__same", "bee__same")
        uninstall(site, "bee")
        assert toolkit.reload_plugins().tools_added == ("same",)


class TestWhatStays:
    def test_hooks_are_not_asked_again(self, site: Site) -> None:
        site.add("dice", SOURCE)
        toolkit = Toolkit(settings={"dice": {"unit": "kelvin"}})
        site.add("ant")
        toolkit.reload_plugins()
        assert sys.modules["site_dice"].asked == ["kelvin"]
        assert [item.value for item in plugins_of(toolkit).settings.effective("dice")] == ["kelvin"]

    def test_what_sessions_say(self, site: Site) -> None:
        site.add("dice", SOURCE)
        toolkit = Toolkit()
        toolkit.set_presets("roll", {"key": Secret("hunter2")})
        session = toolkit.session(presets={"roll": {"sides": 20}})
        session.set_permission("roll", "prompt")
        toolkit.register(lambda: "own", name="own")
        site.add("ant")
        toolkit.reload_plugins()
        assert toolkit.call_sync("roll").text == "6 hunter2"
        assert toolkit["roll"].parameters["properties"].keys() == {"sides"}
        assert session.permissions["roll"] == "prompt"
        assert session["roll"].parameters["properties"] == {}
        assert names(toolkit) == ["ant_tool", "roll", "own"]
        assert "ant_tool" in session

    def test_what_was_taken_down_stays_down(self, site: Site) -> None:
        site.add("ant")
        toolkit = Toolkit()
        toolkit.unregister("ant_tool")
        site.add("bee")
        toolkit.reload_plugins()
        assert names(toolkit) == ["bee_tool"]

    def test_objects(self, site: Site) -> None:
        site.add("dice", SOURCE)
        import site_dice  # type: ignore[import-not-found]

        toolkit = Toolkit(plugins=[site_dice, "ant"])
        site.add("ant")
        toolkit.reload_plugins()
        assert names(toolkit) == ["ant_tool", "roll"]
        assert site_dice.asked == ["celsius"]

    def test_selection_holds(self, site: Site) -> None:
        site.add("ant")
        toolkit = Toolkit(plugins=iter(["ant", "bee"]), block=iter(["cow"]))
        site.add("bee")
        site.add("cow")
        toolkit.reload_plugins()
        assert names(toolkit) == ["ant_tool", "bee_tool"]

    def test_settings_of_one_that_is_gone(self, site: Site) -> None:
        site.add("dice", SOURCE)
        toolkit = Toolkit(settings={"dice": {"unit": "kelvin"}})
        uninstall(site, "dice")
        assert [record.name for record in toolkit.reload_plugins().removed] == ["dice"]


class TestTables:
    def test_types_converters_dialects_come_and_go(self, site: Site) -> None:
        toolkit = Toolkit()
        site.add("zoo", ANIMAL)
        toolkit.reload_plugins()
        assert toolkit.problems == []
        assert toolkit.schemas(dialect="zoo") == ["zoo"]
        animal = sys.modules["site_zoo"].Animal
        assert toolkit.types.handler_for(animal)[1].plugin == "zoo"
        uninstall(site, "zoo")
        toolkit.reload_plugins()
        with pytest.raises(RegistrationError, match="Animal"):
            toolkit.types.plan(animal)
        with pytest.raises(KeyError, match="zoo"):
            toolkit.schemas(dialect="zoo")

    def test_middleware_comes_and_goes(self, site: Site) -> None:
        source = """
        from pegboard import Middleware

        def loud(call, proceed):
            heard.append(1)
            return proceed()

        heard = []

        @hookimpl
        def provide_middleware():
            return [Middleware(loud, "loud")]
        """
        toolkit = Toolkit()
        toolkit.register(lambda: "x", name="say")
        toolkit.call_sync("say")
        site.add("loud", source)
        toolkit.reload_plugins()
        toolkit.call_sync("say")
        heard = sys.modules["site_loud"].heard
        assert len(heard) == 1
        uninstall(site, "loud")
        toolkit.reload_plugins()
        assert toolkit.call_sync("say").text == "x"
        assert len(heard) == 1

    def test_backends_come_and_go(self, site: Site) -> None:
        source = """
        from concurrent.futures import Future

        class Far:
            name = "far"
            closed = 0
            def submit(self, job):
                future = Future()
                future.set_result(job.function(*job.args, **job.kwargs))
                return future
            def close(self):
                Far.closed += 1

        @hookimpl
        def provide_backends():
            return [Far()]
        """
        toolkit = Toolkit()
        site.add("far", source)
        toolkit.reload_plugins()
        toolkit.register(tool(backend="far")(lambda: "x"), name="say")
        far = sys.modules["site_far"].Far
        uninstall(site, "far")
        toolkit.reload_plugins()
        assert far.closed == 1
        with pytest.raises(RegistrationError, match="no backend 'far'"):
            toolkit.register(tool(backend="far")(lambda: "x"), name="other")

    def test_programs_own_handlers_stay(self, site: Site) -> None:
        toolkit = Toolkit()

        class Fruit: ...

        from pegboard import TypeHandler

        toolkit.register_type(TypeHandler(Fruit, lambda annotation, types: types.plan(str)))

        @toolkit.injectable
        class Db: ...

        site.add("zoo", ANIMAL)
        toolkit.reload_plugins()

        def eat(fruit: Fruit, db: Db) -> str:
            return str(fruit)

        (tool,) = toolkit.register(eat)
        assert list(tool.parameters["properties"]) == ["fruit"]


def test_others_see_the_board_before_or_after(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ant", "bee", "cow"):
        site.add(name)
    drop = Registry.drop_pack

    def slowly(registry: Registry, pack: str) -> None:
        drop(registry, pack)
        time.sleep(0.005)  # long enough for somebody to look

    monkeypatch.setattr(Registry, "drop_pack", slowly)
    toolkit = Toolkit()
    seen: set[tuple[str, ...]] = set()
    done = threading.Event()

    def look() -> None:
        session = toolkit.session()
        while not done.is_set():
            seen.add(tuple(tool.name for tool in session.tools))
            assert toolkit.call_sync("ant_tool").status == "success"

    with ThreadPoolExecutor(2) as pool:
        lookers = [pool.submit(look) for _ in range(2)]
        for _ in range(3):
            for name in ("bee", "cow"):
                uninstall(site, name)
            toolkit.reload_plugins()
            for name in ("bee", "cow"):
                site.add(name)
            toolkit.reload_plugins()
        done.set()
        for looker in lookers:
            looker.result()
    assert seen <= {("ant_tool",), ("ant_tool", "bee_tool", "cow_tool")}


class TestAllOrNothing:
    def test_program_needs_what_is_gone(self, site: Site) -> None:
        site.add("zoo", ANIMAL)
        site.add("ant")
        toolkit = Toolkit()
        animal = sys.modules["site_zoo"].Animal

        def feed(pet: animal) -> str:  # type: ignore[valid-type]
            return str(pet)

        toolkit.register(feed)
        before = toolkit.plugins
        uninstall(site, "zoo")
        site.add("bee")
        with pytest.raises(RegistrationError, match="Animal"):
            toolkit.reload_plugins()
        assert names(toolkit) == ["ant_tool", "pet", "feed"]
        assert toolkit.plugins == before
        assert toolkit.call_sync("feed", {"pet": "cat"}).text == "cat"
        assert toolkit.call_sync("pet", {"animal": "cat"}).text == "cat"
        assert toolkit.schemas(dialect="zoo") == ["zoo"]

    def test_another_pack_needs_what_is_gone(self, site: Site) -> None:
        site.add("zoo", ANIMAL)
        source = "from site_zoo import Animal\n@hookimpl\ndef provide_tools():\n    def feed(pet: Animal): ...\n"
        site.add("farm", source + "    return [feed]")
        toolkit = Toolkit()
        assert names(toolkit) == ["feed", "pet"]
        uninstall(site, "zoo")
        toolkit.reload_plugins()
        assert names(toolkit) == []
        assert [record.state for record in toolkit.plugins] == ["active"]
        assert "farm (acme-farm 1.0): tool 'feed': parameter 'pet': " in toolkit.problems[0]
        assert "Animal" in toolkit.problems[0]

    def test_another_pack_makes_a_tool_readable(self, site: Site) -> None:
        offers = "def f(x: complex) -> str: return str(x)\n@hookimpl\ndef provide_tools(settings): return [f]"
        site.add("broken", offers)
        toolkit = Toolkit()
        assert (names(toolkit), len(toolkit.problems)) == ([], 1)
        maps = "return [pegboard.TypeHandler(complex, lambda annotation, types: types.plan(str))]"
        site.add("numbers", f"import pegboard\n@hookimpl\ndef provide_types(): {maps}")
        assert toolkit.reload_plugins().tools_added == ("f",)
        assert (toolkit.problems, toolkit.call_sync("f", {"x": "i"}).text) == ([], "i")
        uninstall(site, "numbers")
        assert toolkit.reload_plugins().tools_removed == ("f",)
        assert [problem.partition(": no ")[0] for problem in toolkit.problems] == [
            "broken (acme-broken 1.0): tool 'f': parameter 'x'"
        ]

    def test_strict(self, site: Site) -> None:
        site.add("ant")
        toolkit = Toolkit(on_plugin_error="raise")
        before = toolkit.plugins
        site.add("bad", "raise ValueError")
        with pytest.raises(PluginError, match="bad"):
            toolkit.reload_plugins()
        assert (toolkit.plugins, names(toolkit)) == (before, ["ant_tool"])

    def test_strict_in_a_hook(self, site: Site) -> None:
        site.add("ant")
        toolkit = Toolkit(on_plugin_error="raise")
        before = toolkit.plugins
        site.add("aaa", ANIMAL)
        site.add("bad", "@hookimpl\ndef provide_tools(): 1 // 0")
        with pytest.raises(PluginError, match="bad"):
            toolkit.reload_plugins()
        assert (toolkit.plugins, names(toolkit)) == (before, ["ant_tool"])
        with pytest.raises(KeyError):
            toolkit.schemas(dialect="zoo")

    def test_settings_that_do_not_fit(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        site.add("ant")
        toolkit = Toolkit()
        site.add("dice", SOURCE)
        monkeypatch.setenv("PEGBOARD__DICE__UNTI", "x")
        with pytest.raises(SettingsError, match="unti"):
            toolkit.reload_plugins()
        assert names(toolkit) == ["ant_tool"]
        assert [record.name for record in toolkit.plugins] == ["ant"]
