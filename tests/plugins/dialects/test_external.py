"""Providers' own definitions on the board."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pegboard import PegboardError, RegistrationError, Status, Toolkit, tool
from pegboard_testing import fake_distribution
from tests.plugins.dialects.desk import NAMES, chart, get_forecast, toolkit_of

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(name: str) -> None:
    theirs = toolkit_of(get_forecast, chart).dialect(name).tools()
    toolkit = toolkit_of()
    chat = toolkit.dialect(name)
    toolkit.register(chat.external(theirs))
    assert chat.tools() == theirs


class TestHostileSchemas:
    def test_a_pattern_freezes_no_call(self) -> None:
        toolkit = toolkit_of()
        hostile = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
        toolkit.register(
            toolkit.dialect("anthropic").external([{"name": "ask", "description": "Ask.", "input_schema": hostile}])
        )
        # Python's own engine would not come to an end.
        assert toolkit.call_sync("ask", {"a": "a" * 60 + "!"}).status is Status.INVALID
        assert toolkit.call_sync("ask", {"a": "aaa"}).status is Status.SUSPENDED

    def test_one_that_cannot_be_used_is_refused(self) -> None:
        toolkit = toolkit_of()
        without_end = {"type": "object", "$ref": "#"}
        with pytest.raises(RegistrationError, match="ask"):
            toolkit.register(
                toolkit.dialect("anthropic").external([{"name": "ask", "description": "", "input_schema": without_end}])
            )


def test_they_run_elsewhere() -> None:
    toolkit = toolkit_of()
    chat = toolkit.dialect("openai")
    (registered,) = toolkit.register(
        chat.external([{"type": "function", "function": {"name": "ask", "parameters": SCHEMA}}])
    )
    assert registered.function is None
    assert toolkit.call_sync("ask", {}).status is Status.INVALID
    asked = toolkit.call_sync("ask", {"city": "Paris"}, call_id="call_1")
    assert asked.status is Status.SUSPENDED
    (message,) = chat.messages([toolkit.resume("call_1", "sunny")])
    assert message == {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}


def test_terms_of_registration_hold() -> None:
    toolkit = toolkit_of()
    toolkit.create_group("theirs", active=False)
    source = toolkit.dialect("anthropic").external([{"name": "ask", "input_schema": SCHEMA}])
    toolkit.register(source, group="theirs", prefix="my_", presets={"ask": {"city": "Rome"}})
    assert toolkit["my_ask"].parameters["properties"] == {}
    assert toolkit.tools == []


def test_what_definitions_say_besides() -> None:
    theirs = {
        "name": "look",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    toolkit = toolkit_of()
    (registered,) = toolkit.register(toolkit.dialect("mcp").external({"tools": [theirs]}))
    assert registered.returns == theirs["outputSchema"]
    assert (registered.hints.read_only, registered.hints.destructive, registered.hints.open_world) == (
        True,
        None,
        False,
    )


def test_objects_of_an_sdk() -> None:
    class Definition:
        def model_dump(self) -> dict[str, Any]:
            return {"function_declarations": [{"name": "ask", "parameters_json_schema": SCHEMA}]}

    toolkit = toolkit_of()
    toolkit.register(toolkit.dialect("gemini").external([Definition()]))
    assert toolkit["ask"].parameters == SCHEMA


def test_tools_that_run_at_the_provider_are_left_out() -> None:
    theirs: dict[str, list[dict[str, Any]]] = {
        "openai-responses": [{"type": "web_search"}, {"type": "function", "name": "ask", "parameters": SCHEMA}],
        "anthropic": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "ask", "input_schema": SCHEMA}],
        "gemini": [
            {"google_search": {}},
            {"codeExecution": {}},
            {"function_declarations": [{"name": "ask", "parameters_json_schema": SCHEMA}], "url_context": {}},
        ],
    }
    for name, definitions in theirs.items():
        toolkit = toolkit_of()
        assert [each.name for each in toolkit.register(toolkit.dialect(name).external(definitions))] == ["ask"]


class TestNames:
    LONG = "weather_" + "x" * 80

    @pytest.fixture
    def toolkit(self) -> Toolkit:
        toolkit = toolkit_of()
        theirs = [{"name": name, "input_schema": SCHEMA} for name in ("weather.get", "weather_get", self.LONG)]
        toolkit.register(toolkit.dialect("anthropic").external(theirs))
        return toolkit

    def test_are_made_legal(self, toolkit: Toolkit) -> None:
        names = [each["name"] for each in toolkit.dialect("anthropic").tools()]
        assert len(set(names)) == 3
        assert all(len(name) <= 64 and name.replace("_", "").isalnum() for name in names)
        assert "weather_get" in names

    @pytest.mark.parametrize("name", ["weather.get", LONG])
    def test_both_forms_resolve(self, toolkit: Toolkit, name: str) -> None:
        legal = toolkit[name].name
        assert legal != name
        chat = toolkit.dialect("anthropic")
        calls = chat.calls(
            [{"type": "tool_use", "id": each, "name": each, "input": {"city": "Paris"}} for each in (name, legal)]
        )
        results = toolkit.call_many_sync(calls)
        assert [result.status for result in results] == [Status.SUSPENDED] * 2

    def test_of_two_sources_resolve_to_neither(self, toolkit: Toolkit) -> None:
        theirs = [{"name": "weather.get", "input_schema": SCHEMA}]
        toolkit.register(toolkit.dialect("anthropic").external(theirs), prefix="other_")
        assert "weather.get" not in toolkit
        assert "other_weather_get" in toolkit


@pytest.mark.parametrize("definition", ["text", {}, {"parameters": SCHEMA}, 1])
def test_no_definition(definition: Any) -> None:
    with pytest.raises(PegboardError, match="a tool's definition is"):
        toolkit_of().dialect("openai").external([definition])


def test_tools_that_the_provider_runs_are_left_alone() -> None:
    theirs = [{"type": "web_search"}, {"type": "web_search_20260209", "name": "web_search"}, {"name": "ask"}]
    source = toolkit_of().dialect("anthropic").external(theirs)
    assert [each.name for each in source.tools()] == ["ask"]


def test_a_function_without_parameters() -> None:
    toolkit = toolkit_of()
    toolkit.register(toolkit.dialect("openai").external([{"type": "function", "function": {"name": "ping"}}]))
    assert toolkit["ping"].parameters == {"type": "object", "properties": {}}


def test_a_deferred_definition_stays_deferred() -> None:
    @tool(defer=True, strict=True)
    def rare(n: int) -> None: ...

    theirs = toolkit_of(rare).dialect("anthropic").tools()
    toolkit = toolkit_of()
    toolkit.register(toolkit.dialect("anthropic").external(theirs))
    options = toolkit["rare"].options
    assert (options.defer, options.strict) == (True, True)


def test_over_long_names_of_packs_that_clash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packs that offer one name are told apart by theirs, which makes the name too long for providers."""
    name = "look_" + "x" * 58
    source = f"""
        import pegboard

        @pegboard.tool(name={name!r})
        def look() -> str:
            "Look."
            return __name__

        @pegboard.hookimpl
        def provide_tools():
            return [look]
        """
    for pack in ("acme-one", "acme-two"):
        module = pack.replace("-", "_")
        fake_distribution(tmp_path, pack, entry_points={pack: module}, modules={module: dedent(source)})
    monkeypatch.syspath_prepend(tmp_path)
    toolkit = Toolkit(plugins=["acme-one", "acme-two", "dialects"])
    names = [each["function"]["name"] for each in toolkit.dialect("openai").tools()]
    assert len(names) == 2
    assert all(len(name) <= 64 for name in names)
    assert [toolkit.call_sync(name).text for name in names] == ["acme_one", "acme_two"]
    assert toolkit.call_sync(f"acme_two__{name}").text == "acme_two"
