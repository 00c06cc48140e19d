"""Each hook, through a real module; and what the facade refuses."""

import ast
import inspect
import re
import textwrap
from types import ModuleType
from typing import Any

import attrs
import pytest

from pegboard import hookspecs
from pegboard._base.errors import PluginError
from pegboard._plugins.hooks import HookName, Hooks
from pegboard.extension import Command, Converter, Dialect, Injector, Middleware, TypeHandler
from pegboard.hookspecs import hookimpl

SPECS = sorted(name for name, value in vars(hookspecs).items() if hasattr(value, "pegboard_spec"))
HEADER = """
import attrs
from pegboard.extension import Command, Converter, Dialect, Injector, Middleware, TypeHandler
from pegboard.hookspecs import hookimpl
"""


def module(source: str) -> ModuleType:
    made = ModuleType("acme")
    exec(compile(HEADER + source, "acme", "exec"), vars(made))
    return made


def registered(source: str) -> Hooks:
    hooks = Hooks()
    hooks.register(module(source), "acme")
    return hooks


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
    "provide_injectors": ("@hookimpl\ndef provide_injectors(): return {Injector(int, int)}", Injector),
    "provide_middleware": ("@hookimpl\ndef provide_middleware(): return [Middleware(print)]", Middleware),
    "provide_types": ("@hookimpl\ndef provide_types(): return [TypeHandler(int, print)]", TypeHandler),
}


class TestAnswers:
    @pytest.mark.parametrize("hook", sorted(ANSWERS))
    def test_provide(self, hook: HookName) -> None:
        source, kind = ANSWERS[hook]
        (item,) = registered(source).provide("acme", hook, settings=None)
        assert type(item) is kind if kind else item.name == "single"

    def test_provide_tools(self) -> None:
        hooks = registered("@hookimpl\ndef provide_tools(settings): return [print, 'acme.tools:roll', settings.unit]")
        answer = hooks.provide("acme", "provide_tools", settings=attrs.make_class("S", {"unit": attrs.field()})("a:b"))
        assert answer == (print, "acme.tools:roll", "a:b")

    def test_tools_from(self) -> None:
        hooks = registered("@hookimpl\ndef tools_from(source):\n    if source == 1:\n        return [len]")
        assert hooks.tools_from("acme", 1) == (len,)
        assert hooks.tools_from("acme", 2) is None

    def test_settings_type(self) -> None:
        hooks = registered("@attrs.frozen\nclass S:\n    unit: str = 'c'\n@hookimpl\ndef settings_type(): return S")
        cls = hooks.settings_type("acme")
        assert cls is not None
        assert cls.__name__ == "S"

    def test_every_hook_is_exercised_here(self) -> None:
        assert sorted({*ANSWERS, "provide_tools", "tools_from", "settings_type"}) == SPECS

    @pytest.mark.parametrize("hook", SPECS)
    def test_none_contributes_nothing(self, hook: HookName) -> None:
        names = ", ".join(getattr(hookspecs, hook).__annotations__.keys() - {"return"})
        hooks = registered(f"@hookimpl\ndef {hook}({names}): return None")
        assert hooks.implements("acme", hook)
        if hook == "settings_type":
            assert hooks.settings_type("acme") is None
        elif hook == "tools_from":
            assert hooks.tools_from("acme", object()) is None
        else:
            assert hooks.provide("acme", hook, settings=None) == ()

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
        hooks = registered(f"@hookimpl\ndef {signature}: return [lambda: locals().get('settings')]")
        assert len(hooks.provide("acme", "provide_tools", settings=7)) == 1

    def test_default_does_not_hide_the_value(self) -> None:
        hooks = registered("@hookimpl\ndef provide_tools(settings='a:default'): return [settings]")
        assert hooks.provide("acme", "provide_tools", settings="a:given") == ("a:given",)

    def test_two_implementations_of_one_hook(self) -> None:
        hooks = registered(
            "@hookimpl\ndef provide_tools(): return [len]\n"
            "@hookimpl(specname='provide_tools')\ndef more(): return [print]"
        )
        assert set(hooks.provide("acme", "provide_tools", settings=None)) == {len, print}


