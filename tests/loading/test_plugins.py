"""Loading plugins: none can break another, and each says what became of it."""

import json
import os
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import pytest

from pegboard import Toolkit
from pegboard._base.errors import PluginError, RegistrationError, SettingsError
from pegboard._model.plugin_record import PluginRecord, PluginState
from pegboard._model.tool import Origin
from pegboard._plugins.manager import Plugins
from pegboard.builtin import types
from pegboard.extension import Command
from pegboard.hookspecs import hookimpl
from pegboard_testing import fake_distribution
from tests.support.interpreters import printed
from tests.support.plugin_site import HEADER, TOOLS, Site, record, states, tool_names


class TestActive:
    def test_record(self, site: Site) -> None:
        site.add("dice", version="1.2")
        expected = PluginRecord("dice", "acme-dice", "1.2", "site_dice", PluginState.ACTIVE)
        plugins = site.load()
        assert plugins.records == (expected,)
        assert plugins.errors == ()
        assert plugins.import_seconds["dice"] > 0
        assert repr(plugins) == "Plugins(1 active)"

    def test_contributions_know_their_origin(self, site: Site) -> None:
        site.add("my-dice", version="1.2")
        (item,) = site.load().tools()
        assert item.origin == Origin("my-dice", "acme-my-dice", "1.2", "site_my_dice")
        assert (item.pack, item.builtin, item.value.__name__) == ("my_dice", False, "my_dice_tool")

    def test_order_is_that_of_names(self, site: Site) -> None:
        for name in ("zebra", "ant", "Mole"):
            site.add(name, distribution=f"acme-{9 - len(name)}")
        plugins = site.load()
        assert list(states(plugins)) == ["Mole", "ant", "zebra"]
        assert tool_names(plugins) == ["Mole_tool", "ant_tool", "zebra_tool"]

    def test_entry_point_to_an_object_in_a_module(self, site: Site) -> None:
        source = "class Pack:\n    @hookimpl\n    def provide_tools(self): return [len]\nclass Box: pack = Pack()"
        site.add("box", source, entry_points={"box": "site_box:Box.pack"})
        assert tool_names(site.load()) == ["len"]

    def test_entry_point_to_a_class_makes_an_instance(self, site: Site) -> None:
        source = "class Pack:\n    @hookimpl\n    def provide_tools(self): return [len]"
        site.add("box", source, entry_points={"box": "site_box:Pack"})
        assert tool_names(site.load()) == ["len"]

    def test_hooks_are_asked_once(self, site: Site) -> None:
        site.add("dice", "asked = []\n@hookimpl\ndef provide_tools():\n    asked.append(1)\n    return [len]")
        plugins = site.load()
        assert plugins.tools() == plugins.tools() == plugins.contributions("provide_tools")
        assert sys.modules["site_dice"].asked == [1]

    def test_any_hook(self, site: Site) -> None:
        source = """
        from pegboard.extension import Command
        @hookimpl
        def provide_commands():
            return [Command("hi", "Say hi.", print)]
        """
        site.add("hi", source)
        (item,) = site.load().contributions("provide_commands")
        assert isinstance(item.value, Command)

    def test_remarkable_conduct_is_on_the_record(self, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
        site.add("loud", "import sys\nprint('hello')\nsys.path.insert(0, '/elsewhere')\n" + TOOLS.format(tool="f"))
        path = list(sys.path)
        plugins = site.load()
        assert states(plugins) == {"loud": "active"}
        assert "printed to standard output" in record(plugins, "loud").reason
        assert "changed sys.path" in record(plugins, "loud").reason
        assert sys.path == path
        assert capsys.readouterr().out == ""


SABOTAGE = {
    "exception": ("raise ValueError('boom')", ["raised ValueError at import: boom"]),
    "exit": ("raise SystemExit('bye')", ["raised SystemExit at import: bye"]),
    "exit_code": ("import sys\nsys.exit(3)", ["raised SystemExit at import: 3"]),
    "interrupt": ("raise KeyboardInterrupt", ["raised KeyboardInterrupt at import"]),
    "generator_exit": ("raise GeneratorExit", ["raised GeneratorExit at import"]),
    "base": ("class Odd(BaseException): ...\nraise Odd", ["raised Odd at import"]),
    "mute": ("class Mute(Exception):\n    def __str__(self): raise SystemExit\nraise Mute", ["raised Mute at import"]),
    "missing": ("import no_such_module.part", ["needs the module 'no_such_module' at import, which is not installed"]),
    "wrong_version": ("from json import no_such_name", ["raised ImportError at import: cannot import name"]),
    "syntax": ("def :", ["raised SyntaxError at import"]),
    "recursion": ("def f(): f()\nf()", ["raised RecursionError at import"]),
    "nothing": ("x = 1", ["implements no hook", "@pegboard.hookimpl"]),
    "misspelt": ("@hookimpl\ndef provide_tool(settings): ...", ["Did you mean 'provide_tools'"]),
    "signature": ("@hookimpl\ndef provide_tools(config): ...", ["'config'", "provide_tools(settings, toolkit)"]),
    "in_hook": ("@hookimpl\ndef provide_tools(): 1 // 0", ["raised ZeroDivisionError in provide_tools: integer"]),
    "exit_in_hook": ("@hookimpl\ndef provide_tools(): raise SystemExit", ["raised SystemExit in provide_tools"]),
    "settings_error_in_hook": (
        "@hookimpl\ndef provide_tools():\n    from pegboard import SettingsError\n    raise SettingsError('no')",
        ["raised SettingsError in provide_tools: no"],
    ),
    "in_generator": ("@hookimpl\ndef provide_tools():\n    yield len\n    raise OSError('late')", ["OSError", "late"]),
    "garbage": ("@hookimpl\ndef provide_tools(): return 42", ["provide_tools returned an int"]),
    "garbage_item": ("@hookimpl\ndef provide_tools(): return [None]", ["item 0 of provide_tools"]),
    "async_hook": ("@hookimpl\nasync def provide_tools(): return []", ["provide_tools is async"]),
    "settings_garbage": ("@hookimpl\ndef settings_type(): return 42", ["settings_type returned an int"]),
    "settings_raise": ("@hookimpl\ndef settings_type(): raise OSError('x')", ["raised OSError in settings_type: x"]),
    "settings_required": (
        "import attrs\n@attrs.frozen\nclass S:\n    x: int\n@hookimpl\ndef settings_type(): return S",
        ["the settings of 'bad' lack 'x'", "write x = ... under [bad] in pegboard.toml", "PEGBOARD__BAD__X"],
    ),
    "settings_refuse": (
        (
            "import attrs\nfrom pegboard import SettingsError\n@attrs.frozen\nclass S:\n"
            "    def __attrs_post_init__(self): raise SettingsError('no key')\n@hookimpl\ndef settings_type(): return S"
        ),
        ["S() raised no key; a pack must load without settings"],
    ),
    "closes_stdout": ("import sys\nsys.stdout = None\nraise ValueError('boom')", ["raised ValueError"]),
}


class TestSabotage:
    """One bad plugin: it fails with a reason, all others work."""

    @pytest.mark.parametrize("case", SABOTAGE)
    def test_leaves_the_others_working(self, site: Site, case: str) -> None:
        source, words = SABOTAGE[case]
        site.add("apple")
        site.add("bad", source)
        site.add("pear")
        plugins = site.load()
        assert tool_names(plugins) == ["apple_tool", "pear_tool"]
        assert states(plugins) == {"apple": "active", "bad": "failed", "pear": "active"}
        for word in words:
            assert word in record(plugins, "bad").reason
        assert "\n" not in record(plugins, "bad").reason
        (failure,) = plugins.errors
        assert failure.record is record(plugins, "bad")
        assert failure.exception is not None
        assert type(failure.exception).__name__ in failure.traceback

    @pytest.mark.parametrize("case", SABOTAGE)
    def test_raises_in_strict_mode(self, site: Site, case: str) -> None:
        site.add("bad", SABOTAGE[case][0])
        with pytest.raises(PluginError, match=r"the plugin bad \(acme-bad 1\.0\) is failed: ") as caught:
            site.load(on_error="raise").tools()
        assert isinstance(caught.value.__cause__, BaseException)

    @pytest.mark.parametrize(
        ("module", "requires", "remedy"),
        [
            ("no_cv2", [], ""),
            ("no_cv2", ["pegboard>=0.1", "no-opencv-headless (>=4)"], "; pip install no-opencv-headless"),
            ("no_cv2.part", ["no_such", "No.CV2[all]>=1", "no_more"], "; pip install No.CV2"),
            ("no_cv2", ["no-cv2; extra == 'video'", "no_such"], "; pip install no-cv2"),
            ("no_cv2", ["no-such; extra == 'video'"], ""),
            ("pegboard_filez", [], ""),
            ("pegboard_ray", [], "; pip install pegboard-ray"),
        ],
    )
    def test_a_remedy_names_what_the_pack_requires(
        self, site: Site, module: str, requires: list[str], remedy: str
    ) -> None:
        site.add("bad", f"import {module}", requires=requires)
        site.add("here", distribution="no-such")
        (bad, _) = site.load().records
        name = module.partition(".")[0]
        assert bad.reason == f"needs the module {name!r} at import, which is not installed{remedy}"

    @pytest.mark.parametrize(
        ("entry_point", "word"),
        [
            ("no_such_module", "its entry point leads to no module: there is no 'no_such_module'"),
            ("site_bad.part", "there is no 'site_bad.part'"),
            ("site_bad:nothing", "'site_bad' has no 'nothing'"),
            ("site_bad:number", "the int implements no hook"),
            ("not a reference", "not a reference"),
            ("json", "the module implements no hook"),
        ],
    )
    def test_entry_point_to_nothing(self, site: Site, entry_point: str, word: str) -> None:
        site.add("bad", "number = 42", entry_points={"bad": entry_point})
        site.add("good")
        plugins = site.load()
        assert tool_names(plugins) == ["good_tool"]
        assert word in record(plugins, "bad").reason

    def test_a_failed_hook_takes_all_contributions_out(self, site: Site) -> None:
        source = """
        from pegboard.extension import Command
        @hookimpl
        def provide_commands(): return [Command("hi", "Say hi.", print)]
        @hookimpl
        def provide_tools(): raise OSError
        """
        site.add("half", source)
        plugins = site.load()
        assert len(plugins.contributions("provide_commands")) == 1
        assert plugins.tools() == ()
        assert plugins.contributions("provide_commands") == ()

    def test_five_thousand_tools(self, site: Site) -> None:
        site.add("many", "@hookimpl\ndef provide_tools(): return [f'site_tools:t{n}' for n in range(5000)]")
        assert len(site.load().tools()) == 5000

    def test_warning_as_error(self, site: Site) -> None:
        site.add("warns", "import warnings\nwarnings.warn('old')\n" + TOOLS.format(tool="f"))
        assert "raised UserWarning at import: old" in record(site.load(), "warns").reason


class TestCompatibility:
    @pytest.mark.parametrize(
        ("requires", "state"),
        [
            ("pegboard>=0.4,<0.5", "active"),
            ("pegboard~=0.4", "active"),
            ("pegboard==0.4.*", "active"),
            ("pegboard", "active"),
            ("pegboard @ file:///elsewhere", "active"),
            ("pegboard>=9; extra == 'new'", "active"),
            ("pegboard-other>=9", "active"),
            ("pegboard>=0.5", "incompatible"),
            ("Pegboard (<0.4)", "incompatible"),
            ("pegboard!=0.4.2", "incompatible"),
            ("pegboard>=nonsense", "incompatible"),
        ],
    )
    def test_is_decided_from_the_requirement(self, site: Site, requires: str, state: str) -> None:
        fake_distribution(site.path, "pegboard", "0.4.2")
        site.add("dice", requires=["attrs", requires])
        assert states(site.load()) == {"dice": state}

    def test_before_import(self, site: Site) -> None:
        fake_distribution(site.path, "pegboard", "0.4.2")
        site.add("dice", "raise SystemExit", requires=["pegboard>=0.5"])
        plugins = site.load()
        assert "site_dice" not in sys.modules
        remedy = "install a release of acme-dice that fits"
        reason = f"requires pegboard>=0.5, but 0.4.2 is installed; {remedy}"
        assert record(plugins, "dice").reason == reason
        assert plugins.errors == ()
        with pytest.raises(PluginError, match=r"is incompatible: requires pegboard>=0.5"):
            site.load(on_error="raise")

    def test_unknown_core_version_blocks_no_plugin(self, site: Site) -> None:
        site.add("dice", requires=["pegboard>=99"])
        assert states(site.load()) == {"dice": "active"}


class TestSelection:
    @pytest.fixture(autouse=True)
    def three(self, site: Site) -> None:
        for name in ("ant", "bee", "cow"):
            site.add(name)

    @pytest.mark.parametrize(
        ("options", "active"),
        [
            ({}, "abc"),
            ({"selection": "installed"}, "abc"),
            ({"selection": ()}, ""),
            ({"selection": []}, ""),
            ({"selection": ["ant"]}, "a"),
            ({"selection": "ant"}, "a"),
            ({"selection": ["acme-bee", "ANT"]}, "ab"),
            ({"selection": ["acme_bee"]}, "b"),
            ({"selection": ["installed"]}, "abc"),
            ({"selection": ["*"]}, "abc"),
            ({"block": ["ant"]}, "bc"),
            ({"block": "acme-bee"}, "ac"),
            ({"block": ["*"]}, ""),
            ({"block": ["acme-*"]}, ""),
            ({"block": ["nobody"]}, "abc"),
            ({"selection": ["ant", "bee"], "block": ["ant"]}, "b"),
            ({"environ": {"PEGBOARD_PLUGINS": "ant, acme.bee"}}, "ab"),
            ({"environ": {"PEGBOARD_PLUGINS": ""}}, ""),
            ({"environ": {"PEGBOARD_PLUGINS": "ant"}, "selection": ["ant", "bee"]}, "a"),
            ({"environ": {"PEGBOARD_PLUGINS": "nobody"}}, ""),
            ({"environ": {"PEGBOARD_BLOCK": "ant,bee"}}, "c"),
            ({"environ": {"PEGBOARD_BLOCK": "*"}}, ""),
            ({"environ": {"PEGBOARD_BLOCK": ""}}, "abc"),
            ({"environ": {"PEGBOARD_BLOCK": "ant"}, "block": ["bee"]}, "c"),
        ],
    )
    def test_what_is_active(self, site: Site, options: dict[str, Any], active: str) -> None:
        plugins = site.load(**options)
        assert "".join(name[0] for name, state in states(plugins).items() if state == "active") == active
        assert [name[0] for name in tool_names(plugins)] == list(active)
        assert all(record.reason for record in plugins.records if record.state is not PluginState.ACTIVE)

    def test_what_is_left_out_is_not_imported(self, site: Site) -> None:
        plugins = site.load(selection=["ant", "bee"], block=["bee"])
        assert states(plugins) == {"ant": "active", "bee": "blocked", "cow": "found"}
        assert record(plugins, "bee").reason == "blocked by block=bee"
        assert record(plugins, "cow").reason == "not selected: plugins=ant,bee does not name it"
        assert "site_bee" not in sys.modules
        assert "site_cow" not in sys.modules

    def test_a_file_selects_too(self, site: Site, tmp_path: Path) -> None:
        config = tmp_path / "pegboard.toml"
        config.write_text('plugins = ["ant", "bee"]\nblock = ["bee"]\n', encoding="utf-8")
        plugins = site.load(config=config)
        assert states(plugins) == {"ant": "active", "bee": "blocked", "cow": "found"}
        assert str(config) in record(plugins, "bee").reason

    def test_a_name_that_is_not_installed(self, site: Site) -> None:
        plugins = site.load(selection=["ant", "bea", "acme-ant"])
        assert states(plugins) == {"ant": "active", "bea": "failed", "bee": "found", "cow": "found"}
        reason = record(plugins, "bea").reason
        assert reason.startswith("not installed. Did you mean 'bee'")
        # A guessed name is not advised: any third party could register it.
        assert reason.endswith("Install what offers it.")
        ours = record(site.load(selection=["shell"]), "shell").reason
        assert ours.endswith("To install it: pip install pegboard-shell")
        with pytest.raises(PluginError, match="the plugin bea is failed: not installed"):
            site.load(selection=["bea"], on_error="raise")

    def test_names_that_are_not_near_are_not_suggested(self, site: Site) -> None:
        for name in ("openapi", "otel"):
            site.add(name)
        reason = record(site.load(selection=["nope"]), "nope").reason
        assert reason.startswith("not installed. Known installed plugins: acme-ant, ")

    @pytest.mark.parametrize("selection", ["installed", ["ant", "bee", "cow"]])
    def test_a_name_to_block_that_is_not_installed(self, site: Site, selection: Any) -> None:
        with Toolkit(plugins=selection, block=["bea", "acme-ant", "no-*"]) as toolkit:
            assert toolkit.problems == ["bea: not installed. Did you mean 'bee'?"]
            assert sorted(tool.name for tool in toolkit) == ["bee_tool", "cow_tool"]
        with pytest.raises(PluginError, match="the plugin bea is failed: not installed"):
            Toolkit(block="bea", on_plugin_error="raise")

    def test_a_name_in_a_file_that_is_not_installed(self, site: Site, tmp_path: Path) -> None:
        config = tmp_path / "pegboard.toml"
        config.write_text('plugins = ["ant", "bea"]\nblock = ["cov"]\n', encoding="utf-8")
        assert [text.partition("?")[0] for text in site.load(config=config).problems] == [
            "bea: not installed. Did you mean 'bee'",
            "cov: not installed. Did you mean 'cow'",
        ]

    def test_the_environment_may_name_what_is_not_installed(self, site: Site) -> None:
        environ = {"PEGBOARD_PLUGINS": "ant,bea", "PEGBOARD_BLOCK": "cov"}
        assert (site.load(environ=environ).problems, site.load(selection=(), block=["bea"]).problems) == ((), ())

    def test_the_distribution_to_install_is_not_prefixed_twice(self, site: Site) -> None:
        plugins = site.load(selection=["pegboard-shell"])
        assert record(plugins, "pegboard-shell").reason.endswith("pip install pegboard-shell")

    def test_facts_without_imports(self, site: Site) -> None:
        site.add("bad", "raise SystemExit")
        plugins = site.load(imports=False, block=["cow"], on_error="raise")
        assert states(plugins) == {"ant": "found", "bad": "found", "bee": "found", "cow": "blocked"}
        assert not [name for name in sys.modules if name.startswith("site_")]

    def test_none_at_all_does_not_even_look(self, site: Site) -> None:
        assert site.load(selection=()).records == ()


class TestObjects:
    def test_module(self, site: Site) -> None:
        module = ModuleType("acme.weather")
        exec(HEADER + TOOLS.format(tool="forecast"), vars(module))
        plugins = site.load(selection=[module])
        assert plugins.records == (PluginRecord("weather", state=PluginState.ACTIVE),)
        (item,) = plugins.tools()
        assert (item.origin, item.pack) == (Origin("weather"), "weather")

    def test_module_of_a_pack_has_its_name(self, site: Site) -> None:
        module = ModuleType("pegboard_files")
        exec(HEADER + TOOLS.format(tool="read"), vars(module))
        assert states(site.load(selection=[module])) == {"files": "active"}

    def test_instances(self, site: Site) -> None:
        @attrs.define
        class Pack:
            tools: list[Any]

            @hookimpl
            def provide_tools(self, settings: Any) -> list[Any]:
                return self.tools

        plugins = site.load(selection=[Pack([len]), Pack([print])])
        assert states(plugins) == {"Pack": "active", "Pack_2": "active"}
        assert tool_names(plugins) == ["len", "print"]

    def test_namespace_with_functions(self, site: Site) -> None:
        plugins = site.load(selection=[SimpleNamespace(provide_tools=hookimpl(lambda: [len]))])
        assert states(plugins) == {"SimpleNamespace": "active"}
        assert tool_names(plugins) == ["len"]

    def test_beside_installed_ones(self, site: Site) -> None:
        site.add("ant")
        site.add("weather")
        module = ModuleType("weather")
        exec(HEADER + TOOLS.format(tool="forecast"), vars(module))
        plugins = site.load(selection=[module, "installed"])
        assert tool_names(plugins) == ["ant_tool", "forecast"]
        assert [str(record.state) for record in plugins.records] == ["active", "active", "found"]
        assert plugins.problems == ()

    @pytest.mark.parametrize("environ", [{"PEGBOARD_PLUGINS": ""}, {"PEGBOARD_BLOCK": "weather"}])
    def test_the_environment_must_allow_them_too(self, site: Site, environ: dict[str, str]) -> None:
        module = ModuleType("weather")
        exec(HEADER + TOOLS.format(tool="forecast"), vars(module))
        assert site.load(selection=[module], environ=environ).tools() == ()

    def test_garbage(self, site: Site) -> None:
        plugins = site.load(selection=[42])
        assert states(plugins) == {"int": "failed"}
        assert record(plugins, "int").reason.startswith("the int implements no hook")


class TestSameName:
    def test_first_distribution_counts_and_both_are_named(self, site: Site) -> None:
        for distribution, version in (("zeta", "2.0"), ("alpha", "1.0")):
            module = f"site_{distribution}"
            body = HEADER + TOOLS.format(tool=f"{distribution}_tool")
            site.add(
                "dice",
                distribution=distribution,
                version=version,
                entry_points={"dice": module},
                modules={module: body},
            )
        plugins = site.load()
        assert tool_names(plugins) == ["alpha_tool"]
        active, shadowed = plugins.records
        assert (active.distribution, active.state) == ("alpha", PluginState.ACTIVE)
        assert (shadowed.distribution, shadowed.state) == ("zeta", PluginState.SHADOWED)
        assert shadowed.reason.startswith("alpha 1.0 and zeta 2.0 both offer the plugin 'dice', and alpha 1.0 counts")
        assert "site_zeta" not in sys.modules
        with pytest.raises(PluginError, match="is shadowed"):
            site.load(on_error="raise")

    def test_the_distribution_of_that_name_comes_first(self, site: Site) -> None:
        site.add("dice", distribution="acme-dice")
        site.add("dice", distribution="pegboard-dice")
        assert [item.origin.distribution for item in site.load().tools()] == ["pegboard-dice"]

    def test_names_that_only_look_different(self, site: Site) -> None:
        site.add("my-dice", distribution="one")
        site.add("my.dice", distribution="two", entry_points={"my.dice": "site_my_dice"})
        assert sorted(states(site.load()).values()) == ["active", "shadowed"]

    @pytest.mark.parametrize("options", [{"block": ["alpha"]}, {"selection": ["zeta"]}])
    def test_what_is_blocked_shadows_nothing(self, site: Site, options: dict[str, Any]) -> None:
        site.add("dice", distribution="alpha")
        site.add("dice", distribution="zeta")
        assert [item.origin.distribution for item in site.load(**options).tools()] == ["zeta"]

    def test_what_fails_at_import_shadows_nothing(self, site: Site) -> None:
        site.add("dice", distribution="zeta")
        fake_distribution(
            site.path, "alpha", entry_points={"dice": "site_bad"}, modules={"site_bad": "raise ValueError"}
        )
        plugins = site.load()
        assert [str(record.state) for record in plugins.records] == ["failed", "active"]
        assert tool_names(plugins) == ["dice_tool"]


class TestToolsFrom:
    SOURCE = "@hookimpl\ndef tools_from(source):\n    if source == {0!r}:\n        {1}"

    def test_first_answer_counts(self, site: Site) -> None:
        site.add("one", self.SOURCE.format("x", "return [len]"))
        site.add("two", self.SOURCE.format("x", "return [print]"))
        plugins = site.load()
        answer = plugins.tools_from("x")
        assert answer is not None
        assert (answer.value, answer.pack, answer.origin.distribution) == ((len,), "one", "acme-one")
        assert plugins.tools_from("y") is None

    def test_a_plugin_that_raises_fails_and_the_next_is_asked(self, site: Site) -> None:
        site.add("one", self.SOURCE.format("x", "raise SystemExit"))
        site.add("two", self.SOURCE.format("x", "return [print]"))
        plugins = site.load()
        answer = plugins.tools_from("x")
        assert answer is not None
        assert answer.pack == "two"
        assert record(plugins, "one").reason == "raised SystemExit in tools_from"

    def test_garbage_fails_the_plugin(self, site: Site) -> None:
        site.add("one", self.SOURCE.format("x", "return 42"))
        plugins = site.load()
        assert plugins.tools_from("x") is None
        assert states(plugins) == {"one": "failed"}

    def test_its_word_on_the_source_reaches_the_caller(self, site: Site) -> None:
        refusal = "from pegboard._base.errors import RegistrationError; raise RegistrationError('closed')"
        site.add("one", self.SOURCE.format("x", refusal))
        plugins = site.load()
        with pytest.raises(RegistrationError, match="closed"):
            plugins.tools_from("x")
        assert states(plugins) == {"one": "active"}


class TestAttribution:
    SOURCE = """
    from fractions import Fraction
    from types import SimpleNamespace
    from pegboard import Command, Converter, Dialect, Injector, Middleware, TypeHandler, tool, toolset

    class Db: ...

    @toolset
    class Set:
        @tool
        def method(self): ...

    def plain(): ...

    @hookimpl
    def provide_tools(settings): return [plain, Set(), "site_all:plain_lazy"]
    @hookimpl
    def provide_types(): return [TypeHandler(Fraction, lambda annotation, types: types.plan(str))]
    @hookimpl
    def provide_injectors(): return [Injector(Db, Db)]
    @hookimpl
    def provide_converters(): return [Converter(Fraction, str)]
    @hookimpl
    def provide_middleware(): return [Middleware(lambda call, proceed: proceed(), "log")]
    @hookimpl
    def provide_backends(): return [SimpleNamespace(name="far", submit=print, close=lambda: None)]
    @hookimpl
    def provide_dialects(): return [Dialect("klingon", list)]
    @hookimpl
    def provide_commands(): return [Command("hi", "Say hi.", print)]
    """
    HOOKS = (
        "backends",
        "commands",
        "converters",
        "dialects",
        "injectors",
        "middleware",
        "tools",
        "types",
    )

    def test_every_contribution_knows_plugin_distribution_and_version(self, site: Site) -> None:
        site.add("all", self.SOURCE, version="1.2")
        plugins = site.load()
        expected = Origin("all", "acme-all", "1.2", "site_all")
        for hook in self.HOOKS:
            found = plugins.contributions(f"provide_{hook}")  # type: ignore[arg-type]  # one of the literals
            assert {item.origin for item in found} == {expected}, hook
            assert {item.pack for item in found} == {"all"}
        assert plugins.errors == ()

    def test_on_the_board(self, site: Site) -> None:
        site.add("all", self.SOURCE, version="1.2")
        with Toolkit(plugins=["all"]) as toolkit:
            assert toolkit.problems == []
            assert {tool.name: str(tool.origin) for tool in toolkit} == dict.fromkeys(
                ("plain", "method", "plain_lazy"), "acme-all 1.2"
            )
            assert str(toolkit.types.handler_for(Fraction)[1]) == "acme-all 1.2"


class TestOverlaps:
    SOURCE = """
    from fractions import Fraction
    from pegboard import TypeHandler
    @hookimpl
    def provide_types():
        return [TypeHandler(Fraction, lambda annotation, types: types.plan(str), priority={})]
    """

    @pytest.mark.parametrize(("priorities", "count"), [((0, 0), 1), ((0, 1), 0)])
    def test_are_a_problem_before_a_tool_meets_them(self, site: Site, priorities: tuple[int, int], count: int) -> None:
        for name, priority in zip(("one", "two"), priorities, strict=True):
            site.add(name, self.SOURCE.format(priority))
        with Toolkit(plugins=["one", "two"]) as toolkit:
            assert len(toolkit.problems) == count
            for problem in toolkit.problems:
                assert problem.startswith(
                    "acme-one 1.0 and acme-two 1.0 both map fractions.Fraction; acme-one 1.0 counts"
                )

    @pytest.mark.parametrize(("hook", "verb"), [("converters", "convert"), ("injectors", "provide")])
    def test_of_converters_and_injectors_are_told_alike(self, site: Site, hook: str, verb: str) -> None:
        made = {
            "converters": "Converter(Fraction, lambda x: '{0}')",
            "injectors": "Injector(Fraction, lambda: Fraction(1, {1}))",
        }[hook]
        source = f"""
        from fractions import Fraction
        from pegboard import Converter, Injector
        @hookimpl
        def provide_tools():
            def {{0}}_half(): return Fraction(1, 2)
            def {{0}}_given(x: Fraction): return str(x)
            return [{{0}}_half, {{0}}_given]
        @hookimpl
        def provide_{hook}(): return [{made}]
        @hookimpl
        def provide_types():
            from pegboard import TypeHandler
            return [TypeHandler(Fraction, lambda annotation, types: types.plan(str), priority={{1}})]
        """
        for number, name in enumerate(("one", "two"), 2):
            site.add(name, source.format(name, number))
        with Toolkit(plugins=["one", "two"]) as toolkit:
            (problem,) = toolkit.problems
            both = f"acme-one 1.0 and acme-two 1.0 both {verb} fractions.Fraction; acme-one 1.0 counts"
            assert problem == f"{both}; block one, or give one a higher priority"
            if hook == "converters":
                assert toolkit.call_sync("two_half").text == "one"
            else:
                assert toolkit.call_sync("two_given").text == "1/2"


class TestProblems:
    def test_names_what_is_not_fit_and_what_behaves_badly(self, site: Site) -> None:
        fake_distribution(site.path, "pegboard", "0.4")
        site.add("bad", "raise ValueError('boom')")
        site.add("good")
        site.add("loud", "print('x')" + TOOLS.format(tool="f"))
        site.add("new", requires=["pegboard>=9"])
        site.add("same", distribution="acme-a")
        site.add("same", distribution="acme-b")
        site.add("shut")
        info = fake_distribution(site.path, "unrelated", entry_points="x")
        (info / "entry_points.txt").write_bytes(b"\xff")
        problems = site.load(block=["shut"]).problems
        assert [problem.partition(": ")[0] for problem in problems] == [
            "bad (acme-bad 1.0)",
            "loud (acme-loud 1.0)",
            "new (acme-new 1.0)",
            "same (acme-b 1.0)",
            str(info),
        ]

    def test_slow_import(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard._plugins.manager._LONG_IMPORT", 0.0)
        site.add("slow")
        (problem,) = site.load().problems
        assert "slow (acme-slow 1.0): took 0.0 s to import; put what is heavy behind an import string" in problem


class TestBuiltin:
    @pytest.fixture
    def core(self) -> ModuleType:
        module = ModuleType("pegboard.builtin.example")
        source = "@hookimpl\ndef provide_tools(settings): return [abs]\n@hookimpl\ndef tools_from(source): return [abs]"
        exec(HEADER + source, vars(module))
        return module

    def test_comes_last_and_is_on_no_record(self, site: Site, core: ModuleType) -> None:
        site.add("zebra")
        plugins = site.load(builtin=[core])
        assert tool_names(plugins) == ["zebra_tool", "abs"]
        assert states(plugins) == {"zebra": "active"}
        last = plugins.tools()[-1]
        assert (last.builtin, last.pack, str(last.origin)) == (True, None, "pegboard.builtin.example")

    def test_is_not_selected_or_blocked(self, site: Site, core: ModuleType) -> None:
        assert tool_names(site.load(selection=(), block=["*"], builtin=[core])) == ["abs"]

    def test_is_asked_last_for_sources(self, site: Site, core: ModuleType) -> None:
        site.add("one", TestToolsFrom.SOURCE.format("x", "return [len]"))
        plugins = site.load(builtin=[core])
        answers = [plugins.tools_from(source) for source in ("x", "y")]
        assert [answer.builtin for answer in answers if answer] == [False, True]

    def test_its_faults_are_seen(self, site: Site) -> None:
        module = ModuleType("pegboard.builtin.broken")
        exec(HEADER + "@hookimpl\ndef provide_tools(): 1 // 0", vars(module))
        with pytest.raises(ZeroDivisionError):
            site.load(builtin=[module]).tools()


class TestPassedOver:
    def test_is_told_and_costs_nothing_else(self, site: Site) -> None:
        site.add("my-ant")
        plugins = site.load()
        plugins.pass_over(plugins.tools()[0].origin, "its backend does not count")
        plugins.pass_over(Origin("aunt"), "of none that is active")
        assert (tool_names(plugins), plugins.errors) == (["my_ant_tool"], ())
        assert plugins.problems == ("my-ant (acme-my-ant 1.0): its backend does not count",)

    def test_strict(self, site: Site) -> None:
        site.add("ant")
        error = ValueError("x")
        with pytest.raises(PluginError, match=r"the plugin ant \(acme-ant 1.0\): unreadable") as caught:
            site.load(on_error="raise").pass_over(Origin("ant"), "unreadable", error)
        assert caught.value.__cause__ is error

    def test_two_backends_of_one_name(self, site: Site) -> None:
        source = """
        class Single:
            name = "single"
            def submit(self, job): ...
            def close(self): ...
        def {0}_tool(): return "{0}"
        @hookimpl
        def provide_tools(): return [{0}_tool]
        @hookimpl
        def provide_backends(): return [Single()]
        """
        for name in ("ant", "bee"):
            site.add(name, source.format(name))
        with Toolkit() as toolkit:
            assert sorted(tool.name for tool in toolkit) == ["ant_tool", "bee_tool"]
            (problem,) = toolkit.problems
            assert problem == (
                "bee (acme-bee 1.0): 'single' is offered by acme-ant 1.0 and acme-bee 1.0; block one of them"
            )


class TestStrict:
    def test_the_first_by_name(self, site: Site) -> None:
        site.add("zoo", "raise ValueError('last')")
        site.add("bad", "raise ValueError('first')")
        with pytest.raises(PluginError, match=r"bad .*first") as caught:
            site.load(on_error="raise")
        assert str(caught.value.__cause__) == "first"

    def test_blocked_and_unselected_ones_are_no_problem(self, site: Site) -> None:
        site.add("bad", "raise ValueError")
        site.add("good")
        assert tool_names(site.load(on_error="raise", block=["bad"])) == ["good_tool"]
        assert tool_names(site.load(on_error="raise", selection=["good"])) == ["good_tool"]


class TestExplainAbsent:
    def test_nothing_to_explain(self, site: Site) -> None:
        site.add("ant")
        plugins = site.load()
        assert plugins.explain_absent("roll") is None
        assert plugins.explain_absent("ant__roll") is None

    def test_by_prefix(self, site: Site) -> None:
        site.add("my-dice", "raise ValueError('boom')")
        sentence = site.load().explain_absent("my_dice__roll")
        expected = "The plugin my-dice (acme-my-dice 1.0), whose tool this may be, is failed: "
        assert sentence == expected + "raised ValueError at import: boom"

    def test_plain_name(self, site: Site) -> None:
        site.add("bad", "raise ValueError")
        site.add("shut")
        sentence = site.load(block=["shut"]).explain_absent("roll")
        assert sentence == "It may belong to a plugin that is not active: bad (failed), shut (blocked)."

    def test_what_an_active_one_does_not_offer(self, site: Site) -> None:
        source = """
        import pegboard

        def roll(): ...

        @hookimpl
        def provide_tools():
            return [roll, pegboard.NotOffered(["cheat", "bribe"], "needs a key, set DICE_KEY")]
        """
        site.add("my-dice", source)
        with Toolkit(plugins=["my-dice"]) as toolkit:
            assert ([tool.name for tool in toolkit], toolkit.problems) == (["roll"], [])
            for name in ("cheat", "bribe", "my_dice__cheat"):
                text = toolkit.call_sync(name, {}).text
                assert text.endswith("my-dice (acme-my-dice 1.0) does not offer it: needs a key, set DICE_KEY.")
            assert "DICE_KEY" not in toolkit.call_sync("steal", {}).text
            (record,) = [each for each in toolkit.plugins if each.name == "my-dice"]
            assert [(each.names, each.reason) for each in record.not_offered] == [
                (("cheat", "bribe"), "needs a key, set DICE_KEY")
            ]
            assert "DICE_KEY" in toolkit.call_sync("cheat", {}).text

    def test_one_that_was_not_asked_for(self, site: Site) -> None:
        site.add("ant")
        site.add("bee")
        plugins = site.load(selection=["ant"])
        assert plugins.explain_absent("roll") is None
        assert "is not selected: " in str(plugins.explain_absent("bee__roll"))


class TestSettingsOfPlugins:
    SOURCE = """
    import attrs
    @attrs.frozen
    class Settings:
        unit: str = "celsius"
        key: str = attrs.field(default="", metadata={"secret": True})
    @hookimpl
    def settings_type(): return Settings
    @hookimpl
    def provide_tools(settings):
        if settings.unit == "leak":
            raise ValueError(f"bad key {settings.key}")
        def forecast(): return settings.unit
        return [forecast]
    """

    def test_reach_the_hook(self, site: Site) -> None:
        site.add("weather", self.SOURCE)
        plugins = site.load(settings={"weather": {"unit": "kelvin"}}, builtin=[types])
        assert plugins.tools()[0].value() == "kelvin"
        assert [(item.key, item.value, item.source) for item in plugins.settings.effective()] == [
            ("unit", "kelvin", "the settings= argument"),
            ("key", "***", "default"),
        ]

    def test_section_of_no_pack(self, site: Site) -> None:
        site.add("weather", self.SOURCE)
        with pytest.raises(
            SettingsError, match=r"no plugin 'wether' is installed to be set up. Did you mean 'weather'?"
        ):
            site.load(settings={"wether": {}})

    @pytest.mark.parametrize("options", [{"block": ["weather"]}, {"selection": []}, {"selection": ["other"]}])
    def test_environment_of_a_plugin_that_is_not_loaded(self, site: Site, options: dict[str, Any]) -> None:
        site.add("weather", self.SOURCE)
        assert site.load(environ={"PEGBOARD__WEATHER__UNIT": "kelvin"}, **options).tools() == ()

    def test_plugin_without_settings(self, site: Site) -> None:
        site.add("ant")
        with pytest.raises(SettingsError, match="the settings= argument: the plugin 'ant' has no settings"):
            site.load(settings={"ant": {"x": 1}}).tools()

    def test_unknown_key_is_the_programs_mistake(self, site: Site) -> None:
        site.add("weather", self.SOURCE)
        with pytest.raises(SettingsError, match="unknown key 'units'"):
            site.load(settings={"weather": {"units": "kelvin"}}).tools()

    def test_secret_in_a_plugins_exception_is_redacted(self, site: Site) -> None:
        site.add("weather", self.SOURCE)
        plugins = site.load(settings={"weather": {"unit": "leak", "key": "hunter22"}}, builtin=[types])
        assert plugins.tools() == ()
        (failure,) = plugins.errors
        assert failure.record.reason == "raised ValueError in provide_tools: bad key ***"
        assert "hunter22" not in failure.traceback
        assert "hunter22" not in repr(plugins.errors) + repr(plugins.settings)


LOAD = """
import os, json
from pegboard._plugins.manager import Plugins
plugins = Plugins.load()
tools = [(item.origin.distribution, item.pack, item.value.__name__) for item in plugins.tools()]
records = [(r.name, r.distribution, str(r.state), r.reason) for r in plugins.records]
"""


def run(path: Path, expression: str, *, raw: bool = False, **environ: str) -> Any:
    """Load what is installed at `path` in a new interpreter, and return what an expression is there."""
    lines = f"{LOAD}\nprint({expression if raw else f'json.dumps({expression})'})"
    path_of_core = next(entry for entry in sys.path if (Path(entry) / "pegboard" / "hookspecs.py").is_file())
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(path), path_of_core]),
        "PEGBOARD_BLOCK": "pegboard-*",
        **environ,
    }
    said = printed(textwrap.dedent(lines), loud=raw, env=env)
    return said if raw else json.loads(said)


