"""The bodies of requests are those of `json.dumps`, whatever was written before."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pegboard_agent._models.server import Bodies

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls"]), VALUES), max_size=4)


def dumped(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@given(st.lists(MESSAGES, max_size=4), MESSAGES)
def test_of_any_messages(requests: list[list[dict[str, Any]]], tools: list[dict[str, Any]]) -> None:
    bodies = Bodies()
    for messages in requests:
        body = {"model": "scripted", "messages": messages, "stream": True, "tools": tools}
        # Of two equal values, such as 0 and False, the text may be that of the first.
        assert json.loads(bodies.json(body)) == json.loads(dumped(body))


def test_what_has_changed_in_place_is_written_anew() -> None:
    bodies, message = Bodies(), {"role": "user", "content": [{"type": "text", "text": "one"}]}
    body = {"messages": [message, {"role": "user", "content": "two"}], "stream": True}
    assert bodies.json(body) == dumped(body)
    message["content"][0]["text"] = "half a pair: \ud83d"  # type: ignore[index]
    body["messages"].insert(0, {"role": "system", "content": "zero"})  # type: ignore[attr-defined]
    assert bodies.json(body) == dumped(body)
    del body["messages"][1:]  # type: ignore[attr-defined]
    assert bodies.json(body) == dumped(body)
    assert b"half a pair" not in bodies.json(body)
