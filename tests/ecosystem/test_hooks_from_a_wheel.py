"""Every hook from a third party's wheel: tryfirst, trylast and wrappers do there what users of pluggy expect."""

from typing import Any

import pytest

from pegboard import hookspecs
from tests.ecosystem.environments import CORE, Environment

pytestmark = pytest.mark.slow

PROJECT = """
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "acme-team"
version = "1.0"
requires-python = ">=3.11"
dependencies = ["attrs>=25.4", "pegboard>=0.1,<0.2"]

[project.entry-points.pegboard]
a_last = "acme_team.a_last"
b_plain = "acme_team.b_plain"
c_first = "acme_team.c_first"
d_team = "acme_team.d_team"
"""

# What each plugin gives to each hook; `asked` keeps in which order that happened.
COMMON = '''
from concurrent.futures import Future

import attrs
import pegboard

asked = []


class Thing:
    """What injectors provide and type handlers read."""


kinds = {}


def kind(name):
    """A class for each of the three: which of several handlers of one class counts is another question."""
    return kinds.setdefault(name, type(f"Of_{name}", (), {}))


class Backend:
    def __init__(self, name):
        self.name = name

    def submit(self, job):
        future = Future()
        future.set_result(job())
        return future

    def close(self):
        pass


def plan(name):
    return lambda annotation, types: pegboard.TypePlan({"type": "string", "const": name}, lambda text: Thing(), str)


def around(name):
    def around(call, proceed):
        asked.append(("call", name))
        return proceed()

    return around


def tool(name, function):
    function.__name__ = name
    return function


def given(hook, name):
    if hook == "provide_tools":
        return [tool(f"{name}_tool", lambda: name), tool(f"{name}_hidden", lambda: name)]
    if hook == "provide_types":
        return [pegboard.TypeHandler(kind(name), plan(name))]
    if hook == "provide_injectors":
        return [pegboard.Injector(kind(f"provided_{name}"), Thing)]
    if hook == "provide_converters":
        return [pegboard.Converter(kind(f"given_{name}"), lambda value: name)]
    if hook == "provide_middleware":
        return [pegboard.Middleware(around(name), name=name)]
    if hook == "provide_backends":
        return [Backend(name)]
    if hook == "provide_dialects":
        return [pegboard.Dialect(name, lambda tools: [name])]
    if hook == "provide_commands":
        return [pegboard.Command(name, "Say it.", lambda arguments: 0)]
    if hook == "provide_guards":
        return [pegboard.Guard(lambda tool: None)]
    raise LookupError(hook)


class Source:
    """What all three could make tools of."""


@attrs.frozen
class Settings:
    unit: str = "celsius"


def hooks(name, namespace, **marks):
    """A function for each hook there is, with these marks."""
    for hook in (each for each in dir(pegboard.hookspecs) if each.startswith("provide_")):
        def implementation(settings, hook=hook):
            asked.append((hook, name, settings.unit))
            return given(hook, name)

        namespace[hook] = pegboard.hookimpl(implementation, **marks)

    def tools_from(source):
        if not isinstance(source, Source):
            return None
        asked.append(("tools_from", name))
        return [tool("from_source", lambda: name)] if source.name in ("", name) else None

    namespace["tools_from"] = pegboard.hookimpl(tools_from, **marks)
    namespace["settings_type"] = pegboard.hookimpl(lambda: Settings, **marks)
'''
PLUGIN = "from acme_team.common import hooks\n\nhooks({name!r}, globals(){marks})\n"
# A team's plugin: it drops what `a_last` gives to each hook, and renames and filters the tools of the others.
TEAM = """
import pegboard
from acme_team.common import Settings, Source, asked


def wrapped(hook):
    def wrapper(settings):
        asked.append((hook, "before", settings.unit))
        answers = yield
        asked.append((hook, "after", settings.unit))
        kept = [answer for answer in answers if answer.pack != "a_last"]
        if hook == "provide_tools":
            for answer in kept:
                shown = [tool for tool in answer if not tool.__name__.endswith("_hidden")]
                answer[:] = [pegboard.Offer(tool, prefix="team_") for tool in shown]
        return kept

    return pegboard.hookimpl(wrapper, wrapper=True)


for each in dir(pegboard.hookspecs):
    if each.startswith("provide_"):
        globals()[each] = wrapped(each)


@pegboard.hookimpl(wrapper=True)
def tools_from(source):
    found = yield
    if isinstance(source, Source) and found is not None:
        found[:] = [pegboard.Tool.from_function(tool, name=f"team_{tool.__name__}") for tool in found]
    return found


@pegboard.hookimpl
def settings_type():
    return Settings
"""

