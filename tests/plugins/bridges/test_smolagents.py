"""smolagents: a `ToolCallingAgent`, with a model that says what it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import pytest

pytest.importorskip("smolagents")

from smolagents import CodeAgent, LogLevel, Model, ToolCallingAgent
from smolagents import tool as native_tool
from smolagents.agents import ToolOutput
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    get_tool_json_schema,
)

from pegboard import Session, ToolCall, Toolkit
from pegboard_bridges.smolagents import from_smolagents, to_smolagents
from tests.plugins.bridges import frameworks
from tests.plugins.bridges.desk import board
from tests.plugins.bridges.frameworks import Answer, FrameworkTests, Run, Shown


class Scripted(Model):
    """Asks for calls, then gives its answer; remembers what it is shown."""

    def __init__(self, calls: Iterable[ToolCall]) -> None:
        super().__init__(model_id="scripted")
        self.turns = iter([[(call.id, call.name, dict(call.arguments)) for call in calls], []])
        self.shown: tuple[Shown, ...] = ()

    def generate(self, messages: Any, tools_to_call_from: Any = (), **_: Any) -> ChatMessage:
        described = [get_tool_json_schema(tool)["function"] for tool in tools_to_call_from]
        self.shown = tuple(Shown(each["name"], each["description"], each["parameters"]) for each in described)
        calls = next(self.turns) or [("last", "final_answer", {"answer": "done"})]
        made = [
            ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), call_id, "function")
            for call_id, name, arguments in calls
        ]
        return ChatMessage(MessageRole.ASSISTANT, "", made)


class Stage(frameworks.Stage):
    framework = "smolagents"
    distribution = "smolagents"
    has_async = False
    losses: ClassVar = {
        "types": "a union is shown as a list of JSON types, without details",
        "images": "no model is shown an image of a tool",
        "progress": "there is no channel for it",
        "approval": "only the session's approver decides",
        "names": "a parameter `sanitize_inputs_outputs` is shown with an underscore more",
        "spaces": "spaces around a text are removed",
        "status": "an error is a text like any other",
    }

    def run(self, source: Toolkit | Session, calls: Iterable[ToolCall], approve: bool = True) -> Run:
        model = Scripted(calls)
        agent = ToolCallingAgent(self.outwards(source), model, verbosity_level=LogLevel.OFF)
        outputs = [each for each in agent.run("go", stream=True) if isinstance(each, ToolOutput)]
        return Run(model.shown, {each.id: Answer(each.observation) for each in outputs})

    def native(self, functions: Iterable[Callable[..., Any]]) -> Any:
        return [native_tool(function) for function in functions]

    def inwards(self, tools: Any) -> Any:
        return from_smolagents(tools)

    def outwards(self, source: Toolkit | Session) -> Any:
        return to_smolagents(source)

    def run_native(self, tools: Any, calls: Iterable[ToolCall]) -> Any:
        return ToolCallingAgent(tools, Scripted(calls), verbosity_level=LogLevel.OFF).run("go")


class TestSmolagents(FrameworkTests):
    stage = Stage()


def tidy(text: str, sanitize_inputs_outputs: bool = False) -> str:
    """Tidy a text up.

    Args:
        text: The text.
        sanitize_inputs_outputs: Whether to be thorough.
    """
    return f"{text} {sanitize_inputs_outputs}"


def test_a_parameter_whose_name_is_the_frameworks_own_is_shown_under_another_and_reaches_the_tool() -> None:
    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(tidy)
        arguments = {"text": "a", "sanitize_inputs_outputs_": True}
        run = Stage().run(toolkit, [ToolCall("call_0", "tidy", arguments), ToolCall("call_1", "tidy", {"text": "b"})])
    properties = {each.name: each.parameters["properties"] for each in run.shown}["tidy"]
    assert list(properties) == ["text", "sanitize_inputs_outputs_"]
    assert [run.answers[call_id].text for call_id in ("call_0", "call_1")] == ["a True", "b False"]


def test_a_native_tool_with_a_parameter_of_that_name_gets_it() -> None:
    with Toolkit(plugins=["bridges"]) as toolkit:
        toolkit.register(native_tool(tidy))
        assert toolkit.call_sync("tidy", {"text": "a", "sanitize_inputs_outputs": True}).text == "a True"
        assert toolkit.call_sync("tidy", {"text": "b"}).text == "b False"


def test_agents_that_write_code_call_them_as_functions() -> None:
    class Writes(Model):
        def generate(self, messages: Any, **_: Any) -> ChatMessage:
            code = "<code>\nfinal_answer(forecast(city='Oslo', days=2))\n</code>"
            return ChatMessage(MessageRole.ASSISTANT, f"Thought: ask.\n{code}")

    with board() as toolkit:
        agent = CodeAgent(to_smolagents(toolkit), Writes(model_id="writes"), verbosity_level=LogLevel.OFF)
        assert agent.run("go") == "Oslo/2/True/0.5"
