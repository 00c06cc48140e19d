"""How much a run may take, and what is left where it has taken all of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Status, Tool, Toolkit
from pegboard_agent import Agent, CallEnded, CallStarted, Final, Limits, Memory, Message, Parked, Stopped, Usage
from pegboard_testing import ScriptedServer
from tests.plugins.agent.desk import Calculator, Scripted, agent_on, calls, events_of, faults_of
from tests.support.waiting import PATIENCE

ADD = ("add", {"a": 1, "b": 2})
ASK = Tool.external("ask_user", "Ask the user.", {"type": "object", "properties": {}})


def run(agent: Agent, message: Any = "go") -> tuple[Message, list[str]]:
    """What a run comes to, and the reasons that its events gave for its end. Both ways tell the same."""
    happened = events_of(agent, message, session_id="events")
    return agent.call_sync(message), [event.reason for event in happened if isinstance(event, Stopped)]


class TestLimits:
    def test_are_a_frozen_record_without_any(self) -> None:
        assert attrs.asdict(Limits()) == dict.fromkeys(["requests", "tool_calls", "tokens", "seconds"])
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            Limits().requests = 3  # type: ignore[misc]

    @pytest.mark.parametrize("name", ["requests", "tool_calls", "tokens", "seconds"])
    @pytest.mark.parametrize("number", [-1, True, "3", float("inf"), float("nan")])
    def test_are_numbers(self, name: str, number: Any) -> None:
        with pytest.raises(ValueError, match=f"{name} is a .*number .*, or None for no limit, not {number!r}"):
            Limits(**{name: number})

    @pytest.mark.parametrize("name", ["requests", "tokens", "seconds"])
    def test_of_nothing_would_never_begin(self, name: str) -> None:
        with pytest.raises(ValueError, match=name):
            Limits(**{name: 0})

    def test_are_nothing_else(self) -> None:
        with pytest.raises(TypeError, match=r"limits is such as Limits\(requests=20\), not dict"):
            Agent("A", Scripted(), limits={"requests": 3})  # type: ignore[arg-type]

    def test_that_are_not_reached_change_nothing(self) -> None:
        limits = Limits(requests=2, tool_calls=1, tokens=31, seconds=PATIENCE)
        with ScriptedServer(ADD, "3") as server:
            message = agent_on(server, limits=limits).call_sync("1 + 2?")
        assert (message.text, message.stopped) == ("3", None)


class TestRequests:
    def test_end_the_run_and_the_calls_of_the_last_one_do_not_run(self) -> None:
        with ScriptedServer(forever=ADD) as server:
            agent = agent_on(server, limits=Limits(requests=2))
            message, reasons = run(agent)
            assert len(server.requests) == 4  # of two runs
            assert message.stopped == "limits.requests: no answer after 2 requests to the model" == reasons[0]
            assert (len(reasons), message.text, message.usage.requests) == (1, "", 2)
            agent.call_sync("again")
        told = server.requests[-1]["messages"]
        assert faults_of(told) == []
        answers = [each["content"] for each in told if each["role"] == "tool"]
        assert answers[0] == "3.0"
        assert answers[1].startswith("Error: this call did not run: the run was stopped at its limit")

    def test_the_calls_are_denied(self) -> None:
        with ScriptedServer([ADD, ADD]) as server:
            happened = events_of(agent_on(server, limits=Limits(requests=1)), "go")
        assert [e.result.status for e in happened if isinstance(e, CallEnded)] == [Status.DENIED] * 2
        assert not any(isinstance(event, (CallStarted, Final)) for event in happened)
        assert isinstance(happened[-1], Stopped)
        assert happened[-1].error is None

    def test_hold_for_a_run_and_not_for_a_conversation(self) -> None:
        with ScriptedServer(ADD, "3") as server:
            agent = agent_on(server, limits=Limits(requests=1))
            assert agent.call_sync("1 + 2?").stopped
            assert agent.call_sync().text == "3"  # goes on where it was stopped

    def test_count_the_last_answer_after_max_iterations_too(self) -> None:
        with ScriptedServer(ADD, "3") as server:
            agent = agent_on(server, limits=Limits(requests=1), max_iterations=1)
            assert str(agent.call_sync("go").stopped).startswith("limits.requests")
        with ScriptedServer(ADD, "3") as server:
            message = agent_on(server, limits=Limits(requests=2), max_iterations=1).call_sync("go")
        assert (message.text, message.stopped) == ("3", None)

    def test_count_a_wrong_answer(self) -> None:
        with ScriptedServer(forever="many") as server:
            message = agent_on(server, limits=Limits(requests=2), output=int).call_sync("How many?")
        assert (len(server.requests), message.data) == (2, None)
        assert str(message.stopped).startswith("limits.requests")


class TestToolCalls:
    @pytest.mark.parametrize(("most", "ran"), [(0, 0), (1, 1), (2, 2), (3, 2)])
    def test_those_that_would_be_too_many_do_not_run(self, most: int, ran: int) -> None:
        with ScriptedServer([ADD, ADD], "3", forever="later") as server:
            agent = agent_on(server, limits=Limits(tool_calls=most))
            happened = events_of(agent, "go")
            assert agent.call_sync("and?").text == ("3" if ran < 2 else "later")
        ended = [event.result for event in happened if isinstance(event, CallEnded)]
        assert sorted(result.status for result in ended) == ["denied"] * (2 - ran) + ["success"] * ran
        assert sum(isinstance(event, CallStarted) for event in happened) == ran
        reasons = [event.reason for event in happened if isinstance(event, Stopped)]
        assert reasons == [f"limits.tool_calls: the model asked for more than {most} calls"] * (ran < 2)
        assert faults_of(server.requests[-1]["messages"]) == []

    def test_count_over_the_whole_run(self) -> None:
        with ScriptedServer(forever=ADD) as server:
            message = agent_on(server, limits=Limits(tool_calls=3)).call_sync("go")
        assert (len(server.requests), str(message.stopped)[:17]) == (4, "limits.tool_calls")

    def test_a_call_that_waits_is_still_owed_its_answer(self, tmp_path: Any) -> None:
        memory = Memory(tmp_path / "talk.jsonl")
        with ScriptedServer([("ask_user", {}), ADD], "Rome.") as server:
            agent = agent_on(server, ASK, Calculator(), limits=Limits(tool_calls=1), memory=memory)
            happened = events_of(agent, "go")
            assert [type(event) for event in happened[-2:]] == [Parked, Stopped]
            (waiting,) = agent.owed()
            agent.toolkit.resume(waiting, "Rome")
            assert agent.call_sync().text == "Rome."
        told = server.requests[1]["messages"]
        assert (faults_of(told), told[-2]["content"]) == ([], "Rome")
        assert told[-1]["content"].startswith("Error: this call did not run")

    def test_a_resumed_call_does_not_begin_again(self) -> None:
        with ScriptedServer(("ask_user", {}), "Rome.") as server:
            agent = agent_on(server, ASK, limits=Limits(tool_calls=1))
            (waiting,) = agent.call_sync("go").parked
            agent.limits = Limits(tool_calls=0)
            agent.toolkit.resume(waiting, "Rome")
            assert agent.call_sync().text == "Rome."

    def test_a_message_that_was_cut_off_ran_nothing_and_counts_nothing(self) -> None:
        cut = {"choices": [{"message": calls(ADD), "finish_reason": "length"}], "usage": {"prompt_tokens": 50}}
        model = Scripted(cut, "short", usage=None)
        agent = Agent("A", model, _toolkit(), limits=Limits(tool_calls=0))
        assert agent.call_sync("go").text == "short"
        assert "cut off" in model.messages[1][-1]["content"]
        agent = Agent("A", Scripted(cut), _toolkit(), limits=Limits(tokens=50))
        (ended,) = [e.result for e in events_of(agent, "go") if isinstance(e, CallEnded)]
        assert "cut off" in ended.text  # which is why it did not run


class TestTokens:
    def test_are_those_of_the_whole_run(self) -> None:
        with ScriptedServer(forever=ADD) as server:  # of 15 for each request
            message, reasons = run(agent_on(server, limits=Limits(tokens=40)))
        assert message.stopped == "limits.tokens: no answer after 45 tokens, of 40 at most" == reasons[0]
        assert (message.usage.requests, message.usage.total_tokens) == (3, 45)

    def test_an_answer_that_is_there_counts(self) -> None:
        with ScriptedServer("Hello.") as server:
            message = agent_on(server, limits=Limits(tokens=1)).call_sync("hi")
        assert (message.text, message.stopped) == ("Hello.", None)

    def test_that_no_server_reports_stop_nothing(self) -> None:
        model = Scripted(calls(ADD), "3", usage=None)
        assert Agent("A", model, _toolkit(), limits=Limits(tokens=1)).call_sync("go").text == "3"


class TestSeconds:
    def test_end_a_request_that_is_under_way(self) -> None:
        class Endless:
            closed = False

            async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                yield {"choices": [{"delta": {"content": "I"}}], "usage": {"prompt_tokens": 7}}
                try:
                    await asyncio.sleep(PATIENCE)
                finally:
                    self.closed = True

        model = Endless()
        agent = Agent("A", model, limits=Limits(seconds=0.05))
        message, reasons = run(agent)
        assert message.stopped == "limits.seconds: no answer within 0.05 s" == reasons[0]
        assert (model.closed, message.usage) == (True, Usage(1, 7))
        agent.model = Scripted("Hello.")
        assert agent.call_sync().text == "Hello."  # the question is still there

    @pytest.mark.parametrize("is_async", [True, False])
    def test_end_a_call_that_is_under_way_and_it_is_answered(self, is_async: bool) -> None:
        release = threading.Event()

        async def work_async() -> str:
            """Work."""
            await asyncio.sleep(PATIENCE)
            return "done"

        def work_sync() -> str:
            """Work."""
            release.wait(PATIENCE)
            return "done"

        toolkit = Toolkit(plugins=())
        toolkit.register(work_async if is_async else work_sync, name="work")
        toolkit.register(ASK, Calculator())
        model = Scripted(calls(ADD, ("work", {}), ("ask_user", {})), "Rome.")
        agent = Agent("A", model, toolkit, limits=Limits(seconds=0.3))
        begun = time.monotonic()
        happened = events_of(agent, "go")
        assert time.monotonic() - begun < PATIENCE / 2
        release.set()
        statuses = {event.result.name: event.result.status for event in happened if isinstance(event, CallEnded)}
        assert statuses == {"add": Status.SUCCESS, "work": Status.CANCELLED}
        assert [type(event) for event in happened[-2:]] == [Parked, Stopped]
        (waiting,) = agent.owed()
        toolkit.resume(waiting, "Rome")
        assert agent.call_sync().text == "Rome."
        assert faults_of(model.messages[1]) == []

    def test_end_the_wait_for_an_approver(self) -> None:
        async def approver(request: Any) -> bool:
            await asyncio.sleep(PATIENCE)
            return True

        toolkit = Toolkit(plugins=())
        toolkit.register(Calculator())
        toolkit.set_permission("add", "prompt")
        model = Scripted(forever=calls(ADD))
        agent = Agent("A", model, toolkit, limits=Limits(seconds=0.1), approver=approver)
        message, reasons = run(agent)
        assert str(message.stopped).startswith("limits.seconds")
        assert len(reasons) == 1

    def test_a_model_that_gives_up_by_itself_is_no_limit(self) -> None:
        class Slow:
            def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                raise TimeoutError("too slow")

        happened = events_of(Agent("A", Slow(), limits=Limits(seconds=PATIENCE)), "hi")
        assert [event.reason for event in happened if isinstance(event, Stopped)] == [
            "the model failed: TimeoutError: too slow"
        ]

    def test_cancelling_is_no_limit_either(self) -> None:
        async def scene() -> None:
            agent = Agent("A", Scripted(calls(("sleep", {}))), toolkit, limits=Limits(seconds=PATIENCE))
            task = asyncio.create_task(agent.call("go"))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert agent.owed() == ()

        async def sleep() -> None:
            """Sleep."""
            await asyncio.sleep(PATIENCE)

        toolkit = Toolkit(plugins=())
        toolkit.register(sleep)
        asyncio.run(scene())


class TestSubAgents:
    def agents(self, below: Scripted, above: Scripted, **limits: Any) -> tuple[Agent, Agent]:
        sums = Agent("Sums", below, _toolkit(), limits=Limits(**limits.pop("own", {})))
        board = Toolkit(plugins=())
        board.register(sums.as_tool(name="sums"))
        return sums, Agent("Boss", above, board, limits=Limits(**limits))

    def test_what_they_take_counts_for_their_caller(self) -> None:
        below, above = Scripted(calls(ADD), "3"), Scripted(calls(("sums", {"message": "1 + 2?"})), "It is 3.")
        _, boss = self.agents(below, above)
        assert boss.call_sync("?").usage == Usage(4, 40, 20)

    @pytest.mark.parametrize(
        ("limits", "reason"),
        [
            ({"requests": 2}, "limits.requests: no answer after 2 requests to the model"),
            ({"tokens": 30}, "limits.tokens: no answer after 30 tokens, of 30 at most"),
            ({"tool_calls": 1}, "limits.tool_calls: the model asked for more than 1 calls"),
        ],
    )
    def test_the_limits_of_the_caller_hold_for_them(self, limits: Any, reason: str) -> None:
        below, above = Scripted(calls(ADD), "3"), Scripted(calls(("sums", {"message": "1 + 2?"})), "It is 3.")
        _, boss = self.agents(below, above, **limits)
        happened = events_of(boss, "?")
        (ended,) = [event.result for event in happened if isinstance(event, CallEnded)]
        assert ended.text.endswith(f"Sums stopped: {reason}")
        assert isinstance(happened[-1], Stopped)
        assert happened[-1].reason == reason
        assert len(below.messages) == 1

    def test_their_own_limits_end_them_alone(self) -> None:
        below, above = Scripted(calls(ADD), "3"), Scripted(calls(("sums", {"message": "1 + 2?"})), "I do not know.")
        _, boss = self.agents(below, above, own={"tool_calls": 0}, tool_calls=2)
        assert boss.call_sync("?").text == "I do not know."
        assert "Sums stopped: limits.tool_calls" in above.messages[1][-1]["content"]

    def test_their_own_seconds_end_each_of_them(self) -> None:
        class Endless:
            async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                await asyncio.sleep(PATIENCE)
                yield {}

        both = calls(("sums", {"message": "1 + 2?"}), ("add", {"a": 1, "b": 2}), ("sums", {"message": "3 + 4?"}))
        above = Scripted(both, "I do not know.")
        sums, boss = self.agents(Endless(), above, own={"seconds": 0.1})  # type: ignore[arg-type]
        boss.toolkit.toolkit.register(Calculator())
        assert boss.call_sync("?").text == "I do not know."
        told = [each["content"] for each in above.messages[1] if each["role"] == "tool"]
        assert ["limits.seconds" in text for text in told] == [True, False, True]
        assert sums.owed() == ()

    def test_seconds_of_the_caller_end_them(self) -> None:
        class Endless:
            async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                await asyncio.sleep(PATIENCE)
                yield {}

        above = Scripted(calls(("sums", {"message": "1 + 2?"})))
        sums, boss = self.agents(Endless(), above, seconds=0.1)  # type: ignore[arg-type]
        assert str(boss.call_sync("?").stopped).startswith("limits.seconds")
        assert boss.owed() == sums.owed() == ()


def _toolkit() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(Calculator())
    return toolkit


COUNTS = st.none() | st.integers(1, 5)


class TestWhateverTheLimits:
    @given(COUNTS, COUNTS, st.none() | st.integers(1, 100), st.lists(st.integers(1, 3), max_size=4))
    def test_history_stays_whole_and_no_limit_is_passed(
        self, requests: int | None, tool_calls: int | None, tokens: int | None, asked: list[int]
    ) -> None:
        model = Scripted(*[calls(*[ADD] * number) for number in asked], forever="3")
        agent = Agent("A", model, _toolkit(), limits=Limits(requests=requests, tool_calls=tool_calls, tokens=tokens))
        happened = events_of(agent, "go")
        began = sum(isinstance(event, CallStarted) for event in happened)
        assert began <= (tool_calls or sum(asked))
        assert len(model.messages) <= (requests or len(asked) + 1)
        assert isinstance(happened[-1], (Final, Stopped))
        agent.call_sync("and?")
        assert faults_of(model.messages[-1]) == []
