"""Agents as tools: what goes down, what comes up, and how deep."""

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from pegboard import ApprovalRequest, DataBlock, Injected, Suspend, Tool, Toolkit, tool
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


UNKNOWN = "you began no session of that session_id; leave session_id out to begin one"


def session_of(text: str) -> str:
    found = re.match(r"session_id: (\S+)\n", text)
    assert found is not None
    return found[1]


class TestAsTool:
    def test_is_a_tool_with_a_message_and_a_session(self) -> None:
        with ScriptedServer("Hello.") as server:
            toolkit = Toolkit(plugins=())
            (registered,) = toolkit.register(
                agent_on(server).as_tool(name="ask_assistant", description="Ask the assistant.")
            )
            assert (registered.name, registered.description) == ("ask_assistant", "Ask the assistant.")
            assert list(registered.parameters["properties"]) == ["message", "session_id"]
            assert registered.parameters["required"] == ["message"]
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
            (registered,) = toolkit.register(agent_on(server))
            assert registered.name == "call_Assistant"
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

    def test_the_context_of_a_caller_is_for_its_own_call_alone(self) -> None:
        with (
            ScriptedServer(("who", {}), "ok", ("who", {}), "ok") as below,
            ScriptedServer(("ask", {"message": "who?"}), "ok") as above,
        ):
            sub = agent_on(below, who)
            boss_of(above, sub.as_tool(name="ask"), context=User("ann")).call_sync("who?")
            begun = session_of(above.requests[1]["messages"][-1]["content"])
            sub.call_sync("who?", session_id=begun, context=User("bob"))
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

    def test_an_agent_never_waits_for_its_own_conversation(self) -> None:
        with ScriptedServer(("ask", {"message": "me", "session_id": "s"}), "ok") as server:
            toolkit = Toolkit(plugins=())
            agent = Agent("Loop", model_of(server), toolkit, memory=Memory())
            toolkit.register(agent.as_tool(name="ask"))
            happened = events_of(agent, "go", session_id="s")
        (ended,) = [event.result for event in happened if isinstance(event, CallEnded)]
        assert ended.text.endswith(UNKNOWN)


class TestWhoGoesOn:
    """A model goes on with what its own conversation began, and with nothing else."""

    def test_not_with_a_conversation_that_the_program_named(self) -> None:
        asks = [("ask", {"message": "The PIN?", "session_id": name}) for name in ("alice", "nobody")]
        with ScriptedServer("I will remember.") as below, ScriptedServer(asks, "ok") as above:
            memory = Memory()
            helper = agent_on(below, memory=memory)
            helper.call_sync("My PIN is 1234.", session_id="alice")
            boss_of(above, helper.as_tool(name="ask")).call_sync("go")
        of_alice, of_nobody = above.requests[1]["messages"][-2:]
        assert of_alice["content"] == of_nobody["content"] == UNKNOWN
        assert len(below.requests) == 1
        assert memory.session_ids == ["alice"]

    def test_not_with_one_that_another_conversation_began(self) -> None:
        def reply(request: dict[str, Any]) -> Any:
            last = request["messages"][-1]
            return ("ask", {"message": "hi", **known}) if last["role"] == "user" else last["content"]

        known: dict[str, str] = {}
        with ScriptedServer(forever="Hello.") as below, ScriptedServer(forever=reply) as above:
            boss = boss_of(above, agent_on(below).as_tool(name="ask"))
            known["session_id"] = session_of(boss.call_sync("go", session_id="alice").text)
            assert boss.call_sync("go", session_id="mallory").text == UNKNOWN
            assert session_of(boss.call_sync("go", session_id="alice").text) == known["session_id"]
        assert [len(request["messages"]) for request in below.requests] == [1, 3]

    def test_not_with_one_that_another_session_began(self) -> None:
        with ScriptedServer(forever="Hello.") as below:
            toolkit = Toolkit(plugins=())
            toolkit.register(agent_on(below).as_tool(name="ask"))
            alice, mallory = toolkit.session(), toolkit.session()
            known = session_of(alice.call_sync("ask", {"message": "hi"}).text)
            for other in (mallory, toolkit):
                assert other.call_sync("ask", {"message": "hi", "session_id": known}).text.endswith(UNKNOWN)
            assert session_of(alice.call_sync("ask", {"message": "hi", "session_id": known}).text) == known

    def test_not_with_one_that_another_agent_has(self) -> None:
        with ScriptedServer(forever="Hello.") as below:
            toolkit = Toolkit(plugins=())
            shared = Memory()
            for name in ("ann", "bob"):
                toolkit.register(Agent(name, model_of(below), memory=shared))
            known = session_of(toolkit.call_sync("call_ann", {"message": "hi"}).text)
            assert toolkit.call_sync("call_bob", {"message": "hi", "session_id": known}).text.endswith(UNKNOWN)

    def test_in_another_program_with_what_its_conversation_began_there(self, tmp_path: Path) -> None:
        def reply(request: dict[str, Any]) -> Any:
            last = request["messages"][-1]
            return ("ask", {"message": "hi", **known}) if last["role"] == "user" else last["content"]

        def boss() -> Agent:
            helper = agent_on(below, memory=Memory(tmp_path / "below.jsonl"))
            return boss_of(above, helper.as_tool(name="ask"), memory=Memory(tmp_path / "above.jsonl"))

        known: dict[str, str] = {}
        with ScriptedServer(forever="Hello.") as below, ScriptedServer(forever=reply) as above:
            known["session_id"] = session_of(boss().call_sync("go", session_id="alice").text)
            assert session_of(boss().call_sync("go", session_id="alice").text) == known["session_id"]
            assert boss().call_sync("go", session_id="mallory").text.endswith(UNKNOWN)

    @pytest.mark.parametrize("message", ["", " \n"])
    def test_no_agent_is_asked_nothing(self, message: str) -> None:
        with ScriptedServer("Hello.") as below:
            toolkit = Toolkit(plugins=())
            toolkit.register(agent_on(below).as_tool(name="ask"))
            result = toolkit.call_sync("ask", {"message": message})
        assert result.is_error
        assert "message is empty" in result.text
        assert below.requests == []


