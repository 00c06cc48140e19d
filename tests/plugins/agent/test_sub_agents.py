"""Agents as tools: what goes down, what comes up, and how deep."""

import asyncio
import re
import threading
from typing import Any

import pytest

from pegboard import ApprovalRequest, DataBlock, Injected, Tool, Toolkit, tool
from pegboard_agent import Agent, CallEnded, ChunkEvent, Memory
from pegboard_testing import Failing, ScriptedServer
from tests.plugins.agent.desk import agent_on, events_of, half_said, model_of, until


class User:
    def __init__(self, name: str) -> None:
        self.name = name


@tool
def who(user: Injected[User]) -> str:
    """Who."""
    return user.name


def boss_of(server: ScriptedServer, *tools: Any, **options: Any) -> Agent:
    """An agent whose tools are these."""
    return agent_on(server, *tools, **options)


def session_of(text: str) -> str:
    found = re.match(r"session_id: (\S+)\n", text)
    assert found is not None
    return found[1]


class TestAsTool:
    def test_is_a_tool_with_a_message_and_a_session(self) -> None:
        with ScriptedServer("Hello.") as server:
            toolkit = Toolkit(plugins=())
            (hung,) = toolkit.register(agent_on(server).as_tool(name="ask_assistant", description="Ask the assistant."))
            assert (hung.name, hung.description) == ("ask_assistant", "Ask the assistant.")
            assert list(hung.parameters["properties"]) == ["message", "session_id"]
            assert hung.parameters["required"] == ["message"]
            result = toolkit.call_sync("ask_assistant", {"message": "hi"})
        assert re.fullmatch(r"session_id: \S+\n\nHello\.", result.text)

    def test_an_answer_that_was_cut_off_says_so(self) -> None:
        with ScriptedServer(half_said("length"), half_said("stop")) as server:
            toolkit = Toolkit(plugins=())
            toolkit.register(agent_on(server).as_tool(name="ask"))
            cut, whole = (toolkit.call_sync("ask", {"message": "hi"}).text for _ in range(2))
        assert "cut off" in cut
        assert whole.endswith("The first half")

    def test_register_takes_the_agent_itself(self) -> None:
        with ScriptedServer("Hello.") as server:
            toolkit = Toolkit(plugins=())
            (hung,) = toolkit.register(agent_on(server))
            assert hung.name == "call_Assistant"
            assert toolkit.call_sync("call_Assistant", {"message": "hi"}).text.endswith("Hello.")

    def test_names_are_legal_and_no_two_agents_share_one(self) -> None:
        names = ["Foo Bar", "foo_bar", "foo-bar", "天气", "天", "a" * 100, "a" * 101, "", "!"]
        with ScriptedServer() as server:
            made = [Tool.from_function(Agent(name, model_of(server)).as_tool()).name for name in names]
        assert len(set(made)) == len(names)
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for name in made)
        assert made[1] == "call_foo_bar"

    def test_a_session_goes_on_by_its_id(self) -> None:
        with ScriptedServer("one", "two", "three") as server:
            toolkit = Toolkit(plugins=())
            toolkit.register(agent_on(server).as_tool(name="ask"))
            first = toolkit.call_sync("ask", {"message": "1"}).text
            toolkit.call_sync("ask", {"message": "2"})
            third = toolkit.call_sync("ask", {"message": "3", "session_id": session_of(first)}).text
        assert session_of(third) == session_of(first)
        assert [m["content"] for m in server.requests[2]["messages"]] == ["1", "one", "3"]

    def test_what_happens_below_is_reported_above(self) -> None:
        with (
            ScriptedServer(["Adding. ", ("add", {"a": 1, "b": 2})], "3") as below,
            ScriptedServer(("ask", {"message": "1 + 2?"}), "It is 3.") as above,
        ):
            boss = boss_of(above, agent_on(below).as_tool(name="ask"))
            chunks = [event.chunk for event in events_of(boss, "1 + 2?") if isinstance(event, ChunkEvent)]
        assert "".join(chunk.text for chunk in chunks) == "Adding. 3"
        data = [chunk.content.data for chunk in chunks if isinstance(chunk.content, DataBlock)]
        assert [(each["agent"], each["event"], each["name"]) for each in data] == [
            ("Assistant", "call_started", "add"),
            ("Assistant", "call_ended", "add"),
        ]

    def test_a_failure_below_is_an_error_above(self) -> None:
        with ScriptedServer(Failing(400, "no such model")) as below:
            toolkit = Toolkit(plugins=())
            toolkit.register(agent_on(below).as_tool(name="ask"))
            result = toolkit.call_sync("ask", {"message": "hi"})
        assert result.is_error
        assert "Assistant stopped: " in result.text
        assert "no such model" in result.text

    def test_what_waits_below_is_said_above(self) -> None:
        ask_user = Tool.external("ask_user", "Ask.", {"type": "object", "properties": {}})
        with ScriptedServer(("ask_user", {}), "To Rome.") as below:
            agent = agent_on(below, ask_user)
            toolkit = Toolkit(plugins=())
            toolkit.register(agent.as_tool(name="ask"))
            result = toolkit.call_sync("ask", {"message": "Where?"})
            assert isinstance(agent.toolkit, Toolkit)
            (owed,) = agent.toolkit.pending
            assert owed.id in result.text
            agent.toolkit.resume(owed.id, "Rome")
            assert agent.call_sync(session_id=session_of(result.text)).text == "To Rome."


