"""Limits: how many calls may begin, in a session or in a time."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard import Approval, ExecutionPolicy, Session, SettingsError, Suspend, Tool, ToolCall, Toolkit, tool
from pegboard_policy import Limit, Policy

from .desk import board, fetch, look, send, statuses


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("pegboard_policy._watch.monotonic", clock)
    return clock


class TestOfASession:
    def test_says_the_limit_and_when_it_ends(self) -> None:
        with board(limits={"fe*": {"calls": 2}}) as toolkit:
            session, other = toolkit.session(), toolkit.session()
            assert statuses([session.call_sync("fetch") for _ in range(3)]) == ["success", "success", "denied"]
            denied = session.call_sync("fetch")
            limit = "the limit of 2 calls per session of fe* is reached; it ends with this session"
            assert denied.text == f"Error: fetch was not run: {limit}"
            assert denied.error is not None
            assert (denied.error.kind, denied.attempts) == ("denied", 0)
            assert session.call_sync("look").text == "files of home"
            assert other.call_sync("fetch").status == "success"

    def test_tools_of_one_pattern_count_together_and_each_limit_counts(self) -> None:
        with board(limits={"*": Limit(3), "look": Limit(1)}) as toolkit:
            session = toolkit.session()
            calls = [session.call_sync(name) for name in ("look", "look", "fetch", "fetch", "fetch")]
            assert statuses(calls) == ["success", "denied", "success", "success", "denied"]
            assert "1 call per session of look" in calls[1].text

    def test_of_several_limits_the_one_that_ends_last_is_named(self, clock: Clock) -> None:
        with board(limits={"*": (Limit(1, "minute"), Limit(1, "day"))}) as toolkit:
            toolkit.call_sync("look")
            assert "1 call per day of *" in toolkit.call_sync("look").text

    def test_what_does_not_begin_does_not_count(self) -> None:
        def approve(request: Any) -> Any:
            return Approval.deny("not now") if request.arguments["to"] == "eve" else True

        with board(limits={"send": Limit(1)}, approver=approve) as toolkit:
            session = toolkit.session()
            session.set_permission("send", "prompt")
            sent = [session.call_sync("send", {"to": to}) for to in ("eve", "eve", "ann")]
            assert statuses([session.call_sync("send"), *sent]) == ["invalid", "denied", "denied", "success"]
            assert "limit" in session.call_sync("send", {"to": "ann"}).text

    def test_no_approver_is_asked_about_what_a_limit_denies(self) -> None:
        asked: list[str] = []

        def approve(request: Any) -> Approval:
            asked.append(request.tool.name)
            return Approval.edit({"to": "bob"})

        with board(limits={"send": Limit(1)}, approver=approve) as toolkit:
            toolkit.set_permission("send", "prompt")
            first, second = (toolkit.call_sync("send", {"to": "ann"}) for _ in range(2))
            assert (first.text, second.status, asked) == ("sent to bob", "denied", ["send"])

    def test_retries_of_a_call_are_one_call(self) -> None:
        tries: list[int] = []

        @tool(policy=ExecutionPolicy(max_attempts=3, initial_backoff=0.0))
        def flaky() -> str:
            """Fail at first."""
            tries.append(1)
            if len(tries) < 3:
                raise OSError("no")
            return "yes"

        with board(flaky, limits={"flaky": Limit(1)}) as toolkit:
            assert toolkit.call_sync("flaky").text == "yes"
            assert toolkit.call_sync("flaky").status == "denied"

    def test_a_suspended_call_has_counted_and_its_answer_does_not(self) -> None:
        @tool
        def ask(question: str) -> str:
            """Ask a person."""
            raise Suspend("a person answers")

        with board(ask, limits={"ask": Limit(1)}) as toolkit:
            session = toolkit.session(id="chat")
            waiting = session.call_sync("ask", {"question": "?"}, call_id="q1")
            assert waiting.status == "suspended"
            assert session.call_sync("ask", {"question": "?"}).status == "denied"
            assert session.resume("q1", "42").text == "42"
            assert toolkit.session(id="chat").call_sync("ask", {"question": "?"}).status == "denied"
            fresh = toolkit.session(id="later")  # one that a program before this one has made
            assert fresh.suspend(ToolCall("q2", "ask", {"question": "?"}), "a person answers").status == "suspended"
            assert fresh.resume("q2", "43").text == "43"
            assert fresh.call_sync("ask", {"question": "?"}).status == "suspended"

    def test_a_view_renames_and_hides_nothing_from_a_limit(self) -> None:
        with board(limits={"fetch": Limit(1)}) as toolkit:
            session = toolkit.session()
            assert session.view(rename={"fetch": "read"}).call_sync("read").status == "success"
            assert session.call_sync("fetch").status == "denied"
            assert toolkit.view(include="fetch").session().call_sync("fetch").status == "success"

    def test_the_core_tools_do_not_count(self) -> None:
        with board(limits={"*": Limit(1)}) as toolkit:
            toolkit.register_meta_tool()
            toolkit.create_group("more")
            calls = [toolkit.call_sync("reset_equipped_tools", {"to_activate": []}) for _ in range(2)]
            assert statuses(calls) == ["success", "success"]
            assert toolkit.call_sync("look").status == "success"


class TestAtOnce:
    def test_threads(self) -> None:
        with board(limits={"look": Limit(20)}) as toolkit:
            session = toolkit.session()
            with ThreadPoolExecutor(16) as pool:
                results = list(pool.map(lambda _: session.call_sync("look"), range(100)))
            assert statuses(results).count("success") == 20
            assert {result.status.value for result in results} == {"success", "denied"}

    def test_async_and_sync_calls_of_a_batch(self) -> None:
        @tool
        async def wait() -> str:
            """Wait."""
            await asyncio.sleep(0.01)
            return "done"

        with board(wait, limits={"*": Limit(5)}) as toolkit:
            calls: list[Any] = [("wait", {}), ("look", {})] * 8
            results = asyncio.run(toolkit.session().call_many(calls))
            assert statuses(results).count("success") == 5
            late = next(each for each in results if each.is_error)
            assert late.text.endswith("the limit of 5 calls per session of * is reached; it ends with this session")

    def test_calls_that_passed_before_others_began(self) -> None:
        """Approvals take their time: what is asked about together is counted when it begins."""
        with board(limits={"send": Limit(1)}, approver=approve_late) as toolkit:
            toolkit.set_permission("send", "prompt")
            calls = [("send", {"to": name}) for name in ("ann", "bob", "eve")]
            results = asyncio.run(toolkit.call_many(calls))
            assert sorted(statuses(results)) == ["denied", "denied", "success"]
            assert {each.error.kind for each in results if each.error} == {"denied"}


async def approve_late(request: Any) -> bool:
    """Approve once all were asked."""
    await asyncio.sleep(0.05)
    return True


class TestOfATime:
    def test_ends_when_the_first_call_is_that_old(self, clock: Clock) -> None:
        with board(limits={"look": {"calls": 2, "per": "hour"}}) as toolkit:
            toolkit.session().call_sync("look")
            clock.now += 1800
            toolkit.session().call_sync("look")
            denied = toolkit.session().call_sync("look")
            assert denied.text.endswith("the limit of 2 calls per hour of look is reached; it ends in 30 min")
            clock.now += 1799
            assert toolkit.call_sync("look").text.endswith("it ends in 1 s")
            clock.now += 1
            assert statuses([toolkit.call_sync("look"), toolkit.call_sync("look")]) == ["success", "denied"]

    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 4), st.lists(st.floats(0, 40), max_size=30))
    def test_no_minute_has_more_calls(self, most: int, pauses: list[float]) -> None:
        clock = Clock()
        begun: list[float] = []
        with pytest.MonkeyPatch.context() as patched, board(limits={"look": Limit(most, "minute")}) as toolkit:
            patched.setattr("pegboard_policy._watch.monotonic", clock)
            for pause in pauses:
                clock.now += pause
                within = [moment for moment in begun if moment > clock.now - 60]
                success = toolkit.call_sync("look").status == "success"
                assert success is (len(within) < most)
                begun += [clock.now] * success


class TestOfTheCaller:
    """What a tool calls in turn counts for the session that called the tool."""

    @pytest.fixture
    def nested(self) -> Iterator[Toolkit]:
        @tool
        async def research(session: Session) -> str:
            """Read two pages, in a session of its own."""
            own = session.toolkit.session()
            return " ".join([(await own.call("fetch")).status.value for _ in range(2)])

        with board(research, limits={"fetch": Limit(3)}) as toolkit:
            yield toolkit

    def test_on_a_loop_and_off_it(self, nested: Toolkit) -> None:
        for session in (nested.session(), nested.session(id="b")):
            assert asyncio.run(session.call("research")).text == "success success"
            assert session.call_sync("research").text == "success denied"
            assert session.call_sync("fetch").status == "denied"

    def test_a_toolkit_of_its_own(self) -> None:
        inner = board(limits={"fetch": Limit(1)})

        @tool
        def research() -> str:
            """Ask another toolkit."""
            return inner.call_sync("fetch").status.value

        with inner, board(research, limits={"fetch": Limit(1)}) as outer:
            session = outer.session()
            assert [session.call_sync("research").text for _ in range(2)] == ["success", "denied"]
            assert session.call_sync("fetch").status == "denied"
            assert outer.session().call_sync("research").text == "success"

    def test_a_program_of_code_mode(self) -> None:
        code_mode = pytest.importorskip("pegboard_code").CodeMode
        with board(limits={"fetch": Limit(3)}) as toolkit:
            toolkit.register(code_mode(toolkit.view(include="fetch")))
            session = toolkit.session()
            program = {"code": "a = await fetch()\nb = await fetch()\na"}
            assert session.call_sync("run_code", program).status == "success"
            assert "limit of 3 calls per session" in session.call_sync("run_code", program).text
            assert session.call_sync("fetch").status == "denied"


class TestOfWhichSession:
    def test_sessions_of_one_name_are_one(self) -> None:
        with board(limits={"look": Limit(1)}) as toolkit:
            assert toolkit.session(id="ann").call_sync("look").status == "success"
            assert toolkit.session(id="ann").session(subject="x").call_sync("look").status == "denied"
            assert toolkit.session(id="bob").call_sync("look").status == "success"

    def test_a_session_made_from_a_session_counts_as_that(self) -> None:
        with board(limits={"look": Limit(1)}) as toolkit:
            session = toolkit.session()
            assert session.session().call_sync("look").status == "success"
            assert session.call_sync("look").status == "denied"

    def test_memory_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pegboard_policy._history.MOST_NAMED", 2)
        with board(limits={"look": Limit(1)}) as toolkit:
            for name in "abc":
                assert toolkit.session(id=name).call_sync("look").status == "success"
            assert toolkit.session(id="c").call_sync("look").status == "denied"
            assert toolkit.session(id="a").call_sync("look").status == "success"  # the oldest was dropped
            session = toolkit.session()
            session.call_sync("look")
            gone = weakref.ref(next(session.lineage()))
            del session
            gc.collect()
            assert gone() is None


class TestSettings:
    def test_limits_of_settings_and_of_the_program_both_count(self) -> None:
        section = {"limits": {"look": {"calls": 1}, "*": [{"calls": 3}, {"calls": 9, "per": "day"}]}}
        with Toolkit(plugins=["policy"], settings={"policy": section}) as toolkit:
            toolkit.register(fetch, send, look)
            calls = [toolkit.call_sync(name) for name in ("look", "look", "fetch", "fetch", "fetch")]
            assert statuses(calls) == ["success", "denied", "success", "success", "denied"]
        with board(settings={}, limits={"look": [Limit(2), {"calls": 1}]}) as toolkit:
            assert statuses([toolkit.call_sync("look") for _ in range(2)]) == ["success", "denied"]

    @pytest.mark.parametrize(
        ("limits", "words"),
        [
            ({"*": {"calls": 0}}, "at least 1"),
            ({"*": {"calls": 1, "per": "week"}}, "per"),
            ({"*": {"call": 1}}, "call"),
            ({"*": 5}, r"\{'calls': 20, 'per': 'session'\}"),
            ({"*": {"calls": True}}, "whole number"),
        ],
    )
    def test_what_is_no_limit_is_refused(self, limits: Any, words: str) -> None:
        with pytest.raises(SettingsError, match=words):
            Policy(limits=limits)
        with pytest.raises(SettingsError, match=r"policy\.limits"):
            Toolkit(plugins=["policy"], settings={"policy": {"limits": limits}})

    def test_a_toolkit_without_limits_has_no_guard_for_them(self) -> None:
        with board() as toolkit:
            assert Policy.explain(toolkit)[0].limits == ()
            assert isinstance(toolkit["look"], Tool)
            assert [toolkit.call_sync("look").status for _ in range(2)] == ["success"] * 2
