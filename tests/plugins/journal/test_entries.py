"""Entries: every call is one, with who made it, what decided, and what it came to."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import Approval, Guard, PegboardError, Suspend, ToolCall, Toolkit, Verdict, hookimpl, tool
from pegboard_journal import Entry, Journal, Settings
from tests.plugins.journal.desk import Tools, entries, journaled, url_of

WEATHER = '{"city":"Bern","days":2}'


@pytest.fixture
def toolkit(tmp_path: Path) -> Iterator[Toolkit]:
    """A toolkit with a journal."""
    with journaled(tmp_path) as made:
        yield made


def last(toolkit: Toolkit) -> Entry:
    return entries(toolkit)[-1]


class TestEveryCall:
    def test_what_an_entry_has(self, toolkit: Toolkit) -> None:
        before = datetime.now(UTC)
        result = toolkit.call_sync("weather", {"days": 2, "city": "Bern"}, call_id="c1")
        (entry,) = entries(toolkit)
        assert (entry.call_id, entry.tool, entry.status, entry.attempts) == ("c1", "weather", "success", 1)
        assert entry.arguments == hashlib.sha256(WEATHER.encode()).hexdigest()
        assert entry.result == hashlib.sha256(WEATHER.encode()).hexdigest()
        assert entry.duration == result.duration
        assert before - timedelta(seconds=1) < entry.started <= datetime.now(UTC)
        assert (entry.session, entry.subject, entry.agent, entry.parent, entry.decided_by) == (None,) * 5

    def test_text_and_mapping_are_the_same_arguments(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("weather", '{ "days": 2,\n"city": "Bern" }')
        toolkit.call_sync("weather", b'{"city": "Bern", "days": 2}')
        toolkit.call_sync("weather", {"city": "Bern", "days": 2})
        assert len({entry.arguments for entry in entries(toolkit)}) == 1

    @pytest.mark.parametrize(
        ("name", "arguments", "status"),
        [
            ("weather", {"city": "Bern"}, "success"),
            ("weather", {"town": "Bern"}, "invalid"),
            ("wether", {}, "not_found"),
            ("pay", {"amount": 1}, "denied"),
            ("flaky", {}, "error"),
            ("later", {"question": "may I?"}, "suspended"),
        ],
    )
    def test_however_it_ends(self, toolkit: Toolkit, name: str, arguments: Any, status: str) -> None:
        toolkit.set_permission("pay", "never")
        assert toolkit.call_sync(name, arguments).status == status
        assert [(entry.tool, entry.status) for entry in entries(toolkit)] == [(name, status)]

    def test_awaited_and_in_batches(self, toolkit: Toolkit) -> None:
        async def main() -> None:
            await toolkit.call("slow", {"city": "Bern"})
            await toolkit.call_many(
                [("slow", {"city": "Rome"}), ("weather", {"city": "Oslo"}), ("send", {"text": "x"})]
            )

        asyncio.run(main())
        assert sorted(entry.tool for entry in entries(toolkit)) == ["send", "slow", "slow", "weather"]
        assert {entry.status for entry in entries(toolkit)} == {"success"}

    def test_attempts(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("flaky", {})
        assert last(toolkit).attempts == 3

    @pytest.mark.parametrize("name", ["slow", "send"])
    def test_a_cancelled_caller(self, toolkit: Toolkit, name: str) -> None:
        async def main() -> None:
            task = asyncio.ensure_future(toolkit.call(name, {"city": "x"} if name == "slow" else {"text": "x"}))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert [(entry.tool, entry.status) for entry in entries(toolkit)] == [(name, "cancelled")]

    def test_a_prepared_call_is_one_entry(self, toolkit: Toolkit) -> None:
        call = toolkit.prepare("weather", {"city": "Bern"})
        assert entries(toolkit) == []
        call.execute_sync()
        call.execute_sync()
        assert [entry.call_id for entry in entries(toolkit)] == [call.id]


class TestWho:
    def test_session_subject_and_agent(self, toolkit: Toolkit) -> None:
        session = toolkit.session(id="s1", subject="ann", agent=SimpleNamespace(name="planner"))
        session.call_sync("weather", {"city": "Bern"})
        entry = last(toolkit)
        assert (entry.session, entry.subject, entry.agent) == ("s1", "ann", "planner")

    def test_a_subject_that_is_no_text(self, toolkit: Toolkit) -> None:
        toolkit.session(subject=SimpleNamespace(id=7, password="hunter2")).call_sync("weather", {"city": "Bern"})
        assert last(toolkit).subject == "7"
        toolkit.session(subject=object()).call_sync("weather", {"city": "Bern"})
        assert last(toolkit).subject == "object"

    @pytest.mark.parametrize("name", [None, "own"])
    def test_the_session_of_the_call_that_made_it(self, toolkit: Toolkit, name: str | None) -> None:
        inner = toolkit.session(id=name)

        @tool
        def ask() -> str:
            """Ask in another session."""
            return inner.call_sync("later", {"question": "?"}, call_id="q").status.value

        toolkit.register(ask)
        toolkit.session(id="chat").call_sync("ask")
        inner.resume("q", "yes")
        found = [(entry.tool, entry.session, entry.status) for entry in entries(toolkit, session="chat")]
        assert found == [("ask", "chat", "success"), ("later", "chat", "success")]

    def test_the_parent_that_the_call_names(self, toolkit: Toolkit) -> None:
        toolkit.call_sync(ToolCall("c2", "weather", {"city": "Bern"}, {"parent": "c1"}))
        assert last(toolkit).parent == "c1"

    def test_a_tool_that_calls_tools(self, toolkit: Toolkit) -> None:
        @toolkit.tool(read_only=True)
        def both(call: ToolCall) -> str:
            """Call others."""
            return str(call.session.call_sync("weather", {"city": "Bern"}, call_id="inner").text)

        toolkit.call_sync("both", {}, call_id="outer")
        assert [(entry.call_id, entry.parent) for entry in entries(toolkit)] == [("inner", "outer"), ("outer", None)]
        toolkit.call_sync("weather", {"city": "Bern"})
        assert last(toolkit).parent is None

    def test_children_on_a_loop(self, toolkit: Toolkit) -> None:
        @toolkit.tool(read_only=True)
        async def fan(call: ToolCall) -> int:
            """Call others."""
            return len(await call.session.call_many([("slow", {"city": city}) for city in "ab"]))

        async def main() -> None:
            await asyncio.gather(toolkit.call("fan", {}, call_id="f1"), toolkit.call("fan", {}, call_id="f2"))

        asyncio.run(main())
        assert sorted(entry.parent for entry in entries(toolkit, tool="slow") if entry.parent) == [
            "f1",
            "f1",
            "f2",
            "f2",
        ]
        assert {entry.parent for entry in entries(toolkit, tool="fan")} == {None}


class TestDecisions:
    def test_an_approver(self, tmp_path: Path) -> None:
        answers: list[Any] = [True, False, Approval.edit({"amount": 2})]
        with journaled(tmp_path, options={"approver": lambda request: answers.pop(0)}, content="redacted") as toolkit:
            toolkit.set_permission("pay", "prompt")
            for _ in range(3):
                toolkit.call_sync("pay", {"amount": 1})
            found = [(each.status, each.decided_by, each.arguments) for each in entries(toolkit)]
        assert found == [
            ("success", "approver", '{"amount":1}'),
            ("denied", "approver", '{"amount":1}'),
            ("success", "approver", '{"amount":2}'),
        ]

    def test_permissions(self, toolkit: Toolkit) -> None:
        for permission in ("never", "prompt"):
            toolkit.set_permission("weather", permission)
            toolkit.call_sync("weather", {"city": "Bern"})
        assert [(each.status, each.decided_by) for each in entries(toolkit)] == [("denied", "permission")] * 2

    def test_a_guard(self, tmp_path: Path) -> None:
        class Strict:
            @hookimpl
            def provide_guards(self) -> list[Guard]:
                return [Guard(lambda tool: None, check=lambda call: Verdict(permission="never", reason="no"))]

        with Toolkit(plugins=["journal", Strict()], settings={"journal": {"url": url_of(tmp_path)}}) as toolkit:
            toolkit.register(Tools())
            toolkit.call_sync("weather", {"city": "Bern"})
            assert [(each.status, each.decided_by) for each in entries(toolkit)] == [("denied", "guard")]


class TestContent:
    def test_keyed(self, tmp_path: Path) -> None:
        with journaled(tmp_path, content="keyed", key="k") as toolkit:
            toolkit.call_sync("weather", {"city": "Bern", "days": 2})
            assert last(toolkit).arguments == hmac.new(b"k", WEATHER.encode(), "sha256").hexdigest()

    def test_redacted(self, tmp_path: Path) -> None:
        with journaled(tmp_path, content="redacted") as toolkit:
            toolkit.call_sync("weather", '{"days": 2, "city": "Bern"}')
            toolkit.call_sync("flaky", {})
            found = [(each.arguments, each.result) for each in entries(toolkit)]
        assert found == [(WEATHER, WEATHER), ("{}", '"not now"')]

    def test_none(self, tmp_path: Path) -> None:
        with journaled(tmp_path, content="none") as toolkit:
            toolkit.call_sync("weather", {"city": "Bern"})
            assert (last(toolkit).arguments, last(toolkit).result) == (None, None)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"content": "keyed"}, "needs a key"),
            ({"once": ["pay"], "url": None}, "once needs a url"),
            ({"mode": "strict"}, "needs a cassette"),
            ({"retain": "90 days"}, "such as 90d or 12h"),
        ],
    )
    def test_settings_that_do_not_fit(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Settings(**{"url": "sqlite:///calls.db", **settings})

    @pytest.mark.parametrize("text", ["\0", "a\ud800b", "x" * 10_000, "\n"])
    def test_any_name_and_id(self, toolkit: Toolkit, text: str) -> None:
        toolkit.call_sync(f"no {text}", {})
        toolkit.call_sync("weather", {"city": text})
        toolkit.session(id=text, subject=text).call_sync("weather", {"city": "Bern"})
        assert len(entries(toolkit)) == 3
        assert not toolkit.problems

    @pytest.mark.parametrize("content", ["digest", "redacted"])
    def test_arguments_that_are_no_json(self, tmp_path: Path, content: str) -> None:
        class Silent:
            def __repr__(self) -> str:
                raise ValueError("no")

        endless: dict[str, Any] = {}
        endless["city"] = endless
        with journaled(tmp_path, content=content) as toolkit:
            for sent in (
                {"city": Silent()},
                {"city": {1: 2, "a": 3}},
                endless,
                object(),
                b"\xff",
                "{",
                '{"city": NaN}',
            ):
                assert toolkit.call_sync("weather", sent).status == "invalid"
            assert len(entries(toolkit, status="invalid")) == 7
            assert toolkit.problems == []


class TestQueries:
    def test_filters(self, toolkit: Toolkit) -> None:
        for number in range(3):
            toolkit.session(id=f"s{number}", subject="ann" if number else "bob").call_sync("weather", {"city": "Bern"})
        toolkit.call_sync("put", {"value": "many"})
        assert len(entries(toolkit, tool="weather")) == 3
        assert len(entries(toolkit, tool="weather", subject="ann")) == 2
        assert len(entries(toolkit, session="s0")) == 1
        assert [entry.tool for entry in entries(toolkit, status="invalid")] == ["put"]
        assert len(entries(toolkit, since=timedelta(hours=1))) == len(entries(toolkit, since="1h")) == 4
        assert entries(toolkit, since=datetime.now(UTC) + timedelta(hours=1)) == []

    def test_more_than_a_page(self, toolkit: Toolkit) -> None:
        for number in range(1_100):
            toolkit.call_sync("put", {"value": number}, call_id=str(number))
        assert [entry.call_id for entry in entries(toolkit)] == [str(number) for number in range(1_100)]

    def test_stats(self, toolkit: Toolkit) -> None:
        for number in (1, 2, "x"):
            toolkit.call_sync("put", {"value": number})
        (figures,) = Journal.of(toolkit).stats()
        assert (figures.tool, figures.calls, figures.errors) == ("put", 3, 1)
        assert figures.statuses == {"invalid": 1, "success": 2}
        assert 0 <= figures.median <= figures.p95 <= figures.longest

    def test_a_toolkit_without_a_journal(self) -> None:
        with Toolkit(plugins=["journal"]) as toolkit, pytest.raises(PegboardError, match="has no journal; give it one"):
            Journal.of(toolkit)

    def test_of_a_session(self, toolkit: Toolkit) -> None:
        toolkit.call_sync("put", {"value": 1})
        assert len(list(Journal.of(toolkit.session()).calls())) == 1


class TestSuspended:
    def test_its_answer_takes_its_place(self, toolkit: Toolkit) -> None:
        session = toolkit.session(id="s1")
        session.call_sync("later", {"question": "may I?"}, call_id="c1")
        (before,) = entries(toolkit)
        assert before.status == "suspended"
        assert Journal.of(toolkit).unfinished() == []
        session.resume("c1", "yes")
        (after,) = entries(toolkit)
        assert (after.id, after.status, after.session, after.arguments) == (
            before.id,
            "success",
            "s1",
            before.arguments,
        )
        assert after.result != before.result
        assert Journal.of(toolkit).verify() == []

    def test_so_does_that_with_which_its_tool_goes_on(self, toolkit: Toolkit) -> None:
        def order() -> str:
            raise Suspend("which colour?", resume=size)

        def size(colour: str) -> str:
            raise Suspend("which size?", resume=f"{colour} {{}}".format)

        toolkit.register(order)
        toolkit.call_sync("order", call_id="c1")
        toolkit.resume("c1", "red")
        assert [entry.status for entry in entries(toolkit)] == ["suspended"]
        assert toolkit.resume("c1", "L").data == "red L"
        assert [entry.status for entry in entries(toolkit)] == ["success"]
        assert Journal.of(toolkit).verify() == []
