"""DashScope's own protocol."""

from typing import Any

import pytest

from pegboard import PegboardError, ToolCall
from tests.plugins.dialects.desk import IMAGE, bound, result

WANTED = [("call_1", "get_forecast", {"city": "Paris"})]


def seen(calls: list[ToolCall]) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in calls]


def said(arguments: str, call_id: str = "call_1", name: str = "get_forecast", **message: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"index": 0, "id": call_id, "type": "function", "function": function}]
    return {"output": {"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": calls, **message}}]}}


def test_definitions_are_those_of_openai_without_strict() -> None:
    chat = bound("dashscope")
    assert chat.tools() == chat.tools(strict=True) == bound("openai").tools()
    assert {(loss.keyword, loss.severity) for loss in chat.lint(strict=True)} == {("strict", "info")}


def test_response_and_message() -> None:
    whole = said('{"city": "Paris"}')
    chat = bound("dashscope")
    assert seen(chat.calls(whole)) == WANTED
    assert seen(chat.calls(whole["output"]["choices"][0]["message"])) == WANTED
    assert chat.calls(whole)[0].provider_meta == {"index": 0}
    assert chat.calls({"output": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}}) == []


def test_a_refused_request() -> None:
    refused = {"status_code": 400, "code": "InvalidParameter", "message": "no", "output": None}
    with pytest.raises(PegboardError, match="dashscope: calls are read from"):
        bound("dashscope").calls(refused)


@pytest.mark.parametrize(
    "chunks",
    [
        [said("", content="Let "), said('{"city"', "", ""), said(': "Paris"}', "", "", content="me see.")],
        [said(""), said('{"city"'), said('{"city": "Paris"}')],
    ],
    ids=["incremental", "everything again"],
)
def test_chunks(chunks: list[Any]) -> None:
    chat = bound("dashscope")
    assert seen(chat.calls(chunks)) == WANTED
    collector = chat.collector()
    for chunk in chunks:
        collector.feed(chunk)
    assert seen(collector.calls()) == WANTED
    assert collector.messages()[0]["role"] == "assistant"


def test_multimodal_content() -> None:
    collector = bound("dashscope").collector()
    for text in ("Hel", "lo"):
        collector.feed({"output": {"choices": [{"message": {"role": "assistant", "content": [{"text": text}]}}]}})
    assert collector.messages() == [{"role": "assistant", "content": "Hello"}]


def test_messages() -> None:
    assert bound("dashscope").messages([result("Sales", IMAGE)]) == [
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "name": "chart",
            "content": "Sales\n[image, image/png, 8 bytes: a tool message takes text alone]",
        }
    ]