BOARD = """
import asyncio
import json
import pegboard
from pegboard.inspection import plugins_of
import sys

settings = {name: {"unit": name} for name in ("a_last", "b_plain", "c_first")}
if "d_team" not in BLOCK:
    settings["d_team"] = {"unit": "team"}
with pegboard.Toolkit(block=BLOCK, settings=settings) as toolkit:
    from acme_team.common import Source, asked, kind

    plugins = plugins_of(toolkit)
    hooks = [each for each in dir(pegboard.hookspecs) if each.startswith("provide_")]
    given = {hook: [each.pack for each in plugins.contributions(hook) if not each.builtin] for hook in hooks}
    order, asked[:] = list(asked), []
    tools = [tool.name for tool in toolkit]
    calls = {name: toolkit.call_sync(name).text for name in tools}
    around, asked[:] = [name for what, name, *_ in asked if what == "call"], []
    source = Source()
    source.name = SOURCE
    made = [tool.name for tool in toolkit.register(source)]
    sources = [name for what, name, *_ in asked if what == "tools_from"]

    used = {}
    for name in ("a_last", "b_plain", "c_first"):
        def reads(x): ...
        def provided(x): return type(x).__name__
        def gives(): return kind(f"given_{name}")()
        reads.__annotations__["x"] = kind(name)
        provided.__annotations__["x"] = kind(f"provided_{name}")
        used[name] = [registers(toolkit, reads), registers(toolkit, provided), registers(toolkit, gives)]
    print(json.dumps({
        "given": given, "order": order, "tools": tools, "calls": calls, "around": around, "made": made,
        "sources": sources, "used": used, "problems": toolkit.problems,
        "dialects": [name for name in ("a_last", "b_plain", "c_first") if has_dialect(toolkit, name)],
        "states": {record.name: str(record.state) for record in toolkit.plugins},
    }))
"""
HELPERS = """
def has_dialect(toolkit, name):
    try:
        return toolkit.dialect(name).tools() == [name]
    except Exception:
        return False

def registers(toolkit, function):
    '''What the model may send to a tool, and what it answers; None where it cannot be one.'''
    try:
        toolkit.register(function, name="tried", on_conflict="replace")
    except pegboard.RegistrationError:
        return None
    properties = toolkit["tried"].parameters["properties"]
    return [properties, "" if properties else toolkit.call_sync("tried").text]
"""

