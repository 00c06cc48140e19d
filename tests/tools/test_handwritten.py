"""Tools by hand: plain attributes and a `call`, or a schema alone."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import date
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from pegboard import (
    ImageBlock,
    RegistrationError,
    TextBlock,
    Tool,
    ToolCall,
    ToolError,
    Toolkit,
    ToolOutput,
    ToolResult,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "City name"},
        "days": {"type": "integer", "minimum": 1, "default": 3},
        "place": {"$ref": "#/$defs/Place"},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


class Forecast:
    """An object that knows nothing of Pegboard."""

    def __init__(self, name: str = "forecast", parameters: Mapping[str, Any] = SCHEMA) -> None:
        self.name = name
        self.description = "Weather forecast."
        self.parameters = parameters
        self.calls: list[ToolCall] = []

    def call(self, call: ToolCall) -> Any:
        self.calls.append(call)
        return {"arguments": dict(call.arguments), "id": call.id}


class Later(Forecast):
    async def call(self, call: ToolCall) -> Any:
        await asyncio.sleep(0)
        return super().call(call)


class Streaming(Forecast):
    def call(self, call: ToolCall) -> Iterator[str]:
        yield "one "
        yield "two"


class StreamingLater(Forecast):
    async def call(self, call: ToolCall) -> AsyncIterator[str]:
        yield "one "
        yield "two"


def board(source: Any, **options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(source, **options)
    return toolkit


class TestAttributes:
    def test_as_they_are(self) -> None:
        found = board(Forecast())["forecast"]
        assert (found.name, found.description) == ("forecast", "Weather forecast.")
        assert found.parameters == SCHEMA
        assert found.returns is None
        assert [(each.name, each.description, each.required) for each in found.params] == [
            ("city", "City name", True),
            ("days", "", False),
            ("place", "", False),
        ]
        assert found.params[1].default == 3

    def test_the_registration_may_say_otherwise(self) -> None:
        toolkit = board(Forecast(), name="weather", description="Other.")
        assert toolkit["weather"].description == "Other."
        assert toolkit.call_sync("weather", {"city": "Oslo"}).data["arguments"] == {"city": "Oslo"}

    def test_hints(self) -> None:
        source = Forecast()
        source.read_only = True  # type: ignore[attr-defined]
        source.destructive = "no"  # type: ignore[attr-defined]
        hints = board(source)["forecast"].hints
        assert (hints.read_only, hints.destructive) == (True, None)

    def test_a_read_only_mapping_and_any_object(self) -> None:
        source = SimpleNamespace(
            name="any", description="", parameters=MappingProxyType({"type": "object"}), call=lambda call: "called"
        )
        toolkit = board(source)
        assert toolkit["any"].parameters["type"] == "object"
        assert toolkit.call_sync("any").text == "called"

    def test_edits_of_the_schema_do_not_reach_the_board(self) -> None:
        toolkit = board(Forecast())
        toolkit["forecast"].parameters["properties"].clear()
        assert list(toolkit["forecast"].parameters["properties"]) == ["city", "days", "place"]

    @pytest.mark.parametrize("missing", ["name", "description", "parameters", "call"])
    def test_one_attribute_short(self, missing: str) -> None:
        members = {"name": "x", "description": "", "parameters": {}, "call": print}
        del members[missing]
        with pytest.raises(RegistrationError, match=r"has no tools.*name, description, parameters and call\(call\)"):
            board(SimpleNamespace(**members))

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ({"type": "array"}, "parameters must be the schema of an object, got type 'array'"),
            ({"type": "object", "properties": {"a": {"type": "strin"}}}, "#/properties/a/type is not valid"),
            ({"type": "object", "properties": {"a": {"$ref": "https://x.example/y.json"}}}, "properties/a"),
            ({"type": "object", "properties": {"a": {"$ref": "#/$defs/Nowhere"}}}, "Nowhere"),
            ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, "pattern"),
        ],
    )
    def test_schemas_that_are_refused(self, schema: dict[str, Any], message: str) -> None:
        with pytest.raises(RegistrationError) as caught:
            board(Forecast(parameters=schema))
        assert str(caught.value).startswith("tool 'forecast': ")
        assert message in str(caught.value)

    def test_names_that_are_refused(self) -> None:
        with pytest.raises(RegistrationError, match="cannot be a tool name"):
            board(Forecast("my forecast"))


class TestCalls:
    @pytest.mark.parametrize("source", [Forecast(), Later()])
    def test_sync_and_async(self, source: Forecast) -> None:
        toolkit = board(source)
        for sent in ({"city": "Oslo", "days": 2}, '{"city": "Oslo", "days": 2}'):
            result = toolkit.call_sync("forecast", sent, call_id="c1")
            assert result.data == {"arguments": {"city": "Oslo", "days": 2}, "id": "c1"}
            assert asyncio.run(toolkit.call("forecast", sent, call_id="c1")).data == result.data

    @pytest.mark.parametrize("source", [Streaming(), StreamingLater()])
    def test_generators(self, source: Forecast) -> None:
        chunks: list[str] = []
        result = board(source).call_sync("forecast", {"city": "x"}, on_chunk=lambda chunk: chunks.append(chunk.text))
        assert chunks == ["one ", "two"]
        assert result.text == "one two"

    def test_the_call_is_handed_over(self) -> None:
        source = Forecast()
        toolkit = board(source, presets={"days": 5})
        call = ToolCall("c9", "forecast", {"city": "Oslo"}, {"provider": "x"})
        assert toolkit.call_sync(call).status == "success"
        (seen,) = source.calls
        assert (seen.id, seen.name, seen.provider_meta) == ("c9", "forecast", {"provider": "x"})
        assert dict(seen.arguments) == dict(seen.typed) == {"city": "Oslo", "days": 5}
        assert call.arguments == {"city": "Oslo"}

    def test_logs_and_attachments_belong_to_the_result(self) -> None:
        class Noisy(Forecast):
            def call(self, call: ToolCall) -> str:
                call.log("working")
                call.attach(TextBlock("extra"))
                return "done"

        for _ in range(2):
            result = board(Noisy()).call_sync("forecast", {"city": "x"})
            assert result.logs == ("working",)
            assert [block.text for block in result.attachments] == ["extra"]

    def test_results_are_converted(self) -> None:
        class Answers(Forecast):
            def call(self, call: ToolCall) -> Any:
                return {
                    "text": "plain",
                    "none": None,
                    "day": [date(2026, 1, 2)],
                    "block": ImageBlock(data="aGk=", media_type="image/png"),
                    "output": ToolOutput(3, metadata={"m": 1}),
                    "result": ToolResult(content="own"),
                }[call.arguments["city"]]

        toolkit = board(Answers())
        texts = {name: toolkit.call_sync("forecast", {"city": name}).text for name in ("text", "none", "day", "result")}
        assert texts == {"text": "plain", "none": "null", "day": '["2026-01-02"]', "result": "own"}
        assert isinstance(toolkit.call_sync("forecast", {"city": "block"}).content[0], ImageBlock)
        output = toolkit.call_sync("forecast", {"city": "output"})
        assert (output.data, output.metadata) == (3, {"m": 1})


class TestValidation:
    @pytest.mark.parametrize(
        ("sent", "message"),
        [
            ({}, "city: missing"),
            ({"city": [3]}, "city: expected string"),
            ({"city": "x", "days": 0}, "days: "),
            ({"city": "x", "dayz": 1}, "dayz: unknown argument"),
            ({"city": "x", "place": {}}, "place.x: missing"),
            ('{"city": "x", "city": "y"}', "twice|duplicate"),
            ("{", "JSON"),
            ("[]", "object"),
        ],
    )
    def test_refused(self, sent: Any, message: str) -> None:
        import re

        source = Forecast()
        result = board(source).call_sync("forecast", sent)
        assert result.status == "invalid"
        assert re.search(message, result.text), result.text
        assert source.calls == []

    def test_every_problem_at_once(self) -> None:
        text = board(Forecast()).call_sync("forecast", {"days": "many", "place": 3}).text
        assert all(name in text for name in ("city", "days", "place"))

    def test_references_reach_the_definitions(self) -> None:
        toolkit = board(Forecast())
        assert toolkit.call_sync("forecast", {"city": "x", "place": {"x": 1.5}}).status == "success"

    def test_schema_without_members(self) -> None:
        toolkit = board(Forecast(parameters={}))
        assert toolkit.call_sync("forecast", {}).status == "success"


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "text"),
        [(ValueError("Invalid input"), "Error: Invalid input"), (ToolError("Say less."), "Say less.")],
    )
    def test_exceptions_are_results(self, error: Exception, text: str) -> None:
        class Broken(Forecast):
            def call(self, call: ToolCall) -> Any:
                raise error

        class BrokenLater(Forecast):
            async def call(self, call: ToolCall) -> Any:
                raise error

        for source in (Broken(), BrokenLater()):
            result = board(source).call_sync("forecast", {"city": "x"})
            assert (result.status, result.text) == ("error", text)
            assert result.error is not None
            assert result.error.exception is error


class TestExternal:
    def test_schema_only(self) -> None:
        tool = Tool.external("browser_click", "Click in the user's browser", SCHEMA)
        assert tool.function is None
        toolkit = board(tool)
        assert toolkit["browser_click"].parameters == SCHEMA
        assert toolkit["browser_click"].description == "Click in the user's browser"

    def test_suspended_until_resumed(self) -> None:
        toolkit = board(Tool.external("click", parameters=SCHEMA))
        result = toolkit.call_sync("click", {"city": "x"}, call_id="c1")
        assert (result.status, result.is_error) == ("suspended", False)
        assert [call.id for call in toolkit.pending] == ["c1"]
        answer = toolkit.resume("c1", {"clicked": True})
        assert (answer.status, answer.data) == ("success", {"clicked": True})
        assert toolkit.pending == []

    def test_arguments_are_validated_first(self) -> None:
        toolkit = board(Tool.external("click", parameters=SCHEMA))
        assert toolkit.call_sync("click", {"city": [1]}).status == "invalid"
        assert toolkit.pending == []

    def test_without_parameters(self) -> None:
        toolkit = board(Tool.external("ping"))
        assert toolkit["ping"].parameters == {
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": False,
        }
        assert toolkit.call_sync("ping", {"x": 1}).status == "invalid"

    def test_bad_names_and_schemas(self) -> None:
        with pytest.raises(RegistrationError, match="cannot be a tool name"):
            Tool.external("a b")
        with pytest.raises(RegistrationError, match="schema of an object"):
            Tool.external("a", parameters={"type": "string"})

    def test_definitions_stay_at_the_root(self) -> None:
        toolkit = board(Tool.external("click", parameters=SCHEMA))
        text = json.dumps(toolkit["click"].json_schema())
        assert text.count("$defs") == 2
        inlined = toolkit["click"].json_schema(refs="inline")
        assert inlined["properties"]["place"]["properties"] == {"x": {"type": "number"}}
        assert "$defs" not in json.dumps(inlined)
