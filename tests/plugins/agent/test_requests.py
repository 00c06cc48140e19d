"""What a model is sent: the system prompt, the tools in its own form, and which of them it may call."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard import Session, Toolkit, tool
from pegboard_agent import Agent, AgentStoppedError, Memory, Parked
from tests.plugins.agent.desk import Calculator, Scripted, calls, events_of, faults_of
from tests.plugins.agent.test_limits import ASK

ADD = ("add", {"a": 1, "b": 2})
NAMED = {"type": "function", "function": {"name": "add"}}


def board(*tools: Any) -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.register(*(tools or (Calculator(),)))
    return toolkit


class TestSystemPrompt:
    def test_may_be_a_function_of_the_session(self) -> None:
        def prompt(session: Session) -> str:
            return f"You talk to {session.subject}, with {len(session)} tools."

        model = Scripted("Hello.")
        Agent("A", model, board().session(subject="ann"), system_prompt=prompt).call_sync("hi")
        assert model.messages[0][0] == {"role": "system", "content": "You talk to ann, with 2 tools."}

    def test_that_is_one_is_asked_once_for_each_conversation(self) -> None:
        asked: list[Session] = []

        async def prompt(session: Session) -> str:
            asked.append(session)
            return f"Number {len(asked)}."

        model = Scripted(calls(ADD), forever="ok")
        agent = Agent("A", model, board(), system_prompt=prompt)
        for session_id in ("a", "b", "a"):
            agent.call_sync("hi", session_id=session_id)
        told = [messages[0]["content"] for messages in model.messages]
        assert told == ["Number 1.", "Number 1.", "Number 2.", "Number 1."]
        assert len(asked) == 2

    def test_that_is_one_stays_what_it_was_in_the_next_program(self, tmp_path: Any) -> None:
        """So the prefix that a provider's cache has stays too."""
        path = tmp_path / "talk.jsonl"
        first, second = Scripted("one"), Scripted("two")
        Agent("A", first, memory=Memory(path), system_prompt=lambda _: "It is Monday.").call_sync("hi")
        Agent("A", second, memory=Memory(path), system_prompt=lambda _: "It is Tuesday.").call_sync("hi")
        assert second.messages[0][: len(first.messages[0])] == first.messages[0]
        third = Scripted("three")
        Agent("A", third, memory=Memory(path), system_prompt="It is Wednesday.").call_sync("hi")
        assert third.messages[0][0]["content"] == "It is Wednesday."  # a text is what the program says now
        assert [each["role"] for each in third.messages[0]].count("system") == 1

    def test_that_says_nothing_is_not_sent(self) -> None:
        model = Scripted("Hello.", "Hello.")
        agent = Agent("A", model, system_prompt=lambda _: "")
        agent.call_sync("hi")
        agent.call_sync("hi")
        assert [each["role"] for each in model.messages[1]] == ["user", "assistant", "user"]

    def test_that_fails_leaves_the_conversation_as_it_was(self) -> None:
        def prompt(session: Session) -> str:
            raise LookupError("who?")

        memory = Memory()
        agent = Agent("A", Scripted("Hello."), memory=memory, system_prompt=prompt)
        with pytest.raises(LookupError, match="who"):
            agent.call_sync("hi")
        assert memory.load(None) == []
        agent.system_prompt = lambda _: "Now."
        assert agent.call_sync("hi").text == "Hello."

    @pytest.mark.parametrize("given", [None, 5, ["text"]])
    def test_is_a_text(self, given: Any) -> None:
        with pytest.raises(TypeError, match="system_prompt is a text, or a function of the session, not"):
            Agent("A", Scripted(), system_prompt=given)
        with pytest.raises(TypeError, match="the function system_prompt gives a text, not"):
            Agent("A", Scripted("hi"), system_prompt=lambda _: given).call_sync("hi")


