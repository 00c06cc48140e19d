"""OpenAI's Responses."""

from typing import Any

import pytest

from pegboard import PegboardError, ToolCall, tool
from tests.plugins.dialects.desk import BLOCKS, IMAGE, PAPER, PIXEL, bound, chart, get_forecast, result, toolkit_of

CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "get_forecast",
    "arguments": '{"city": "Paris", "days": null}',
    "status": "completed",
}


def seen(calls: list[ToolCall]) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in calls]


class TestTools:
    def test_definition(self) -> None:
        first, *_ = bound("openai-responses").tools()
        assert first == {
            "type": "function",
            "name": "get_forecast",
            "description": "Weather forecast.",
            "parameters": toolkit_of(get_forecast)["get_forecast"].parameters,
            "strict": False,
        }

    def test_strict_and_output_schema(self) -> None:
        @tool
        def count(text: str) -> int:
            return len(text)

        (definition,) = bound("openai-responses", count).tools(strict=True)
        assert definition["strict"] is True
        assert definition["output_schema"] == {"type": "integer"}
        assert "description" not in definition

    def test_groups_are_namespaces(self) -> None:
        toolkit = toolkit_of(get_forecast)
        toolkit.create_group("crm tools", "Customers")
        toolkit.create_group("idle", active=False)

        @tool
        def find_customer(name: str) -> str:
            return name

        @tool
        def asleep() -> None: ...

        toolkit.register(find_customer, chart, group="crm tools")
        toolkit.register(asleep, group="idle")
        first, namespace = toolkit.dialect("openai-responses").tools()
        assert first["name"] == "get_forecast"
        assert (namespace["type"], namespace["name"], namespace["description"]) == (
            "namespace", "crm_tools", "Customers"
        )  # fmt: skip
        assert [each["name"] for each in namespace["tools"]] == ["find_customer", "chart"]

    def test_deferred_tools_come_with_the_providers_search(self) -> None:
        @tool(defer=True)
        def rare() -> None: ...

        definitions = bound("openai-responses", rare).tools()
        assert definitions[0]["defer_loading"] is True
        assert definitions[1:] == [{"type": "tool_search"}]

    def test_tools_that_the_board_found_are_not_deferred_again(self) -> None:
        def made(number: int) -> Any:
            @tool(name=f"rare_{number}", description=f"Rare thing number {number}", defer=True)
            def rare() -> None: ...

            return rare

        toolkit = toolkit_of(*map(made, range(20)))
        toolkit.search("rare thing number 7", limit=1)
        definitions = toolkit.dialect("openai-responses").tools()
        assert sorted(each["name"] for each in definitions) == ["rare_7", "search_tools"]
        assert not any("defer_loading" in each for each in definitions)


class TestCalls:
    @pytest.mark.parametrize(
        "response",
        [
            {"id": "resp_1", "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, CALL]},
            [CALL],
            CALL,
            [{"type": "response.output_item.done", "output_index": 0, "item": CALL}],
        ],
        ids=["response", "items", "item", "events"],
    )
    def test_of_every_form_of_a_response(self, response: Any) -> None:
        calls = bound("openai-responses").calls(response)
        assert seen(calls) == [("call_1", "get_forecast", {"city": "Paris"})]

    def test_calls_of_the_provider_are_left_alone(self) -> None:
        items = [
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "mcp_call", "id": "mcp_1", "name": "x", "arguments": "{}", "server_label": "s"},
            {"type": "custom_tool_call", "call_id": "c", "name": "x", "input": "ls"},
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        ]
        assert bound("openai-responses").calls({"output": items}) == []

    def test_no_response(self) -> None:
        with pytest.raises(
            PegboardError, match=r"openai-responses: calls are read from a response.*got a dict with 'x'"
        ):
            bound("openai-responses").calls({"x": 1})

    def test_deltas(self) -> None:
        begun = {**CALL, "arguments": "", "status": "in_progress"}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"output": []}},
            {"type": "response.output_item.added", "output_index": 1, "item": begun},
            *(
                {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": piece}
                for piece in ('{"city"', ': "Rome"}')
            ),
        ]
        chat = bound("openai-responses")
        assert seen(chat.calls(events)) == [("call_1", "get_forecast", {"city": "Rome"})]
        collector = chat.collector()
        for event in events:
            collector.feed(event)
        assert seen(collector.calls()) == [("call_1", "get_forecast", {"city": "Rome"})]
        assert collector.messages()[0]["arguments"] == '{"city": "Rome"}'


class TestMessages:
    def test_who_called_is_said_again(self) -> None:
        chat = bound("openai-responses")
        said = {"caller": {"type": "program", "caller_id": "p_1"}, "namespace": "crm"}
        (call,) = chat.calls([{**CALL, **said}])
        assert call.provider_meta == said
        assert chat.messages([result("ok")]) == [
            {"type": "function_call_output", "call_id": "call_1", "output": "ok", **said}
        ]

    def test_another_object_knows_nothing_of_that(self) -> None:
        (message,) = bound("openai-responses").messages([result("ok")])
        assert message == {"type": "function_call_output", "call_id": "call_1", "output": "ok"}

    def test_images_and_documents(self) -> None:
        (message,) = bound("openai-responses").messages([result("Sales", IMAGE, BLOCKS["PDF"], BLOCKS["audio"])])
        assert message["output"] == [
            {"type": "input_text", "text": "Sales"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
            {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAPER}"},
            {
                "type": "input_text",
                "text": "[audio, audio/wav, 12 bytes: a function's output takes text, images and documents]",
            },
        ]


def test_tool_choice() -> None:
    chat = bound("openai-responses")
    assert chat.tool_choice("required") == "required"
    assert chat.tool_choice("chart") == {"type": "function", "name": "chart"}
