"""Questions with forms, over the API."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pegboard import PegboardError
from pegboard_inspector._desk import _misfits
from tests.plugins.inspector.asking import FORM, asking_toolkit
from tests.plugins.inspector.served import Client, served

SECRETS = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "format": "password"},
        "pin": {"type": "string", "writeOnly": True},
        "api_key": {"type": "string"},
        "name": {"type": "string"},
    },
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with asking_toolkit() as toolkit, served(toolkit) as client:
        client.enter()
        yield client


def asked(client: Client, form: Any) -> tuple[str, dict[str, Any]]:
    """The call that asks the form, and the question."""
    call_id = client.call("ask", form=form)
    for news in client.news():
        for each in news["approvals"]:
            if each["call"] == call_id:
                return call_id, each
    raise AssertionError("there was no question")


def answered(client: Client, call_id: str) -> Any:
    """What the server says that it was answered."""
    return json.loads(client.ended(call_id)["result"]["content"][-1]["text"])


def test_the_question_has_its_form(client: Client) -> None:
    call_id, question = asked(client, FORM)
    assert (question["form"], question["reason"], question["tool"]) == (FORM, "Who are you?", "ask")
    assert client.post("approvals", approval=question["id"], approve=True, members={"name": "Ada"}).status == 200
    content = {"vegetarian": True, "days": ["tue"], "name": "Ada"}
    assert answered(client, call_id) == {"action": "accept", "content": content}


def test_what_does_not_fit_is_told_and_the_question_waits(client: Client) -> None:
    call_id, question = asked(client, FORM)
    missing = ["name: missing (required string of at least 2 characters)"]
    refused: list[tuple[dict[str, Any], list[str]]] = [
        (
            {"members": {"name": "A", "age": -1}},
            ["name: expected string of at least 2 characters", "age: expected integer >= 0"],
        ),
        ({"members": {"name": "Ada", "nom": 1}}, ["nom: the form has no such member"]),
        ({"members": {}}, missing),
        ({}, missing),
    ]
    for answer, problems in refused:
        assert client.post("approvals", approval=question["id"], approve=True, **answer).data == {"problems": problems}
    assert client.post("approvals", approval=question["id"], approve=False).status == 200
    assert answered(client, call_id) == {"action": "decline", "content": None}


def test_a_form_without_required_members_may_be_approved(client: Client) -> None:
    call_id, question = asked(client, {**FORM, "required": []})
    assert client.post("approvals", approval=question["id"], approve=True).status == 200
    assert answered(client, call_id)["content"] == {"vegetarian": True, "days": ["tue"]}


def test_what_is_written_into_private_fields_is_masked(client: Client) -> None:
    call_id, question = asked(client, SECRETS)
    members = {"code": "hunter-1", "pin": "hunter-2", "api_key": "hunter-3", "name": "Ada"}
    assert client.post("approvals", approval=question["id"], approve=True, members=members).status == 200
    assert answered(client, call_id)["content"] == {"code": "***", "pin": "***", "api_key": "***", "name": "Ada"}
    shown = client.send("GET", f"/api/calls/{call_id}").body
    assert b"hunter" not in shown
    news = next(news for news in client.news() if any(call["id"] == call_id for call in news["calls"]))
    assert "hunter" not in json.dumps(news)


def test_a_question_that_is_cancelled_is_declined(client: Client) -> None:
    call_id, question = asked(client, FORM)
    assert client.post("cancel", call=call_id).status == 200
    client.ended(call_id)
    assert client.post("approvals", approval=question["id"], approve=True, members={"name": "Ada"}).status == 404


def test_without_its_reader_no_form_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pegboard_schemas", None)
    with pytest.raises(PegboardError, match="pip install pegboard-schemas"):
        _misfits(FORM, {})
