"""Anthropic's messages."""

from typing import Any

import pytest

from pegboard import PegboardError, Tool, ToolCall, tool
from tests.plugins.dialects.desk import BLOCKS, IMAGE, PAPER, PIXEL, bound, get_forecast, result, toolkit_of

CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_forecast", "input": {"city": "Paris", "days": None}}


def seen(calls: list[ToolCall]) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in calls]


class TestTools:
    def test_definition(self) -> None:
        first, *_ = bound("anthropic").tools()
        assert first == {
            "name": "get_forecast",
            "description": "Weather forecast.",
            "input_schema": toolkit_of(get_forecast)["get_forecast"].parameters,
        }

    def test_strict_tells_in_words_what_is_not_known(self) -> None:
        first, *_ = bound("anthropic").tools(strict=True)
        assert first["strict"] is True
        assert first["input_schema"] == {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "City name"},
                "days": {"type": "integer", "description": "Forecast days {default: 3}"},
                "unit": {"enum": ["c", "f"], "description": '{default: "c"}'},
                "when": {"type": "string", "format": "date"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": '{default: "none"}'},
            },
            "required": ["city"],
            "additionalProperties": False,
        }

    def test_examples_and_deferral(self) -> None:
        @tool(defer=True, examples=[{"n": 1}])
        def rare(n: int) -> None: ...

        definition, search = bound("anthropic", rare).tools()
        assert definition["input_examples"] == [{"n": 1}]
        assert definition["defer_loading"] is True
        assert search == {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
        assert bound("anthropic", rare).lint() == []

    def test_names_of_parameters_that_are_refused(self) -> None:
        schema = {"type": "object", "properties": {"a b": {"type": "string"}}}
        (loss,) = bound("anthropic", Tool.external("greet", "Greet.", schema)).lint()
        assert (loss.path, loss.severity) == ("a b", "error")
        assert str(loss) == "greet: a b: properties: the provider refuses the name 'a b'"


class TestCalls:
    @pytest.mark.parametrize(
        "response",
        [
            {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Let me see."}, CALL]},
            {"role": "assistant", "content": [CALL]},
            [CALL],
            CALL,
        ],
        ids=["message", "plain message", "content", "block"],
    )
    def test_of_every_form_of_a_response(self, response: Any) -> None:
        assert seen(bound("anthropic").calls(response)) == [("toolu_1", "get_forecast", {"city": "Paris"})]

    def test_calls_of_the_provider_are_left_alone(self) -> None:
        content = [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_2", "content": {}},
        ]
        assert bound("anthropic").calls({"type": "message", "role": "assistant", "content": content}) == []
        assert bound("anthropic").calls({"role": "assistant", "content": "Hello"}) == []

    def test_no_response(self) -> None:
        with pytest.raises(PegboardError, match=r"anthropic: calls are read from a message, .*; got int"):
            bound("anthropic").calls(1)

    def events(self, *pieces: str) -> list[dict[str, Any]]:
        begun = {"type": "tool_use", "id": "toolu_1", "name": "get_forecast", "input": {}}
        return [
            {"type": "message_start", "message": {"role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " me see."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": begun},
            *(
                {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": each}}
                for each in pieces
            ),
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]

    def test_stream(self) -> None:
        chat = bound("anthropic")
        events = self.events("", '{"city": "Ro', 'me"}')
        assert seen(chat.calls(events)) == [("toolu_1", "get_forecast", {"city": "Rome"})]
        collector = chat.collector()
        for event in events:
            collector.feed(event)
        assert seen(collector.calls()) == [("toolu_1", "get_forecast", {"city": "Rome"})]
        assert collector.messages() == [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "toolu_1", "name": "get_forecast", "input": {"city": "Rome"}},
                ],
            }
        ]

    def test_broken_input(self) -> None:
        collector = bound("anthropic").collector()
        for event in self.events('{"city": "Ro'):
            collector.feed(event)
        assert seen(collector.calls()) == [("toolu_1", "get_forecast", '{"city": "Ro')]
        # The message has to hold an object.
        assert collector.messages()[0]["content"][1]["input"] == {"INVALID_JSON": '{"city": "Ro'}

    @pytest.mark.parametrize("text", ["", "\n\n"])
    def test_a_text_of_nothing_is_left_out_of_the_message(self, text: str) -> None:
        collector = bound("anthropic").collector()
        blank: list[dict[str, Any]] = [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
        ]
        for event in blank:
            collector.feed(event)
        assert collector.messages() == []
        for event in self.events("{}")[5:]:
            collector.feed(event)
        (message,) = collector.messages()
        assert [block["type"] for block in message["content"]] == ["tool_use"]

    def test_thoughts_are_kept(self) -> None:
        collector = bound("anthropic").collector()
        collector.feed(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}
        )
        for delta in ({"type": "thinking_delta", "thinking": "Hm"}, {"type": "signature_delta", "signature": "abc"}):
            collector.feed({"type": "content_block_delta", "index": 0, "delta": delta})
        assert collector.messages()[0]["content"] == [{"type": "thinking", "thinking": "Hm", "signature": "abc"}]


class TestMessages:
    def test_one_message_for_all_results(self) -> None:
        toolkit = toolkit_of()
        chat = toolkit.dialect("anthropic")
        assert chat.messages([]) == []
        (message,) = chat.messages([result("a"), toolkit.call_sync("gone", call_id="toolu_2")])
        assert message["role"] == "user"
        first, second = message["content"]
        assert first == {"type": "tool_result", "tool_use_id": "call_1", "content": "a"}
        assert (second["tool_use_id"], second["is_error"]) == ("toolu_2", True)
        assert "gone" in second["content"]

    def test_images_and_documents(self) -> None:
        named = ("image at a URL", "SVG image", "PDF", "text file", "link")
        (message,) = bound("anthropic").messages([result("Sales", IMAGE, *(BLOCKS[name] for name in named))])
        assert message["content"][0]["content"] == [
            {"type": "text", "text": "Sales"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            {
                "type": "text",
                "text": "[image, image/svg+xml, 6 bytes: a tool's result takes text, images and documents]",
            },
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PAPER},
                "title": "a.pdf",
            },
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a,b"},
                "title": "a.csv",
            },
            {"type": "text", "text": "Example (https://example.com): An example"},
        ]


def test_tool_choice() -> None:
    chat = bound("anthropic")
    assert [chat.tool_choice(word) for word in ("auto", "required", "none")] == [
        {"type": "auto"},
        {"type": "any"},
        {"type": "none"},
    ]
    assert chat.tool_choice("chart") == {"type": "tool", "name": "chart"}
