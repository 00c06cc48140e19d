"""The page about hooks and the hooks' own docstrings say the same, and their examples are plugins that work."""

import ast
import asyncio
import inspect
import re
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

from pegboard import ImageBlock, PluginState, RegistrationError, SettingsError, Toolkit, ToolResult, hookspecs, tool
from tests.docs import acme
from tests.workspace.project import ROOT

PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
HOOKS = [
    value for value in vars(hookspecs).values() if isinstance(value, FunctionType) and hasattr(value, "pegboard_spec")
]

each_hook = pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)


def signature(hook: FunctionType) -> str:
    """Write a hook's signature as its source does."""
    return f"{hook.__name__}{inspect.signature(hook)}".replace("'", "")


def example(hook: FunctionType) -> str:
    """Take the plugin out of a hook's docstring: everything from the first import on."""
    found = re.search(r"^ *(?:import|from) .*", inspect.getdoc(hook) or "", re.MULTILINE | re.DOTALL)
    assert found, f"{hook.__name__} documents no example"
    return textwrap.dedent(found.group()).strip()


def plugin(hook: Callable[..., object]) -> ModuleType:
    """Make a module of the example in a hook's docstring."""
    assert isinstance(hook, FunctionType)
    module = ModuleType("pegboard_acme")
    exec(compile(example(hook), hook.__name__, "exec"), vars(module))
    return module


def section(name: str) -> str:
    """Return what the page says of one hook."""
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(f"`{name}`\n"))


def test_page_has_a_section_for_each_hook_and_no_other() -> None:
    assert re.findall(r"^## `(\w+)`$", PAGE, re.MULTILINE) == [hook.__name__ for hook in HOOKS]


@each_hook
def test_page_shows_the_signature(hook: FunctionType) -> None:
    assert f"\n{signature(hook)}\n" in section(hook.__name__)


@each_hook
def test_page_shows_the_example(hook: FunctionType) -> None:
    shown = re.search(r"^```python\n(.*?)^```$", section(hook.__name__), re.MULTILINE | re.DOTALL)
    assert shown
    # The same program; the page's is formatted as files are, with two blank lines.
    assert ast.dump(ast.parse(shown[1])) == ast.dump(ast.parse(example(hook)))


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Toolkit]]:
    """Assemble a toolkit with the example of a hook as its only plugin."""
    monkeypatch.setitem(sys.modules, "acme", acme)
    toolkits = []

    def assembled(hook: Callable[..., object], **options: Any) -> Toolkit:
        toolkits.append(Toolkit(plugins=[plugin(hook)], **options))
        return toolkits[-1]

    yield assembled
    for toolkit in toolkits:
        toolkit.close()


Load = Callable[..., Toolkit]


class TestExamples:
    @each_hook
    def test_is_a_plugin(self, hook: FunctionType, load: Load) -> None:
        toolkit = load(hook)
        assert [record.state for record in toolkit.plugins] == [PluginState.ACTIVE]
        assert toolkit.problems == []

    def test_settings_type(self, load: Load) -> None:
        load(hookspecs.settings_type, settings={"acme": {"unit": "kelvin"}})
        with pytest.raises(SettingsError, match="unit"):
            load(hookspecs.settings_type, settings={"acme": {"units": "kelvin"}})

    def test_provide_tools(self, load: Load) -> None:
        assert load(hookspecs.provide_tools).call_sync("roll", {"sides": 1}).value == 1

    def test_tools_from(self, load: Load) -> None:
        toolkit = load(hookspecs.tools_from)
        toolkit.register(acme.AcmeClient())
        assert toolkit.call_sync("search", {"query": "tea"}).text == "found tea"
        with pytest.raises(RegistrationError):
            toolkit.register(object())

    def test_provide_types(self, load: Load) -> None:
        @tool
        def double(price: acme.Money) -> acme.Money:
            return acme.Money(price.amount * 2, price.currency)

        toolkit = load(hookspecs.provide_types)
        toolkit.register(double)
        assert toolkit["double"].parameters["properties"]["price"]["pattern"] == "^[0-9]+ [A-Z]{3}$"
        assert toolkit.call_sync("double", {"price": "12 EUR"}).text == "24 EUR"
        assert toolkit.call_sync("double", {"price": "12"}).status == "invalid"

    def test_provide_injectors(self, load: Load) -> None:
        @tool
        def query(sql: str, connection: acme.Connection) -> bool:
            return connection.open

        toolkit, pool = load(hookspecs.provide_injectors), acme.Pool()
        toolkit.register(query)
        assert list(toolkit["query"].parameters["properties"]) == ["sql"]
        assert toolkit.call_sync("query", {"sql": "select 1"}, context=pool).value is True
        assert [connection.open for connection in pool.given] == [False]

    def test_provide_converters(self, load: Load) -> None:
        @tool
        def draw() -> acme.Chart:
            return acme.Chart()

        toolkit = load(hookspecs.provide_converters)
        toolkit.register(draw)
        (block,) = toolkit.call_sync("draw").content
        assert isinstance(block, ImageBlock)
        assert block.to_bytes() == acme.Chart().png()

    def test_provide_middleware(self, load: Load, capsys: pytest.CaptureFixture[str]) -> None:
        @tool
        async def ping() -> str:
            return "pong"

        toolkit = load(hookspecs.provide_middleware)
        toolkit.register(ping)
        assert asyncio.run(toolkit.call("ping")).text == "pong"
        assert capsys.readouterr().out == "ping success\n"

    def test_provide_backends(self, load: Load) -> None:
        @tool(backend="single")
        def where() -> str:
            return threading.current_thread().name

        toolkit = load(hookspecs.provide_backends)
        toolkit.register(where)
        threads = {result.text for result in toolkit_calls(toolkit, "where", 3)}
        assert len(threads) == 1
        assert threads != {threading.current_thread().name}

    def test_provide_dialects(self, load: Load) -> None:
        @tool
        def ping() -> str:
            """Answer."""
            return "pong"

        toolkit = load(hookspecs.provide_dialects)
        toolkit.register(ping)
        parameters = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        assert toolkit.schemas(dialect="acme") == [{"fn": "ping", "doc": "Answer.", "args": parameters}]

    def test_provide_commands(self, capsys: pytest.CaptureFixture[str]) -> None:
        (command,) = plugin(hookspecs.provide_commands).provide_commands(None)
        assert (command.name, command.run(["Ada"])) == ("hello", 0)
        assert capsys.readouterr().out == "hello Ada\n"


def toolkit_calls(toolkit: Toolkit, name: str, number: int) -> list[ToolResult]:
    """Call a tool some times at once."""

    async def calls() -> list[ToolResult]:
        return await toolkit.call_many([(name, {})] * number)

    return asyncio.run(calls())
