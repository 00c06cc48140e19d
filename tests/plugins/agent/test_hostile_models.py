"""Servers of every provider that are broken or mean harm: what comes of it is an answer or a `ModelError`."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard import ExecutionPolicy, Toolkit
from pegboard_agent import Agent, AgentStoppedError, ModelError
from pegboard_agent._models import response
from pegboard_agent._models.model import Reply
from pegboard_testing import Raw, ScriptedServer
from tests.plugins.agent.desk import AT_ONCE, KEY
from tests.plugins.agent.wires import WIRES, Say, Wire, model_on
from tests.support.thinning import first

ASKED = [{"role": "user", "content": "hi"}]
ONCE = ExecutionPolicy(max_attempts=1).merged_over(AT_ONCE)
SAY = Say("I look.", (("get_weather", {"city": "Oslo"}), ("add", {"a": 1})), thought="Both.")
ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
JUNK = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))
DIALECT = Toolkit(plugins=["dialects"]).dialect("openai")
each_wire = pytest.mark.parametrize("wire", first(1, WIRES), ids=lambda wire: wire.name)


def answered(wire: Wire, body: str, kind: str = "text/event-stream") -> dict[str, Any] | None:
    """The message in a response; None where there is none, as a `ModelError` says."""

    async def collect() -> dict[str, Any] | None:
        def respond(request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, headers={"content-type": kind}, content=body.encode("utf-8", "replace"))

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(respond)) as client:
            model = wire.model("m", base_url="http://127.0.0.1:1/v1", api_key=KEY, policy=ONCE)
            model._client = client
            reply = Reply()
            async for chunk in model.stream(ASKED, []):
                reply.feed(chunk)
            return reply.message(DIALECT)

    with suppress(ModelError):
        return asyncio.run(collect())
    return None


def is_message(message: Any) -> bool:
    """What an agent may rely on."""
    calls = message.get("tool_calls", [])
    texts = [call["id"] for call in calls] + [call["function"][n] for call in calls for n in ("name", "arguments")]
    return isinstance(message["content"], (str, type(None))) and all(isinstance(text, str) for text in texts)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in inside for found in ((*path, key), *places(inner, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    head, *rest = path
    copied = dict(value) if isinstance(value, Mapping) else list(value)
    copied[head] = changed(value[head], tuple(rest), junk) if rest else junk
    return copied


@each_wire
@given(data=st.data())
@settings(max_examples=60)
def test_one_member_is_something_else(wire: Wire, data: st.DataObject) -> None:
    events: Any = list(wire.events(SAY, {}))
    events = changed(events, data.draw(st.sampled_from(places(events))), data.draw(JUNK))
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + wire.done
    message = answered(wire, body)
    assert message is None or is_message(message)


@each_wire
@given(data=st.data())
@settings(max_examples=40)
def test_one_member_of_a_response_that_comes_at_once_is_something_else(wire: Wire, data: st.DataObject) -> None:
    whole = wire.whole(SAY, {})
    whole = changed(whole, data.draw(st.sampled_from(places(whole))), data.draw(JUNK))
    message = answered(wire, json.dumps(whole), "application/json")
    assert message is None or is_message(message)


@each_wire
@given(events=st.lists(JUNK, max_size=4), is_whole=st.booleans())
@settings(max_examples=40)
def test_anything_at_all(wire: Wire, events: list[Any], is_whole: bool) -> None:
    kind = "application/json" if is_whole else "text/event-stream"
    body = json.dumps(events) if is_whole else "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    message = answered(wire, body, kind)
    assert message is None or is_message(message)


@each_wire
@given(order=st.permutations(range(12)))
@settings(max_examples=30)
def test_events_in_any_order(wire: Wire, order: list[int]) -> None:
    events = list(wire.events(SAY, {}))
    shuffled = [events[number] for number in order if number < len(events)] + events[12:]
    message = answered(wire, "".join(f"data: {json.dumps(event)}\n\n" for event in shuffled) + wire.done)
    assert message is None or is_message(message)


@each_wire
def test_deep_nesting(wire: Wire) -> None:
    for begin, end in (("[", "]"), ('{"content":', "}"), ('{"error":', "}")):
        for depth in (200, 60_000):
            deep = begin * depth + "1" + end * depth
            assert answered(wire, f"data: {deep}\n\n") is None
            assert answered(wire, deep, "application/json") is None


@each_wire
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
@pytest.mark.parametrize(
    "event", [{"error": KEY}, {"type": KEY, "candidates": KEY, "choices": KEY}, {"error": {"message": KEY}}]
)
def test_a_key_that_a_server_says_back_is_in_no_error(wire: Wire, kind: str, event: Any) -> None:
    body = json.dumps(event)
    said = Raw(body if kind == "application/json" else f"data: {body}\n\n", kind)
    with ScriptedServer(forever=said) as server, pytest.raises(AgentStoppedError) as caught:
        Agent("A", model_on(wire, server)).call_sync("hi")
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.slow
@pytest.mark.parametrize("wire", first(1, WIRES[1:]), ids=lambda wire: wire.name)
def test_long_answers_take_time_in_proportion(wire: Wire) -> None:
    """A megabyte of text and one of arguments, in small pieces."""
    say = Say("word " * 50_000, (("add", {"text": "word " * 50_000}),))
    message = answered(wire, wire.stream(say).body)
    assert message is not None
    assert len(message["content"]) == 250_000
    assert len(message["tool_calls"][0]["function"]["arguments"]) > 250_000


def test_text_that_was_streamed_stays_whatever_the_end_says() -> None:
    wire = WIRES[1]
    events = list(wire.events(Say("Hello."), {}))
    events[-1]["response"]["output"][0]["content"][0]["text"] = "Another text."
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    message = answered(wire, body)
    assert message is not None
    assert message["content"] == "Hello."


@each_wire
def test_a_line_that_is_too_long(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "LONGEST_LINE", 1000)
    for kind, what in (("text/event-stream", "a line"), ("application/json", "a body")):
        with (
            ScriptedServer(Raw("data: " + "x" * 100_000, kind)) as server,
            pytest.raises(ModelError, match=f"sent {what} of more than 1,000 bytes"),
        ):
            asyncio.run(collected(model_on(wire, server)))


async def collected(model: Any) -> list[Any]:
    return [chunk async for chunk in model.stream(ASKED, [])]
