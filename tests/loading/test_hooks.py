"""Each hook, through a real module; and what the facade refuses."""

import ast
import inspect
import re
import textwrap
from types import ModuleType
from typing import Any

import attrs
import pytest

from pegboard import Toolkit, hookspecs
from pegboard._base.errors import PluginError
from pegboard._plugins.hooks import HookName
from pegboard._plugins.manager import Plugins
from pegboard.extension import Command, Converter, Dialect, Guard, Injector, Middleware, TypeHandler
from pegboard.hookspecs import hookimpl

SPECS = sorted(name for name, value in vars(hookspecs).items() if hasattr(value, "pegboard_spec"))
HEADER = """
import attrs
from pegboard.extension import Command, Converter, Dialect, Guard, Injector, Middleware, TypeHandler
from pegboard.hookspecs import hookimpl
"""


def module(source: str) -> ModuleType:
    made = ModuleType("acme")
    exec(compile(HEADER + source, "acme", "exec"), vars(made))
    return made


def loaded(*sources: Any, **options: Any) -> Plugins:
    """The plugins that these sources are, as `acme`, `acme_2` and so on."""
    plugins = [module(source) if isinstance(source, str) else source for source in sources]
    return Plugins.load(**{"selection": plugins, "environ": {}, **options})


def refused(*sources: Any) -> str:
    """Why the last of these plugins is none."""
    record = loaded(*sources).records[-1]
    assert record.state == "failed"
    return record.reason


def provided(hook: HookName, *sources: Any, **options: Any) -> list[Any]:
    plugins = loaded(*sources, **options)
    found = [each.value for each in plugins.contributions(hook)]
    assert plugins.problems == ()
    return found


ANSWERS: dict[str, tuple[str, Any]] = {
    "provide_backends": (
        (
            "class Single:\n    name = 'single'\n    def submit(self, job): ...\n    def close(self): ...\n"
            "@hookimpl\ndef provide_backends(): return [Single()]"
        ),
        None,
    ),
    "provide_commands": ("@hookimpl\ndef provide_commands(): return [Command('hi', 'Say hi.', print)]", Command),
    "provide_converters": ("@hookimpl\ndef provide_converters(): yield Converter(int, str)", Converter),
    "provide_dialects": ("@hookimpl\ndef provide_dialects(): return (Dialect('x', list),)", Dialect),
    "provide_guards": ("@hookimpl\ndef provide_guards(): return [Guard(print)]", Guard),
    "provide_injectors": ("@hookimpl\ndef provide_injectors(): return {Injector(int, int)}", Injector),
    "provide_middleware": ("@hookimpl\ndef provide_middleware(): return [Middleware(print)]", Middleware),
    "provide_types": ("@hookimpl\ndef provide_types(): return [TypeHandler(int, print)]", TypeHandler),
}