class TestDeterminism:
    def test_order_of_installation_and_hash_seeds_do_not_matter(self, tmp_path: Path) -> None:
        results = []
        for turn in (1, -1):
            path = tmp_path / str(turn)
            for name in ["b", "a", "d", "c"][::turn]:
                Site(path).add(name, distribution=f"acme-{name}")
                Site(path).add("same", distribution=f"zoo-{name}")
            Site(path).add("bad", "@hookimpl\ndef provide_tools(one, two): ...")
            both = "[tools, [r for r in records if r[2] != 'blocked']]"
            results += [run(path, both, PYTHONHASHSEED=str(seed)) for seed in (1, 2)]
        assert all(result == results[0] for result in results)
        tools, records = results[0]
        assert [tool for _, _, tool in tools] == ["a_tool", "b_tool", "c_tool", "d_tool", "same_tool"]
        assert len(records) == 9


def test_nothing_is_printed_to_standard_output(tmp_path: Path) -> None:
    Site(tmp_path).add("loud", "print('hello')\nimport sys; sys.stdout.write('more')\n" + TOOLS.format(tool="f"))
    assert run(tmp_path, "'only this'", raw=True) == "only this"


def test_plugins_can_be_loaded_by_default(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"PEGBOARD_BLOCK": "ant"})
    site.add("ant")
    assert states(Plugins.load()) == {"ant": "blocked"}