class TestFirstToolChoice:
    @pytest.mark.parametrize(
        ("choice", "sent"),
        [
            ("required", "required"),
            ("none", "none"),
            ("add", NAMED),
            (["add"], {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}),
            ([], "none"),
            ("auto", None),
        ],
    )
    def test_holds_for_the_first_request_of_a_run_alone(self, choice: str | list[str], sent: Any) -> None:
        model = Scripted(calls(ADD), calls(ADD), "3", calls(ADD), "3")
        agent = Agent("A", model, board(), first_tool_choice=choice)
        agent.call_sync("1 + 2?")
        agent.call_sync("1 + 2?")
        assert [options.get("tool_choice") for options in model.options] == [sent, None, None, sent, None]

    def test_does_not_hold_where_a_run_goes_on(self) -> None:
        model = Scripted(calls(("ask_user", {})), "Rome.")
        agent = Agent("A", model, board(ASK), first_tool_choice="required")
        (parked,) = [event for event in events_of(agent, "go") if isinstance(event, Parked)]
        agent.toolkit.resume(parked.call_ids[0], "Rome")
        assert agent.call_sync().text == "Rome."
        assert [options.get("tool_choice") for options in model.options] == ["required", None]

    def test_of_a_tool_that_there_is_not_ends_the_run(self) -> None:
        model = Scripted("hi")
        with pytest.raises(AgentStoppedError, match="ad"):
            Agent("A", model, board(), first_tool_choice="ad").call_sync("hi")
        assert model.messages == []

    def test_without_tools_says_nothing(self) -> None:
        model = Scripted("hi")
        Agent("A", model, first_tool_choice="required").call_sync("hi")
        assert (model.tools, model.options) == ([[]], [{}])

    @pytest.mark.parametrize("given", [None, 5, "", [5], {"type": "auto"}])
    def test_is_a_word_or_names(self, given: Any) -> None:
        with pytest.raises(TypeError, match="first_tool_choice is"):
            Agent("A", Scripted(), first_tool_choice=given)

    @pytest.mark.parametrize(
        ("choice", "names"),
        [
            ("auto", ["add", "multiply", "final_answer"]),
            ("required", ["add", "multiply"]),
            ("none", ["final_answer"]),
            ("add", ["add"]),
        ],
    )
    def test_holds_for_tools_in_words_too(self, choice: str, names: list[str]) -> None:
        model = Scripted('{"name": "final_answer", "arguments": {"answer": "ok"}}')
        Agent("A", model, board(), tool_protocol="json_schema", first_tool_choice=choice).call_sync("hi")
        schema = model.options[0]["response_format"]["json_schema"]["schema"]
        assert [each["properties"]["name"]["const"] for each in schema["anyOf"]] == names
        assert "multiply" in model.messages[0][0]["content"]  # the tools are told all the same


class TestToolsInWords:
    def test_the_last_request_tells_the_same_tools_and_leaves_the_answer_alone(self) -> None:
        step = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
        model = Scripted(step, '{"name": "final_answer", "arguments": {"answer": "3"}}')
        agent = Agent("A", model, board(), tool_protocol="json_schema", max_iterations=1)
        assert agent.call_sync("1 + 2?").text == "3"
        first, last = (messages[0]["content"] for messages in model.messages)
        assert first == last
        schema = model.options[1]["response_format"]["json_schema"]["schema"]
        assert [each["properties"]["name"]["const"] for each in schema["anyOf"]] == ["final_answer"]


def told(session: Session) -> str:
    """Tell."""
    session.update_groups("late", active=True)
    return "told"


@tool(group="late")
def late() -> str:
    """Late."""
    return "late"


def with_a_group() -> Toolkit:
    """The tool of the group comes first on the board."""
    toolkit = Toolkit(plugins=())
    toolkit.create_group("late", active=False)
    toolkit.register(late, Calculator(), told)
    return toolkit


