"""A call that was cut never runs, however much of it came."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pegboard import Status, ToolCall, Toolkit, tool
from tests.plugins.dialects.test_streams import FORMATS
from tests.support.thinning import one_in

Finish = Callable[[Any, str], Any]


def finished_openai(response: Any, reason: str) -> Any:
    (choice,) = response["choices"]
    return {"choices": [{**choice, "finish_reason": reason}]}


def finished_responses(response: Any, reason: str) -> Any:
    return {**response, "status": "incomplete", "incomplete_details": {"reason": reason}}


def finished_anthropic(response: Any, reason: str) -> Any:
    return {**response, "stop_reason": reason}


def finished_gemini(response: Any, reason: str) -> Any:
    (candidate,) = response["candidates"]
    return {"candidates": [{**candidate, "finishReason": reason}]}


def finished_dashscope(response: Any, reason: str) -> Any:
    return {"output": finished_openai(response["output"], reason)}


def last_of_openai(reason: str) -> Any:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


LASTS: dict[str, Callable[[str], Any]] = {
    "openai": last_of_openai,
    "openai-responses": lambda reason: {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": []},
    },
    "anthropic": lambda reason: {"type": "message_delta", "delta": {"stop_reason": reason}},
    "gemini": lambda reason: {"candidates": [{"finish_reason": reason}]},
    "dashscope": lambda reason: {"output": {"choices": [{"message": {"content": ""}, "finish_reason": reason}]}},
}
WHOLES: dict[str, Finish] = {
    "openai": finished_openai,
    "openai-responses": finished_responses,
    "anthropic": finished_anthropic,
    "gemini": finished_gemini,
    "dashscope": finished_dashscope,
}
CUTTING = [
    *(("openai", reason) for reason in ("length", "content_filter", "model_length", "error")),
    *(("openai-responses", reason) for reason in ("max_output_tokens", "content_filter", "a new one")),
    *(("anthropic", reason) for reason in ("max_tokens", "model_context_window_exceeded", "refusal", "stop_sequence")),
    *(("gemini", reason) for reason in ("MAX_TOKENS", "SAFETY", "OTHER")),
    ("dashscope", "length"),
]
ENDING = [
    *(("openai", reason) for reason in ("tool_calls", "stop", "function_call")),
    ("anthropic", "tool_use"),
    ("gemini", "STOP"),
    ("dashscope", "tool_calls"),
]
whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
with_and_without_arguments = pytest.mark.parametrize(
    "arguments", [{}, {"folder": "/tmp"}], ids=["without arguments", "with arguments"]
)


class Disk:
    """A toolkit with a tool that must not run, and what it did."""

    def __init__(self) -> None:
        self.wiped: list[str] = []
        self.toolkit = Toolkit(plugins=["dialects"])

        @tool(destructive=True)
        def wipe(folder: str = "/") -> str:
            self.wiped.append(folder)
            return "gone"

        self.toolkit.register(wipe)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    with disk.toolkit:
        yield disk


def read(disk: Disk, name: str, response: Any, streamed: bool) -> list[ToolCall]:
    """The calls in a response, or of a stream as its collector reads it."""
    chat = disk.toolkit.dialect(name)
    if not streamed:
        return chat.calls(response)
    collector = chat.collector()
    for chunk in response:
        collector.feed(chunk)
    calls = list(collector.calls())
    assert [each.result and each.result.text for each in calls] == [
        each.result and each.result.text for each in chat.calls(list(response))
    ]
    return calls


def response_of(name: str, calls: list[ToolCall], reason: str, streamed: bool) -> Any:
    whole, stream = FORMATS[name]
    return [*stream(calls, []), LASTS[name](reason)] if streamed else WHOLES[name](whole(calls), reason)


def one_call(disk: Disk, name: str, reason: str, arguments: dict[str, str], streamed: bool) -> ToolCall:
    """The call of a response that ends for this reason."""
    response = response_of(name, [ToolCall("call_1", "wipe", arguments)], reason, streamed)
    (call,) = read(disk, name, response, streamed)
    return call


def check_refused(disk: Disk, name: str, call: ToolCall) -> None:
    (result,) = disk.toolkit.call_many_sync([call])
    assert (result.status, result.call_id, disk.wiped) == (Status.INVALID, call.id, [])
    assert result.text.startswith("Error: wipe was not run: the ")
    assert result.text.endswith("; send the whole call again, and less at once")
    assert result.attempts == 0
    (message,) = disk.toolkit.dialect(name).messages([result])
    assert "was not run" in json.dumps(message)


@whole_and_streamed
@with_and_without_arguments
@pytest.mark.parametrize(("name", "reason"), one_in(2, CUTTING))
def test_the_last_call_of_a_response_that_was_cut(
    disk: Disk, name: str, reason: str, arguments: dict[str, str], streamed: bool
) -> None:
    check_refused(disk, name, one_call(disk, name, reason, arguments, streamed))


@whole_and_streamed
@with_and_without_arguments
@pytest.mark.parametrize(("name", "reason"), ENDING)
def test_a_call_of_a_response_that_came_to_its_end(
    disk: Disk, name: str, reason: str, arguments: dict[str, str], streamed: bool
) -> None:
    (result,) = disk.toolkit.call_many_sync([one_call(disk, name, reason, arguments, streamed)])
    assert result.status is Status.SUCCESS
    assert disk.wiped == [arguments.get("folder", "/")]


@whole_and_streamed
@pytest.mark.parametrize(("name", "reason"), CUTTING)
def test_the_calls_before_it_run(disk: Disk, name: str, reason: str, streamed: bool) -> None:
    calls = [ToolCall("call_1", "wipe", {"folder": "/old"}), ToolCall("call_2", "wipe", {})]
    results = disk.toolkit.call_many_sync(read(disk, name, response_of(name, calls, reason, streamed), streamed))
    assert [result.status for result in results] == [Status.SUCCESS, Status.INVALID]
    assert disk.wiped == ["/old"]


def function(name: str, arguments: str) -> dict[str, Any]:
    return {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def begun(name: str, text: str) -> list[dict[str, Any]]:
    """A stream that ends within a call, after `text` of its arguments; nothing tells why."""
    if name == "openai":
        return [{"choices": [{"index": 0, "delta": {"tool_calls": [function("wipe", text)]}}]}]
    if name == "dashscope":
        message = {"role": "assistant", "content": "", "tool_calls": [function("wipe", text)]}
        return [{"output": {"choices": [{"message": message, "finish_reason": "null"}]}}]
    if name == "openai-responses":
        item = {"type": "function_call", "call_id": "call_1", "name": "wipe", "arguments": "", "status": "in_progress"}
        return [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": text},
        ]
    if name == "gemini":
        return [{"candidates": [{"content": {"parts": [{"function_call": {"name": "wipe", "will_continue": True}}]}}]}]
    block = {"type": "tool_use", "id": "call_1", "name": "wipe", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": text}
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
    ]


@pytest.mark.parametrize("text", ["", "{", '{"folder": "/t'])
@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_that_broke_off_within_a_call(disk: Disk, name: str, text: str) -> None:
    (call,) = read(disk, name, begun(name, text), streamed=True)
    check_refused(disk, name, call)


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic", "dashscope"])
def test_arguments_that_are_whole_though_the_end_of_their_stream_is_missing(disk: Disk, name: str) -> None:
    (call,) = read(disk, name, begun(name, '{"folder": "/tmp"}'), streamed=True)
    assert disk.toolkit.call_many_sync([call])[0].status is Status.SUCCESS


def test_an_item_that_says_itself_that_it_is_incomplete(disk: Disk) -> None:
    item = {"type": "function_call", "call_id": "call_1", "name": "wipe", "arguments": "", "status": "incomplete"}
    (call,) = disk.toolkit.dialect("openai-responses").calls([item])
    check_refused(disk, "openai-responses", call)


def test_a_cut_call_is_not_asked_about(disk: Disk) -> None:
    """It has ended: approval, repair of broken text and execution come after that."""
    asked: list[Any] = []
    disk.toolkit.set_permission("wipe", "prompt")

    def approve(request: Any) -> bool:
        asked.append(request)
        return True

    session = disk.toolkit.session(approver=approve)
    response = finished_openai(FORMATS["openai"][0]([ToolCall("call_1", "wipe", {})]), "length")
    (call,) = session.dialect("openai").calls(response)
    assert session.prepare(call).status is Status.INVALID
    assert session.call_sync(call).status is Status.INVALID
    assert (asked, disk.wiped) == ([], [])
    assert disk.toolkit.stats["tools"]["wipe"]["statuses"] == {"invalid": 1}


def test_an_unknown_name_of_a_cut_call_is_not_found(disk: Disk) -> None:
    response = finished_openai(FORMATS["openai"][0]([ToolCall("call_1", "wi", {})]), "length")
    (result,) = disk.toolkit.call_many_sync(disk.toolkit.dialect("openai").calls(response))
    assert result.status is Status.NOT_FOUND