class TestGoingDown:
    @pytest.mark.parametrize(("own", "seen"), [((), "ann"), (User("bob"), "bob")])
    def test_the_context(self, own: Any, seen: str) -> None:
        with (
            ScriptedServer(("who", {}), "ok") as below,
            ScriptedServer(("ask", {"message": "who?"}), "ok") as above,
        ):
            sub = agent_on(below, who, context=own)
            boss_of(above, sub.as_tool(name="ask"), context=User("ann")).call_sync("who?")
        assert below.requests[1]["messages"][-1]["content"] == seen

    def test_the_context_of_a_call_through_two_agents(self) -> None:
        with (
            ScriptedServer(("who", {}), "ok") as lowest,
            ScriptedServer(("ask_lowest", {"message": "who?"}), "ok") as middle,
            ScriptedServer(("ask_middle", {"message": "who?"}), "ok") as above,
        ):
            low = agent_on(lowest, who)
            mid = agent_on(middle, low.as_tool(name="ask_lowest"), context="something else")
            boss_of(above, mid.as_tool(name="ask_middle")).call_sync("who?", context=User("eve"))
        assert lowest.requests[1]["messages"][-1]["content"] == "eve"

    @pytest.mark.parametrize("own", [True, False])
    def test_the_approver(self, own: bool) -> None:
        asked: list[str] = []

        @tool(requires_approval=True)
        def pay() -> str:
            """Pay."""
            return "paid"

        def approver_called(name: str) -> Any:
            def approve(request: ApprovalRequest) -> bool:
                asked.append(name)
                return True

            return approve

        with (
            ScriptedServer(("pay", {}), "ok") as below,
            ScriptedServer(("ask", {"message": "pay"}), "ok") as above,
        ):
            sub = agent_on(below, pay, approver=approver_called("own") if own else None)
            boss_of(above, sub.as_tool(name="ask"), approver=approver_called("boss")).call_sync("pay")
        assert asked == ["own" if own else "boss"]

    def test_cancellation(self) -> None:
        begun, stopped = threading.Event(), threading.Event()

        async def slow() -> None:
            """Slow."""
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()

        async def cancelled(boss: Agent) -> None:
            task = asyncio.create_task(boss.call("go"))
            await until(begun.is_set)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        with (
            ScriptedServer(("slow", {})) as below,
            ScriptedServer(("ask", {"message": "go"})) as above,
        ):
            asyncio.run(cancelled(boss_of(above, agent_on(below, slow).as_tool(name="ask"))))
        assert stopped.is_set()

    def test_a_run_from_plain_code_leaves_nothing_of_a_caller_behind(self) -> None:
        with (
            ScriptedServer(("who", {}), "ok", ("who", {}), "ok") as below,
            ScriptedServer(("ask", {"message": "who?", "session_id": "s"}), "ok") as above,
        ):
            sub = agent_on(below, who)
            boss_of(above, sub.as_tool(name="ask"), context=User("ann")).call_sync("who?")
            sub.call_sync("who?", session_id="s", context=User("bob"))
        assert [request["messages"][-1]["content"] for request in below.requests[1::2]] == ["ann", "bob"]


class TestDepth:
    def test_agents_that_call_themselves_end(self) -> None:
        def reply(request: dict[str, Any]) -> Any:
            last = request["messages"][-1]
            return ("ask", {"message": "deeper"}) if last["role"] == "user" else f"told: {last['content']}"

        with ScriptedServer(forever=reply) as server:
            toolkit = Toolkit(plugins=())
            agent = Agent("Deep", model_of(server), toolkit)
            toolkit.register(agent.as_tool(name="ask"))
            answer = agent.call_sync("go")
        assert "to a depth of 5 at most" in answer.text
        assert answer.text.count("session_id: ") == 5
        assert len(server.requests) == 12  # two of each: the first one and five below it

    def test_an_agent_that_calls_its_own_conversation_is_told_so(self) -> None:
        with ScriptedServer(("ask", {"message": "me", "session_id": "s"}), "ok") as server:
            toolkit = Toolkit(plugins=())
            agent = Agent("Loop", model_of(server), toolkit, memory=Memory())
            toolkit.register(agent.as_tool(name="ask"))
            happened = events_of(agent, "go", session_id="s")
        (ended,) = [event.result for event in happened if isinstance(event, CallEnded)]
        assert "waiting for this very call" in ended.text
