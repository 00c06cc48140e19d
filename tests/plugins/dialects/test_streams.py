"""Whatever was rendered is read as it was, whole or in any pieces."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import ToolCall
from tests.plugins.dialects.desk import bound

TEXT = st.text(max_size=8)
NAMES = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(st.builds(ToolCall, st.uuids().map(str), NAMES, st.dictionaries(TEXT, VALUES, max_size=4)), max_size=4)
CUTS = st.lists(st.integers(0, 60), max_size=6)

dialect = cache(bound)
Events = Iterator[dict[str, Any]]


def seen(calls: list[ToolCall]) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in calls]


def pieces(text: str, cuts: list[int]) -> list[str]:
    """`text` cut at these places; some pieces may be empty."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[begin:end] for begin, end in pairwise(places)] or [text]


def text_of(call: ToolCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False)


# What providers send for some calls: the whole response, and the same as a stream that is cut somewhere.


def openai(calls: list[ToolCall]) -> dict[str, Any]:
    written = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": text_of(call)}}
        for call in calls
    ]
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello", "tool_calls": written}}]}


def openai_stream(calls: list[ToolCall], cuts: list[int]) -> Events:
    def chunk(**delta: Any) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta}]}

    yield from (chunk(content=piece) for piece in pieces("Hello", cuts))
    for index, call in enumerate(calls):
        yield chunk(tool_calls=[{"index": index, "id": call.id, "type": "function", "function": {"arguments": ""}}])
        yield from (
            chunk(tool_calls=[{"index": index, "function": {"name": piece}}]) for piece in pieces(call.name, cuts)
        )
    rest = [pieces(text_of(call), cuts) for call in calls]
    while any(rest):  # all calls at once, a piece of each in turn
        for index, left in enumerate(rest):
            if left:
                yield chunk(tool_calls=[{"index": index, "function": {"arguments": left.pop(0)}}])


def responses(calls: list[ToolCall]) -> dict[str, Any]:
    return {
        "output": [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": text_of(call)}
            for call in calls
        ]
    }


def responses_stream(calls: list[ToolCall], cuts: list[int]) -> Events:
    for index, item in enumerate(responses(calls)["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}}
        for piece in pieces(item["arguments"], cuts):
            yield {"type": "response.function_call_arguments.delta", "output_index": index, "delta": piece}


def anthropic(calls: list[ToolCall]) -> dict[str, Any]:
    written = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls]
    return {"type": "message", "role": "assistant", "content": written}


def anthropic_stream(calls: list[ToolCall], cuts: list[int]) -> Events:
    yield {"type": "message_start", "message": {"role": "assistant", "content": []}}
    for index, block in enumerate(anthropic(calls)["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
        for piece in pieces(json.dumps(block["input"], ensure_ascii=False), cuts):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


def gemini(calls: list[ToolCall]) -> dict[str, Any]:
    written = [{"function_call": {"id": call.id, "name": call.name, "args": call.arguments}} for call in calls]
    return {"candidates": [{"content": {"role": "model", "parts": written}}]}


def gemini_stream(calls: list[ToolCall], cuts: list[int]) -> Events:
    parts = gemini(calls)["candidates"][0]["content"]["parts"]
    for piece in pieces("Hello", cuts):
        yield {"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}]}
    places = sorted({0, len(parts), *(cut % (len(parts) + 1) for cut in cuts)})
    for begin, end in pairwise(places):
        yield {"candidates": [{"content": {"role": "model", "parts": parts[begin:end]}}]}


def dashscope(calls: list[ToolCall]) -> dict[str, Any]:
    return {"output": {"choices": [{"message": openai(calls)["choices"][0]["message"]}]}}


def dashscope_stream(calls: list[ToolCall], cuts: list[int]) -> Events:
    for chunk in openai_stream(calls, cuts):
        yield {"output": {"choices": [{"message": chunk["choices"][0]["delta"]}]}}


Whole = Callable[[list[ToolCall]], Any]
Stream = Callable[[list[ToolCall], list[int]], Events]
FORMATS: dict[str, tuple[Whole, Stream]] = {
    "openai": (openai, openai_stream),
    "openai-responses": (responses, responses_stream),
    "anthropic": (anthropic, anthropic_stream),
    "gemini": (gemini, gemini_stream),
    "dashscope": (dashscope, dashscope_stream),
}

each_format = pytest.mark.parametrize("name", FORMATS)


@pytest.mark.slow
@each_format
@given(calls=CALLS)
def test_what_was_rendered_is_read_as_it_was(name: str, calls: list[ToolCall]) -> None:
    whole, _ = FORMATS[name]
    assert seen(dialect(name).calls(whole(calls))) == seen(calls)


@given(calls=CALLS)
def test_requests_of_mcp(calls: list[ToolCall]) -> None:
    requests = [
        {"id": call.id, "method": "tools/call", "params": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    assert seen(dialect("mcp").calls(requests)) == seen(calls)


@each_format
@given(calls=CALLS, cuts=CUTS)
def test_a_stream_is_the_response_however_it_is_cut(name: str, calls: list[ToolCall], cuts: list[int]) -> None:
    whole, stream = FORMATS[name]
    chat = dialect(name)
    wanted = seen(chat.calls(whole(calls)))
    assert seen(chat.calls(list(stream(calls, cuts)))) == wanted
    collector = chat.collector()
    for chunk in stream(calls, cuts):
        collector.feed(chunk)
        collector.calls()  # an early look breaks nothing
    assert seen(collector.calls()) == wanted
    # What the model said is read once more, as the conversation holds it.
    messages = collector.messages()  # none of a message in which there is nothing
    assert seen(chat.calls(messages if name == "openai-responses" or not messages else messages[0])) == wanted