class TestWhoApproves:
    """A call that waits for its approval is decided by the approver of the session that it was made for."""

    @staticmethod
    def paying() -> tuple[Any, list[str]]:
        paid: list[str] = []

        @tool(requires_approval=True)
        def pay() -> str:
            """Pay."""
            paid.append("paid")
            return "paid"

        return pay, paid

    def test_of_a_call_that_waits_not_the_one_of_another_session(self) -> None:
        asked: list[str] = []
        answers: list[Any] = [Suspend("later"), True]

        def of_alice(request: ApprovalRequest) -> bool:
            asked.append("alice")
            answer = answers.pop(0)
            if isinstance(answer, Suspend):
                raise answer
            return bool(answer)

        def of_mallory(request: ApprovalRequest) -> bool:
            asked.append("mallory")
            return True

        pay, paid = self.paying()
        with ScriptedServer(("pay", {}), "Paid.") as below:
            helper = agent_on(below, pay)
            toolkit = Toolkit(plugins=())
            toolkit.register(helper.as_tool(name="ask"))
            alice, mallory = toolkit.session(approver=of_alice), toolkit.session(approver=of_mallory)
            known = session_of(alice.call_sync("ask", {"message": "pay"}).text)
            assert mallory.call_sync("ask", {"message": "go on", "session_id": known}).is_error
            assert (asked, paid) == (["alice"], [])
            assert helper.call_sync(session_id=known).text == "Paid."  # the program goes on with it
        assert (asked, paid) == (["alice", "alice"], ["paid"])

    def test_of_a_session_the_one_that_it_has_by_now(self) -> None:
        pay, paid = self.paying()

        def undecided(request: ApprovalRequest) -> bool:
            raise Suspend("later")

        with ScriptedServer(("pay", {}), ("pay", {}), "Paid.") as below:
            toolkit = Toolkit(plugins=())
            toolkit.register(agent_on(below, pay).as_tool(name="ask"))
            session = toolkit.session(approver=undecided)
            known = session_of(session.call_sync("ask", {"message": "pay"}).text)
            session.approver = lambda request: True
            assert "Paid." in session.call_sync("ask", {"message": "pay", "session_id": known}).text
        assert paid == ["paid", "paid"]
