"""Any conversation in the formats of all providers: nothing is lost, and what only a provider reads stays in place."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_agent._models.provider import Piece, as_message, pieces_of, without_own
from tests.plugins.agent.conversations import Talk, talks
from tests.plugins.agent.desk import KEY
from tests.plugins.agent.wires import WIRES, Wire


def body_of(wire: Wire, messages: list[dict[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = wire.model("m", api_key=KEY)._body(messages, [], {})
    return body


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@given(talk=talks())
def test_nothing_is_lost(wire: Wire, talk: Talk) -> None:
    before = json.dumps(talk.messages)
    body = body_of(wire, talk.messages)
    assert json.dumps(talk.messages) == before
    turns = body.get("messages") or body.get("contents") or body.get("input")
    sent = json.dumps(turns, ensure_ascii=False)
    # A result names the tool again in one of the formats, and where images stand in two of them.
    found = list(dict.fromkeys(re.findall(r"word\d+", sent)))
    assert found == talk.words
    for image in talk.images:
        assert sent.count(image) == 1
    assert json.dumps(body).count("be brief") == len(talk.system)


@pytest.mark.parametrize("wire", WIRES[1:], ids=lambda wire: wire.name)
@given(talk=talks())
def test_each_call_has_its_result(wire: Wire, talk: Talk) -> None:
    body = body_of(wire, talk.messages)
    called: list[str] = []
    answered: list[str] = []
    for part in _parts(body):
        call = part.get("function_call") or (part if part.get("type") in ("tool_use", "function_call") else None)
        result = part.get("function_response") or (
            part if part.get("type") in ("tool_result", "function_call_output") else None
        )
        if isinstance(call, dict):
            called.append(call.get("call_id") or call["id"])
        elif isinstance(result, dict):
            answered.append(result.get("tool_use_id") or result.get("call_id") or result["id"])
    assert called == answered
    assert len(set(called)) == len(called)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", each) for each in called)


def _parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    if "input" in body:
        items: list[dict[str, Any]] = body["input"]
        return items
    return [part for turn in body.get("messages") or body["contents"] for part in turn.get("content") or turn["parts"]]


@pytest.mark.parametrize("wire", WIRES[2:], ids=lambda wire: wire.name)
@given(talk=talks())
def test_roles_alternate(wire: Wire, talk: Talk) -> None:
    body = body_of(wire, talk.messages)
    roles = [turn["role"] for turn in body.get("messages") or body["contents"]]
    assert roles[0] == "user"
    assert all(first != second for first, second in pairwise(roles))


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TEXTS = st.text(min_size=1, max_size=5)
OWN = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), min_size=1, max_size=2)
PIECES = st.lists(
    st.builds(Piece, text=TEXTS)
    | st.builds(Piece, text=TEXTS, own=OWN)
    | st.builds(Piece, own=OWN)
    | st.builds(Piece, call=st.just(CALL), own=st.none() | OWN),
    max_size=8,
)


@given(pieces=PIECES)
def test_pieces_stay_in_place(pieces: list[Piece]) -> None:
    message = as_message("d", pieces)
    read = pieces_of("d", json.loads(json.dumps(message)), message["content"])
    assert [(each.text, each.call, each.own or None) for each in read] == [
        (each.text, each.call, each.own) for each in pieces
    ]


@given(pieces=PIECES, text=st.text(max_size=10))
def test_a_message_that_was_changed_loses_no_text_and_no_call(pieces: list[Piece], text: str) -> None:
    message = as_message("d", pieces)
    read = pieces_of("d", message, text)
    assert "".join(each.text for each in read) == text
    assert [each.call for each in read if each.call] == [each.call for each in pieces if each.call]
    assert not [each for each in pieces_of("other", message, text) if each.own]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["d", "text", "calls", "length", "own"]), inner)
    ),
)


@given(junk=JUNK, text=st.text(max_size=5))
def test_what_a_file_says_instead_is_ignored(junk: Any, text: str) -> None:
    message: dict[str, Any] = {"content": text, "provider": junk, "tool_calls": [{**CALL, "provider": junk}]}
    read = pieces_of("d", message, text)
    assert "".join(each.text for each in read) == text
    assert [each.call for each in read if each.call] == [CALL]
    assert without_own([message]) == [{"content": text, "tool_calls": [CALL]}]


def test_messages_without_it_stay_the_same_objects() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ]
    assert all(sent is message for sent, message in zip(without_own(messages), messages, strict=True))
