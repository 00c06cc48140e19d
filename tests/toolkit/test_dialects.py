"""Dialects of any pack, bound to a toolkit, a session or a view."""

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import pytest

from pegboard import (
    BoundDialect,
    Dialect,
    PegboardError,
    ToolCall,
    Toolkit,
    ToolResult,
    UnknownNameError,
    hookimpl,
    tool,
)


@tool
def add(a: int, b: int = 1) -> int:
    return a + b


def toolkit_with(*dialects: Dialect) -> Toolkit:
    pack = ModuleType("acme")

    @hookimpl
    def provide_dialects() -> Iterable[Dialect]:
        return dialects

    pack.provide_dialects = provide_dialects  # type: ignore[attr-defined]
    toolkit = Toolkit(plugins=[pack])
    toolkit.register(add)
    return toolkit


def names(tools: Any) -> list[str]:
    return [tool.name for tool in tools]


def read(response: Any) -> list[ToolCall]:
    """Calls as `name a` lines; a list of chunks is their text."""
    lines = ("".join(response) if isinstance(response, list) else response).splitlines()
    calls = [line.split() for line in lines]
    return [ToolCall(f"id_{name}", name, {"a": int(a)}, {"line": number}) for number, (name, a) in enumerate(calls)]


def answers(results: Iterable[ToolResult]) -> list[str]:
    return [result.text for result in results]


class TestOfAThirdParty:
    """Name, definitions, calls and results are enough."""

    @pytest.fixture
    def toolkit(self) -> Toolkit:
        return toolkit_with(Dialect("acme", names, read, answers))

    def test_loop(self, toolkit: Toolkit) -> None:
        chat = toolkit.dialect("acme")
        assert isinstance(chat, BoundDialect)
        assert chat.name == "acme"
        assert chat.tools() == chat.tools(strict=True) == toolkit.schemas("acme") == ["add"]
        calls = chat.calls("add 1\nadd 2")
        assert chat.messages(toolkit.call_many_sync(calls)) == ["2", "3"]

    def test_stream(self, toolkit: Toolkit) -> None:
        collector = toolkit.dialect("acme").collector()
        for chunk in ("ad", "d 1\na", "dd 2"):
            collector.feed(chunk)
        assert [call.arguments for call in collector.calls()] == [{"a": 1}, {"a": 2}]

    def test_what_it_does_not_have(self, toolkit: Toolkit) -> None:
        chat = toolkit.dialect("acme")
        assert chat.lint() == []
        with pytest.raises(PegboardError, match="the dialect 'acme' has no tool_choice"):
            chat.tool_choice("auto")
        with pytest.raises(PegboardError, match="the dialect 'acme' has no external"):
            chat.external([])

    def test_definitions_alone(self) -> None:
        chat = toolkit_with(Dialect("acme", names)).dialect("acme")
        assert chat.tools() == ["add"]
        with pytest.raises(PegboardError, match="the dialect 'acme' has no calls"):
            chat.calls("")

    def test_a_built_in_class_will_do(self) -> None:
        (found,) = toolkit_with(Dialect("acme", list)).dialect("acme").tools()
        assert found.name == "add"


class TestOffered:
    def test_session_and_view(self) -> None:
        toolkit = toolkit_with(Dialect("acme", names, read, answers))
        toolkit.create_group("more", active=False)
        toolkit.register(tool(name="more", description="")(lambda: None), group="more")
        session = toolkit.session(groups=["more"])
        assert toolkit.dialect("acme").tools() == ["add"]
        assert session.dialect("acme").tools() == ["add", "more"]
        assert session.view(prefix="x_").dialect("acme").tools() == ["x_add", "x_more"]

    def test_it_follows(self) -> None:
        toolkit = toolkit_with(Dialect("acme", names, read, answers))
        chat = toolkit.dialect("acme")
        toolkit.unregister("add")
        assert chat.tools() == []


