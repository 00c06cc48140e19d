"""Tools for pages of MCP Apps alone: no dialect shows them, and no call that a dialect reads is one of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard import Status, Tool, Toolkit
from tests.support.failing import pack
from tests.tools.test_meta import APP, now, refresh


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