class TestRefusedAtRegistration:
    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("", ["the module implements no hook", "@pegboard.hookimpl"]),
            ("@hookimpl\ndef provide_tool(settings): ...", ["no hook 'provide_tool'", "Did you mean 'provide_tools'"]),
            ("@hookimpl\ndef zzz(): ...", ["no hook 'zzz'", "Known hooks: provide_backends, "]),
            (
                "@hookimpl\ndef provide_tools(setings): ...",
                ["an argument 'setings'", "write it as provide_tools(settings)"],
            ),
            ("@hookimpl\ndef provide_types(table, other): ...", ["an argument 'table'", "write it as provide_types()"]),
            ("@hookimpl\ndef provide_tools(*, settings): ...", ["'settings' by keyword only"]),
            ("@hookimpl\nasync def provide_tools(settings): ...", ["provide_tools is async"]),
            ("@hookimpl(wrapper=True)\ndef provide_tools(settings): return (yield)", ["hook wrapper"]),
            ("@hookimpl(wrapper=True)\ndef provide_tools(settings): return 1", ["hook wrapper", "a list instead"]),
        ],
    )
    def test_module(self, source: str, words: list[str]) -> None:
        with pytest.raises(PluginError) as caught:
            registered(source)
        for word in words:
            assert word in str(caught.value)

    @pytest.mark.parametrize("plugin", [None, 42, "text", print, object(), [], {}])
    def test_no_plugin_at_all(self, plugin: Any) -> None:
        with pytest.raises(PluginError, match="implements no hook"):
            Hooks().register(plugin, "acme")

    def test_a_refused_plugin_leaves_nothing_behind(self) -> None:
        hooks = Hooks()
        with pytest.raises(PluginError):
            hooks.register(module("@hookimpl\ndef provide_tool(): ..."), "acme")
        assert not hooks.implements("acme", "provide_tools")
        hooks.register(module("@hookimpl\ndef provide_tools(): return [len]"), "acme")
        assert hooks.provide("acme", "provide_tools", settings=None) == (len,)

    def test_optional_hook_of_a_later_core_is_no_mistake(self) -> None:
        hooks = registered("@hookimpl(optionalhook=True)\ndef provide_moods(): ...")
        assert not hooks.implements("acme", "provide_tools")


class TestObjects:
    def test_attrs_instance_that_cannot_be_hashed(self) -> None:
        @attrs.define
        class Pack:
            tool: Any

            @hookimpl
            def provide_tools(self, settings: Any) -> list[Any]:
                return [self.tool]

        hooks = Hooks()
        hooks.register(Pack(len), "one")
        hooks.register(Pack(print), "two")
        assert hooks.provide("one", "provide_tools", settings=None) == (len,)
        assert hooks.provide("two", "provide_tools", settings=None) == (print,)

    def test_equal_objects_are_one_plugin(self) -> None:
        @attrs.define
        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [len]

        hooks = Hooks()
        hooks.register(Pack(), "one")
        with pytest.raises(PluginError, match="it equals the plugin 'one'"):
            hooks.register(Pack(), "two")


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
        hooks = registered(f"@hookimpl\ndef {hook}(): return {answer}")
        with pytest.raises(PluginError) as caught:
            hooks.provide("acme", hook, settings=None)
        for word in words:
            assert word in str(caught.value)

    @pytest.mark.parametrize("answer", ["int", "42", "'acme'"])
    def test_settings_type_that_is_none(self, answer: str) -> None:
        with pytest.raises(PluginError, match="return an attrs class"):
            registered(f"@hookimpl\ndef settings_type(): return {answer}").settings_type("acme")
