"""`meta` of a tool: JSON for hosts, which no model is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import RegistrationError, Tool, ToolCall, Toolkit, tool

UI = {"ui": {"resourceUri": "ui://clock/page.html"}}
APP = {"ui": {"resourceUri": "ui://clock/page.html", "visibility": ["app"]}}
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@tool(meta=UI)
def now() -> str:
    """The time."""
    return "12:00"


@tool(meta=APP)
def refresh(zone: str = "UTC") -> str:
    """The time, for the page."""
    return f"12:01 {zone}"


class ByHand:
    name, description, parameters, meta = "by_hand", "By hand.", {"type": "object"}, APP

    def call(self, call: ToolCall) -> str:
        return "called"


class OddMeta(ByHand):
    name, meta = "odd", "no mapping"  # type: ignore[assignment]


class Clock:
    @tool(meta=UI)
    def hours(self) -> int:
        """The hours."""
        return 12


class TestDeclaring:
    @pytest.mark.parametrize(
        ("source", "meta"),
        [
            (now, UI),
            (refresh, APP),
            (ByHand(), APP),
            (OddMeta(), {}),
            (Clock(), UI),
            (Tool.from_function(now), UI),
            (Tool.external("far", meta=UI), UI),
            (Tool.external("far"), {}),
            ("tests.tools.test_meta:now", UI),
            (len, {}),
        ],
    )
    def test_every_kind_of_tool_has_it(self, source: Any, meta: Any) -> None:
        with Toolkit(plugins=()) as toolkit:
            [registered] = toolkit.register(source, name="n" if source is len else None)
            assert registered.meta == meta

    def test_it_is_a_copy_for_each_reader(self) -> None:
        given = {"ui": {"resourceUri": "ui://a"}}
        made = Tool.external("far", meta=given)
        given["ui"]["resourceUri"] = "ui://b"
        made.meta["ui"]["resourceUri"] = "ui://c"
        made.meta["more"] = 1
        assert made.meta == {"ui": {"resourceUri": "ui://a"}}

    @given(st.dictionaries(st.text(), JSON, max_size=4))
    def test_any_json_object_is_kept(self, meta: dict[str, Any]) -> None:
        made = Tool.external("far", meta=meta)
        assert json.dumps(made.meta, sort_keys=True) == json.dumps(meta, sort_keys=True)

    @pytest.mark.parametrize("meta", [{"a": float("nan")}, {1: 2}, {"a": object()}, {"a": {1, 2}}, ["a"], "a", None, 3])
    def test_what_is_no_json_is_refused(self, meta: Any) -> None:
        with pytest.raises(RegistrationError, match="meta= takes a mapping of JSON"):
            tool(meta=meta)

    def test_what_contains_itself_is_refused(self) -> None:
        endless: dict[str, Any] = {}
        endless["again"] = endless
        with pytest.raises(RegistrationError, match="meta= takes a mapping of JSON"):
            tool(meta=endless)

    def test_no_model_and_no_hash_knows_of_it(self) -> None:
        plain, with_meta = Tool.external("far", "d"), Tool.external("far", "d", meta=UI)
        assert plain.schema_hash == with_meta.schema_hash
        assert plain.schema() == with_meta.schema()
