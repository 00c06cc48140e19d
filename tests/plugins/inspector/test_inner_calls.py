"""Calls that calls of the page make stand below them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.calling import PROGRAM, calling_toolkit, forecast
from tests.plugins.inspector.served import Client, served


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with calling_toolkit() as toolkit, served(toolkit) as client:
        client.enter()
        yield client


def calls(client: Client) -> dict[str, dict[str, Any]]:
    """All calls of the page, by their ids."""
    return {call["id"]: call for call in next(client.news())["calls"]}


def lines(client: Client, root: str, depth: int = 0) -> list[tuple[int, str, str]]:
    """The tree below a call: depth, name and status of each."""
    found = []
    for call in calls(client).values():
        if call["parent"] == root:
            found += [(depth, call["name"], call["status"]), *lines(client, call["id"], depth + 1)]
    return found


def below(client: Client, root: str, name: str) -> dict[str, Any]:
    """Everything about the call of that name below another."""
    call_id = next(call["id"] for call in calls(client).values() if (call["parent"], call["name"]) == (root, name))
    found: dict[str, Any] = client.get(f"calls/{call_id}")
    return found


def asked(client: Client, tool: str) -> dict[str, Any]:
    """The next request for approval of a tool."""
    return next(each for news in client.news() for each in news["approvals"] if each["tool"] == tool)


def test_a_program_with_its_calls_is_a_tree_that_goes_on(client: Client) -> None:
    root = client.call("run_code", code=PROGRAM)
    assert client.ended(root)["status"] == "suspended"
    first = [
        (0, "forecast", "success"),
        (0, "plan", "success"),
        (1, "ask_weather", "success"),
        (2, "forecast", "success"),
        (0, "sign_in", "success"),
    ]
    assert lines(client, root) == [*first, (0, "ask_desk", "suspended")]
    assert below(client, root, "forecast")["result"]["text"] == "rain in Oslo"
    secret = below(client, root, "sign_in")
    assert json.loads(secret["arguments"]) == {"user": "ann", "password": "***"}
    assert secret["result"]["text"] == "ann signed in with ***"
    assert "hunter22" not in json.dumps(calls(client))  # in the text of the program neither

    waiting = below(client, root, "ask_desk")["id"]
    for path in ("resume", "cancel"):
        answer = client.post(path, call=waiting, value="later")
        assert (answer.status, root in answer.data["error"]) == (404, True)
    resumed = client.later("resume", call=root, value="now")
    question = asked(client, "delete")
    assert question["call"] == below(client, root, "delete")["id"]
    assert below(client, root, "delete")["status"] == "awaiting_approval"
    assert client.post("approvals", approval=question["id"], approve=True).status == 200
    assert resumed().status == 200
    assert lines(client, root) == [
        *first,
        (0, "ask_desk", "success"),
        (0, "delete", "success"),
        (0, "forecast", "error"),
    ]
    assert below(client, root, "ask_desk")["result"]["text"] == "now"


def test_cancelling_a_program_denies_what_its_calls_ask(client: Client) -> None:
    root = client.call("run_code", code='await delete(path="b")')
    asked(client, "delete")
    assert client.post("cancel", call=root).status == 200
    assert client.ended(root)["status"] == "cancelled"
    assert below(client, root, "delete")["status"] in ("denied", "cancelled")


def test_calls_of_a_sub_agent_stand_below_it(client: Client) -> None:
    pytest.importorskip("pegboard_dialects")
    agents = pytest.importorskip("pegboard_agent")
    testing = pytest.importorskip("pegboard_testing")
    with calling_toolkit() as toolkit, testing.ScriptedServer([("forecast", {"city": "Oslo"})], "It rains.") as model:
        chat = agents.OpenAIChat("scripted", base_url=model.url, api_key="none")
        toolkit.register(agents.Agent("helper", chat, toolkit.view(include="forecast")))
        with served(toolkit) as fresh:
            fresh.enter()
            root = fresh.call("call_helper", message="Does it rain?")
            assert fresh.ended(root)["status"] == "success"
            assert lines(fresh, root) == [(0, "forecast", "success")]


def test_what_a_call_of_the_program_itself_makes_is_none_of_the_page(client: Client) -> None:
    with calling_toolkit() as toolkit, served(toolkit) as fresh:
        fresh.enter()
        assert toolkit.call_sync("plan", {"city": "Rome"}).text == "rain in Rome"
        fresh.ended(fresh.call("nobody"))
        assert [call["name"] for call in calls(fresh).values()] == ["nobody"]
    assert toolkit.call_sync("plan", {"city": "Rome"}).is_error  # closed, and followed no more


def test_the_oldest_are_forgotten_and_those_of_a_forgotten_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard_inspector._desk.KEPT", 2)
    monkeypatch.setattr("pegboard_inspector._desk.INNER", 3)
    with Toolkit(plugins=()) as toolkit, served(toolkit) as client:
        client.enter()
        toolkit.register(forecast)
        toolkit.register(lambda: [toolkit.call_sync("forecast", {"city": "Oslo"}).text for _ in range(2)], name="twice")
        for _ in range(4):
            client.ended(client.call("twice"))
        found = calls(client)
        assert sum(call["name"] == "twice" for call in found.values()) == 2
        assert sum(call["name"] == "forecast" for call in found.values()) == 3
        assert {call["parent"] for call in found.values()} <= {None, *found}
