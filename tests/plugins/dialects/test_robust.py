"""Whatever a server sends, reading ends in calls or in an error that says what was expected."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pytest
from attrs import define
from hypothesis import given
from hypothesis import strategies as st

from pegboard import PegboardError, ToolCall
from tests.plugins.dialects.desk import NAMES, bound
from tests.plugins.dialects.test_streams import FORMATS, dialect

CALLS = [ToolCall("call_1", "get_forecast", {"city": "Paris", "days": None}), ToolCall("call_2", "chart", {})]
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, "text", 1, 1.5, True, [], {}, [None], ["a"], [[]], {"a": None}, [{}], [{"type": None}]]
)


def spoiled(value: Any, draw: Any, junk: Any) -> Any:
    """A copy with something else somewhere."""
    places = list(places_in(value))
    chosen = draw(st.sampled_from(places))
    return replaced(value, chosen, junk)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places_in(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: replaced(value[key], tuple(rest), junk)}
    return [replaced(each, tuple(rest), junk) if number == key else each for number, each in enumerate(value)]


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data(), junk=JUNK, twice=st.booleans())
def test_spoiled_responses(name: str, data: st.DataObject, junk: Any, twice: bool) -> None:
    whole, stream = FORMATS[name]
    for response in (whole(CALLS), list(stream(CALLS, [3, 7]))):
        broken = spoiled(response, data.draw, junk)
        if twice:
            broken = spoiled(broken, data.draw, None)
        with suppress(PegboardError):
            for call in dialect(name).calls(broken):
                assert isinstance(call.name, str)
                assert isinstance(call.id, str)
                assert call.id
        collector = dialect(name).collector()
        for chunk in broken if isinstance(broken, list) else [broken]:
            with suppress(PegboardError):
                collector.feed(chunk)
        collector.calls()
        collector.messages()


@given(data=st.data(), junk=JUNK)
def test_spoiled_requests(data: st.DataObject, junk: Any) -> None:
    request = {"id": "a", "method": "tools/call", "params": {"name": "chart", "arguments": {"x": [1]}, "_meta": {}}}
    with suppress(PegboardError):
        dialect("mcp").calls(spoiled(request, data.draw, junk))


@given(pieces=st.lists(st.tuples(st.from_regex(r"\$(\.[ab]|\[[0-9]{1,9}\]){0,4}", fullmatch=True), JUNK)))
def test_pieces_of_arguments_of_gemini(pieces: list[tuple[str, Any]]) -> None:
    collector = dialect("gemini").collector()
    kinds = {str: "string_value", int: "number_value", bool: "bool_value"}
    arguments = [{"json_path": path, kinds.get(type(value), "null_value"): value} for path, value in pieces]
    call = {"name": "chart", "partial_args": arguments, "will_continue": True}
    collector.feed({"candidates": [{"content": {"parts": [{"function_call": call}]}}]})
    (found,) = collector.calls()
    assert isinstance(found.arguments, dict)
    assert len(str(found.arguments)) < 10_000


def test_deep_arguments() -> None:
    deep: Any = None
    for _ in range(5_000):
        deep = {"a": deep}
    block = {"type": "tool_use", "id": "a", "name": "get_forecast", "input": {"city": deep}}
    (call,) = bound("anthropic").calls([block])
    assert call.name == "get_forecast"


class TestObjects:
    """Objects of any make, as long as they have the attributes."""

    CALL: ClassVar = {"id": "call_1", "type": "function", "function": {"name": "chart", "arguments": "{}"}}

    def test_slots(self) -> None:
        @define(slots=True)
        class Message:
            role: str
            tool_calls: list[Any]

        self.check(Message("assistant", [self.CALL]))

    def test_dataclass(self) -> None:
        @dataclass(slots=True)
        class Message:
            role: str
            tool_calls: list[Any]

        self.check(Message("assistant", [self.CALL]))

    def test_named_tuple(self) -> None:
        class Message(NamedTuple):
            role: str
            tool_calls: list[Any]

        self.check(Message("assistant", [self.CALL]))

    def test_attributes_of_the_class(self) -> None:
        class Message:
            role = "assistant"
            tool_calls: ClassVar = (TestObjects.CALL,)

            def method(self) -> None: ...

        self.check(Message())

    def check(self, message: Any) -> None:
        (call,) = bound("openai").calls(message)
        assert (call.id, call.name, call.arguments) == ("call_1", "chart", {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("choice", [None, 3, {}, ["auto"], {"type": "function"}, "made_up"])
def test_other_choices_than_there_are(name: str, choice: Any) -> None:
    with pytest.raises(PegboardError, match="tool_choice"):
        bound(name).tool_choice(choice)
