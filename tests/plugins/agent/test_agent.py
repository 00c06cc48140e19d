"""The agent's loop, against a model behind real HTTP that says what a test wrote down."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import (
    Approval,
    ApprovalRequest,
    AudioBlock,
    Emitter,
    ImageBlock,
    Injected,
    RegistrationError,
    Status,
    Suspend,
    Tool,
    Toolkit,
    tool,
)
from pegboard_agent import (
    Agent,
    AgentStoppedError,
    CallEnded,
    CallStarted,
    ChunkEvent,
    Final,
    Memory,
    Message,
    Parked,
    Stopped,
    TextDelta,
)
from pegboard_testing import Broken, Failing, Raw, ScriptedServer
from tests.plugins.agent.desk import KEY, Calculator, agent_on, events_of, faults_of, half_said, keep, model_of, until
from tests.support.waiting import PATIENCE

QUESTION = "What's the weather in Beijing? Also, what is 15 + 27?"
BOTH = [("get_weather", {"city": "Beijing"}), ("add", {"a": 15, "b": 27})]
ANSWER = "It is sunny in Beijing, and 15 + 27 is 42."


class TestAnswering:
    def test_the_example_of_the_seeds(self) -> None:
        with ScriptedServer(BOTH, ANSWER) as server:
            agent = agent_on(server, system_prompt="You are a helpful assistant.", max_iterations=5)
            answer = agent.call_sync(Message("user", QUESTION, name="user"))
        assert (answer.role, answer.name, answer.text) == ("assistant", "Assistant", ANSWER)
        first, second = server.requests
        assert [each["function"]["name"] for each in first["tools"]] == [
            "get_weather",
            "get_forecast",
            "add",
            "multiply",
        ]
        assert first["messages"] == [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": QUESTION, "name": "user"},
        ]
        assert [message["content"] for message in second["messages"][3:]] == ["Weather in Beijing: Sunny, 25°C", "42.0"]
        assert faults_of(second["messages"]) == []

    def test_a_tool_for_pages_alone_is_neither_shown_nor_run(self) -> None:
        ran: list[str] = []

        @tool(meta={"ui": {"resourceUri": "ui://a/page.html", "visibility": ["app"]}})
        def refresh() -> str:
            """Refresh the page."""
            ran.append("refresh")
            return "new"

        with ScriptedServer([("refresh", {}), ("add", {"a": 1, "b": 2})], "ok") as server:
            agent_on(server, refresh, Calculator()).call_sync("go")
        first, second = server.requests
        assert [each["function"]["name"] for each in first["tools"]] == ["add", "multiply"]
        assert [m["content"] for m in second["messages"][-2:]] == ["Error: there is no tool 'refresh'", "3.0"]
        assert ran == []

    def test_usage_sums_all_requests(self) -> None:
        with ScriptedServer(BOTH, ANSWER) as server:
            assert agent_on(server).call_sync(QUESTION).usage.total_tokens == 30

    def test_events_tell_everything_in_order(self) -> None:
        def work(emitter: Emitter) -> str:
            """Work."""
            emitter.emit("half")
            return "done"

        with ScriptedServer(["Let me see. ", ("work", {})], "Done.") as server:
            happened = events_of(agent_on(server, work), "Work!")
        kinds = [type(event) for event in happened]
        assert kinds == [TextDelta, TextDelta, CallStarted, ChunkEvent, CallEnded, TextDelta, Final]
        assert "".join(e.text for e in happened if isinstance(e, TextDelta)) == "Let me see. Done."
        started, chunk, ended = happened[2:5]
        assert isinstance(started, CallStarted)
        assert isinstance(chunk, ChunkEvent)
        assert isinstance(ended, CallEnded)
        assert (started.call.name, chunk.chunk.text, ended.result.text) == ("work", "half", "done")
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.text == "Done."

    def test_calls_run_at_once_and_are_answered_in_their_order(self) -> None:
        both = threading.Barrier(2, timeout=PATIENCE)

        def slow() -> str:
            """Slow."""
            both.wait()
            time.sleep(0.05)
            return "slow"

        def fast() -> str:
            """Fast."""
            both.wait()
            return "fast"

        with ScriptedServer([("slow", {}), ("fast", {})], "ok") as server:
            events_of(agent_on(server, slow, fast), "go")
        assert [m["content"] for m in server.requests[1]["messages"][-2:]] == ["slow", "fast"]

    def test_bad_calls_are_answered_too(self) -> None:
        calls = [("nobody", {}), ("add", '{"a": 1, '), ("add", {"a": "x"}), ("add", {"a": 1, "b": 2})]
        with ScriptedServer(calls, "ok") as server:
            ended = [e.result.status for e in events_of(agent_on(server), "go") if isinstance(e, CallEnded)]
        assert sorted(ended) == ["invalid", "invalid", "not_found", "success"]
        assert faults_of(server.requests[1]["messages"]) == []

    @pytest.mark.parametrize("ids", [("same", "same"), ("", ""), (None, 7)])
    def test_ids_may_be_missing_or_come_twice(self, ids: tuple[Any, Any]) -> None:
        calls = [
            {
                "id": each,
                "type": "function",
                "index": n,
                "function": {"name": "add", "arguments": f'{{"a": 1, "b": {n}}}'},
            }
            for n, each in enumerate(ids)
        ]
        with ScriptedServer(calls, "ok") as server:
            agent_on(server).call_sync("go")
        messages = server.requests[1]["messages"]
        assert faults_of(messages) == []
        assert [message["content"] for message in messages[-2:]] == ["1.0", "2.0"]

    def test_a_server_that_does_not_stream(self) -> None:
        whole = '{"choices": [{"message": {"role": "assistant", "content": "All at once."}, "finish_reason": "stop"}]}'
        with ScriptedServer(Raw(whole, "application/json")) as server:
            assert agent_on(server).call_sync("hi").text == "All at once."

    @pytest.mark.parametrize(
        "chunk",
        [
            {"choices": None, "usage": [1]},
            {"choices": [{"delta": None}]},
            {"choices": [{"delta": {"content": 7, "tool_calls": ["x", None, {"function": None}, {}]}}]},
            {"choices": [{"delta": {"tool_calls": {"function": {"name": "add"}}}}]},
            {"choices": [{"message": {"content": [{"text": "part"}, "x"], "tool_calls": None}}], "usage": {"a": "b"}},
        ],
    )
    def test_chunks_of_strange_form(self, chunk: dict[str, Any]) -> None:
        class Strange:
            async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                yield chunk

        happened = events_of(Agent("A", Strange()), "hi")
        assert isinstance(happened[-1], Final)

    @pytest.mark.parametrize("name", [None, 7, {}])
    def test_names_of_strange_form(self, name: Any) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
        whole = json.dumps({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
        with ScriptedServer(Raw(whole, "application/json"), "ok") as server:
            assert agent_on(server).call_sync("hi").text == "ok"
        assert faults_of(server.requests[1]["messages"]) == []
        assert all(isinstance(c["function"]["name"], str) for c in server.requests[1]["messages"][1]["tool_calls"])

    @pytest.mark.parametrize("said", [None, "image/png"])
    def test_an_image_of_the_user_is_what_its_bytes_say(self, said: str | None) -> None:
        photo = Message("user", ["What is it?", ImageBlock.from_bytes(b"\xff\xd8\xff\xe0", said)])
        with ScriptedServer("A photo.") as server:
            agent_on(server).call_sync(photo)
        _, image = server.requests[0]["messages"][-1]["content"]
        assert image["image_url"]["url"].startswith("data:image/jpeg;base64,")

    @pytest.mark.parametrize("content", [5, [5], None, ["text", None]])
    def test_a_message_holds_text_and_blocks_alone(self, content: Any) -> None:
        with pytest.raises(TypeError, match=r"a message holds text and content blocks, not (int|NoneType)"):
            Message("user", content)

    def test_images_of_the_user_and_of_tools(self) -> None:
        picture = ImageBlock.from_bytes(b"\x89PNG", "image/png")

        def look() -> ImageBlock:
            """Look."""
            return picture

        with ScriptedServer([("look", {}), ("look", {})], "Two pictures.") as server:
            agent_on(server, look).call_sync(Message("user", ["What is this?", picture]))
        asked = server.requests[0]["messages"][0]["content"]
        assert [part["type"] for part in asked] == ["text", "image_url"]
        told = server.requests[1]["messages"]
        assert [message["role"] for message in told] == ["user", "assistant", "tool", "tool", "user"]
        assert [part["type"] for part in told[-1]["content"]].count("image_url") == 2

    def test_what_no_model_takes_is_refused(self) -> None:
        with ScriptedServer() as server, pytest.raises(ValueError, match="text and images"):
            agent_on(server).call_sync(Message("user", AudioBlock.from_bytes(b"x", "audio/wav")))

    def test_groups_are_read_anew_for_each_request(self) -> None:
        def look_up() -> str:
            """Look up."""
            return "found"

        with ScriptedServer(("reset_equipped_tools", {"to_activate": ["research"]}), "ok") as server:
            agent = agent_on(server)
            assert isinstance(agent.toolkit, Toolkit)
            agent.toolkit.create_group("research", active=False)
            agent.toolkit.register(look_up, group="research")
            agent.toolkit.register_meta_tool()
            agent.call_sync("go")
            assert agent.toolkit.active_groups == ()  # the conversation's own session was switched
        offered = [{each["function"]["name"] for each in request["tools"]} for request in server.requests]
        assert offered[1] - offered[0] == {"look_up"}

    def test_context_of_the_call_comes_before_the_agents(self) -> None:
        class User:
            def __init__(self, name: str) -> None:
                self.name = name

        def who(user: Injected[User]) -> str:
            """Who."""
            return user.name

        with ScriptedServer(("who", {}), "ok", ("who", {}), "ok") as server:
            agent = agent_on(server, who, context=User("ann"))
            agent.call_sync("who?")
            agent.call_sync("who?", context=User("bob"))
        assert [request["messages"][-1]["content"] for request in server.requests[1::2]] == ["ann", "bob"]

    def test_any_object_with_a_stream_is_a_model(self) -> None:
        class Sdk:
            """Hands out a stream that has to be awaited, of objects."""

            async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                chunk = {"choices": [{"delta": {"content": f"{len(messages)} messages"}}]}

                async def chunks() -> AsyncIterator[Any]:
                    yield SimpleNamespace(model_dump=lambda: chunk)

                return chunks()

        assert Agent("A", Sdk()).call_sync("hi").text == "1 messages"  # type: ignore[arg-type]  # awaited first

    def test_a_model_that_raises_stops_the_run_and_says_why(self) -> None:
        class Bad:
            async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                for fault in [RuntimeError("out of order")]:
                    raise fault
                yield {}

        (stopped,) = events_of(Agent("A", Bad()), "hi")
        assert isinstance(stopped, Stopped)
        assert stopped.reason == "the model failed: RuntimeError: out of order"
        with pytest.raises(AgentStoppedError, match="out of order") as caught:
            Agent("A", Bad()).call_sync("hi")
        assert isinstance(caught.value.__cause__, RuntimeError)

    def test_call_sync_works_inside_a_running_loop(self) -> None:
        async def inside(agent: Agent) -> str:
            return agent.call_sync("hi").text

        with ScriptedServer("Hello.") as server:
            assert asyncio.run(inside(agent_on(server))) == "Hello."

    def test_options_are_checked(self) -> None:
        with ScriptedServer() as server:
            with pytest.raises(ValueError, match=r"tool_protocol.*native.*json_schema"):
                agent_on(server, tool_protocol="xml")
            with pytest.raises(ValueError, match=r"max_iterations.*>= 1"):
                agent_on(server, max_iterations=0)
            with pytest.raises(RegistrationError, match="object"):
                agent_on(server, output=object())

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"model": "gpt-5"}, r'model is such as OpenAIChat\("..."\), not str'),
            ({"toolkit": [Calculator().add]}, r"toolkit is such as Toolkit\(\), not list"),
            ({"memory": "talk.jsonl"}, r"memory is such as Memory\(path\), not str"),
        ],
    )
    def test_what_is_of_another_kind_is_named_at_once(self, given: dict[str, Any], said: str) -> None:
        with ScriptedServer() as server, pytest.raises(TypeError, match=said):
            Agent("A", **{"model": model_of(server), **given})

    def test_a_message_of_another_kind_is_named(self) -> None:
        anything: Any = 5
        with ScriptedServer() as server, pytest.raises(TypeError, match="a message is a text or a Message, not int"):
            agent_on(server).call_sync(anything)


class TestLimits:
    def test_an_endless_loop_ends_with_one_last_answer_without_calls(self) -> None:
        with ScriptedServer(*[("add", {"a": n, "b": n}) for n in range(3)], "I give up: 4.") as server:
            happened = events_of(agent_on(server, max_iterations=3), "loop")
        stopped = next(event for event in happened if isinstance(event, Stopped))
        assert "max_iterations" in stopped.reason
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.text == "I give up: 4."
        assert [request.get("tool_choice") for request in server.requests] == [None, None, None, "none"]
        assert all(request["tools"] == server.requests[0]["tools"] for request in server.requests)  # a cache has them

    def test_calls_in_the_last_answer_do_not_run(self) -> None:
        with ScriptedServer(forever=("add", {"a": 1, "b": 1})) as server:
            agent = agent_on(server, max_iterations=2)
            happened = events_of(agent, "loop")
            assert sum(isinstance(event, CallEnded) for event in happened) == 2
            assert isinstance(happened[-1], Final)
            assert "had nothing to say" in happened[-1].message.text  # an empty answer would give no reason
            events_of(agent, "again")
        assert all(faults_of(request["messages"]) == [] for request in server.requests)

    def test_a_repeated_call_is_pointed_out_once(self) -> None:
        with ScriptedServer(*[("add", {"a": 1, "b": 1})] * 3, "2") as server:
            agent_on(server).call_sync("loop")
        told = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "tool"]
        assert [text.startswith("2.0") for text in told] == [True] * 3
        assert ["before" in text for text in told] == [False, True, False]

    def test_a_message_that_was_cut_off_runs_nothing(self) -> None:
        ran: list[int] = []

        def pay(amount: int = 1) -> str:
            """Pay."""
            ran.append(amount)
            return "paid"

        cut = (
            'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "pay", '
            '"arguments": ""}}]}, "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'
        )
        with ScriptedServer(Raw(cut), "ok") as server:
            agent_on(server, pay).call_sync("pay")
        assert ran == []
        assert "cut off" in server.requests[1]["messages"][-1]["content"]

    @pytest.mark.parametrize(("finish", "is_cut_off"), [("length", True), ("stop", False)])
    def test_an_answer_that_was_cut_off_says_so(self, finish: str, is_cut_off: bool) -> None:
        with ScriptedServer(half_said(finish)) as server:
            answer = agent_on(server).call_sync("tell me all")
        assert (answer.text, answer.is_cut_off) == ("The first half", is_cut_off)


class TestFailingServers:
    @pytest.mark.parametrize(
        "failure", [Failing(429, headers={"Retry-After": "0"}), Failing(500), Failing(503), Broken()]
    )
    def test_another_attempt(self, failure: Any) -> None:
        with ScriptedServer(failure, failure, "Here I am.") as server:
            assert agent_on(server).call_sync("hi").text == "Here I am."
        assert len(server.requests) == 3

    @pytest.mark.parametrize("events", range(1, 8))
    def test_a_stream_that_breaks_off_begins_anew(self, events: int) -> None:
        ran: list[float] = []

        def note(value: float) -> str:
            """Note."""
            ran.append(value)
            return "noted"

        said = ["Wait. ", ("note", {"value": 1234567.5})]
        with ScriptedServer(Broken(said, events), said, Broken("It is noted.", 2), "It is noted.") as server:
            happened = events_of(agent_on(server, note), "note")
        assert ran == [1234567.5]
        assert "".join(e.text for e in happened if isinstance(e, TextDelta)) == "Wait. It is noted."
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.text == "It is noted."

    def test_another_text_after_a_break_is_shown_whole(self) -> None:
        with ScriptedServer(Broken("It is sunny today.", 3), "The sun shines.") as server:
            happened = events_of(agent_on(server), "hi")
        assert "".join(e.text for e in happened if isinstance(e, TextDelta)) == "It is sunny toda\nThe sun shines."
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.text == "The sun shines."

    def test_the_reason_is_one_sentence_and_holds_no_key(self) -> None:
        with ScriptedServer(Failing(401, f"Incorrect API key: {KEY}")) as server:
            (stopped,) = events_of(agent_on(server), "hi")
            with pytest.raises(AgentStoppedError) as caught:
                agent_on(server).call_sync("hi")
        assert isinstance(stopped, Stopped)
        assert stopped.reason.endswith("answered 401: Incorrect API key: ***")
        assert KEY not in repr(stopped) + str(caught.value)

    def test_a_filter_that_leaves_nothing(self) -> None:
        withheld = Raw(
            '{"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]}', "application/json"
        )
        with (
            ScriptedServer(withheld) as server,
            pytest.raises(AgentStoppedError, match="content filter held the answer"),
        ):
            agent_on(server).call_sync("hi")

    def test_a_chunk_that_cannot_be_read_closes_the_stream(self) -> None:
        closed: list[bool] = []

        class Odd:
            async def stream(self, messages: Any, tools: Any, **options: Any) -> AsyncIterator[Any]:
                try:
                    yield {"choices": "none"}
                finally:
                    closed.append(True)

        with pytest.raises(AgentStoppedError, match="the model failed"):
            Agent("Odd", Odd()).call_sync("hi")
        assert closed == [True]

    def test_a_stream_raises_what_is_no_end_of_a_run(self) -> None:
        with ScriptedServer() as server, pytest.raises(ValueError, match="text and images"):
            events_of(agent_on(server), Message("user", AudioBlock.from_bytes(b"x", "audio/wav")))

    def test_a_run_that_failed_can_go_on(self) -> None:
        with ScriptedServer(("add", {"a": 1, "b": 2}), Failing(400), "3") as server:
            agent = agent_on(server)
            with pytest.raises(AgentStoppedError):
                agent.call_sync("1 + 2?")
            assert agent.call_sync().text == "3"
        assert faults_of(server.requests[-1]["messages"]) == []


class TestApproval:
    def test_the_approver_of_the_agent_is_asked(self) -> None:
        asked: list[str] = []

        @tool(requires_approval=True)
        def pay(amount: int) -> str:
            """Pay."""
            return f"paid {amount}"

        def approver(request: ApprovalRequest) -> Approval:
            asked.append(request.tool.name)
            return Approval.edit({"amount": 1})

        with ScriptedServer(("pay", {"amount": 9}), "ok") as server:
            agent_on(server, pay, approver=approver).call_sync("pay")
        assert asked == ["pay"]
        assert server.requests[1]["messages"][-1]["content"] == "paid 1"

    def test_without_an_approver(self) -> None:
        @tool(requires_approval=True)
        def pay() -> None:
            """Pay."""

        with ScriptedServer(("pay", {}), "ok") as server:
            happened = events_of(agent_on(server, pay), "pay")
        assert [e.result.status for e in happened if isinstance(e, CallEnded)] == [Status.DENIED]

    def test_an_approver_who_cannot_answer_now_parks_the_run(self) -> None:
        ran: list[str] = []
        answers: list[Any] = [Suspend("ask the boss"), True]

        @tool(requires_approval=True)
        def pay() -> str:
            """Pay."""
            ran.append("paid")
            return "paid"

        def approver(request: ApprovalRequest) -> bool:
            answer = answers.pop(0)
            if isinstance(answer, Suspend):
                raise answer
            return bool(answer)

        with ScriptedServer([("pay", {}), ("add", {"a": 1, "b": 2})], "Done.") as server:
            agent = agent_on(server, pay, Calculator(), approver=approver)
            happened = events_of(agent, "pay")
            assert isinstance(happened[-1], Parked)
            assert ran == []
            assert agent.call_sync().text == "Done."
        assert ran == ["paid"]
        assert faults_of(server.requests[1]["messages"]) == []


class TestWaiting:
    ASK = Tool.external("ask_user", "Ask the user.", {"type": "object", "properties": {"question": {"type": "string"}}})

    def test_a_suspended_call_parks_the_run_until_its_answer_comes(self) -> None:
        def work() -> str:
            """Work."""
            return "worked"

        with ScriptedServer([("ask_user", {"question": "Where?"}), ("work", {})], "To Rome.") as server:
            agent = agent_on(server, self.ASK, work)
            assert isinstance(agent.toolkit, Toolkit)
            parked = agent.call_sync("Go!")
            (owed,) = agent.toolkit.pending
            assert parked.parked == (owed.id,)
            assert agent.call_sync().parked == parked.parked  # still
            assert agent.owed() == parked.parked
            assert len(server.requests) == 1
            agent.toolkit.resume(owed.id, "Rome")
            assert agent.call_sync().text == "To Rome."
        assert [m["content"] for m in server.requests[1]["messages"][-2:]] == ["Rome", "worked"]
        assert faults_of(server.requests[1]["messages"]) == []

    def test_a_new_message_goes_on_without_the_answer(self) -> None:
        with ScriptedServer(("ask_user", {}), "Never mind.") as server:
            agent = agent_on(server, self.ASK)
            agent.call_sync("Go!")
            assert agent.call_sync("Forget it.").text == "Never mind."
        messages = server.requests[1]["messages"]
        assert faults_of(messages) == []
        assert "went on" in messages[-2]["content"]

    def test_cancelling_keeps_what_has_ended_and_closes_the_rest(self) -> None:
        begun, stopped = threading.Event(), threading.Event()

        def quick() -> str:
            """Quick."""
            return "quick"

        async def slow() -> str:
            """Slow."""
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()
            return "never"

        async def cancelled(agent: Agent) -> None:
            task = asyncio.create_task(agent.call("go"))
            await until(lambda: begun.is_set() and any("answers" in record for record in agent.memory.load(None)))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        with ScriptedServer([("quick", {}), ("slow", {})], "ok") as server:
            agent = agent_on(server, quick, slow)
            asyncio.run(cancelled(agent))
            assert stopped.is_set()
            agent.call_sync("And now?")
        messages = server.requests[1]["messages"]
        assert faults_of(messages) == []
        assert messages[2]["content"] == "quick"
        assert "cancelled" in messages[3]["content"]

    def test_leaving_the_stream_early_cancels_too(self) -> None:
        stopped = threading.Event()

        async def slow() -> None:
            """Slow."""
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()

        async def leave(agent: Agent) -> None:
            async with aclosing(agent.stream("go")) as events:
                async for event in events:
                    if isinstance(event, CallStarted):
                        await asyncio.sleep(0.05)
                        break

        with ScriptedServer(("slow", {})) as server:
            asyncio.run(leave(agent_on(server, slow)))
        assert stopped.is_set()

    def test_two_runs_of_one_conversation_wait_for_each_other(self) -> None:
        running: list[int] = []
        most: list[int] = []

        def work() -> str:
            """Work."""
            running.append(1)
            most.append(len(running))
            time.sleep(0.02)
            running.pop()
            return "ok"

        def reply(request: dict[str, Any]) -> Any:
            return "done" if request["messages"][-1]["role"] == "tool" else ("work", {})

        with ScriptedServer(forever=reply) as server:
            agent = agent_on(server, work)
            threads = [threading.Thread(target=agent.call_sync, args=(f"go {n}",)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        assert most == [1] * 4
        assert len(server.requests) == 8
        assert all(faults_of(request["messages"]) == [] for request in server.requests)

    def test_they_are_answered_in_the_order_in_which_they_came(self) -> None:
        async def scene(agent: Agent) -> None:
            await asyncio.gather(*(agent.call(str(number)) for number in range(4)))

        with ScriptedServer(forever="ok") as server:
            asyncio.run(scene(agent_on(server)))
        assert [request["messages"][-1]["content"] for request in server.requests] == ["0", "1", "2", "3"]

    def test_a_cancelled_waiter_passes_its_turn_on(self) -> None:
        async def scene(agent: Agent) -> list[str]:
            first = asyncio.create_task(agent.call("1"))
            await asyncio.sleep(0)
            second, third = asyncio.create_task(agent.call("2")), asyncio.create_task(agent.call("3"))
            await asyncio.sleep(0.01)
            second.cancel()
            cancelled.set()
            return [answer.text for answer in await asyncio.gather(first, third)]

        def slowly(request: dict[str, Any]) -> str:
            assert cancelled.wait(PATIENCE)
            return "one"

        cancelled = threading.Event()

        with ScriptedServer(slowly, "three") as server:
            assert asyncio.run(scene(agent_on(server))) == ["one", "three"]

    def test_conversations_are_kept_apart(self) -> None:
        with ScriptedServer(forever="ok") as server:
            agent = agent_on(server)
            for session_id in ("a", "b", "a", None):
                agent.call_sync(f"for {session_id}", session_id=session_id)
        told = [[m["content"] for m in request["messages"]] for request in server.requests]
        assert told == [["for a"], ["for b"], ["for a", "ok", "for a"], ["for None"]]


class TestMemory:
    def test_a_conversation_goes_on_in_another_program(self, tmp_path: Any) -> None:
        with ScriptedServer(("add", {"a": 1, "b": 2}), "3", "It was 3.") as server:
            agent_on(server, memory=Memory(tmp_path / "talk.jsonl")).call_sync("1 + 2?")
            assert (
                agent_on(server, memory=Memory(tmp_path / "talk.jsonl")).call_sync("What was it?").text == "It was 3."
            )
        assert [m["role"] for m in server.requests[-1]["messages"]] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]

    def test_a_torn_last_line_is_ignored(self, tmp_path: Any) -> None:
        path = tmp_path / "talk.jsonl"
        with ScriptedServer(forever="ok") as server:
            agent_on(server, memory=Memory(path)).call_sync("one")
            with path.open("ab") as file:
                file.write(b'{"session_id": null, "record": {"role": "user", "con')
            agent_on(server, memory=Memory(path)).call_sync("two")
            agent_on(server, memory=Memory(path)).call_sync("three")
        assert [m["content"] for m in server.requests[-1]["messages"]] == ["one", "ok", "two", "ok", "three"]

    @pytest.mark.parametrize("session_id", [None, "s1"])
    def test_an_owed_answer_is_accepted_by_a_fresh_program(self, tmp_path: Any, session_id: str | None) -> None:
        path = tmp_path / "talk.jsonl"

        def work() -> str:
            """Work."""
            return "worked"

        with ScriptedServer([("ask_user", {"question": "Where?"}), ("work", {})], "To Rome.") as server:
            first = agent_on(server, TestWaiting.ASK, work, memory=Memory(path))
            (call_id,) = first.call_sync("Go!", session_id=session_id).parked
            fresh = agent_on(server, TestWaiting.ASK, work, memory=Memory(path))
            assert isinstance(fresh.toolkit, Toolkit)
            assert fresh.toolkit.resume(call_id, "Rome").text == "Rome"
            assert fresh.call_sync(session_id=session_id).text == "To Rome."
        assert [m["content"] for m in server.requests[1]["messages"][-2:]] == ["Rome", "worked"]

    def test_what_is_owed_still_parks_a_fresh_program(self, tmp_path: Any) -> None:
        path = tmp_path / "talk.jsonl"
        with ScriptedServer(("ask_user", {})) as server:
            parked = agent_on(server, TestWaiting.ASK, memory=Memory(path)).call_sync("Go!").parked
            assert agent_on(server, TestWaiting.ASK, memory=Memory(path)).call_sync().parked == parked
        assert len(server.requests) == 1

    def test_a_tool_may_be_registered_after_the_agent_was_made(self, tmp_path: Any) -> None:
        path = tmp_path / "talk.jsonl"
        with ScriptedServer(("ask_user", {})) as server:
            parked = agent_on(server, TestWaiting.ASK, memory=Memory(path)).call_sync("Go!").parked
            late = agent_on(server, memory=Memory(path))
            assert isinstance(late.toolkit, Toolkit)
            late.toolkit.register(TestWaiting.ASK)
            assert late.call_sync().parked == parked

    @pytest.mark.parametrize(
        ("hints", "approved", "told"),
        [
            ({}, None, "paid"),
            ({"idempotent": False}, None, "Error: the program ended while this call may have been running"),
            ({"destructive": True}, None, "Error: the program ended while this call may have been running"),
            ({"destructive": True, "requires_approval": True}, True, "paid"),
        ],
    )
    def test_a_program_that_ended_during_a_call(
        self, tmp_path: Any, hints: dict[str, Any], approved: bool | None, told: str
    ) -> None:
        """What may have run already runs again only if that does no harm, or if it is approved."""
        path = tmp_path / "talk.jsonl"

        @tool(**hints)
        def pay() -> str:
            """Pay."""
            return "paid"

        memory = Memory(path)
        keep(memory, {"role": "user", "content": "pay"})
        function = {"name": "pay", "arguments": "{}"}
        call = {"id": "c1", "type": "function", "function": function}
        keep(memory, {"role": "assistant", "content": None, "tool_calls": [call]})
        approver = None if approved is None else lambda request: approved
        with ScriptedServer("ok") as server:
            agent_on(server, pay, memory=Memory(path), approver=approver).call_sync()
        assert server.requests[0]["messages"][-1]["content"].startswith(told)

    @pytest.mark.parametrize(
        "record",
        [
            {"answers": 0},
            {"answers": 0, "messages": []},
            {"answers": 0, "messages": [{"role": "tool"}]},
            {"answers": 0, "messages": ["3"]},
            {"answers": "0", "messages": [{"role": "tool", "content": "3"}]},
            {"answers": -1, "messages": [{"role": "tool", "content": "3"}]},
            {"answers": 7, "messages": [{"role": "tool", "content": "3"}]},
            {"answers": 0, "messages": [{"role": "tool", "content": "3"}, {"role": "user", "content": None}]},
            {"parked": []},
            {"parked": 0, "reason": 5},
            {"begun": {}},
            {"role": 5},
            {"role": "user"},
            {"role": "user", "content": 5},
            {"role": "assistant", "content": None, "tool_calls": 5},
            {"role": "assistant", "content": None, "tool_calls": [5]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c2"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c2", "function": {"name": "add"}}]},
            {"anything": "else"},
            5,
        ],
    )
    @pytest.mark.parametrize("protocol", ["native", "json_schema"])
    def test_a_record_that_no_agent_wrote_is_ignored_and_reported(
        self, tmp_path: Any, caplog: pytest.LogCaptureFixture, record: Any, protocol: str
    ) -> None:
        path = tmp_path / "talk.jsonl"
        memory = Memory(path)
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
        keep(memory, {"role": "user", "content": "1 + 2?"})
        keep(memory, {"role": "assistant", "content": None, "tool_calls": [call]})
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"session_id": None, "record": record}) + "\n")
        answer = "ok" if protocol == "native" else '{"name": "final_answer", "arguments": {"answer": "ok"}}'
        with ScriptedServer(answer) as server:
            agent = agent_on(server, memory=Memory(path), tool_protocol=protocol)
            assert agent.call_sync().text == "ok"
        assert "3.0" in server.requests[0]["messages"][-1]["content"]
        if record != {"answers": 7, "messages": [{"role": "tool", "content": "3"}]}:  # there are no seven calls
            assert "1 of 3 lines cannot be read" in caplog.text

    @pytest.mark.parametrize("session_id", [5, [], {}])
    def test_so_is_one_of_a_conversation_that_has_no_name(
        self, tmp_path: Any, caplog: pytest.LogCaptureFixture, session_id: Any
    ) -> None:
        path = tmp_path / "talk.jsonl"
        path.write_text(json.dumps({"session_id": session_id, "record": {"role": "user", "content": "hi"}}) + "\n")
        assert Memory(path).session_ids == []
        assert "1 of 1 lines cannot be read" in caplog.text

    def test_no_program_adds_what_is_no_record(self) -> None:
        with pytest.raises(ValueError, match="this is no record of a conversation"):
            Memory().append(None, [{"answers": 0}], 0)

    def test_lost_answers_are_made_up_for(self, tmp_path: Any) -> None:
        memory = Memory(tmp_path / "talk.jsonl")
        call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
        keep(memory, {"role": "assistant", "content": None, "tool_calls": [call, call]})
        keep(memory, {"role": "user", "content": "and?"})
        with ScriptedServer("ok") as server:
            agent_on(server, memory=memory).call_sync()
        assert faults_of(server.requests[0]["messages"]) == []

    def test_tells_what_was_said(self, tmp_path: Any) -> None:
        memory = Memory(tmp_path / "talk.jsonl")
        memory.append("s", [{"role": "user", "content": "half a pair: \ud83d"}], 0)
        assert Memory(tmp_path / "talk.jsonl").load("s") == [{"role": "user", "content": "half a pair: \ud83d"}]
        assert memory.session_ids == ["s"]