HOOKS = sorted(name for name in dir(hookspecs) if name.startswith("provide_"))
FIRST_TO_LAST = ["c_first", "b_plain", "a_last"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("team")
    package = folder / "acme-team" / "acme_team"
    package.mkdir(parents=True)
    (package.parent / "pyproject.toml").write_text(PROJECT, "utf-8")
    modules = {
        "__init__": "",
        "common": COMMON,
        "a_last": PLUGIN.format(name="a_last", marks=", trylast=True"),
        "b_plain": PLUGIN.format(name="b_plain", marks=""),
        "c_first": PLUGIN.format(name="c_first", marks=", tryfirst=True"),
        "d_team": TEAM,
    }
    for name, source in modules.items():
        (package / f"{name}.py").write_text(source, "utf-8")
    return Environment(folder, (CORE, package.parent), "pegboard", "acme-team")


def board(environment: Environment, *block: str, source: str = "") -> Any:
    return environment.run(f"BLOCK = {list(block)}\nSOURCE = {source!r}\n{HELPERS}{BOARD}")


@pytest.fixture(scope="module")
def plain(environment: Environment) -> Any:
    """The three plugins, without the team's."""
    return board(environment, "d_team")


@pytest.fixture(scope="module")
def wrapped(environment: Environment) -> Any:
    """All four of them."""
    return board(environment)


def test_every_plugin_is_active(plain: Any, wrapped: Any) -> None:
    assert set(wrapped["states"].values()) == {"active"}
    assert {name for name, state in plain["states"].items() if state == "active"} == set(FIRST_TO_LAST)
    assert (plain["problems"], wrapped["problems"]) == ([], [])


@pytest.mark.parametrize("hook", HOOKS)
class TestEachHook:
    def test_tryfirst_comes_first_and_trylast_last(self, plain: Any, hook: str) -> None:
        assert [name for what, name, _ in plain["order"] if what == hook] == FIRST_TO_LAST
        assert list(dict.fromkeys(plain["given"][hook])) == FIRST_TO_LAST

    def test_each_gets_settings_of_its_own(self, plain: Any, wrapped: Any, hook: str) -> None:
        own = {name: name for name in FIRST_TO_LAST}
        assert {name: unit for what, name, unit in plain["order"] if what == hook} == own
        team = {"before": "team", "after": "team"}
        assert {name: unit for what, name, unit in wrapped["order"] if what == hook} == own | team

    def test_a_wrapper_is_around_all_and_its_filter_holds(self, wrapped: Any, hook: str) -> None:
        asked = [name for what, name, _ in wrapped["order"] if what == hook]
        assert asked == ["before", *FIRST_TO_LAST, "after"]
        assert list(dict.fromkeys(wrapped["given"][hook])) == FIRST_TO_LAST[:2]


class TestEffects:
    def test_tools_are_filtered_and_renamed(self, plain: Any, wrapped: Any) -> None:
        everything = {f"{name}_{kind}" for name in FIRST_TO_LAST for kind in ("tool", "hidden")}
        assert set(plain["tools"]) == everything
        assert set(wrapped["tools"]) == {"team_b_plain_tool", "team_c_first_tool"}
        assert wrapped["calls"]["team_b_plain_tool"] == "b_plain"

    def test_middleware_is_around_calls_in_that_order(self, plain: Any, wrapped: Any) -> None:
        assert plain["around"][:3] == FIRST_TO_LAST
        assert wrapped["around"][:3] == [*FIRST_TO_LAST[:2], FIRST_TO_LAST[0]]

    def test_types_injectors_and_converters(self, plain: Any, wrapped: Any) -> None:
        for name in FIRST_TO_LAST:
            expected = [[{"x": {"type": "string", "const": name}}, ""], [{}, "Thing"], [{}, name]]
            assert plain["used"][name] == expected
            assert (wrapped["used"][name] == expected) == (name != "a_last")
        assert wrapped["used"]["a_last"][:2] == [None, None]

    def test_dialects(self, plain: Any, wrapped: Any) -> None:
        assert sorted(plain["dialects"]) == sorted(FIRST_TO_LAST)
        assert sorted(wrapped["dialects"]) == sorted(FIRST_TO_LAST[:2])

    def test_the_first_answer_ends_tools_from(self, plain: Any, environment: Environment) -> None:
        assert (plain["made"], plain["sources"]) == (["from_source"], ["c_first"])
        assert board(environment, "d_team", source="a_last")["sources"] == FIRST_TO_LAST

    def test_a_wrapper_of_tools_from_renames(self, wrapped: Any) -> None:
        assert wrapped["made"] == ["team_from_source"]
