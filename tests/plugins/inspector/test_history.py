"""The calls that a journal has of before: the page's history begins with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard import Toolkit
from pegboard_inspector._sources import EARLIER
from tests.plugins.inspector.history import journaled
from tests.plugins.inspector.served import served

pytest.importorskip("pegboard_journal")


def test_calls_of_before_as_the_journal_keeps_them(tmp_path: Path) -> None:
    with journaled(tmp_path) as toolkit:
        for _ in range(2):
            toolkit.call_sync("forecast", {"city": "Bern"}, call_id="a")
        toolkit.call_sync("sign_in", {"user": "ada", "password": "hunter2!"})
        toolkit.call_sync("forecast", {})
        with served(toolkit) as client:
            client.enter()
            client.call("forecast", city="Oslo")
            calls = client.get("earlier")["calls"]
            assert [each["features"] for each in client.get("board")["sources"]] == [["calls"]]
    assert [(each["name"], each["status"]) for each in calls] == [
        ("forecast", "invalid"),
        ("sign_in", "success"),
        ("forecast", "success"),
        ("forecast", "success"),
    ]
    _, secret, again, first = calls
    assert (secret["arguments"], secret["result"]) == ('{"password":"***","user":"ada"}', '"ada with ***"')
    assert (again["id"], again["arguments"], again["result"]) == ("a", '{"city":"Bern"}', first["result"])
    assert (again["notes"], first["notes"]) == (["it did not run: it was given the answer of an earlier call"], [])
    assert first["started"] <= again["started"]
    assert 0 < first["duration"] < 60


def test_the_last_ones_alone_and_digests_as_they_are(tmp_path: Path) -> None:
    with journaled(tmp_path, content="digest", cache={}) as toolkit:
        for number in range(EARLIER + 1):
            toolkit.call_sync("forecast", {"city": f"town {number}"}, call_id=str(number))
        toolkit.unregister("forecast")
        with served(toolkit) as client:
            client.enter()
            calls = client.get("earlier")["calls"]
    assert [each["id"] for each in calls] == [str(number) for number in range(EARLIER, 0, -1)]
    assert {len(each["arguments"]) for each in calls} == {64}


@pytest.mark.parametrize("journal", [None, {"cache": {"*": 60.0}}])
def test_none_where_nothing_is_recorded(journal: dict[str, object] | None) -> None:
    toolkit = Toolkit(plugins=()) if journal is None else Toolkit(plugins=["journal"], settings={"journal": journal})
    with toolkit, served(toolkit) as client:
        client.enter()
        assert client.get("earlier") == {"calls": []}


def test_a_journal_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with journaled(tmp_path) as toolkit, served(toolkit) as client:
        client.enter()
        (tmp_path / "calls.db").write_text("this is no database, and says so at some length")
        answer = client.send("GET", "/api/earlier")
        assert answer.status == 400
        assert "calls.db: file is not a database" in answer.data["error"]
