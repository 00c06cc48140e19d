"""Google's Gemini."""

from typing import Any, Literal

import pytest

from pegboard import PegboardError, ToolCall, tool
from tests.plugins.dialects.desk import BLOCKS, IMAGE, PIXEL, bound, result

CALL = {"name": "get_forecast", "args": {"city": "Paris", "days": None}}


def seen(calls: list[ToolCall]) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


def response(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}


class TestTools:
    def test_declarations(self) -> None:
        (definition,) = bound("gemini").tools()
        first, *_ = definition["function_declarations"]
        assert (first["name"], first["description"]) == ("get_forecast", "Weather forecast.")
        assert first["parameters_json_schema"] == {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "City name"},
                "days": {"type": "integer", "description": "Forecast days {default: 3}"},
                "unit": {"type": "string", "enum": ["c", "f"], "description": '{default: "c"}'},
                "when": {"type": "string", "format": "date"},
                "note": {"type": ["string", "null"], "description": '{default: "none"}'},
            },
            "required": ["city"],
            "additionalProperties": False,
        }

    def test_no_tools(self) -> None:
        assert bound("gemini").tools()
        assert bound("gemini", tool(name="x")(lambda: None)).tools()

    def test_a_constant_is_an_enum_and_a_word(self) -> None:
        @tool
        def paint(color: Literal["red"]) -> None: ...

        (definition,) = bound("gemini", paint).tools()
        properties = definition["function_declarations"][0]["parameters_json_schema"]["properties"]
        assert properties["color"] == {"type": "string", "enum": ["red"], "description": '{const: "red"}'}

    def test_what_the_answer_holds(self) -> None:
        @tool
        def count(text: str) -> int:
            return len(text)

        (definition,) = bound("gemini", count).tools()
        declaration = definition["function_declarations"][0]
        assert declaration["response_json_schema"]["properties"] == {"output": {"type": "integer"}}


