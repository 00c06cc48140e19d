"""`meta` of a tool: JSON for hosts, which no model is shown, and what it says of MCP Apps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import RegistrationError, Status, Tool, ToolCall, Toolkit, tool
from tests.support.failing import pack

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


def board(**options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=["dialects"], **options)
    toolkit.register(now, refresh)
    return toolkit


def asked_for(name: str) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": '{"zone": "CET"}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class TestForAppsOnly:
    def test_it_is_listed_to_no_model(self) -> None:
        with board() as toolkit:
            assert [each.name for each in toolkit.tools] == ["now"]
            assert [each.name for each in toolkit.schemas()] == ["now"]
            assert [each.name for each in toolkit.app_tools] == ["refresh"]
            assert [each.name for each in toolkit.all_tools] == ["now", "refresh"]
            assert [each["function"]["name"] for each in toolkit.dialect("openai").tools()] == ["now"]
            assert (toolkit["now"].for_apps_only, toolkit["refresh"].for_apps_only) == (False, True)

    def test_the_program_calls_it_by_name(self) -> None:
        with board() as toolkit:
            assert toolkit.call_sync("refresh", {"zone": "CET"}).text == "12:01 CET"
            assert (
                toolkit.call_many_sync([("refresh", {}), {"name": "refresh", "arguments": {}}])[1].text == "12:01 UTC"
            )

    @pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic", "gemini", "dashscope", "mcp"])
    def test_every_dialect_leaves_it_out(self, name: str) -> None:
        with board() as toolkit:
            assert "refresh" not in json.dumps(toolkit.dialect(name).tools())

    def test_a_call_that_a_dialect_reads_is_of_no_tool(self) -> None:
        with board() as toolkit:
            chat = toolkit.dialect("openai")
            unknown, hidden = (
                toolkit.call_many_sync(chat.calls(asked_for(name)))[0] for name in ("rafresh", "refresh")
            )
            assert (hidden.status, unknown.status) == (Status.NOT_FOUND, Status.NOT_FOUND)
            assert hidden.text == "Error: there is no tool 'refresh'"
            assert "refresh" not in unknown.text.replace("rafresh", "")
            assert toolkit.stats["tools"].get("refresh") is None
            assert chat.messages([hidden])[0]["content"] == hidden.text

    def test_its_full_name_is_no_way_around_that(self) -> None:
        clocks = pack("clocks", provide_tools=lambda: [refresh])
        with Toolkit(plugins=["dialects", clocks]) as toolkit:
            [name] = [each.qualified_name for each in toolkit.app_tools]
            assert name == "clocks__refresh"
            assert toolkit.call_sync(name).text == "12:01 UTC"
            [result] = toolkit.call_many_sync(toolkit.dialect("openai").calls(asked_for(name)))
            assert result.status is Status.NOT_FOUND

    def test_searching_does_not_find_it(self) -> None:
        hidden = [Tool.external(f"clock_{number}", "A clock", meta=APP) for number in range(4)]
        with Toolkit(plugins=(), defer_threshold=0) as toolkit:
            toolkit.register(*hidden, Tool.external("clock_face", "A clock"), defer=True)
            assert [each.name for each in toolkit.search("clock", 10)] == ["clock_face"]

    def test_groups_and_views_hold_for_it(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.create_group("pages", active=False)
            toolkit.register(refresh, group="pages")
            assert toolkit.app_tools == []
            assert toolkit.call_sync("refresh").status is Status.INACTIVE
            toolkit.update_groups("pages", True)
            view = toolkit.view(prefix="x_")
            assert [each.name for each in view.app_tools] == ["x_refresh"]
            assert view.call_sync("x_refresh").text == "12:01 UTC"