class TestAnswers:
    @pytest.mark.parametrize("hook", sorted(ANSWERS))
    def test_provide(self, hook: HookName) -> None:
        source, kind = ANSWERS[hook]
        (item,) = provided(hook, source)
        assert type(item) is kind if kind else item.name == "single"

    @pytest.mark.parametrize("hook", [*sorted(ANSWERS), "provide_tools"])
    def test_every_hook_that_provides_gets_the_plugins_own_settings(self, hook: HookName) -> None:
        source = f"""
asked = []

@attrs.frozen
class S:
    unit: str = "c"

@hookimpl
def settings_type():
    return S

@hookimpl
def {hook}(settings):
    asked.append(settings.unit)
"""
        one, other = module(source), module(source)
        settings = {"acme": {"unit": "k"}}
        assert provided(hook, one, other, settings=settings) == []
        assert (one.asked, other.asked) == (["k"], ["c"])

    def test_provide_tools(self) -> None:
        source = "@hookimpl\ndef provide_tools(settings): return [print, 'acme.tools:roll']"
        assert provided("provide_tools", source) == [print, "acme.tools:roll"]

    @pytest.mark.parametrize("takes", ["", "settings", "toolkit", "settings, toolkit", "toolkit, settings"])
    def test_provide_tools_takes_the_toolkit_too(self, takes: str) -> None:
        plugin = module(f"""
asked = {{}}

@attrs.frozen
class S:
    unit: str = "c"

@hookimpl
def settings_type():
    return S

@hookimpl
def provide_tools({takes}):
    asked.update(locals())
    return [len]
""")
        with Toolkit(plugins=[plugin]) as toolkit:
            assert ("len" in toolkit, toolkit.problems) == (True, [])
            given = {"settings": plugin.S(), "toolkit": toolkit}
            assert plugin.asked == {name: given[name] for name in takes.split(", ") if name}

    def test_a_wrapper_of_provide_tools_takes_the_toolkit_too(self) -> None:
        wrapper = "@hookimpl(wrapper=True)\ndef provide_tools(toolkit):\n    asked.append(toolkit)\n    return (yield)"
        plugin = module(f"asked = []\n{wrapper}")
        with Toolkit(plugins=[plugin]) as toolkit:
            assert plugin.asked == [toolkit]

    def test_no_other_hook_takes_the_toolkit(self) -> None:
        assert "an argument 'toolkit'" in refused("@hookimpl\ndef provide_types(settings, toolkit): ...")

    def test_tools_from(self) -> None:
        plugins = loaded("@hookimpl\ndef tools_from(source):\n    if source == 1:\n        return [len]")
        answer = plugins.tools_from(1)
        assert answer is not None
        assert (answer.pack, answer.value) == ("acme", (len,))
        assert plugins.tools_from(2) is None

    def test_settings_type(self) -> None:
        plugins = loaded("@attrs.frozen\nclass S:\n    unit: str = 'c'\n@hookimpl\ndef settings_type(): return S")
        cls = plugins.settings_type("acme")
        assert cls is not None
        assert cls.__name__ == "S"

    def test_every_hook_is_exercised_here(self) -> None:
        assert sorted({*ANSWERS, "provide_tools", "tools_from", "settings_type"}) == SPECS

    @pytest.mark.parametrize("hook", SPECS)
    def test_none_contributes_nothing(self, hook: HookName) -> None:
        names = ", ".join(getattr(hookspecs, hook).__annotations__.keys() - {"return"})
        plugins = loaded(f"@hookimpl\ndef {hook}({names}): return None")
        if hook == "settings_type":
            assert plugins.settings_type("acme") is None
        elif hook == "tools_from":
            assert plugins.tools_from(object()) is None
        else:
            assert plugins.contributions(hook) == ()
        assert plugins.problems == ()

    @pytest.mark.parametrize("hook", SPECS)
    def test_docstring_holds_a_plugin_with_this_hook(self, hook: str) -> None:
        doc = str(inspect.getdoc(getattr(hookspecs, hook)))
        start = re.search(r"^ *import ", doc, re.MULTILINE)
        assert start is not None
        example = ast.parse(textwrap.dedent(doc[start.start() :]))
        (function,) = [node for node in example.body if isinstance(node, ast.FunctionDef) and node.name == hook]
        assert [ast.unparse(decorator) for decorator in function.decorator_list] == ["pegboard.hookimpl"]
        specified = inspect.signature(getattr(hookspecs, hook)).parameters
        assert [argument.arg for argument in function.args.args] == list(specified)

    @pytest.mark.parametrize(
        "signature", ["provide_tools()", "provide_tools(settings=3)", "provide_tools(*rest, **options)"]
    )
    def test_arguments_may_be_left_out(self, signature: str) -> None:
        assert provided("provide_tools", f"@hookimpl\ndef {signature}: return [len]") == [len]

    def test_default_does_not_hide_the_value(self) -> None:
        source = "@hookimpl\ndef provide_tools(settings='a:default'): return [settings or 'a:given']"
        assert provided("provide_tools", source) == ["a:given"]

    def test_two_implementations_of_one_hook(self) -> None:
        source = (
            "@hookimpl\ndef provide_tools(): return [len]\n"
            "@hookimpl(specname='provide_tools')\ndef more(): return [print]"
        )
        assert set(provided("provide_tools", source)) == {len, print}