class TestCalls:
    @pytest.mark.parametrize(
        "given",
        [
            response({"text": "Let me see."}, {"function_call": CALL}),
            response({"functionCall": CALL}),
            {"role": "model", "parts": [{"function_call": CALL}]},
            [response({"text": "Let "}), response({"text": "me see."}), response({"function_call": CALL})],
        ],
        ids=["response", "JSON names", "content", "chunks"],
    )
    def test_of_every_form_of_a_response(self, given: Any) -> None:
        (call,) = bound("gemini").calls(given)
        assert (call.name, call.arguments) == ("get_forecast", {"city": "Paris"})
        assert call.id

    def test_calls_without_an_id_get_one_and_answers_none(self) -> None:
        chat = bound("gemini")
        first, second, third = chat.calls(
            response({"function_call": CALL}, {"function_call": CALL}, {"function_call": {**CALL, "id": "fc_1"}})
        )
        assert len({first.id, second.id, third.id}) == 3
        assert third.id == "fc_1"
        (content,) = chat.messages([result("a", call_id=each.id, name=each.name) for each in (first, third)])
        answers = [part["function_response"] for part in content["parts"]]
        assert answers == [
            {"name": "get_forecast", "response": {"output": "a"}},
            {"id": "fc_1", "name": "get_forecast", "response": {"output": "a"}},
        ]

    @pytest.mark.parametrize("name", ["thought_signature", "thoughtSignature"])
    def test_signatures_ride_along(self, name: str) -> None:
        (call,) = bound("gemini").calls(response({"function_call": {**CALL, "id": "fc_1"}, name: b"abc"}))
        assert call.provider_meta == {"thought_signature": b"abc"}

    def test_calls_of_the_provider_are_left_alone(self) -> None:
        parts = ({"executable_code": {"code": "1", "language": "PYTHON"}}, {"tool_call": {"id": "t", "tool_type": "x"}})
        assert bound("gemini").calls(response(*parts)) == []
        assert bound("gemini").calls({"candidates": []}) == []
        assert bound("gemini").calls({"candidates": [{"finish_reason": "SAFETY"}]}) == []

    @pytest.mark.parametrize("name", ["promptFeedback", "prompt_feedback"])
    def test_a_blocked_prompt_has_no_calls(self, name: str) -> None:
        blocked = {name: {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": "gemini-3-pro"}
        assert bound("gemini").calls(blocked) == bound("gemini").calls([blocked]) == []

    def test_no_response(self) -> None:
        with pytest.raises(PegboardError, match=r"gemini: calls are read from a response, .*; got str"):
            bound("gemini").calls("hello")

    def test_arguments_in_pieces(self) -> None:
        def piece(path: str, going_on: bool = True, **value: Any) -> dict[str, Any]:
            arguments = [{"json_path": path, **value}]
            return response({"function_call": {"partial_args": arguments, "will_continue": going_on}})

        chunks = [
            response({"function_call": {"name": "get_forecast", "will_continue": True}, "thought_signature": b"s"}),
            piece("$.city", string_value="Pa", will_continue=True),
            piece("$.city", string_value="ris"),
            piece("$.days", number_value=2.0),
            piece("$.filter.tags[0]", string_value="a"),
            piece("$.filter['tags'][1]", bool_value=True),
            piece("$.note", null_value="NULL_VALUE"),
            response({"function_call": {}}),
            response({"function_call": CALL}),
        ]
        collector = bound("gemini").collector()
        for chunk in chunks:
            collector.feed(chunk)
        first, second = collector.calls()
        assert first.arguments == {"city": "Paris", "days": 2.0, "filter": {"tags": ["a", True]}, "note": None}
        assert first.provider_meta["thought_signature"] == b"s"
        assert (second.name, second.arguments) == ("get_forecast", {"city": "Paris"})

    def test_what_the_model_said(self) -> None:
        collector = bound("gemini").collector()
        for parts in (
            ({"text": "Hm", "thought": True},),
            ({"text": "Let "},),
            ({"text": "me see."}, {"function_call": CALL, "thought_signature": b"s"}),
        ):
            collector.feed(response(*parts))
        assert collector.messages() == [
            {
                "role": "model",
                "parts": [
                    {"text": "Hm", "thought": True},
                    {"text": "Let me see."},
                    {"thought_signature": b"s", "function_call": CALL},
                ],
            }
        ]


class TestMessages:
    def test_one_content_for_all_results(self) -> None:
        chat = bound("gemini")
        assert chat.messages([]) == []
        (content,) = chat.messages([result("a"), result("Error: b", call_id="call_2", status="error")])
        assert content["role"] == "user"
        assert [part["function_response"]["response"] for part in content["parts"]] == [
            {"output": "a"},
            {"error": "Error: b"},
        ]

    def test_data_stays_data(self) -> None:
        @tool
        def look() -> dict[str, Any]:
            return {"n": 1, "text": "ü"}

        toolkit = bound("gemini", look)
        answer = toolkit.messages([_called(look)])[0]["parts"][0]["function_response"]["response"]
        assert answer == {"output": {"n": 1, "text": "ü"}}

    def test_text_that_was_cut_stays_text(self) -> None:
        @tool
        def look() -> list[int]:
            return list(range(1000))

        from pegboard import Toolkit

        toolkit = Toolkit(plugins=["dialects"], max_output=100)
        toolkit.register(look)
        (content,) = toolkit.dialect("gemini").messages([toolkit.call_sync("look")])
        assert isinstance(content["parts"][0]["function_response"]["response"]["output"], str)

    def test_media_are_parts(self) -> None:
        (content,) = bound("gemini").messages([result("Sales", IMAGE, BLOCKS["SVG image"], BLOCKS["audio"])])
        answer = content["parts"][0]["function_response"]
        assert answer["parts"][0] == {"inline_data": {"mime_type": "image/png", "data": PIXEL}}
        assert answer["parts"][1]["inline_data"]["mime_type"] == "audio/wav"
        assert answer["response"]["output"].startswith("Sales\n[image, image/svg+xml, 6 bytes: ")

    def test_media_alone(self) -> None:
        (content,) = bound("gemini").messages([result(IMAGE)])
        assert content["parts"][0]["function_response"]["response"] == {"output": "[1 attached]"}


def _called(function: Any) -> Any:
    from tests.plugins.dialects.desk import toolkit_of

    return toolkit_of(function).call_sync(function.__name__)


def test_tool_choice() -> None:
    chat = bound("gemini")
    assert chat.tool_choice("required") == {"function_calling_config": {"mode": "ANY"}}
    assert chat.tool_choice("none") == {"function_calling_config": {"mode": "NONE"}}
    assert chat.tool_choice("chart") == {
        "function_calling_config": {"mode": "ANY", "allowed_function_names": ["chart"]}
    }
