"""Once: the first call of each key runs, the others get what it came to."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pegboard import Computed, ExecutionPolicy, Secret, Suspend, ToolCall, ToolError, Toolkit, tool
from pegboard_journal import IdempotencyKey, Journal
from tests.plugins.journal.desk import Tools, entries, journaled, laborer
from tests.support.postgres import PostgresServer


def kinds(result: Any) -> list[str]:
    return [note.kind for note in result.notes]


class TestSameKey:
    def test_the_second_gets_the_first_outcome(self, tmp_path: Path) -> None:
        tools = Tools()
        with journaled(tmp_path, tools, once=["pay"]) as toolkit:
            one, other = (toolkit.call_sync("pay", {"amount": 3}, call_id="k1") for _ in range(2))
            assert (one.data, other.data, other.value) == ({"paid": 3},) * 3
            assert (kinds(one), kinds(other)) == ([], ["once"])
            assert tools.ran == ["pay 3 k1"]
            assert [(entry.key, entry.attempts) for entry in entries(toolkit)] == [("k1", 1), ("k1", 0)]

    def test_after_a_restart(self, tmp_path: Path) -> None:
        tools = Tools()
        for _ in range(2):
            with journaled(tmp_path, tools, once=["p*"], content="none") as toolkit:
                assert toolkit.call_sync("pay", {"amount": 3}, call_id="k1").data == {"paid": 3}
        assert len(tools.ran) == 1

    def test_other_arguments_are_an_error(self, tmp_path: Path) -> None:
        tools = Tools()
        with journaled(tmp_path, tools, once=["pay"]) as toolkit:
            toolkit.call_sync("pay", {"amount": 3}, call_id="k1")
            result = toolkit.call_sync("pay", {"amount": 4}, call_id="k1")
            assert result.text == "Error: pay was not run: a call with the same key had other arguments"
            assert result.error is not None
            assert result.error.kind == "idempotency"
            assert len(tools.ran) == 1

    def test_the_key_of_the_program_comes_first(self, tmp_path: Path) -> None:
        tools = Tools()
        with journaled(tmp_path, tools, once=["pay"]) as toolkit:
            for call_id in ("c1", "c2"):
                toolkit.call_sync(ToolCall(call_id, "pay", {"amount": 3}, {"idempotency_key": "order 7"}))
            assert tools.ran == ["pay 3 order 7"]

    def test_within_tool_and_session(self, tmp_path: Path) -> None:
        tools = Tools()
        with journaled(tmp_path, tools, once=["*"]) as toolkit:
            for session in (toolkit, toolkit.session(id="s1"), toolkit.session(id="s2"), toolkit.session(id="s1")):
                session.call_sync("pay", {"amount": 3}, call_id="k1")
            toolkit.call_sync("put", {"value": 3}, call_id="k1")
            assert tools.ran == ["pay 3 k1"] * 3 + ["put 3"]

    def test_a_view_gives_no_way_around(self, tmp_path: Path) -> None:
        tools = Tools()
        with journaled(tmp_path, tools, once=["pay"]) as toolkit:
            toolkit.call_sync("pay", {"amount": 3}, call_id="k1")
            renamed = toolkit.view(rename={"pay": "charge"})
            assert kinds(renamed.call_sync("charge", {"amount": 3}, call_id="k1")) == ["once"]
            assert len(tools.ran) == 1

    def test_it_is_asked_for_approval_each_time(self, tmp_path: Path) -> None:
        asked: list[str] = []

        def approve(request: Any) -> bool:
            asked.append(request.call_id)
            return len(asked) == 1

        with journaled(tmp_path, once=["pay"], options={"approver": approve}) as toolkit:
            toolkit.set_permission("pay", "prompt")
            assert toolkit.call_sync("pay", {"amount": 3}, call_id="k1").data == {"paid": 3}
            assert toolkit.call_sync("pay", {"amount": 3}, call_id="k1").status == "denied"

    def test_every_attempt_has_the_same_key(self, tmp_path: Path) -> None:
        keys: list[str] = []

        @tool(idempotent=True)
        def book(key: IdempotencyKey) -> str:
            """Book."""
            keys.append(key)
            if len(keys) < 3:
                raise OSError("not now")
            return "booked"

        with journaled(tmp_path, book, once=["book"]) as toolkit:
            policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.0)
            assert toolkit.call_sync("book", {}, call_id="k1", policy=policy).text == "booked"
        assert keys == ["k1"] * 3

    @pytest.mark.parametrize("secret", [Secret("hunter2-hunter2"), Secret(Computed(lambda call: "hunter2-hunter2"))])
    def test_secrets_are_masked_in_what_is_kept(self, tmp_path: Path, secret: Any) -> None:
        @tool
        def login(token: str) -> dict[str, str]:
            """Log in."""
            return {"token": f"<{token}>"}

        with journaled(tmp_path, login, once=["login"], content="none") as toolkit:
            toolkit.set_presets("login", {"token": secret})
            results = [toolkit.call_sync("login", {}, call_id="k1") for _ in range(2)]
            assert [result.data for result in results] == [{"token": "<hunter2-hunter2>"}, {"token": "<***>"}]
            for file in tmp_path.iterdir():
                assert b"hunter2" not in file.read_bytes()


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "final"),
        [
            (ToolError("card declined"), True),
            (OSError("not now"), False),
            (type("Busy", (ToolError,), {"retry_after": 3})("busy"), False),
            (type("Never", (OSError,), {"retry_after": float("inf")})("gone"), True),
        ],
    )
    def test_only_a_final_one_is_kept(self, tmp_path: Path, error: Exception, final: bool) -> None:
        ran = []

        @tool
        def charge(amount: int) -> str:
            """Charge."""
            ran.append(amount)
            raise error

        with journaled(tmp_path, charge, once=["charge"]) as toolkit:
            texts = {toolkit.call_sync("charge", {"amount": 1}, call_id="k1").text for _ in range(3)}
        assert len(texts) == 1
        assert len(ran) == (1 if final else 3)

    def test_after_an_error_a_success(self, tmp_path: Path) -> None:
        ran = []

        @tool
        def charge(amount: int) -> str:
            """Charge."""
            ran.append(amount)
            if len(ran) == 1:
                raise OSError("not now")
            return "charged"

        with journaled(tmp_path, charge, once=["charge"]) as toolkit:
            results = [toolkit.call_sync("charge", {"amount": 1}, call_id="k1") for _ in range(3)]
        assert [result.status for result in results] == ["error", "success", "success"]
        assert len(ran) == 2

    def test_one_that_is_suspended(self, tmp_path: Path) -> None:
        @tool
        def ask(question: str) -> str:
            """Ask."""
            raise Suspend(question)

        with journaled(tmp_path, ask, once=["ask"]) as toolkit:
            assert toolkit.call_sync("ask", {"question": "?"}, call_id="k1").status == "suspended"
            again = toolkit.call_sync("ask", {"question": "?"}, call_id="k1")
            assert again.text == "Error: ask was not run: a call with the same key waits for its answer"
            toolkit.resume("k1", "yes")
            answered = toolkit.call_sync("ask", {"question": "?"}, call_id="k1")
            assert (answered.text, kinds(answered)) == ("yes", ["once"])


class TestElsewhere:
    @pytest.mark.parametrize("awaited", [False, True])
    def test_in_this_program_it_is_waited_for(self, tmp_path: Path, awaited: bool) -> None:
        ran: list[int] = []

        @tool
        async def later(amount: int) -> str:
            """Charge."""
            ran.append(amount)
            await asyncio.sleep(0.2)
            return "charged"

        @tool
        def now(amount: int) -> str:
            """Charge."""
            ran.append(amount)
            time.sleep(0.2)
            return "charged"

        name = "later" if awaited else "now"
        with journaled(tmp_path, later if awaited else now, once=[name]) as toolkit:

            async def main() -> list[Any]:
                return await asyncio.gather(*(toolkit.call(name, {"amount": 1}, call_id="k1") for _ in range(10)))

            results = asyncio.run(main())
            assert {result.text for result in results} == {"charged"}
            assert len(ran) == 1
            assert Journal.of(toolkit).verify() == []

    def test_from_threads(self, tmp_path: Path) -> None:
        tools = Tools()
        with journaled(tmp_path, tools, once=["pay"]) as toolkit:
            found: list[Any] = []

            def work() -> None:
                found.append(toolkit.call_sync("pay", {"amount": 1}, call_id="k1").data)

            threads = [threading.Thread(target=work) for _ in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        assert found == [{"paid": 1}] * 8
        assert len(tools.ran) == 1

    @pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
    def test_in_other_programs(self, request: pytest.FixtureRequest, tmp_path: Path, store: str) -> None:
        url = f"sqlite:///{tmp_path}/calls.db"
        if store == "postgres":
            server: PostgresServer = request.getfixturevalue("server")
            server.empty()
            url = server.url()
        begun = laborer("together", "once", 4, url, 20)
        out, _ = begun.communicate(timeout=300)
        assert begun.returncode == 0, out
        ran = [each for line in out.splitlines() for each in json.loads(line)["ran"]]
        assert len(out.splitlines()) == 4
        assert sorted(ran) == sorted(f"pay {number} key {number}" for number in range(20))


class TestUnknown:
    def broken_off(self, folder: Path) -> None:
        """Leave a call behind whose process was killed."""
        hanging = laborer("hang", f"sqlite:///{folder}/calls.db", {"once": ["charge"]}, "k1")
        assert hanging.stdout is not None
        hanging.stdout.readline()
        hanging.kill()
        hanging.communicate()

    def charging(self, folder: Path, ran: list[int], **options: Any) -> Toolkit:
        @tool
        def charge(amount: int) -> str:
            """Charge."""
            ran.append(amount)
            return "charged"

        return journaled(folder, charge, once=["charge"], options=options)

    def test_it_is_refused_without_an_approver(self, tmp_path: Path) -> None:
        self.broken_off(tmp_path)
        ran: list[int] = []
        with self.charging(tmp_path, ran) as toolkit:
            result = toolkit.call_sync("charge", {"amount": 1}, call_id="k1")
            assert result.status == "denied"
            assert "journal" not in result.text
            assert ran == []
            assert toolkit.call_sync("charge", {"amount": 1}, call_id="k2").text == "charged"

    @pytest.mark.parametrize("answer", [True, False])
    def test_an_approver_decides(self, tmp_path: Path, answer: bool) -> None:
        self.broken_off(tmp_path)
        ran: list[int] = []
        reasons: list[str] = []

        def approve(request: Any) -> bool:
            reasons.append(request.reason)
            return answer

        with self.charging(tmp_path, ran, approver=approve) as toolkit:
            (unfinished,) = Journal.of(toolkit).unfinished()
            result = toolkit.call_sync("charge", {"amount": 1}, call_id="k1")
            (reason,) = reasons
            assert reason.startswith("a call of charge with the same key was broken off, and may have run: ")
            assert reason.endswith(f": entry {unfinished.id} of the journal")
            assert result.status == ("success" if answer else "denied")
            assert ran == ([1] if answer else [])
            if answer:
                assert kinds(toolkit.call_sync("charge", {"amount": 1}, call_id="k1")) == ["once"]
                assert len(reasons) == 1
