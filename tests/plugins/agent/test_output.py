"""Answers of a type, and the protocol for models that know no tools."""

import json
from typing import Any, Literal

import pytest

from pegboard import Toolkit, tool
from pegboard_agent import Agent, AgentStoppedError, CallEnded, Final, Stopped, TextDelta
from pegboard_testing import ScriptedServer
from tests.plugins.agent.desk import agent_on, events_of, faults_of, model_of


class TestOutput:
    def test_is_asked_for_by_a_hidden_tool(self) -> None:
        with ScriptedServer(("add", {"a": 1, "b": 2}), ("final_answer", {"answer": [1, 2, 3]})) as server:
            agent = agent_on(server, output=list[int])
            message = agent.call_sync("Count!")
        assert (message.data, message.text) == ([1, 2, 3], "[1, 2, 3]")
        assert [each["function"]["name"] for each in server.requests[0]["tools"]][-1] == "final_answer"
        assert "final_answer" not in agent.toolkit

    def test_of_a_record_is_its_members(self) -> None:
        pytest.importorskip("pegboard_dataclasses")
        from dataclasses import dataclass

        @dataclass
        class Weather:
            city: str
            degrees: int

        with ScriptedServer(("final_answer", {"city": "Beijing", "degrees": "25"})) as server:
            agent = Agent("A", model_of(server), Toolkit(plugins=["dataclasses"]), output=Weather)
            message = agent.call_sync("Weather?")
        assert message.data == Weather("Beijing", 25)
        parameters = server.requests[0]["tools"][-1]["function"]["parameters"]
        assert list(parameters["properties"]) == ["city", "degrees"]

    @pytest.mark.parametrize("said", ["[1, 2]", "```json\n[1, 2]\n```", '{"answer": [1, 2]}'])
    def test_may_be_said_in_words(self, said: str) -> None:
        with ScriptedServer(said) as server:
            if "answer" not in said:
                assert agent_on(server, output=list[int]).call_sync("Count!").data == [1, 2]
            else:
                with pytest.raises(AgentStoppedError):
                    agent_on(server, output=list[int]).call_sync("Count!")

    def test_a_text_is_an_answer_where_text_is_asked_for(self) -> None:
        with ScriptedServer("Yes.", ("final_answer", {"answer": "No."})) as server:
            agent = agent_on(server, output=str)
            assert agent.call_sync("?").data == "Yes."
            assert agent.call_sync("?").data == "No."

    @pytest.mark.parametrize("arguments", [{"answer": "Yes."}, {"text": "Yes."}, '"Yes."'])
    def test_a_text_may_have_any_name(self, arguments: Any) -> None:
        with ScriptedServer(("final_answer", arguments)) as server:
            assert agent_on(server, output=str).call_sync("?").data == "Yes."

    def test_a_wrong_answer_goes_back_with_its_reason(self) -> None:
        wrong = [("final_answer", {"answer": "many"}), "Many."]
        with ScriptedServer(*wrong, ("final_answer", {"answer": 3})) as server:
            assert agent_on(server, output=int).call_sync("How many?").data == 3
        second, third = server.requests[1]["messages"], server.requests[2]["messages"]
        assert 'expected integer, got string "many"' in second[-1]["content"]
        assert "final_answer" in third[-1]["content"]
        assert faults_of(third) == []

    def test_twice_at_most(self) -> None:
        with ScriptedServer(forever=("final_answer", {"answer": "many"})) as server:
            (stopped,) = [event for event in events_of(agent_on(server, output=int), "?") if isinstance(event, Stopped)]
        assert len(server.requests) == 3
        assert "wrong 3 times" in stopped.reason
        assert "expected integer" in stopped.reason

    def test_beside_other_calls_it_does_not_count(self) -> None:
        both = [("add", {"a": 1, "b": 2}), ("final_answer", {"answer": 4})]
        with ScriptedServer(both, ("final_answer", {"answer": 3})) as server:
            assert agent_on(server, output=int).call_sync("1 + 2?").data == 3
        told = server.requests[1]["messages"]
        assert faults_of(told) == []
        assert [message["content"][:5] for message in told[-2:]] == ["3.0", "Error"]

    @pytest.mark.parametrize("last", [("final_answer", {"answer": 3}), "3", "```json\n3\n```"])
    def test_after_the_last_step_it_is_asked_for_in_words(self, last: Any) -> None:
        with ScriptedServer(("add", {"a": 1, "b": 2}), last) as server:
            happened = events_of(agent_on(server, output=int, max_iterations=1), "1 + 2?")
        first, second = server.requests
        assert (second["tools"], second["tool_choice"]) == (first["tools"], "none")
        assert second["messages"][-1]["content"].endswith('nothing but JSON: the argument "answer" of final_answer.')
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.data == 3

    def test_without_one_at_the_end_there_is_no_answer(self) -> None:
        with ScriptedServer(("add", {"a": 1, "b": 2}), "Three.") as server:
            agent = agent_on(server, output=int, max_iterations=1)
            with pytest.raises(AgentStoppedError, match="max_iterations"):
                agent.call_sync("1 + 2?")

    def test_a_tool_of_that_name_keeps_it(self) -> None:
        @tool
        def final_answer(text: str) -> str:
            """Of a third party."""
            return text.upper()

        with ScriptedServer(("final_answer", {"text": "a"}), ("final_answer_", {"answer": 1})) as server:
            assert agent_on(server, final_answer, output=int).call_sync("?").data == 1
        assert server.requests[1]["messages"][-1]["content"] == "A"


