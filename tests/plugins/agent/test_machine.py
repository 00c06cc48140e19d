"""Random scripts: whatever a model and its server do, each call gets one answer in its place, and each run an end."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from pegboard import ExecutionPolicy, Suspend, Tool, Toolkit, tool
from pegboard_agent import Agent, Event, Final, Memory, OpenAIChat, Parked, Stopped
from pegboard_testing import Broken, Failing, Raw, ScriptedServer
from tests.plugins.agent.desk import faults_of

POLICY = ExecutionPolicy(initial_backoff=0.0, max_attempts=2, timeout=2.0)

numbers = st.integers(0, 3)
calls = st.one_of(
    st.tuples(st.just("count"), st.builds(lambda n: {"number": n}, numbers)),
    st.tuples(
        st.just("count"), st.sampled_from(["", "{", '{"number": ', '{"number": "x"}', "[]", "null", '{"number": 1}}'])
    ),
    st.tuples(
        st.sampled_from(["slow", "slow", "later", "ask_user", "fail", "huge", "nobody", "", "final_answer"]),
        st.just({}),
    ),
    st.builds(
        lambda call_id, n: {
            "id": call_id,
            "type": "function",
            "function": {"name": "count", "arguments": f'{{"number": {n}}}'},
        },
        st.sampled_from(["same", "", None, 7]),
        numbers,
    ),
)
said = st.one_of(
    st.text("ab \n", min_size=1, max_size=12),
    st.just('{"name": "count", "arguments": {"number": 1}}'),
    st.just('{"name": "final_answer", "arguments": {"answer": "done"}}'),
    st.lists(calls, min_size=1, max_size=4),
    st.builds(
        lambda text, them: [text, *them], st.text("ab", min_size=1, max_size=9), st.lists(calls, min_size=1, max_size=3)
    ),
)
replies = st.one_of(
    said,
    said,
    st.builds(Broken, said, st.integers(0, 6)),
    st.builds(Failing, st.sampled_from([429, 500, 503]), headers=st.sampled_from([{}, {"Retry-After": "0"}])),
    st.builds(Failing, st.sampled_from([400, 401, 404])),
    st.sampled_from(
        [
            Raw("data: junk\n\n"),
            Raw("data: [DONE]\n\n"),
            Raw('data: {"choices": null}\n\ndata: [DONE]\n\n'),
            Raw('data: {"choices": [{"delta": null, "finish_reason": "stop"}]}\n\n'),
            Raw('data: {"error": {"message": "overloaded", "code": 503}}\n\n'),
            Raw("", "application/json"),
            Raw('{"choices": []}', "application/json"),
            Raw(
                '{"choices": [{"message": {"content": null, "tool_calls": [{"function": {"name": "count", "arguments": '
                '{"number": 2}}}, {"function": {"name": "count", "arguments": null}}]}, "finish_reason": "length"}]}',
                "application/json",
            ),
        ]
    ),
)
scripts = st.lists(replies, max_size=5)


class Conversation(RuleBasedStateMachine):
    """A user talks to an agent, and it is killed and started anew."""

    server: ClassVar[ScriptedServer]
    script: ClassVar[list[Any]]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name, "talk.jsonl")
        self._heard = len(self.server.requests)
        self._resumed: list[str] = []  # since the last run: the memory does not know of these answers yet

    @initialize(protocol=st.sampled_from(["native", "json_schema"]))
    def start(self, protocol: Literal["native", "json_schema"]) -> None:
        self._toolkit = Toolkit(plugins=())
        self._toolkit.register(
            self._count,
            self._slow,
            self._fail,
            self._huge,
            self._later,
            Tool.external("ask_user", "Ask.", {"type": "object"}),
        )
        model = OpenAIChat("scripted", base_url=self.server.url, api_key="", policy=POLICY)
        memory = Memory(self._path)
        self._agent = Agent("A", model, self._toolkit, max_iterations=4, memory=memory, tool_protocol=protocol)

    @tool(name="count")
    def _count(self, number: int) -> int:
        """Count."""
        return number

    @tool(name="slow")
    async def _slow(self) -> str:
        """Take longer than others."""
        await asyncio.sleep(0.005)
        return "slow"

    @tool(name="fail")
    async def _fail(self) -> None:
        """Fail."""
        raise SystemExit("no")

    @tool(name="huge")
    def _huge(self) -> str:
        """Say much."""
        return "x" * 100_000

    @tool(name="later")
    def _later(self) -> None:
        """Wait."""
        raise Suspend("later")

    @rule(script=scripts)
    def ask(self, script: list[Any]) -> None:
        assert not isinstance(self._last(self._run("hello", script)), Parked) or self._toolkit.pending

    @rule(script=scripts)
    def go_on(self, script: list[Any]) -> None:
        self._last(self._run(None, script))

    @rule(script=scripts, after=st.integers(1, 4))
    def leave(self, script: list[Any], after: int) -> None:
        """Stop listening after some events: what runs is cancelled."""
        self._run("hello", script, after)

    @rule(value=st.sampled_from(["Rome", None, {"a": 1}, ""]))
    def answer(self, value: Any) -> None:
        if self._toolkit.pending:  # no precondition: what `leave` leaves depends on how far the run was
            self._resumed.append(self._toolkit.pending[0].id)
            assert not self._toolkit.resume(self._toolkit.pending[0], value).is_error

    @rule(
        protocol=st.sampled_from(["native", "json_schema"]), torn=st.sampled_from([b"", b'{"session_id": null, "rec'])
    )
    def restart(self, protocol: Literal["native", "json_schema"], torn: bytes) -> None:
        asked = [*(call.id for call in self._toolkit.pending), *self._resumed]
        waiting = [call_id for call_id in asked if call_id in self._agent.owed()]
        self._resumed.clear()
        said = self._said
        with self._path.open("ab") as file:
            file.write(torn)
        self._toolkit.close()
        self.start(protocol)
        assert sorted(call.id for call in self._toolkit.pending) == sorted(waiting)
        assert self._said == said

    def _run(self, message: str | None, script: list[Any], after: int | None = None) -> list[Event]:
        self.script[:] = script
        self._resumed.clear()
        happened: list[Event] = []

        async def listen() -> None:
            async with aclosing(cast("Any", self._agent.stream(message))) as events:
                async for event in events:
                    happened.append(event)
                    if len(happened) == after:
                        return

        asyncio.run(asyncio.wait_for(listen(), 30))
        return happened

    @staticmethod
    def _last(happened: list[Event]) -> Event:
        """How a run ended: with an answer, with calls that wait, or with a reason."""
        last = happened[-1]
        assert isinstance(last, (Final, Parked, Stopped))
        assert not isinstance(last, Stopped) or last.reason
        assert sum(isinstance(event, (Final, Parked)) for event in happened) <= 1
        return last

    @property
    def _said(self) -> list[dict[str, Any]]:
        self._agent.owed()  # it reads the file
        return self._agent._conversation(None).messages

    @invariant()
    def every_request_is_well_formed(self) -> None:
        heard, self._heard = self.server.requests[self._heard :], len(self.server.requests)
        for request in heard:
            assert faults_of(request["messages"]) == [], request["messages"]
            for message in request["messages"]:
                assert all(call["id"] for call in message.get("tool_calls") or ())

    def teardown(self) -> None:
        self._toolkit.close()
        self._folder.cleanup()


def play(scripts: int) -> None:
    Conversation.script = []

    def reply(request: dict[str, Any]) -> Any:
        return Conversation.script.pop(0) if Conversation.script else "The end."

    with ScriptedServer(forever=reply) as Conversation.server:
        run_state_machine_as_test(
            Conversation, settings=settings(max_examples=scripts, stateful_step_count=8, deadline=None)
        )


def test_random_scripts() -> None:
    play(8)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_random_scripts(part: int) -> None:
    play(250)