class TestDialects:
    @pytest.mark.parametrize("output", [None, int])
    @pytest.mark.parametrize(
        ("dialect", "names", "none"),
        [
            ("openai", lambda tools: [each["function"]["name"] for each in tools], {"tool_choice": "none"}),
            ("openai-responses", lambda tools: [each["name"] for each in tools], {"tool_choice": "none"}),
            ("anthropic", lambda tools: [each["name"] for each in tools], {"tool_choice": {"type": "none"}}),
            (
                "gemini",
                lambda tools: [each["name"] for (one,) in [tools] for each in one["function_declarations"]],
                {"tool_config": {"function_calling_config": {"mode": "NONE"}}},
            ),
        ],
    )
    def test_a_model_gets_definitions_and_choice_in_its_own(
        self, dialect: str, names: Any, none: dict[str, Any], output: Any
    ) -> None:
        answer = "3" if output is None else calls(("final_answer", {"answer": 3}))
        model = Scripted(calls(ADD), answer, dialect=dialect)
        agent = Agent("A", model, board(), output=output, max_iterations=1)
        assert agent.call_sync("1 + 2?").text == "3"
        assert names(model.tools[0]) == ["add", "multiply", *(["final_answer"] if output else [])]
        assert model.tools[1] == model.tools[0]
        assert model.options == [{}, none]
        assert faults_of(model.messages[1]) == []  # messages are those of chat completions for all

    def test_a_toolkit_with_plugins_may_have_one_of_its_own(self) -> None:
        model = Scripted("hi", dialect="anthropic")
        toolkit = Toolkit(plugins=["dialects"])
        toolkit.register(Calculator())
        Agent("A", model, toolkit).call_sync("hi")
        assert model.tools == [toolkit.dialect("anthropic").request()["tools"]]

    def test_one_that_there_is_not_ends_the_run(self) -> None:
        with pytest.raises(AgentStoppedError, match="acme"):
            Agent("A", Scripted("hi", dialect="acme"), board()).call_sync("hi")

    def test_choices_among_some_tools_are_refused_where_the_provider_has_no_form(self) -> None:
        choice = ["add"]
        Agent("A", Scripted("hi", dialect="gemini"), board(), first_tool_choice=choice).call_sync("hi")
        with pytest.raises(AgentStoppedError, match="view"):
            Agent("A", Scripted("hi", dialect="anthropic"), board(), first_tool_choice=choice).call_sync("hi")


class TestOrderOfReveal:
    @pytest.mark.parametrize("output", [None, int])
    def test_tools_that_come_later_move_none(self, output: Any) -> None:
        model = Scripted(calls(("told", {})), calls(("late", {})), forever=calls(("final_answer", {"answer": 1})))
        agent = Agent("A", model, with_a_group(), output=output, max_iterations=2)
        agent.call_sync("go")
        offered = [[each["function"]["name"] for each in tools] for tools in model.tools]
        answer = ["final_answer"] if output else []
        assert offered == [["add", "multiply", "told", *answer]] + [["add", "multiply", "told", "late", *answer]] * 2

    @pytest.mark.parametrize(("keeps", "kept"), [(True, ["late"]), (False, [])])
    @pytest.mark.parametrize("output", [None, int])
    def test_definitions_stay_where_a_model_keeps_them(self, keeps: bool, kept: list[str], output: Any) -> None:
        toolkit = with_a_group()
        toolkit.update_groups("late", active=True)
        first = ["late", "add", "multiply", "told"]
        answer = "ok" if output is None else calls(("final_answer", {"answer": 1}))
        model = Scripted(answer, answer, keeps=keeps)
        agent = Agent("A", model, toolkit, output=output)
        agent.call_sync("hi")
        toolkit.update_groups("late", active=False)
        agent.call_sync("hi")
        last = ["final_answer"] if output else []
        assert [each["function"]["name"] for each in model.tools[1]] == [*kept, *first[1:], *last]
        allowed = model.options[1].get("tool_choice", {}).get("allowed_tools", {}).get("tools", [])
        named = [each["function"]["name"] for each in allowed]
        assert named == ([*first[1:], *last] if keeps else [])