def step(name: str, arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


class TestJsonSchema:
    def test_calls_are_asked_for_by_a_schema(self) -> None:
        with ScriptedServer(step("add", {"a": 15, "b": 27}), step("final_answer", {"answer": "It is 42."})) as server:
            agent = agent_on(server, tool_protocol="json_schema", system_prompt="Be brief.")
            happened = events_of(agent, "15 + 27?")
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.text == "It is 42."
        assert happened[-1].message.data is None
        assert [e.text for e in happened if isinstance(e, TextDelta)] == ["It is 42."]
        assert [e.result.text for e in happened if isinstance(e, CallEnded)] == ["42.0"]
        first, second = server.requests
        assert "tools" not in first
        form = first["response_format"]
        assert form["type"] == "json_schema"
        choices = form["json_schema"]["schema"]["anyOf"]
        names = [choice["properties"]["name"]["const"] for choice in choices]
        assert names == ["get_weather", "get_forecast", "add", "multiply", "final_answer"]
        system, *said = second["messages"]
        assert system["content"].startswith("Be brief.\n\nWork step by step. Each step is one JSON object")
        assert [message["role"] for message in said] == ["user", "assistant", "user"]
        assert json.loads(said[1]["content"]) == {"name": "add", "arguments": {"a": 15, "b": 27}}
        result, reminder = said[2]["content"].split("\n\n")
        assert result == "Result of add: 42.0"
        assert "The request was: 15 + 27?" in reminder

    def test_typed_answers(self) -> None:
        with ScriptedServer(step("final_answer", {"answer": [1, 2]})) as server:
            agent = agent_on(server, tool_protocol="json_schema", output=list[int])
            assert agent.call_sync("Count!").data == [1, 2]

    @pytest.mark.parametrize("said", ["I think so.", '{"name": "add"}', "[1]", '{"name": "add", "arguments": {"a"'])
    def test_what_is_no_step_goes_back(self, said: str) -> None:
        with ScriptedServer(said, step("final_answer", {"answer": "ok"})) as server:
            assert agent_on(server, tool_protocol="json_schema").call_sync("?").text == "ok"
        assert "no JSON object of the form" in server.requests[1]["messages"][-1]["content"]

    def test_and_stops_the_run_if_it_stays_so(self) -> None:
        with ScriptedServer(forever="I think so.") as server, pytest.raises(AgentStoppedError, match="wrong 3 times"):
            agent_on(server, tool_protocol="json_schema").call_sync("?")

    def test_the_last_answer_may_be_nothing_but_text(self) -> None:
        with ScriptedServer(step("add", {"a": 1, "b": 1}), "Two.") as server:
            agent = agent_on(server, tool_protocol="json_schema", max_iterations=1)
            happened = events_of(agent, "?")
        assert isinstance(happened[-1], Final)
        assert happened[-1].message.text == "Two."

    def test_schemas_that_refer_to_themselves_stay_whole(self) -> None:
        class Walk:
            name = "walk"
            description = "Walk a tree."
            parameters = {  # noqa: RUF012 - as a program would write it
                "type": "object",
                "properties": {"tree": {"$ref": "#/$defs/Tree"}},
                "$defs": {"Tree": {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/Tree"}}}}},
            }

            def call(self, call: Any) -> str:
                return "walked"

        with ScriptedServer(step("final_answer", {"answer": "ok"})) as server:
            agent_on(server, Walk(), tool_protocol="json_schema").call_sync("?")
        schema = server.requests[0]["response_format"]["json_schema"]["schema"]
        assert schema["anyOf"][0]["properties"]["arguments"] == {"$ref": "#/$defs/walk"}
        walk = schema["$defs"]["walk"]
        assert walk["properties"]["tree"] == {"$ref": "#/$defs/walk/$defs/Tree"}
        assert walk["$defs"]["Tree"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/walk/$defs/Tree"}

    def test_a_conversation_may_change_its_protocol(self) -> None:
        from pegboard_agent import Memory

        memory = Memory()
        with ScriptedServer(("add", {"a": 1, "b": 2}), "3", step("final_answer", {"answer": "still 3"})) as server:
            agent_on(server, memory=memory).call_sync("1 + 2?")
            protocol: Literal["json_schema"] = "json_schema"
            assert agent_on(server, memory=memory, tool_protocol=protocol).call_sync("Sure?").text == "still 3"
        assert all("tool_calls" not in message for message in server.requests[-1]["messages"])