class TestRefusedAtRegistration:
    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("", ["the module implements no hook", "@pegboard.hookimpl"]),
            ("@hookimpl\ndef provide_tool(settings): ...", ["no hook 'provide_tool'", "Did you mean 'provide_tools'"]),
            ("@hookimpl\ndef zzz(): ...", ["no hook 'zzz'", "Known hooks: provide_backends, "]),
            (
                "@hookimpl\ndef provide_tools(setings): ...",
                ["an argument 'setings'", "write it as provide_tools(settings, toolkit)"],
            ),
            (
                "@hookimpl\ndef provide_types(table, other): ...",
                ["an argument 'table'", "write it as provide_types(settings)"],
            ),
            ("@hookimpl\ndef provide_tools(*, settings): ...", ["'settings' by keyword only"]),
            ("@hookimpl\nasync def provide_tools(settings): ...", ["provide_tools is async"]),
            ("@hookimpl(wrapper=True)\ndef provide_tools(settings): return 1", ["a wrapper that yields nothing"]),
            (
                "@hookimpl(wrapper=True, hookwrapper=True)\ndef provide_tools(settings): yield",
                ["a wrapper of both kinds"],
            ),
        ],
    )
    def test_module(self, source: str, words: list[str]) -> None:
        reason = refused(source)
        for word in words:
            assert word in reason

    @pytest.mark.parametrize("plugin", [42, print, object(), [], {}])
    def test_no_plugin_at_all(self, plugin: Any) -> None:
        assert "implements no hook" in refused(plugin)

    def test_a_refused_plugin_leaves_nothing_behind(self) -> None:
        plugins = loaded("@hookimpl\ndef provide_tool(): ...\n@hookimpl\ndef provide_tools(): return [len]")
        assert plugins.contributions("provide_tools") == ()
        assert plugins.manager.get_plugins() == set()

    def test_optional_hook_of_a_later_core_is_no_mistake(self) -> None:
        source = "@hookimpl(optionalhook=True)\ndef provide_moods(): ...\n@hookimpl\ndef provide_tools(): ..."
        assert provided("provide_tools", source) == []

    def test_a_bare_plugin_in_pluggys_manager(self) -> None:
        with pytest.raises(PluginError, match=r"Toolkit\(plugins=\[...\]\)"):
            loaded().manager.register(module("@hookimpl\ndef provide_tools(): return [len]"), "late")


class TestObjects:
    def test_attrs_instance_that_cannot_be_hashed(self) -> None:
        @attrs.define
        class Pack:
            tool: Any

            @hookimpl
            def provide_tools(self, settings: Any) -> list[Any]:
                return [self.tool]

        assert provided("provide_tools", Pack(len), Pack(print)) == [len, print]

    def test_equal_objects_are_two_plugins(self) -> None:
        @attrs.define
        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [len]

        assert provided("provide_tools", Pack(), Pack()) == [len, len]

    def test_one_object_is_one_plugin(self) -> None:
        plugin = module("@hookimpl\ndef provide_tools(): return [len]")
        assert "it is the plugin 'acme'; register it once" in refused(plugin, plugin)

    def test_names_of_functions_are_free(self) -> None:
        source = "@hookimpl(specname='provide_tools')\ndef options(): return [len]\npack = options"
        assert provided("provide_tools", source) == [len, len]


class TestGarbage:
    @pytest.mark.parametrize(
        ("hook", "answer", "words"),
        [
            ("provide_types", "42", ["returned an int", "an iterable of TypeHandler"]),
            ("provide_types", "TypeHandler(int, print)", ["returned a TypeHandler", "such as a list"]),
            ("provide_types", "[TypeHandler(int, print), 3]", ["item 1 of provide_types is an int"]),
            ("provide_types", "[TypeHandler]", ["item 0 of provide_types is the class TypeHandler"]),
            ("provide_commands", "{'a': 1}", ["returned a dict"]),
            ("provide_backends", "[object()]", ["is an object without name, submit(job) and close()"]),
            ("provide_tools", "'acme:tool'", ["returned a str", "an iterable of tools"]),
            ("provide_tools", "print", ["returned a builtin_function_or_method"]),
            ("provide_tools", "[None]", ["item 0 of provide_tools is a NoneType"]),
            ("provide_tools", "[[print]]", ["is a list"]),
            ("provide_tools", "['no colon']", ["'no colon'", "'package.module:attribute'"]),
            ("provide_tools", "['a b:c']", ["'a b:c'"]),
            ("provide_tools", "iter(lambda: print, 0)", ["more than 100,000 items"]),
        ],
    )
    def test_named(self, hook: HookName, answer: str, words: list[str]) -> None:
        plugins = loaded(f"@hookimpl\ndef {hook}(): return {answer}")
        assert plugins.contributions(hook) == ()
        (failure,) = plugins.errors
        for word in words:
            assert word in failure.record.reason

    @pytest.mark.parametrize("answer", ["int", "42", "'acme'"])
    def test_settings_type_that_is_none(self, answer: str) -> None:
        plugins = loaded(f"@hookimpl\ndef settings_type(): return {answer}")
        assert plugins.contributions("provide_tools") == ()
        assert "return an attrs class" in plugins.errors[0].record.reason