class TestGivenMore:
    """Functions are given what they have a parameter for."""

    def test_parameters_by_name(self) -> None:
        def tools(tools: Any, *, strict: bool, groups: Any) -> list[Any]:
            return [*names(tools), strict, *(group.name for group in groups)]

        def calls(response: Any, *, tools: Any) -> list[ToolCall]:
            return [ToolCall("id_1", names(tools)[0], {}, {"from": response})]

        def results(results: Any, *, meta: Mapping[str, Any], tools: Any) -> list[Any]:
            return [meta[result.call_id] for result in results]

        def tool_choice(choice: str, *, tools: Any) -> Any:
            return choice, names(tools)

        def lint(tools: Any, *, strict: bool) -> list[Any]:
            return [(names(tools), strict)]

        toolkit = toolkit_with(Dialect("acme", tools, calls, results, tool_choice, lint))
        toolkit.create_group("one")
        chat = toolkit.dialect("acme")
        assert chat.tools(strict=True) == ["add", True, "one"]
        assert chat.lint() == [(["add"], False)]
        assert chat.tool_choice("auto") == ("auto", ["add"])
        (call,) = chat.calls("x")
        assert call.name == "add"
        assert chat.messages([ToolResult("id_1", "add")]) == [{"from": "x"}]

    def test_each_conversation_remembers_its_own_calls(self) -> None:
        def results(results: Any, *, meta: Mapping[str, Any]) -> list[Any]:
            return [meta.get(result.call_id) for result in results]

        toolkit = toolkit_with(Dialect("acme", names, read, results))
        one, other = toolkit.dialect("acme"), toolkit.dialect("acme")
        one.calls("add 1")
        assert one.messages([ToolResult("id_add", "add")]) == [{"line": 0}]
        assert other.messages([ToolResult("id_add", "add")]) == [None]

    @pytest.mark.parametrize("wrong", [None, 3, "text", b"text", ["text"], [None], [{}], {"call_id": "id_1"}])
    def test_messages_say_what_they_take(self, wrong: Any) -> None:
        chat = toolkit_with(Dialect("acme", names, read, lambda results: results)).dialect("acme")
        with pytest.raises(
            PegboardError, match=r"messages\(...\) takes a list of ToolResults, such as toolkit.call_many"
        ):
            chat.messages(wrong)
        with pytest.raises(PegboardError, match="takes a list"):
            chat.messages(ToolResult("id_1", "add"))  # type: ignore[arg-type]

    def test_memory_has_an_end(self) -> None:
        def many(response: int) -> list[ToolCall]:
            return [ToolCall(f"id_{number}", "add", {}, {"n": number}) for number in range(response)]

        def results(results: Any, *, meta: Mapping[str, Any]) -> list[Any]:
            return [len(meta), *meta]

        chat = toolkit_with(Dialect("acme", names, many, results)).dialect("acme")
        chat.calls(BoundDialect.REMEMBERED + 1)
        count, oldest, *_ = chat.messages([])
        assert (count, oldest) == (BoundDialect.REMEMBERED, "id_1")

    def test_a_collector_of_its_own(self) -> None:
        class Collector:
            def __init__(self, read: Any) -> None:
                self.read, self.text = read, ""

            def feed(self, chunk: str) -> None:
                self.text += chunk

            def calls(self) -> Any:
                return self.read(self.text)

        chat = toolkit_with(Dialect("acme", names, read, answers, collector=Collector)).dialect("acme")
        collector = chat.collector()
        for chunk in ("add", " 4"):
            collector.feed(chunk)
        assert [call.arguments for call in collector.calls()] == [{"a": 4}]


def test_unknown_dialect_names_those_that_there_are() -> None:
    toolkit = toolkit_with(Dialect("acme", names), Dialect("zoo", names))
    with pytest.raises(UnknownNameError, match=r"there is no dialect 'acne'\. Did you mean 'acme'\?"):
        toolkit.dialect("acne")
    with pytest.raises(UnknownNameError, match=r"there is no dialect 'nothing'\. Known dialects: acme, zoo\."):
        toolkit.dialect("nothing")
    with pytest.raises(UnknownNameError, match=r"there is no dialect None\. Known dialects"):
        toolkit.dialect(None)  # type: ignore[arg-type]


def test_shows_its_name() -> None:
    assert repr(toolkit_with(Dialect("acme", names)).dialect("acme")) == "BoundDialect('acme')"