class TestRequired:
    """`PEGBOARD_REQUIRE`: plugins that have to be active, whatever the program selects."""

    @pytest.mark.parametrize("name", ["one", "acme-one", "Acme_One"])
    def test_that_are_active(self, site: Site, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        site.add("one")
        monkeypatch.setenv("PEGBOARD_REQUIRE", f" {name} ,")
        Toolkit(plugins=["one"]).close()

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"plugins": ()}, "'one', which is not installed, or not looked for"),
            ({"plugins": ["two"]}, "'one', which is found: "),
            ({"block": ["one"]}, "'one', which is blocked: "),
        ],
    )
    def test_that_are_not_active_stop_the_program(
        self, site: Site, monkeypatch: pytest.MonkeyPatch, options: Any, why: str
    ) -> None:
        site.add("one")
        site.add("two")
        monkeypatch.setenv("PEGBOARD_REQUIRE", "two,one" if options.get("plugins") else "one")
        with pytest.raises(PluginError, match=f"PEGBOARD_REQUIRE names {why}"):
            Toolkit(**options)

    def test_that_fail_only_when_they_are_asked(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        site.add("one", "@hookimpl\ndef provide_tools(settings): raise ValueError('broken')")
        monkeypatch.setenv("PEGBOARD_REQUIRE", "one")
        with pytest.raises(PluginError, match=r"'one', which is failed: .*broken"):
            Toolkit(plugins=["one"])
