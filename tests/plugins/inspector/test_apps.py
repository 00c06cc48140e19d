"""Pages of MCP Apps: what is served of them, and what they may do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugins.inspector.clock import PAGE, clock_board
from tests.plugins.inspector.served import Client, served


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with clock_board() as toolkit, served(toolkit) as client:
        client.enter()
        yield client


def opened(client: Client, name: str = "clock__now") -> Any:
    call_id = client.call(name)
    assert client.ended(call_id)["page"] is not None
    answer = client.post("apps", call=call_id)
    assert answer.status == 200, answer.body
    return answer.data


def test_a_call_says_whether_its_tool_has_a_page(client: Client) -> None:
    assert client.ended(client.call("clock__now"))["page"] == "ui://clock/page"
    assert client.ended(client.call("shell"))["page"] is None
    assert client.ended(client.call("unreadable"))["page"] is None
    assert client.ended(client.call("nothing"))["page"] is None


def test_a_page_is_served_as_a_stranger(client: Client) -> None:
    found = opened(client)
    assert found["tool"]["name"] == "clock__now"
    answer = client.send("GET", found["url"])
    assert (answer.status, answer.body.decode()) == (200, PAGE)
    policy = dict(f"{each} ".split(" ", 1) for each in answer.headers["content-security-policy"].split("; "))
    assert policy["sandbox"].split() == ["allow-scripts"]
    assert policy["default-src"].strip() == "'none'"
    assert policy["script-src"].strip() == "'unsafe-inline'"
    assert policy["frame-ancestors"].strip() == "'self'"
    assert not any("http" in each or "*" in each for each in policy.values())
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"


def test_nobody_else_reads_a_page(client: Client) -> None:
    url = opened(client)["url"]
    assert client.send("GET", url, cookie=None).status == 401
    assert client.send("GET", url, sec_fetch_site="cross-site").status == 403
    assert client.send("GET", "/apps/guessed").status == 404
    assert client.send("POST", "/api/apps", b"{}", content_type="application/json", origin="null").status == 403


def test_a_page_calls_tools_of_its_own_server_under_their_names_there(client: Client) -> None:
    app = opened(client)["app"]
    answer = client.post("apps/call", app=app, name="refresh", arguments=json.dumps({"zone": "CET"}))
    assert answer.status == 200, answer.body
    ended = client.ended(answer.data["id"])
    assert (ended["name"], ended["result"]["data"]) == ("clock__refresh", {"tool": "refresh", "zone": "CET"})


@pytest.mark.parametrize("name", ["not_for_pages", "clock__refresh", "other", "other__other", "shell", "nothing"])
def test_a_page_calls_nothing_else(client: Client, name: str) -> None:
    app = opened(client)["app"]
    before = len(client.get("stats")["tools"])
    answer = client.post("apps/call", app=app, name=name, arguments="{}")
    assert (answer.status, answer.data) == (404, {"error": f"this page can call no tool {name!r}"})
    assert len(client.get("stats")["tools"]) == before
    assert client.post("apps/call", app="guessed", name="refresh", arguments="{}").status == 404


def test_a_page_that_cannot_be_read_says_why(client: Client) -> None:
    call_id = client.call("clock__clock_broken")
    client.ended(call_id)
    answer = client.post("apps", call=call_id)
    assert (answer.status, answer.data) == (400, {"error": "ui://clock/broken cannot be read: out of paper"})


def test_a_tool_for_pages_is_on_the_board_and_marked(client: Client) -> None:
    assert client.get("tools/clock__refresh")["for_apps_only"] is True
    assert client.get("tools/clock__now")["for_apps_only"] is False
    tools = {each["name"]: each["offered"] for each in client.get("board")["tools"]}
    assert (tools["clock__now"], tools["clock__refresh"]) == (True, False)


def test_the_oldest_of_many_pages_is_closed() -> None:
    with clock_board() as toolkit, served(toolkit) as client:
        client.enter()
        call_id = client.call("clock__now")
        client.ended(call_id)
        urls = [client.post("apps", call=call_id).data["url"] for _ in range(51)]
        assert client.send("GET", urls[0]).status == 404
        assert client.send("GET", urls[1]).status == 200
