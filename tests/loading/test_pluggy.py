"""What users of pluggy expect of hooks: order, first results, wrappers of both kinds, monitoring."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from pegboard import Offer, PluginError, RegistrationError, Toolkit, hookimpl
from pegboard.extension import Converter
from pegboard.inspection import Plugins, plugins_of


def pack(name: str, **hooks: Any) -> ModuleType:
    """A plugin; hooks are given as functions, already marked or not."""
    made = ModuleType(name)
    for hook, function in hooks.items():
        setattr(made, hook, function if hasattr(function, "pegboard_impl") else hookimpl(function))
    return made


def marked(**marks: Any) -> Callable[[Callable[..., Any]], Any]:
    """`hookimpl` with marks that are chosen at run time, which its types do not foresee."""
    return lambda function: hookimpl(function, **marks)


def offering(name: str, **marks: Any) -> ModuleType:
    """A plugin with one tool."""

    def offered() -> str:
        return name

    offered.__name__ = f"{name}_tool"

    @marked(**marks)
    def provide_tools(settings: Any) -> list[Any]:
        return [offered]

    return pack(name, provide_tools=provide_tools)


def names(toolkit: Toolkit) -> list[str]:
    return [tool.name for tool in toolkit]


def order(*plugins: ModuleType) -> list[str]:
    found = Plugins.load(selection=plugins, environ={}).tools()
    return [str(each.pack) for each in found]


class TestOrder:
    def test_by_name(self) -> None:
        assert order(offering("cow"), offering("ant"), offering("bee")) == ["ant", "bee", "cow"]

    def test_tryfirst_and_trylast(self) -> None:
        plugins = [offering("ant", trylast=True), offering("bee"), offering("cow", tryfirst=True)]
        assert order(*plugins) == ["cow", "bee", "ant"]

    def test_the_cores_own_comes_last(self) -> None:
        with Toolkit(plugins=[offering("ant", trylast=True)]) as toolkit:
            packs = [each.pack for each in plugins_of(toolkit).tools()]
        assert packs == ["ant", None, None, None]


class TestFirstResult:
    def test_the_first_that_answers_ends_it(self) -> None:
        asked: list[str] = []

        def asking(name: str, answer: Any, **marks: Any) -> ModuleType:
            @marked(**marks)
            def tools_from(source: Any) -> Any:
                asked.append(name)
                return answer

            return pack(name, tools_from=tools_from)

        plugins = [asking("ant", [abs]), asking("bee", None), asking("cow", [len], tryfirst=True)]
        found = Plugins.load(selection=plugins, environ={})
        first = found.tools_from(object())
        assert first is not None
        assert (first.pack, asked) == ("cow", ["cow"])
        second = found.tools_from(object(), passed={"cow"})
        assert second is not None
        assert (second.pack, asked) == ("ant", ["cow", "ant"])

    def test_a_wrapper_sees_the_core_s_answer_about_a_function(self) -> None:
        seen: list[Any] = []

        @hookimpl(wrapper=True)
        def watch(source: Any) -> Any:
            seen.extend((yield))
            return seen

        def near() -> None: ...

        with Toolkit(plugins=[pack("ant", tools_from=watch)]) as toolkit:
            toolkit.register(near)
            assert (seen, names(toolkit), toolkit.problems) == ([near], ["near"], [])

    def test_a_refusal_passes_wrappers_unharmed(self) -> None:
        seen: list[Any] = []

        def refuse(source: Any) -> Any:
            raise RegistrationError("this one not")

        @hookimpl(wrapper=True)
        def watch(source: Any) -> Any:
            seen.append((yield))
            return seen[0]

        with Toolkit(plugins=[pack("ant", tools_from=refuse), pack("bee", tools_from=watch)]) as toolkit:
            with pytest.raises(RegistrationError, match="this one not"):
                toolkit.register(object())
            assert (seen, toolkit.problems) == ([[]], [])


def corp(**marks: Any) -> ModuleType:
    """A team's plugin: nothing named `bee_tool`, and everything else under the team's prefix."""

    @marked(wrapper=True, **marks)
    def provide_tools(settings: Any) -> Any:
        answers = yield
        for answer in answers:
            answer[:] = [Offer(tool, prefix="corp_") for tool in answer if tool.__name__ != "bee_tool"]
        return answers

    return pack("corp", provide_tools=provide_tools)


class TestWrappers:
    def test_filter_and_rename_what_others_bring(self) -> None:
        with Toolkit(plugins=[offering("ant"), offering("bee"), corp()]) as toolkit:
            assert names(toolkit) == ["corp_ant_tool"]
            assert toolkit["corp_ant_tool"].origin.plugin == "ant"
            assert toolkit.call_sync("corp_ant_tool").text == "ant"
            assert toolkit.problems == []

    def test_of_the_old_style_work_too(self) -> None:
        @hookimpl(hookwrapper=True)
        def provide_tools(settings: Any) -> Any:
            outcome: Any = yield
            outcome.force_result([answer for answer in outcome.get_result() if answer.pack != "bee"])

        plugins = [offering("ant"), offering("bee"), pack("corp", provide_tools=provide_tools)]
        with Toolkit(plugins=plugins) as toolkit:
            assert names(toolkit) == ["ant_tool"]

    def test_what_one_adds_is_its_own(self) -> None:
        @hookimpl(wrapper=True)
        def provide_tools(settings: Any) -> Any:
            return [*(yield), [added]]

        def added() -> None: ...

        with Toolkit(plugins=[offering("ant"), pack("corp", provide_tools=provide_tools)]) as toolkit:
            assert {tool.name: tool.origin.plugin for tool in toolkit} == {"ant_tool": "ant", "added": "corp"}

    def test_cannot_remove_what_the_core_brings(self) -> None:
        def nothing(settings: Any = None, source: Any = None) -> Any:
            yield
            return []

        hooks = ("provide_backends", "provide_types", "provide_tools", "provide_injectors", "provide_converters")
        with Toolkit(plugins=[pack("corp", **{hook: hookimpl(wrapper=True)(nothing) for hook in hooks})]) as toolkit:
            toolkit.register(lambda text: text, name="echo", extended_model=None)
            assert toolkit.call_sync("echo", {"text": "hi"}).text == "hi"
            assert toolkit.register_meta_tool().name == "reset_equipped_tools"

    @pytest.mark.parametrize("style", ["wrapper", "hookwrapper"])
    @pytest.mark.parametrize("when", ["before", "after", "never", "twice", "nonsense"])
    def test_one_that_fails_is_passed_over_and_told(self, style: str, when: str) -> None:
        def failing(settings: Any) -> Any:
            if when == "before":
                raise SystemExit("no such luck")
            if when == "never":
                return None
            answers: Any = yield
            found = answers.get_result() if style == "hookwrapper" else answers
            found[0].clear()  # which must not count
            if when == "after":
                raise SystemExit("no such luck")
            if when == "twice":
                yield
            if style == "hookwrapper":
                answers.force_result(42)
            return 42

        plugins = [offering("ant"), pack("corp", provide_tools=marked(**{style: True})(failing))]
        with Toolkit(plugins=plugins) as toolkit:
            assert names(toolkit) == ["ant_tool"]
            (problem,) = toolkit.problems
            assert problem.startswith("corp: its wrapper of provide_tools was passed over: ")
            assert [record.state for record in toolkit.plugins] == ["active", "active"]
        with pytest.raises(PluginError, match="the plugin corp: its wrapper of provide_tools was passed over"):
            Toolkit(plugins=plugins, on_plugin_error="raise")

    def test_what_one_gives_is_checked(self) -> None:
        @hookimpl(wrapper=True)
        def provide_converters(settings: Any) -> Any:
            answers = yield
            answers[0][:] = [len]
            return answers

        converting = pack("ant", provide_converters=lambda settings: [Converter(int, str)])
        with Toolkit(plugins=[converting, pack("corp", provide_converters=provide_converters)]) as toolkit:
            (problem,) = toolkit.problems
            assert "item 0 of provide_converters is a builtin_function_or_method" in problem

    def test_around_each_other(self) -> None:
        told: list[str] = []

        def telling(name: str, **marks: Any) -> ModuleType:
            @marked(wrapper=True, **marks)
            def provide_tools(settings: Any) -> Any:
                told.append(name)
                answers = yield
                told.append(name)
                return answers

            return pack(name, provide_tools=provide_tools)

        Plugins.load(selection=[telling("ant"), telling("bee", tryfirst=True)], environ={}).tools()
        assert told == ["bee", "ant", "ant", "bee"]

    def test_gets_settings_of_its_own(self) -> None:
        import attrs

        settings = attrs.make_class("S", {"unit": attrs.field(default="c", type=str)})
        seen: list[Any] = []

        @hookimpl(wrapper=True)
        def provide_tools(settings: Any) -> Any:
            seen.append(settings.unit)
            return (yield)

        corp = pack("corp", provide_tools=provide_tools, settings_type=lambda: settings)
        Toolkit(plugins=[offering("ant"), corp], settings={"corp": {"unit": "k"}}).close()
        assert seen == ["k"]


def test_specname() -> None:
    def more(settings: Any) -> list[Any]:
        return [len]

    plugins = Plugins.load(selection=[pack("ant", more=hookimpl(specname="provide_tools")(more))], environ={})
    assert [each.value for each in plugins.tools()] == [len]


def test_monitoring_sees_every_hook_once_and_no_settings() -> None:
    plugins = Plugins.load(selection=[offering("ant")], environ={}, settings={})
    told: list[tuple[str, Any]] = []
    undo: Callable[[], None] = plugins.manager.add_hookcall_monitoring(
        lambda name, methods, arguments: told.append((name, dict(arguments))), lambda *_: None
    )
    plugins.ask_all()
    undo()
    hooks = [name for name, _ in told if name.startswith("provide_")]
    assert "provide_tools" in hooks
    assert len(hooks) == len(set(hooks))
    assert all(arguments.get("settings") is None for _, arguments in told)
