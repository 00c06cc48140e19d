"""What a model wrote, as it is sent back: always something that servers read, and never a call that was cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Status, tool
from pegboard_agent import Agent, AgentStoppedError, CallEnded, Memory
from pegboard_agent._messages import to_send
from pegboard_testing import Failing, Raw, ScriptedServer
from tests.plugins.agent.desk import agent_on, events_of, faults_of, keep, model_of

BROKEN = [
    "",
    "{",
    '{"a": 1, ',
    "[]",
    "null",
    '"text"',
    "NaN",
    '{"a": NaN}',
    '{"a": 1e999}',
    '{"a": "\\ud83d"}',
    "x" * 9,
]
HUGE = '{"a": 1e9999999999999999999, "b": 1}'


def streamed(*choices: dict[str, Any]) -> Raw:
    """A stream with these choices, and an end."""
    events = [f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices]
    return Raw("".join([*events, "data: [DONE]\n\n"]))


def call_of(name: str, arguments: str | None = None) -> dict[str, Any]:
    function = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return {"index": 0, "id": "c1", "type": "function", "function": function}


def strictly(request: dict[str, Any]) -> Any:
    """As a server that parses what was said: 400 for arguments that are no JSON object."""
    for message in request["messages"]:
        for call in message.get("tool_calls") or ():
            if not is_readable(call["function"]["arguments"]):
                return Failing(400, "Expecting property name enclosed in double quotes")
    return "ok"


def is_readable(arguments: str) -> bool:
    """Whether this is a JSON object to parsers that hold to RFC 8259 and have doubles as numbers."""

    def number(text: str) -> float:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise ValueError(text)
        return value

    def refused(name: str) -> Any:
        raise ValueError(name)

    try:
        value = json.loads(arguments, parse_float=number, parse_int=number, parse_constant=refused)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


class TestBrokenCalls:
    @pytest.mark.parametrize("arguments", [*BROKEN, HUGE])
    def test_what_goes_back_is_an_object_always(self, arguments: str) -> None:
        with ScriptedServer(("add", arguments), strictly, strictly) as server:
            agent = agent_on(server)
            assert agent.call_sync("1 + 2?").text == "ok"
            assert agent.call_sync("And now?").text == "ok"
        assert faults_of(server.requests[-1]["messages"]) == []

    def test_the_model_reads_what_it_wrote(self) -> None:
        with ScriptedServer(("add", '{"a": 1, '), "ok") as server:
            agent_on(server).call_sync("1 + 2?")
        (call,) = server.requests[1]["messages"][1]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"INVALID_JSON": '{"a": 1, '}
        assert "not valid JSON" in server.requests[1]["messages"][2]["content"]

    def test_text_in_a_fence_runs_and_goes_back_as_an_object(self) -> None:
        with ScriptedServer(("add", '```json\n{"a": 1, "b": 2}\n```'), strictly) as server:
            (result,) = [e.result for e in events_of(agent_on(server), "1 + 2?") if isinstance(e, CallEnded)]
        assert result.status is Status.SUCCESS
        assert len(server.requests) == 2

    def test_a_file_of_an_earlier_release_may_hold_broken_ones(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, '}}
        memory = Memory(path)
        keep(memory, {"role": "user", "content": "1 + 2?"})
        keep(memory, {"role": "assistant", "content": None, "tool_calls": [call]})
        with ScriptedServer(strictly) as server:
            assert agent_on(server, memory=Memory(path)).call_sync().text == "ok"

    def test_small_models_read_an_object_too(self) -> None:
        step = '{"name": "add", "arguments": {"a": NaN}}'
        done = '{"name": "final_answer", "arguments": {"answer": "done"}}'
        with ScriptedServer(step, done) as server:
            assert agent_on(server, tool_protocol="json_schema").call_sync("go").text == "done"
        assert is_readable(server.requests[1]["messages"][2]["content"])

    @pytest.mark.parametrize("protocol", ["native", "json_schema"])
    def test_an_answer_that_is_nested_too_deep_is_a_wrong_one(self, protocol: str) -> None:
        deep = '{"name": "final_answer", "arguments": ' + "[" * 50_000
        with (
            ScriptedServer(forever=deep) as server,
            pytest.raises(AgentStoppedError, match="the answer was wrong 3 times"),
        ):
            agent_on(server, output=int, tool_protocol=protocol).call_sync("go")

    @given(st.text() | st.sampled_from([*BROKEN, HUGE]))
    def test_of_any_text_comes_an_object(self, text: str) -> None:
        message = {"role": "assistant", "content": None, "tool_calls": [call_of("add", text)]}
        sent = json.loads(json.dumps(to_send(message), ensure_ascii=False).encode("utf-8", "replace"))
        assert is_readable(sent["tool_calls"][0]["function"]["arguments"])

    @given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
    def test_an_object_goes_back_as_it_was_written(self, arguments: dict[str, Any]) -> None:
        text = json.dumps(arguments)
        message = {"role": "assistant", "content": None, "tool_calls": [call_of("add", text)]}
        assert to_send(message)["tool_calls"][0]["function"]["arguments"] == text


class TestNumbersThatAreNone:
    def test_the_call_is_invalid_and_the_conversation_goes_on(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        with ScriptedServer(("add", HUGE), "Sorry.", "Hello.") as server:
            happened = events_of(agent_on(server, memory=Memory(path)), "1 + 2?")
            assert [e.result.status for e in happened if isinstance(e, CallEnded)] == [Status.INVALID]
            assert agent_on(server, memory=Memory(path)).call_sync("hi").text == "Hello."

    def test_a_file_that_ends_with_one_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        with ScriptedServer(("add", HUGE), "Sorry.", "Hello.") as server:
            agent_on(server, memory=Memory(path)).call_sync("1 + 2?")
            lines = path.read_text("utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:3]), "utf-8")  # as if the program had ended there
            agent = agent_on(server, memory=Memory(path))
            assert len(agent.owed()) == 1
            assert agent.call_sync("hi").text == "Hello."


class TestCutCalls:
    """`wipe` has a default for all that it takes: its call is whole before its arguments have begun."""

    @staticmethod
    def wiping(server: ScriptedServer, **options: Any) -> tuple[Agent, list[str]]:
        wiped: list[str] = []

        @tool(destructive=True)
        def wipe(folder: str = "/") -> str:
            """Wipe."""
            wiped.append(folder)
            return "wiped"

        return agent_on(server, wipe, **options), wiped

    @pytest.mark.parametrize("arguments", [None, "", "{", "{}", '{"folder": "/tmp"}'])
    @pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "incomplete", "content_filter"])
    def test_never_run(self, finish: str, arguments: str | None) -> None:
        call = {"delta": {"tool_calls": [call_of("wipe", arguments)]}, "finish_reason": None}
        with ScriptedServer(streamed(call, {"delta": {}, "finish_reason": finish}), strictly) as server:
            agent, wiped = self.wiping(server)
            happened = events_of(agent, "Tidy up.")
        assert wiped == []
        assert "cut off" in server.requests[1]["messages"][-1]["content"]
        assert [e.result.status for e in happened if isinstance(e, CallEnded)] == [Status.ERROR]

    def test_never_run_of_a_response_that_comes_at_once(self) -> None:
        message = {"role": "assistant", "content": None, "tool_calls": [call_of("wipe", "")]}
        whole = json.dumps({"choices": [{"message": message, "finish_reason": "length"}]})
        with ScriptedServer(Raw(whole, "application/json"), "ok") as server:
            agent, wiped = self.wiping(server)
            agent.call_sync("Tidy up.")
        assert wiped == []

    def test_never_run_where_a_stream_does_not_say_why_it_ends(self) -> None:
        with ScriptedServer(streamed({"delta": {"tool_calls": [call_of("wipe")]}}), "ok") as server:
            agent, wiped = self.wiping(server)
            agent.call_sync("Tidy up.")
        assert wiped == []

    @pytest.mark.parametrize("hints", [{}, {"destructive": True}])
    def test_never_run_in_a_program_that_finds_them_in_the_memory(self, tmp_path: Path, hints: dict[str, Any]) -> None:
        path = tmp_path / "talk.jsonl"
        ran: list[str] = []

        @tool(**hints)
        def wipe(folder: str = "/") -> None:
            """Wipe."""
            ran.append(folder)

        cut = streamed({"delta": {"tool_calls": [call_of("wipe")]}, "finish_reason": "length"})
        with ScriptedServer(cut, "ok", "ok again") as server:
            agent_on(server, wipe, memory=Memory(path)).call_sync("Tidy up.")
            lines = path.read_text("utf-8").splitlines(keepends=True)
            path.write_text("".join(lines[:3]), "utf-8")  # as if the program had ended there
            assert agent_on(server, wipe, memory=Memory(path)).call_sync().text == "ok again"
        assert ran == []
        assert "cut off" in server.requests[2]["messages"][-1]["content"]
        assert all("cut_off" not in message for request in server.requests for message in request["messages"])

    def test_a_whole_call_without_arguments_runs(self) -> None:
        whole = streamed({"delta": {"tool_calls": [call_of("wipe", "")]}, "finish_reason": "tool_calls"})
        with ScriptedServer(whole, "ok") as server:
            agent, wiped = self.wiping(server)
            agent.call_sync("Tidy up.")
        assert wiped == ["/"]


class TestReasoning:
    THOUGHT: tuple[dict[str, Any], ...] = (
        {"delta": {"role": "assistant", "content": "", "reasoning_content": "I have "}},
        {"delta": {"reasoning_content": "to add."}},
        {"delta": {"tool_calls": [call_of("add", '{"a": 1, "b": 2}')]}},
        {"delta": {}, "finish_reason": "tool_calls"},
    )

    @staticmethod
    def thinking(request: dict[str, Any]) -> Any:
        """As DeepSeek in its thinking mode."""
        called = [message for message in request["messages"] if message.get("tool_calls")]
        if not all(message.get("reasoning_content") == "I have to add." for message in called):
            return Failing(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
        return streamed({"delta": {"reasoning_content": "Done.", "content": "3"}, "finish_reason": "stop"})

    def test_beside_a_call_goes_back(self, tmp_path: Path) -> None:
        path = tmp_path / "talk.jsonl"
        with ScriptedServer(streamed(*self.THOUGHT), forever=self.thinking) as server:
            assert agent_on(server, memory=Memory(path)).call_sync("1 + 2?").text == "3"
            assert agent_on(server, memory=Memory(path)).call_sync("Sure?").text == "3"
        assert server.requests[2]["messages"][3]["reasoning_content"] == "Done."  # of the same turn

    def test_of_a_response_that_comes_at_once_too(self) -> None:
        message = {"content": None, "reasoning_content": "I have to add.", "tool_calls": [call_of("add", "{}")]}
        whole = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
        with ScriptedServer(Raw(whole, "application/json"), self.thinking) as server:
            assert agent_on(server).call_sync("1 + 2?").text == "3"

    def test_of_a_turn_without_calls_does_not(self) -> None:
        said = streamed({"delta": {"reasoning_content": "Hm.", "content": "Hello."}, "finish_reason": "stop"})
        with ScriptedServer(said, "ok") as server:
            agent = agent_on(server)
            agent.call_sync("hi")
            agent.call_sync("hi")
        assert server.requests[1]["messages"][1] == {"role": "assistant", "content": "Hello."}

    def test_of_a_response_that_began_anew_is_forgotten(self) -> None:
        begun = Raw(f"data: {json.dumps({'choices': [{'delta': {'reasoning_content': 'Nonsense. '}}]})}\n\n")
        with ScriptedServer(begun, streamed(*self.THOUGHT), self.thinking) as server:
            assert agent_on(server).call_sync("1 + 2?").text == "3"


class TestNothingToGoOnWith:
    @pytest.mark.parametrize(("session_id", "named"), [(None, "without a session_id"), ("ann", "'ann'")])
    def test_is_an_error_that_names_the_conversation(self, session_id: str | None, named: str) -> None:
        with ScriptedServer(forever="ok") as server:
            agent = agent_on(server)
            for _ in range(2):
                with pytest.raises(AgentStoppedError, match=f"the conversation {named} has nothing to go on with"):
                    agent.call_sync(session_id=session_id)
                agent.call_sync("hi", session_id=session_id)
        assert len(server.requests) == 2  # the model was asked the questions alone

    def test_a_question_without_an_answer_is_something(self) -> None:
        with ScriptedServer(Failing(400), "Hello.") as server:
            agent = agent_on(server)
            with pytest.raises(AgentStoppedError):
                agent.call_sync("hi")
            assert agent.call_sync().text == "Hello."


class TestTheLastRequest:
    @pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
    @pytest.mark.parametrize("output", [None, int])
    def test_has_the_same_tools_and_may_call_none(self, choice: Any, output: Any) -> None:
        call = ("add", {"a": 1, "b": 2})
        last = "3" if output is None else ("final_answer", {"answer": 3})
        with ScriptedServer(call, last) as server:
            agent = agent_on(server, max_iterations=1, output=output)
            agent.model.options = {"tool_choice": choice, "parallel_tool_calls": False}  # type: ignore[attr-defined]
            assert agent.call_sync("1 + 2?").text == "3"
        first, second = server.requests
        assert (first["tool_choice"], first["parallel_tool_calls"]) == (choice, False)
        assert (second["tool_choice"], second["parallel_tool_calls"]) == ("none", False)
        assert second["tools"] == first["tools"]

    def test_says_nothing_of_tools_where_there_are_none(self) -> None:
        cut = {"delta": {"tool_calls": [call_of("add", "{}")]}, "finish_reason": "tool_calls"}
        with ScriptedServer(streamed(cut), "3") as server:
            agent = Agent("A", model_of(server, tool_choice="required"), max_iterations=1)
            assert agent.call_sync("1 + 2?").text == "3"
        assert not any("tools" in request or "tool_choice" in request for request in server.requests)
